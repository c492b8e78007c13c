"""Files of lines: cut into work items, read as blocks of whole lines, each line once."""

import dataclasses
import gzip
import io
import itertools
import pickle
import tracemalloc

import google_crc32c
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from read_format import planned

from tokcore.corpus.corpus import CorpusFile, LongLine, MemberFile, Split, TextRange, WorkItem
from tokcore.corpus.declarations import Bitext, PlainText, Tsv
from tokcore.corpus.formats import plan_items, read_blocks
from tokcore.corpus.line_reading import (
    BEGINNING_BYTES,
    long_line,
    whole_lines,
)
from tokcore.errors import InputError

pieces_of_text = st.lists(st.text('a\n').map(str.encode))
sizes = st.integers(1, 12)

lines = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(1, 6)), max_size=40
).map(lambda drawn: [(a, b) for a, b, repeats in drawn for _ in range(repeats)])

FILE, OTHER = (CorpusFile(name, name, 1, False) for name in 'st')

FILE_KEY, OTHER_KEY = (('s', 's', 1, False), 2, 7, 0, None), (('t', 't', 1, False), 0, 1, 3, 4)


@given(pieces_of_text, sizes)
def test_whole_lines_are_as_few_as_fill_a_block(pieces, block_bytes):
    blocks = list(whole_lines(pieces, block_bytes))
    assert b''.join(blocks) == b''.join(pieces)
    for block in blocks[:-1]:
        assert block.endswith(b'\n')
    for block in blocks:
        lines = block.splitlines(keepends=True)
        assert sum(map(len, lines[:-1])) < block_bytes
    for block in blocks[:-1]:
        assert len(block) >= block_bytes


def plain_blocks(text, block_bytes, max_line_bytes):
    """The lines of a text, put into a block until it is full; what fills it may come alone."""
    blocks, held, offset = [], b'', 0
    for line in text.splitlines(keepends=True):
        if len(held) + len(line) < block_bytes:
            held += line
            continue
        if len(line.removesuffix(b'\n')) > max_line_bytes:
            blocks += [held] if held else []
            start = offset + len(held)
            size = len(line.removesuffix(b'\n'))
            crc32c = google_crc32c.value(line)
            blocks.append(LongLine(1, start, size, len(line), crc32c, line[: min(size, 1000)]))
        else:
            blocks.append(held + line)
        offset += len(held) + len(line)
        held = b''
    return blocks + ([held] if held else [])


@given(pieces_of_text, sizes, sizes)
@example([b'aaaa'], 4, 3)
@example([b'a\naaa', b'a\n', b'a'], 4, 3)
@example([b'aaaa\n'], 9, 3)
def test_a_line_that_fills_a_block_and_is_too_long_comes_alone(pieces, block_bytes, max_line_bytes):
    text = b''.join(pieces)
    found = list(whole_lines(pieces, block_bytes, max_line_bytes, side=1))
    assert found == plain_blocks(text, block_bytes, max_line_bytes)


