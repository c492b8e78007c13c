"""Formats by name: what each declares, and how splits of them are planned and read."""

import gzip
import io
import subprocess
import sys

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tokcore.corpus.contents import look
from tokcore.corpus.corpus import Block, BlockText, CorpusFile, Split, TextRange, WorkItem
from tokcore.corpus.formats import (
    all_reasons,
    block_rows,
    corpus_format,
    format_names,
    format_reader,
    index_ranges,
    plan_items,
    read_blocks,
)
from tokcore.corpus.line_formats import Bitext, PlainText
from tokcore.corpus.stats import LineTally
from tokcore.corpus.tsv import Tsv
from tokcore.errors import InputError
from tokcore.text.normalizers import T2T_LINES

line = st.one_of(
    st.binary(max_size=12).map(lambda line: line.replace(b'\n', b'')),
    st.sampled_from([b'', b'\r', b'\xff\xfe', 'Übergrößenträger'.encode(), b'long ' * 60]),
)
ending = st.sampled_from([b'\n', b'\r\n'])

sizes = st.one_of(st.integers(1, 64), st.sampled_from([1 << 10, 1 << 20]))


def test_a_format_is_had_by_its_name():
    assert [corpus_format(name).name for name in format_names()] == [
        'bitext', 'tsv', 'jsonl', 'parquet', 'sgm', 'tmx', 'tmx-lines', 'labelled', 'text',
    ]  # fmt: skip
    assert corpus_format('tsv')((2, 0)).options == {'columns': (2, 0)}
    with pytest.raises(ValueError, match="'pairs' is none of bitext, tsv, jsonl, parquet, sgm, "):
        corpus_format('pairs')


def test_options_belong_to_their_format_alone():
    with pytest.raises(TypeError):
        corpus_format('text')(columns=(0,))


def test_formats_are_known_without_anything_heavy():
    known = (
        'import sys; from tokcore.corpus.formats import all_formats; all_formats(); '
        'print({"numba", "numpy", "apache_beam", "pyarrow"} & sys.modules.keys())'
    )
    command = [sys.executable, '-c', known]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    assert ended.stdout == 'set()\n'


def test_reasons_are_those_of_all_formats_and_of_each():
    assert all_reasons() == (
        'broken_unit', 'filter_no_row', 'filter_too_long', 'invalid_csv', 'invalid_json',
        'invalid_utf8', 'lone_surrogate', 'missing_column', 'missing_field', 'not_a_string', 'null',
        'outside_segment', 'too_long', 'undefined_entity', 'unknown_label', 'unmatched_segment',
        'unstorable_token', 'wrong_type',
    )  # fmt: skip


def test_a_tally_records_reasons_in_order_beside_what_it_always_told():
    tally = LineTally('train', 9, 2, 1, {'too_short': 4, 'invalid_utf8': 2, 'too_long': 0})
    assert list(tally.left_out) == ['invalid_utf8', 'too_short']
    assert tally.rejected == 6
    record = {
        'split': 'train', 'lines': 9, 'examples': 2, 'empty': 1,
        'invalid_utf8': 2, 'missing_column': 0, 'too_short': 4,
    }  # fmt: skip
    assert tally.record() == record
    assert LineTally.of_record(record) == tally
    with pytest.raises(ValueError, match='empty'):
        LineTally('train', 1, 0, 0, {'empty': 1})


@st.composite
def texts(draw, lines=None):
    count = draw(st.integers(0, 30)) if lines is None else lines
    text = b''.join(draw(line) + draw(ending) for _ in range(count))
    if text and draw(st.booleans()):
        shorter = text.removesuffix(b'\n')
        # Without its line feed an empty last line would be no line at all.
        text = shorter if not shorter.endswith(b'\n') and shorter else text
    assume(is_text(text))
    return text


def is_text(content):
    """Whether bytes are not refused by what they are, as UTF-16 is."""
    seen = look(content)
    return seen.content is None and not seen.encoding and seen.nuls <= 16


@st.composite
def pairs(draw):
    count = draw(st.integers(0, 30))
    return draw(texts(count)), draw(texts(count))


def stored(text, path, compressed):
    content = gzip.compress(text, compresslevel=1) if compressed else text
    return CorpusFile(path, path, len(content), compressed), content


