"""Formats by name: what each declares, and how splits of them are planned and read."""

import gzip
import io
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.corpus.corpus import CorpusFile, Split, TextRange, WorkItem, split_of
from tokcore.corpus.declarations import Bitext, PlainText
from tokcore.corpus.formats import (
    all_reasons,
    corpus_format,
    format_names,
    format_of_files,
    format_reader,
    index_ranges,
    plan_items,
    read_blocks,
)
from tokcore.corpus.stats import LineTally
from tokcore.errors import InputError


def test_a_format_is_had_by_its_name():
    assert [corpus_format(name).name for name in format_names()] == [
        'bitext', 'tsv', 'jsonl', 'parquet', 'sgm', 'tmx', 'tmx-lines', 'labelled', 'text',
    ]  # fmt: skip
    assert corpus_format('tsv')((2, 0)).options == {'columns': (2, 0)}
    with pytest.raises(
        ValueError, match="'pairs' is not one of bitext, tsv, jsonl, parquet, sgm, "
    ):
        corpus_format('pairs')


@pytest.mark.parametrize(
    'ending', ['', '.gz', '#sha256=' + '0aF' * 21 + '0', '.xz#sha256=' + 'a' * 64]
)
def test_an_ending_is_found_before_what_may_follow_it(ending):
    for name, wanted in (('dev/a.sgm', 'sgm'), ('https://h/a.sgm', 'sgm'), ('a.sgm.txt', 'bitext')):
        paths = {'source': [name + ending], 'target': ['b']}
        assert format_of_files(paths).name == wanted


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


def stored(text, path, compressed):
    content = gzip.compress(text, compresslevel=1) if compressed else text
    return CorpusFile(path, path, len(content), compressed), content


def blocks_of(text, item_bytes, block_bytes=1, compressed=False):
    file, content = stored(text, 'corpus', compressed)
    items = plan_items(Split('train', PlainText(), ((file,),)), (), item_bytes)
    return [
        list(read_blocks(item, lambda path: io.BytesIO(content), block_bytes)) for item in items
    ]


def data_of(block):
    return block.texts[0].data


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


SIZES = st.lists(st.integers(1, 4), max_size=6)


@given(st.dictionaries(st.sampled_from(['train', 'dev', 'test']), SIZES))
def test_each_file_index_has_the_dataset_that_has_the_file(sizes):
    splits, files = [], {}
    for name, counts in sizes.items():
        for number, count in enumerate(counts):
            first = sum(counts[:number])
            of_split = ((CorpusFile('f', 'f', 1, False),),) * count
            split = Split(name, PlainText(), of_split, str(number), first)
            splits.append(split)
            files |= {(name, index): split for index in range(first, first + count)}
    for name in ('train', 'dev', 'test'):
        for index in range(-1, 30):
            assert split_of(splits, name, index) is files.get((name, index))