def test_a_long_line_is_read_over_and_not_held():
    piece = b'x' * 100_000
    tracemalloc.start()
    try:
        [line] = whole_lines(itertools.repeat(piece, 500), 100, 200_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert line.nbytes == 50_000_000
    assert peak < 2_000_000


@given(st.binary(max_size=40).map(lambda line: line.replace(b'\n', b'')), st.booleans(), sizes)
def test_what_is_kept_of_a_long_line_says_all_but_its_bytes(line, is_ended, step):
    text = line + b'\n' * is_ended
    pieces = [text[start : start + step] for start in range(0, len(text), step)]
    kept = long_line(1, 70, pieces)
    assert kept == LongLine(1, 70, len(line), len(text), google_crc32c.value(text), line)


def test_a_long_line_is_known_by_its_beginning():
    kept = long_line(0, 0, [b'ab' * 400, b'cd' * 400, b'\n'])
    assert kept.beginning == b'ab' * 400 + b'cd' * 100
    assert len(kept.beginning) == BEGINNING_BYTES


def plan(pairs, item_bytes, zipped=(False, False)):
    """The items of a bitext in memory, each with its block of text on both sides."""
    contents, blocks = {}, []
    for number, pair in enumerate(pairs):
        files = []
        for side, text in enumerate(pair):
            path = f'{number}.{side}'
            contents[path] = gzip.compress(text) if zipped[side] else text
            files.append(CorpusFile(path, path, len(contents[path]), zipped[side]))
        opened = lambda path: io.BytesIO(contents[path])  # noqa: E731
        _, items = planned(Bitext(), tuple(files), opened, item_bytes)
        blocks += [(item, *read_blocks(item, opened)) for item in items]
    return blocks


def data_of(block):
    return tuple(text.data for text in block.texts)


def largest_side(block):
    return max(map(len, data_of(block)))


@given(st.lists(st.integers(0, 300), max_size=4), st.integers(1, 100))
def test_ranges_of_plain_files_tile_them_in_order(sizes, item_bytes):
    files = tuple(CorpusFile(f'{size}', f'{size}', size, False) for size in sizes)
    items = plan_items(Split('dev', Tsv((0, 2)), tuple((file,) for file in files)), (), item_bytes)
    for place, file in enumerate(files):
        ranges = [item.ranges[0] for item in items if item.file_index == place]
        assert all(part.file == file and 0 < part.end - part.start <= item_bytes for part in ranges)
        assert [place for part in ranges for place in range(part.start, part.end)] == list(
            range(file.size)
        )
    assert [item.file_index for item in items] == sorted(item.file_index for item in items)
    assert {(item.split, item.format) for item in items} <= {('dev', Tsv((0, 2)))}


def test_a_gzip_file_is_one_item():
    file = CorpusFile('a', 'a', 1000, True)
    (item,) = plan_items(Split('train', PlainText(), ((file,),)), (), 64)
    assert item.ranges == (TextRange(file, 0, 1000),)


@given(lines, st.integers(1, 300))
def test_no_side_of_an_item_is_larger_than_asked_unless_it_is_one_line(lengths, item_bytes):
    source = b''.join(b's' * length + b'\n' for length, _ in lengths)
    target = b''.join(b't' * length + b'\n' for _, length in lengths)
    for item, block in plan([(source, target)], item_bytes):
        count = item.ranges[0].lines
        feeds = [text.data.count(b'\n') for text in block.texts]
        assert [item.ranges[1].lines, *feeds] == [count] * 3
        assert largest_side(block) <= item_bytes or count == 1


@pytest.mark.parametrize('direction', [1, -1])
def test_sides_of_fiftyfold_size_are_cut_by_the_larger_and_no_smaller_than_they_need(direction):
    pair = (b'x' * 499 + b'\n') * 2000, b'y' * 9 + b'\n'
    pair = (pair[0], pair[1] * 2000)[::direction]
    items = plan([pair], 100_000)
    assert max(largest_side(block) for _, block in items) <= 100_000
    assert len(items) <= 1_000_000 / (100_000 * 14 / 16) + 1


def test_sides_whose_skew_turns_along_the_file_stay_bounded():
    long, short = b'x' * 499 + b'\n', b'y' * 9 + b'\n'
    source = (long * 300 + short * 300) * 5
    target = (short * 300 + long * 300) * 5
    items = plan([(source, target)], 40_000)
    assert max(largest_side(block) for _, block in items) <= 40_000
    assert len(items) <= (len(source) + len(target)) / (40_000 * 14 / 16) + 11


def test_what_an_item_reads_is_bounded_too():
    source, target = b'a b c\n' * 5000, b'\n' * 5000
    for item, _ in plan([(source, target)], 1600):
        for part in item.ranges:
            assert part.end - part.start <= 1600 + 2 * 100
            assert part.start % 100 == 0


@pytest.mark.parametrize('zipped', [(True, False), (False, True), (True, True)])
def test_a_pair_with_a_gzip_side_is_one_item(zipped):
    ((item, block),) = plan([(b'a\n' * 100, b'b\n' * 100)], 16, zipped)
    assert item.ranges[0].lines == item.ranges[1].lines == 100
    assert data_of(block) == (b'a\n' * 100, b'b\n' * 100)


@pytest.mark.parametrize('zipped', [(False, False), (True, False), (True, True)])
def test_pairs_of_unequal_length_are_refused_with_both_names_and_counts(zipped):
    with pytest.raises(InputError, match=r'1\.0 has 3 lines but 1\.1 has 2;'):
        plan([(b'a\n', b'b'), (b'a\nb\nc', b'a\nb\n')], 64, zipped)
    with pytest.raises(InputError, match=r'0\.0 has 0 lines but 0\.1 has 1;'):
        plan([(b'', b'\n')], 64, zipped)


@pytest.mark.parametrize('zipped', [(False, False), (True, False), (True, True)])
def test_a_last_line_needs_no_line_feed_and_empty_pairs_no_items(zipped):
    items = plan([(b'', b''), (b'a\nb', b'c\nd\n')], 64, zipped)
    assert [data_of(block) for _, block in items] == [(b'a\nb', b'c\nd\n')]


def test_items_cross_process_borders():
    for item, block in plan([(b'a\n' * 50, b'b\n' * 50)], 16):
        assert pickle.loads(pickle.dumps(item)) == item
        assert pickle.loads(pickle.dumps(block)) == block


@pytest.mark.parametrize(
    ('format', 'files'), [(Bitext(), (FILE,)), (PlainText(), (FILE, OTHER)), (Tsv(), (FILE, OTHER))]
)
def test_as_many_files_belong_together_as_the_format_says(format, files):
    with pytest.raises(ValueError, match='do not go with'):
        Split('train', format, (files,))


@pytest.mark.parametrize('columns', [(), (0, -1)])
def test_columns_are_at_least_one_from_0_on(columns):
    with pytest.raises(ValueError, match='columns'):
        Tsv(columns)


@pytest.mark.parametrize('extents', [(), ((0, 5), (9, 2))])
def test_fingerprints_know_all_of_a_member(extents):
    archive = CorpusFile('/in/a.tar.zst', 'a.tar.zst', 90, 'zstd')
    member = MemberFile('/in/a.tar.zst!b', 'a.tar.zst!b', 12, False, archive, 512, 0, extents)
    whole, part = TextRange(member, 0, 12), TextRange(member, 2, 7, packed_bytes=5)
    assert whole.key == dataclasses.astuple(whole)[:-1]
    assert part.key == (*dataclasses.astuple(part)[:-1], True)


def test_what_fingerprints_know_of_an_item_is_what_they_always_knew():
    source, target = TextRange(FILE, 2, 7), TextRange(OTHER, 0, 1, 3, 4)
    items = [
        WorkItem('train', PlainText(), 0, (source,)),
        WorkItem('dev', Tsv((1, 0)), 3, (source,)),
        WorkItem('train', Bitext(), 1, (source, target)),
    ]
    assert [item.key for item in items] == [
        ('train', 'text', (), 0, FILE_KEY, None),
        ('dev', 'tsv', (1, 0), 3, FILE_KEY, None),
        ('train', 'bitext', (), 1, FILE_KEY, OTHER_KEY),
    ]
