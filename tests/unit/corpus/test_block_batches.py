"""Batches of small blocks: the same rows, counts and statistics as block by block."""

import dataclasses
import functools
import itertools
import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tokcore.corpus.block_batches import BlockBatches, add_stats, batch_rows
from tokcore.corpus.corpus import (
    Block,
    BlockText,
    CorpusFile,
    FilterSpec,
    KeyRange,
    LongLine,
    Split,
)
from tokcore.corpus.declarations import Bitext, JsonLines, PlainText, Tsv
from tokcore.counts.tables import BlockCounter
from tokcore.errors import InputError
from tokcore.records.examples import Feature, FeatureEncoder, encode_batch, encode_block
from tokcore.records.tfrecord import join_rows
from tokcore.schemes import find_scheme
from tokcore.text.normalizers import UNSTRIPPED_LINES

SUBWORD = find_scheme('subword')
BYTES = find_scheme('byte')

LINES = st.sampled_from(
    [
        b'',
        b'a',
        b'b a\r',
        ' \u4e2d\u6587 a '.encode(),
        b'x\ty',
        b'\xff',
        b'a' * 70,
        b'{',
        b'{"t": 1}',
        b'\xef\xbb\xbfx\ty',
        b'\xef\xbb\xbf{"t": "x"}',
    ]
    + [json.dumps({'t': text}).encode() for text in ('a b', '', 'a\nb')]
)
FILES = st.lists(
    st.tuples(st.lists(LINES, min_size=1, max_size=5), st.booleans()), min_size=1, max_size=6
)
FORMATS = [PlainText(), JsonLines(fields=('t',)), Tsv(columns=(0,)), Tsv(columns=(0,), header=True)]


def blocks_of(format, files, first=3, max_line_bytes=60):
    """Returns a block for each of the first lines of a file, and one for the others."""
    blocks = []
    for number, (lines, is_ended) in enumerate(files, first):
        text = b'\n'.join(lines) + b'\n' * is_ended
        cut = text.find(b'\n') + 1
        for offset, part in ((0, text[:cut]), (cut, text[cut:])):
            if part:
                blocks.append(
                    Block('train', format, number, (BlockText(offset, part),), max_line_bytes)
                )
    return blocks


def split_of(format, files=20, **options):
    names = [CorpusFile(f'/{number}', str(number), 100, False) for number in range(files)]
    return Split('train', format, tuple((file,) for file in names), **options)


@functools.cache
def features():
    encoder = BYTES.encoder(BYTES.fixed, BYTES.encoding())
    return [FeatureEncoder(Feature('targets', 0), encoder, BYTES.template(BYTES.fixed, None))]


def encoded_alike(blocks, split, on_error, normalizer=BYTES.normalizer):
    """Checks that a batch encodes to what its blocks do, or fails with the error of the first."""
    options = (features(), 7, (split,), normalizer, on_error)
    try:
        one_by_one = [encode_block(block, *options) for block in blocks]
    except InputError as error:
        with pytest.raises(InputError) as raised:
            encode_batch(tuple(blocks), *options)
        assert str(raised.value) == str(error)
        return
    batch = encode_batch(tuple(blocks), *options)
    expected = join_rows([each.rows for each in one_by_one])
    for name in ('keys', 'lengths', 'records'):
        assert np.array_equal(getattr(batch.rows, name), getattr(expected, name))
    assert batch.stats == add_stats([each.stats for each in one_by_one])


def counted_alike(blocks, split, on_error):
    def counter():
        return BlockCounter(((0,),), SUBWORD.normalizer, SUBWORD.pre_tokenizer)

    one_by_one, at_once = counter(), counter()
    try:
        stats = [one_by_one.add(block, (split,), on_error) for block in blocks]
    except InputError as error:
        with pytest.raises(InputError) as raised:
            at_once.add_batch(tuple(blocks), (split,), on_error)
        assert str(raised.value) == str(error)
        return
    assert at_once.add_batch(tuple(blocks), (split,), on_error) == add_stats(stats)
    [expected], [found] = one_by_one.finish(), at_once.finish()
    assert dict(found.items()) == dict(expected.items())


