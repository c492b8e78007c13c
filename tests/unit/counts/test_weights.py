"""Weights of datasets become exact factors, and factors scale counts as integer arithmetic says."""

import argparse
import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.counts.counting import LARGEST_COUNT
from tokcore.counts.tables import scale_table
from tokcore.counts.token_table import TokenTable
from tokcore.counts.weights import factors_of_tables, reason_against, temperature, weight

sizes = st.integers(1, 10**15)
decimals = st.tuples(st.integers(0, 10**6), st.text('0123456789', max_size=6)).map(
    lambda parts: f'{parts[0]}.{parts[1]}' if parts[1] else str(parts[0])
)
weights = decimals.filter(lambda word: any(digit in word for digit in '123456789'))


@pytest.mark.parametrize(
    ('word', 'spelled'),
    [('0.7', '0.7'), ('0.70', '0.7'), ('1.0', '1'), ('007', '7'), ('2x', '2x'), ('02x', '2x')],
)
def test_a_weight_has_one_spelling(word, spelled):
    assert weight(word) == spelled


@pytest.mark.parametrize(
    'word', ['', 'x', '0', '0.00', '0x', '-1', '1.5x', '1e3', '.5', '1.', '0,7', '٣', '1' * 19]
)
def test_other_words_are_not_weights(word):
    with pytest.raises(argparse.ArgumentTypeError, match='is not a weight above 0, as 0.7'):
        weight(word)


@pytest.mark.parametrize('word', ['', '0', '2x', '-1', '1/3', '0.09', '0.000005'])
def test_other_words_are_not_temperatures(word):
    with pytest.raises(argparse.ArgumentTypeError, match='is not a temperature from 0.1 on'):
        temperature(word)


def test_the_smallest_temperature_gives_factors_that_are_floats():
    assert temperature('0.10') == '0.1'
    factors = factors_of_tables([1, 10**15], [None, None], '0.1')
    assert [*map(float, factors)] == [1, pytest.approx(1e135)]


@given(st.lists(st.tuples(sizes, weights), min_size=1, max_size=5))
def test_factors_times_bytes_are_in_the_ratio_of_the_weights(tables):
    factors = factors_of_tables([size for size, _ in tables], [word for _, word in tables])
    assert min(factors) == 1
    # A plain form: weights as whole numbers of millionths, and no division.
    whole = [
        int(word.partition('.')[0] + word.partition('.')[2].ljust(6, '0')) for _, word in tables
    ]
    for one, other in itertools.combinations(range(len(tables)), 2):
        mass = [tables[number][0] * factors[number] for number in (one, other)]
        assert mass[0] * whole[other] == mass[1] * whole[one]


def test_whole_factors_are_taken_as_they_are():
    assert factors_of_tables([5, 900], ['2x', '7x']) == [2, 7]


@given(st.lists(sizes, min_size=1, max_size=5))
def test_temperature_1_counts_each_table_as_it_is(many):
    assert factors_of_tables(many, [None] * len(many), '1') == [1] * len(many)


@given(st.lists(sizes, min_size=2, max_size=5), st.sampled_from(['0.5', '2', '3', '1.42857']))
def test_temperature_gives_the_ratios_of_powers(many, degree):
    factors = factors_of_tables(many, [None] * len(many), degree)
    for size, factor in zip(many, factors, strict=True):
        share = (size / many[0]) ** (1 / float(degree))
        expected = share / (size / many[0])
        assert float(factor / factors[0]) == pytest.approx(expected, rel=1e-9)


def test_the_weights_of_a_square_root_are_exact():
    assert factors_of_tables([900, 100], [None, None], '2') == [1, 3]


@pytest.mark.parametrize(
    ('given_weights', 'degree', 'reason'),
    [
        (['0.7', None], None, 'some datasets have a weight and others do not'),
        (['2x', '0.7'], None, 'do not go together'),
        (['0.7', '0.3'], '3', '--temperature takes the place of weights'),
        (['0.7', '3'], None, None),
        (['1x', '3x'], None, None),
        ([None, None], '3', None),
    ],
)
def test_weights_that_do_not_go_together_have_a_reason(given_weights, degree, reason):
    found = reason_against(given_weights, degree)
    assert found is None if reason is None else reason in found


def rounded(count: int, factor: Fraction) -> int:
    """Rounds half to even, by integers."""
    whole, rest = divmod(count * factor.numerator, factor.denominator)
    twice = 2 * rest
    up = twice > factor.denominator or (twice == factor.denominator and whole % 2 == 1)
    return whole + up


factors = st.one_of(
    st.integers(1, 9).map(Fraction),
    st.integers(2, 40).map(lambda number: Fraction(number, 2)),
    st.fractions(1, 1000, max_denominator=10**9),
)


@given(st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**50)), max_size=30), factors)
def test_counts_are_scaled_as_integers_say(counts, factor):
    table = TokenTable.from_items((f't{number}', count) for number, count in enumerate(counts))
    scaled = scale_table(table, factor)
    assert scaled.counts.tolist() == [rounded(count, factor) for count in counts]
    assert (scaled.data.tolist(), scaled.offsets.tolist()) == (
        table.data.tolist(),
        table.offsets.tolist(),
    )


def test_a_product_beyond_64_bits_is_an_error():
    table = TokenTable.from_items([('a', LARGEST_COUNT // 3)])
    assert scale_table(table, Fraction(3)).counts.tolist() == [LARGEST_COUNT // 3 * 3]
    with pytest.raises(OverflowError, match='times 4 exceeds'):
        scale_table(table, Fraction(4))


@given(st.lists(st.tuples(st.text('ab字', min_size=1), st.integers(0, 2**61)), max_size=20))
def test_the_bytes_of_a_table_are_those_of_its_text(pairs):
    distinct = dict(pairs)
    table = TokenTable.from_items(distinct.items())
    assert table.text_bytes == sum(len(word.encode()) * n for word, n in distinct.items())


def test_a_table_with_the_largest_counts_has_exact_bytes():
    table = TokenTable(
        np.zeros(10**6, np.uint8), np.array([0, 10**6]), np.array([LARGEST_COUNT], np.int64)
    )
    assert table.text_bytes == 10**6 * LARGEST_COUNT
