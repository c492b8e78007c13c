"""Rows of every format are those of the plain rules, however files are cut, stored and normalized."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain.contents import READ, joint_verdict
from plain.formats import FORMATS
from plain.lines import NORMALIZERS, SplitRows
from read_format import became_of

from tokcore.errors import InputError

MARK = b'\xef\xbb\xbf'
SIZES = st.sampled_from([1, 7, 30, 100, 1000, 1 << 20])


@pytest.mark.parametrize('name', FORMATS)
@given(
    st.integers(0, 1 << 32), SIZES, SIZES, st.sampled_from([1, 3, 12, 60, 1000, 16 << 20]),
    st.booleans(), st.booleans(), st.sampled_from([*NORMALIZERS]),
)  # fmt: skip
def test_rows_are_those_of_the_plain_rules(
    name, seed, item_bytes, block_bytes, longest, zipped, has_mark, normalizer
):
    drawn = FORMATS[name](random.Random(seed))
    zipped &= drawn.is_packed
    contents = tuple(drawn.files.values())
    if has_mark and name not in ('parquet', 'tmx'):
        contents = tuple(MARK + each for each in contents)
    if zipped and joint_verdict(each.removeprefix(MARK) for each in contents) != READ:
        return  # what is not text is tested with the contents
    names = ['corpus', 'corpus1'][: len(contents)]
    expected = drawn.rows_of([*zip(names, contents, strict=True)], longest, normalizer)
    options = (item_bytes, block_bytes, longest, zipped, normalizer)
    if expected is None:
        with pytest.raises(InputError, match='corpus'):
            became_of(drawn.declared, contents, *options)
        return
    became = became_of(drawn.declared, contents, *options)
    assert became.rows == [*zip(expected.offsets, expected.rows, strict=True)]
    assert (became.empty, became.missing_side) == (expected.empty, expected.missing_side)
    assert became.rejects == rejects_of(expected, names)


def rejects_of(expected: SplitRows, names):
    """What is compared of the rejects: a line that is too long has its size and its beginning."""
    return sorted(
        (
            names.index(each.file),
            each.offset,
            each.reason,
            each.offset + each.damage,
            each.line[:1000] if each.reason == 'too_long' else each.line,
            len(each.line) if each.reason == 'too_long' else None,
            each.number,
        )
        for each in expected.rejects
    )