@given(
    st.sampled_from(FORMATS),
    FILES,
    st.sampled_from(['stop', 'skip']),
    st.sampled_from([None, KeyRange(5, 0, 1 << 63), KeyRange(5, 1 << 62, 1 << 64, True)]),
)
def test_a_batch_gives_what_its_blocks_give_one_by_one(format, files, on_error, key_range):
    blocks, split = blocks_of(format, files), split_of(format, key_range=key_range)
    assume(blocks)  # files may be empty
    for normalizer in (BYTES.normalizer, UNSTRIPPED_LINES):
        encoded_alike(blocks, split, on_error, normalizer)
    counted_alike(blocks, split, on_error)


@pytest.mark.parametrize('options', [{'filters': (FilterSpec('length:1:2'),)}, {'end': (4, 3)}])
def test_rows_that_need_more_than_their_lines_are_taken_block_by_block(options):
    blocks = blocks_of(PlainText(), [([b'a', b'b a', b'c'], True)] * 3)
    split = split_of(PlainText(), **options)
    assert batch_rows(tuple(blocks), (split,), SUBWORD.normalizer) is None
    encoded_alike(blocks, split, 'stop')


def test_good_lines_of_many_files_are_rows_at_once():
    blocks = tuple(blocks_of(PlainText(), [([b'a', b' b'], False)] * 2))
    rows = batch_rows(blocks, (split_of(PlainText()),), SUBWORD.normalizer)
    assert rows.file_indexes.tolist() == [3, 3, 4, 4] and rows.offsets.tolist() == [0, 2, 0, 2]
    assert [rows.sides[0].row(row) for row in range(4)] == ['a', 'b', 'a', 'b']


@pytest.mark.parametrize('text', [b'\xef\xbb\xbfb\r\n', b'b\r'])
def test_files_that_begin_with_a_mark_or_end_with_a_return_are_taken_block_by_block(text):
    split = split_of(PlainText())
    blocks = [
        Block('train', PlainText(), number, (BlockText(0, each),))
        for number, each in enumerate([b'a\r\n', text, b'c\n'])
    ]
    assert batch_rows(tuple(blocks), (split,), UNSTRIPPED_LINES) is None
    encoded_alike(blocks, split, 'stop', UNSTRIPPED_LINES)


def test_a_mark_that_does_not_begin_its_file_is_text_in_a_batch_too():
    split = split_of(PlainText())
    blocks = [
        Block('train', PlainText(), 0, (BlockText(2, b'\xef\xbb\xbfb\n'),)),
        Block('train', PlainText(), 1, (BlockText(0, b'c\n'),)),
    ]
    encoded_alike(blocks, split, 'stop')


def test_a_long_line_and_pairs_are_taken_block_by_block():
    split = split_of(PlainText())
    [block] = blocks_of(PlainText(), [([b'a'], True)])
    long = dataclasses.replace(
        block, texts=(BlockText(2, b''),), long_lines=(LongLine(0, 2, 70, 71, 0, b'aaa'),)
    )
    assert batch_rows((block, long), (split,), SUBWORD.normalizer) is None
    encoded_alike([block, long], split, 'skip')
    pair = Block('train', Bitext(), 0, (BlockText(0, b'a\n'), BlockText(0, b'b\n')))
    file = CorpusFile('/0', '0', 2, False)
    pairs = Split('train', Bitext(), ((file, file),))
    assert batch_rows((pair, pair), (pairs,), SUBWORD.normalizer) is None


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(1, 9)), max_size=20), st.integers(1, 12))
def test_each_block_is_in_one_batch_in_order_and_of_one_dataset(blocks, most):
    splits = [
        dataclasses.replace(split_of(PlainText(), 4), dataset=name, first_file_index=first)
        for first, name in ((0, 'a'), (4, 'b'))
    ]
    added = [
        Block('train', PlainText(), index, (BlockText(0, b'x' * size),)) for index, size in blocks
    ]
    batches = BlockBatches(splits, most)
    complete = [batch for block in added for batch in batches.add(block)] + batches.rest()
    assert [block for batch in complete for block in batch] == added
    assert batches.rest() == []
    for batch in complete:
        indexes = [block.file_index for block in batch]
        assert len({index // 4 for index in indexes}) == 1
        assert all(index != following for index, following in itertools.pairwise(indexes))
        assert len(batch) == 1 or sum(block.held_bytes for block in batch) <= most


def test_small_files_are_put_together():
    blocks = blocks_of(PlainText(), [([b'a'], True)] * 9)
    batches = BlockBatches((split_of(PlainText()),), 8)
    complete = [batch for block in blocks for batch in batches.add(block)] + batches.rest()
    assert [len(batch) for batch in complete] == [3, 3, 3]
