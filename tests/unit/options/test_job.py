"""`--on-error N|P%`: this many lines, or such a share of those read, and not one more."""

import argparse
import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.options.job import rejection_limit

lines = st.integers(0, 10**12)


@given(lines, lines)
def test_a_number_of_lines_is_that_many(most, rejected):
    limit = rejection_limit(str(most))
    assert limit.is_passed(rejected, rejected + 1) == (rejected > most)
    assert limit.is_passed(rejected, rejected + 10**15) == (rejected > most)


@given(st.integers(0, 100), st.integers(0, 999_999), lines, lines)
def test_a_share_is_exactly_what_is_typed(whole, millionths, rejected, others):
    if whole == 100:
        millionths = 0
    limit = rejection_limit(f'{whole}.{millionths:06d}%')
    share = Fraction(whole * 10**6 + millionths, 10**8)
    assert limit.is_passed(rejected, rejected + others) == (rejected > share * (rejected + others))


@pytest.mark.parametrize(
    ('typed', 'rejected', 'read'),
    [('0', 0, 5), ('7', 7, 7), ('0%', 0, 5), ('0.7%', 7, 1000), ('0.1%', 1, 1000),
     ('33.3%', 333, 1000), ('1%', 3, 300), ('100%', 9, 9)],
)  # fmt: skip
def test_exactly_so_many_pass_and_one_more_does_not(typed, rejected, read):
    limit = rejection_limit(typed)
    assert not limit.is_passed(rejected, read)
    assert limit.is_passed(rejected + 1, read)
    assert str(limit) == typed
    assert pickle.loads(pickle.dumps(limit)) == limit


@pytest.mark.parametrize(
    'typed',
    ['', '%', '-1', '+1', '1.5', '1e3', '101%', '100.000001%', '1 %', '.5%', '5.%', '0.1234567%',
     '1000%', '٣', '1' * 19, 'nan%', '1_000', '10\n'],
)  # fmt: skip
def test_what_is_neither_is_refused(typed):
    with pytest.raises(argparse.ArgumentTypeError, match='not stop, skip, a number of lines'):
        rejection_limit(typed)


def test_words_are_no_limit():
    assert rejection_limit('stop') is None and rejection_limit('skip') is None


def test_the_error_tells_the_reasons_commonest_first():
    error = rejection_limit('2%').error({'too_long': 1, 'invalid_utf8': 30}, 400)
    assert str(error) == (
        '31 of 400 lines read could not be used (30 invalid_utf8, 1 too_long), more than '
        '--on-error 2% allows; mend the files, or give more'
    )
