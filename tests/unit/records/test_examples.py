"""Blocks of rows as framed examples, and buckets that are sent when memory is used up."""

import pytest
from framed_rows import framed, records_of
from hypothesis import given
from hypothesis import strategies as st

from tokcore.corpus.corpus import Block, BlockText, CorpusFile, Split
from tokcore.corpus.declarations import Bitext, PlainText
from tokcore.encoding.vocabulary import NO_TEMPLATE
from tokcore.errors import InputError
from tokcore.records.examples import (
    PART_OVERHEAD,
    BucketBuffer,
    Feature,
    FeatureEncoder,
    encode_block,
)
from tokcore.subword.text_encoder import SubwordTextEncoder
from tokcore.text.normalizers import T2T_LINES

# What a part of a single row takes beyond its record: key, length, a size, and the objects around them.
ROW = 8 + 8 + 4 + PART_OVERHEAD

BATCHES = st.lists(
    st.lists(st.tuples(st.integers(0, 2**64 - 1), st.binary(max_size=40)), max_size=8), max_size=8
)

LACKING = SubwordTextEncoder(['<pad>_', '<EOS>_', 'a', '_', ' '])
"""Knows no escapes, so it spells nothing else."""

SOURCE, TARGET = (CorpusFile(name, name, 100, False) for name in ('/source', '/target'))


def key_in(bucket: int, buckets: int = 4) -> int:
    return (bucket << 64) // buckets + 1


@given(BATCHES, st.integers(1, 6), st.integers(0, 6000))
def test_rows_are_conserved_in_order_and_the_limit_is_kept(batches, buckets, byte_limit):
    buffer = BucketBuffer(buckets, byte_limit)
    pieces = []
    for batch in batches:
        pieces += buffer.add(framed(batch))
        assert buffer.nbytes <= byte_limit
    pieces += buffer.flush_all()
    assert buffer.nbytes == 0 and buffer.flush_all() == []

    expected: dict[int, list] = {}
    for key, record in sum(batches, []):
        expected.setdefault(key * buckets >> 64, []).append((key, record))
    found: dict[int, list] = {}
    for bucket, piece in pieces:
        assert len(piece) > 0
        found.setdefault(bucket, []).extend(records_of(piece))
    assert found == expected


def test_nothing_is_sent_below_the_limit():
    buffer = BucketBuffer(4, byte_limit=2 * (ROW + 10))
    assert buffer.add(framed([(key_in(0), b'0' * 10)])) == []
    assert buffer.add(framed([(key_in(3), b'3' * 10)])) == []
    assert [bucket for bucket, _ in buffer.flush_all()] == [0, 3]


def test_the_fullest_bucket_is_sent_first_and_no_more_than_needed():
    buffer = BucketBuffer(4, byte_limit=2 * ROW + 70)
    batch = [(key_in(0), b'a' * 20), (key_in(1), b'b' * 50), (key_in(2), b'c' * 50)]
    flushed = buffer.add(framed(batch))
    # 1 and 2 are as full as each other: the lower number; then the rest fits.
    assert [(bucket, records_of(rows)) for bucket, rows in flushed] == [(1, batch[1:2])]
    assert [bucket for bucket, _ in buffer.flush_all()] == [0, 2]


def test_the_parts_of_a_bucket_are_joined():
    buffer = BucketBuffer(2, 1 << 20)
    first, second = [(3, b'one'), (1, b'two')], [(2, b'three')]
    assert buffer.add(framed(first)) == buffer.add(framed(second)) == []
    [(bucket, rows)] = buffer.flush_all()
    assert bucket == 0 and records_of(rows) == first + second


def test_impossible_sizes_are_refused():
    with pytest.raises(ValueError, match='buckets'):
        BucketBuffer(0, 1)
    with pytest.raises(ValueError, match='negative'):
        BucketBuffer(1, -1)


def encode(block, splits, sides):
    features = [
        FeatureEncoder(Feature(str(side), side), LACKING.row_encoder(), NO_TEMPLATE)
        for side in range(sides)
    ]
    encode_block(block, features, 0, splits, T2T_LINES)


def test_the_first_line_that_cannot_be_spelt_is_named():
    splits = (Split('train', PlainText(), ((SOURCE,),)),)
    block = Block('train', PlainText(), 0, (BlockText(10, b'a\n\na a\nab\nb\n'),))
    with pytest.raises(InputError, match="^/source: the line at byte 17: no subtoken .*'ab'.*; "):
        encode(block, splits, 1)


def test_the_side_of_a_pair_that_cannot_be_spelt_is_named():
    splits = (Split('train', Bitext(), ((SOURCE, TARGET),)),)
    block = Block('train', Bitext(), 0, (BlockText(0, b'a\naa\n'), BlockText(0, b'a\nb\n')))
    with pytest.raises(InputError, match='^/target: the pair of the line at byte 2 of /source: no'):
        encode(block, splits, 2)