def blocks_of(text, item_bytes, block_bytes=1, compressed=False):
    file, content = stored(text, 'corpus', compressed)
    items = plan_items(Split('train', PlainText(), ((file,),)), (), item_bytes)
    return [
        list(read_blocks(item, lambda path: io.BytesIO(content), block_bytes)) for item in items
    ]


def pair_blocks(source, target, item_bytes, block_bytes=1, zipped=(False, False)):
    (source_file, source_content), (target_file, target_content) = (
        stored(text, path, compressed)
        for text, path, compressed in zip((source, target), 'st', zipped, strict=True)
    )
    contents = {'s': source_content, 't': target_content}
    split = Split('train', Bitext(), ((source_file, target_file),))

    def open_binary(path):
        return io.BytesIO(contents[path])

    index = [
        format_reader(split.format).index(part, open_binary)
        for part in index_ranges(split, item_bytes)
    ]
    items = plan_items(split, index, item_bytes)
    return [block for item in items for block in read_blocks(item, open_binary, block_bytes)]


def data_of(block, side=0):
    return block.texts[side].data


def assert_tiles(blocks, text):
    """The blocks are whole lines, and each begins where the one before ended."""
    assert b''.join(map(data_of, blocks)) == text
    offset = 0
    for block in blocks:
        assert data_of(block) and block.offset == offset
        offset += len(data_of(block))
    assert all(data_of(block).endswith(b'\n') for block in blocks[:-1])


@given(texts(), sizes)
def test_items_of_a_plain_file_tile_it(text, item_bytes):
    items = blocks_of(text, item_bytes)
    assert all(len(blocks) <= 1 for blocks in items)
    assert_tiles([block for blocks in items for block in blocks], text)
    for place, blocks in enumerate(items):
        for block in blocks:
            assert block.offset // item_bytes == place
            # Its last line, but no other, may cross the end of the range.
            last = data_of(block).removesuffix(b'\n').rfind(b'\n') + 1
            assert block.offset + last < (place + 1) * item_bytes


@given(texts(), sizes)
def test_blocks_of_a_gzip_file_tile_its_text(text, block_bytes):
    (blocks,) = blocks_of(text, 64, block_bytes, compressed=True)
    assert_tiles(blocks, text)
    assert all(len(data_of(block)) >= block_bytes for block in blocks[:-1])


@given(pairs(), sizes, sizes, st.tuples(st.booleans(), st.booleans()))
def test_blocks_of_a_pair_hold_the_same_lines(texts, item_bytes, block_bytes, zipped):
    source, target = texts
    expected = list(zip(io.BytesIO(source), io.BytesIO(target), strict=True))
    blocks = pair_blocks(source, target, item_bytes, block_bytes, zipped)
    found = [
        pair
        for block in blocks
        for pair in zip(io.BytesIO(data_of(block)), io.BytesIO(data_of(block, 1)), strict=True)
    ]
    assert found == expected
    assert_tiles(blocks, source)
    offset = 0
    for block in blocks:
        assert block.texts[1].offset == offset
        offset += len(data_of(block, 1))
    if any(zipped):
        for block in blocks:
            first = [list(io.BytesIO(side))[:-1] for side in (data_of(block), data_of(block, 1))]
            assert max(sum(map(len, lines)) for lines in first) < block_bytes
        for block in blocks[:-1]:
            assert max(len(data_of(block)), len(data_of(block, 1))) >= block_bytes


def test_a_line_longer_than_many_items_belongs_to_the_item_it_starts_in():
    text = b'a\n' + b'x' * 5_000_000 + b'\n' + b'b\n'
    items = blocks_of(text, 100_000)
    assert [len(data_of(block)) for blocks in items for block in blocks] == [5_000_003, 2]
    assert [place for place, blocks in enumerate(items) if blocks] == [0, 50]


def test_a_line_that_ends_on_the_border_leaves_the_next_to_the_next_item():
    assert [[data_of(block) for block in blocks] for blocks in blocks_of(b'abc\ndef\ng', 4)] == [
        [b'abc\n'], [b'def\n'], [b'g']
    ]  # fmt: skip


def test_empty_files_have_no_blocks():
    assert blocks_of(b'', 64) == []
    assert blocks_of(b'', 64, compressed=True) == [[]]
    assert pair_blocks(b'', b'', 64, zipped=(True, False)) == []


@pytest.mark.parametrize('longer', [0, 1])
@pytest.mark.parametrize('lines', [0, 1, 5])
def test_streams_of_unequal_length_are_refused(longer, lines):
    texts = [b'a\n' * lines, b'b\n' * lines]
    texts[longer] += b'c\n' * 3
    files, contents = zip(*(stored(text, p, True) for text, p in zip(texts, 'st')), strict=True)
    ranges = [TextRange(file, 0, file.size) for file in files]
    item = WorkItem('train', Bitext(), 0, tuple(ranges))
    with pytest.raises(InputError, match=f'{"ts"[longer]} ends after {lines} lines but'):
        list(read_blocks(item, lambda path: io.BytesIO(contents['st'.index(path)]), 4))


def test_files_that_lost_lines_since_they_were_counted_are_refused():
    split_lines = b'ab\n' * 100
    file, _ = stored(split_lines, 's', False)
    split = Split('train', Bitext(), ((file, file),))
    index = [
        format_reader(split.format).index(part, lambda path: io.BytesIO(split_lines))
        for part in index_ranges(split, 64)
    ]
    joined = b'abc' * 100
    for item in plan_items(split, index, 64):
        with pytest.raises(InputError, match='s no longer has the .* lines after byte'):
            list(read_blocks(item, lambda path: io.BytesIO(joined)))


def test_a_file_that_lost_one_line_since_it_was_counted_is_refused():
    file, _ = stored(b'ab\ncd\n', 's', False)
    part = TextRange(file, 0, 6, 0, 2)
    with pytest.raises(InputError, match='s no longer has the 2 lines after byte 0'):
        item = WorkItem('train', Bitext(), 0, (part, part))
        list(read_blocks(item, lambda path: io.BytesIO(b'ab cd\n')))


def test_streams_that_lost_lines_since_they_were_counted_are_refused():
    file, content = stored(b'ab\n' * 99, 's', True)
    part = TextRange(file, 0, file.size, 0, 100)
    with pytest.raises(InputError, match='have 99 lines but had 100'):
        item = WorkItem('train', Bitext(), 0, (part, part))
        list(read_blocks(item, lambda path: io.BytesIO(content)))


@pytest.mark.parametrize('size', [1, 200, 400])
def test_a_plain_file_of_another_size_than_planned_is_refused(size):
    file, _ = stored(b'ab\n' * 100, 'corpus', False)
    for item in plan_items(Split('train', PlainText(), ((file,),)), (), 64):
        with pytest.raises(InputError, match=f'corpus has {size} bytes but had 300'):
            list(read_blocks(item, lambda path: io.BytesIO(bytes(size))))


def test_a_cut_off_gzip_file_is_refused_in_a_pair_too():
    file, content = stored(b'ab\n' * 100, 's', True)
    cut = CorpusFile('s', 's', len(content) - 9, True)
    item = WorkItem('train', Bitext(), 0, (TextRange(cut, 0, cut.size),) * 2)
    with pytest.raises(InputError, match='cut off'):
        list(read_blocks(item, lambda path: io.BytesIO(content[:-9])))


def test_a_block_has_at_least_a_byte():
    part = TextRange(CorpusFile('s', 's', 1, False), 0, 1)
    with pytest.raises(ValueError, match='block_bytes'):
        read_blocks(WorkItem('train', PlainText(), 0, (part,)), io.BytesIO, 0)


def row_texts(block):
    return [
        [bytes(side.text[start:end]) for start, end in zip(side.starts, side.ends, strict=True)]
        for side in block_rows(block, T2T_LINES).sides
    ]


def test_rows_follow_the_kind_of_the_block():
    assert row_texts(Block('train', PlainText(), 0, (BlockText(5, b'a\tb\n'),))) == [[b'a\tb']]
    assert row_texts(Block('train', Tsv((1, 0)), 0, (BlockText(5, b'a\tb\n'),))) == [[b'b'], [b'a']]
    pair = Block('train', Bitext(), 0, (BlockText(5, b'a\nb\n'), BlockText(9, b'c\nd')))
    assert row_texts(pair) == [[b'a', b'b'], [b'c', b'd']]
    assert block_rows(pair, T2T_LINES).offsets.tolist() == [5, 7]
