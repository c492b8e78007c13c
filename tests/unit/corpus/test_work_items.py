"""Items of any size hold each line once, and no side of an item outgrows the limit."""

import gzip
import io
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.corpus.dataset import CorpusFile, Split, TextRange
from tokcore.corpus.formats.line_index import count_lines, index_items
from tokcore.corpus.formats.registry import read_blocks
from tokcore.corpus.formats.work_items import plan_items
from tokcore.errors import InputError


def plan(pairs, item_bytes, zipped=(False, False)):
    """The items of a bitext in memory, each with its block of text on both sides."""
    contents, files = {}, ([], [])
    for place, pair in enumerate(pairs):
        for side, text in enumerate(pair):
            path = f'{place}.{side}'
            contents[path] = gzip.compress(text) if zipped[side] else text
            files[side].append(CorpusFile(path, path, len(contents[path]), zipped[side]))
    split = Split('train', 'bitext', tuple(files[0]), tuple(files[1]))

    def open_binary(path):
        return io.BytesIO(contents[path])

    counts = [count_lines(part, open_binary) for part in index_items(split, item_bytes)]
    items = plan_items(split, counts, item_bytes)
    return [(item, *read_blocks(item, open_binary)) for item in items]


@settings(deadline=None)
@given(st.lists(st.integers(0, 300), max_size=4), st.integers(1, 100))
def test_ranges_of_plain_files_tile_them_in_order(sizes, item_bytes):
    files = tuple(CorpusFile(f'{size}', f'{size}', size, False) for size in sizes)
    items = plan_items(Split('dev', 'tsv', files, columns=(0, 2)), (), item_bytes)
    for place, file in enumerate(files):
        ranges = [item.source for item in items if item.place == place]
        assert all(part.file == file and 0 < part.end - part.start <= item_bytes for part in ranges)
        assert [place for part in ranges for place in range(part.start, part.end)] == list(
            range(file.size)
        )
    assert [item.place for item in items] == sorted(item.place for item in items)
    assert {(item.split, item.kind, item.columns) for item in items} <= {('dev', 'tsv', (0, 2))}


def test_a_gzip_file_is_one_item():
    file = CorpusFile('a', 'a', 1000, True)
    (item,) = plan_items(Split('train', 'text', (file,)), (), 64)
    assert item.source == TextRange(file, 0, 1000)


lines = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(1, 6)), max_size=40
).map(lambda drawn: [(a, b) for a, b, repeats in drawn for _ in range(repeats)])


@settings(deadline=None)
@given(lines, st.integers(1, 300))
def test_no_side_of_an_item_is_larger_than_asked_unless_it_is_one_line(lengths, item_bytes):
    source = b''.join(b's' * length + b'\n' for length, _ in lengths)
    target = b''.join(b't' * length + b'\n' for _, length in lengths)
    for item, block in plan([(source, target)], item_bytes):
        count = item.source.lines
        assert item.target.lines == count == block.data.count(b'\n') == block.target.count(b'\n')
        assert max(len(block.data), len(block.target)) <= item_bytes or count == 1


@pytest.mark.parametrize('direction', [1, -1])
def test_sides_of_fiftyfold_size_are_cut_by_the_larger_and_no_smaller_than_they_need(direction):
    pair = (b'x' * 499 + b'\n') * 2000, b'y' * 9 + b'\n'
    pair = (pair[0], pair[1] * 2000)[::direction]
    items = plan([pair], 100_000)
    assert max(max(len(block.data), len(block.target)) for _, block in items) <= 100_000
    assert len(items) <= 1_000_000 / (100_000 * 14 / 16) + 1


def test_sides_whose_skew_turns_along_the_file_stay_bounded():
    long, short = b'x' * 499 + b'\n', b'y' * 9 + b'\n'
    source = (long * 300 + short * 300) * 5
    target = (short * 300 + long * 300) * 5
    items = plan([(source, target)], 40_000)
    assert max(max(len(block.data), len(block.target)) for _, block in items) <= 40_000
    assert len(items) <= (len(source) + len(target)) / (40_000 * 14 / 16) + 11


def test_what_an_item_reads_is_bounded_too():
    source, target = b'a b c\n' * 5000, b'\n' * 5000
    for item, _ in plan([(source, target)], 1600):
        for part in (item.source, item.target):
            assert part.end - part.start <= 1600 + 2 * 100
            assert part.start % 100 == 0


@pytest.mark.parametrize('zipped', [(True, False), (False, True), (True, True)])
def test_a_pair_with_a_gzip_side_is_one_item(zipped):
    ((item, block),) = plan([(b'a\n' * 100, b'b\n' * 100)], 16, zipped)
    assert item.source.lines == item.target.lines == 100
    assert (block.data, block.target) == (b'a\n' * 100, b'b\n' * 100)


@pytest.mark.parametrize('zipped', [(False, False), (True, False), (True, True)])
def test_pairs_of_unequal_length_are_refused_with_both_names_and_counts(zipped):
    with pytest.raises(InputError, match=r'1\.0 has 3 lines but 1\.1 has 2;'):
        plan([(b'a\n', b'b'), (b'a\nb\nc', b'a\nb\n')], 64, zipped)
    with pytest.raises(InputError, match=r'0\.0 has 0 lines but 0\.1 has 1;'):
        plan([(b'', b'\n')], 64, zipped)


@pytest.mark.parametrize('zipped', [(False, False), (True, False), (True, True)])
def test_a_last_line_needs_no_line_feed_and_empty_pairs_no_items(zipped):
    items = plan([(b'', b''), (b'a\nb', b'c\nd\n')], 64, zipped)
    assert [(item.place, block.data, block.target) for item, block in items] == [
        (1, b'a\nb', b'c\nd\n')
    ]


def test_counts_of_other_splits_are_passed_over_and_missing_ones_noticed():
    content = b'a\n' * 100
    file = CorpusFile('s', 's', len(content), False)
    train, dev = (Split(name, 'bitext', (file,), (file,)) for name in ('train', 'dev'))
    counts = [
        count_lines(part, lambda path: io.BytesIO(content))
        for split in (train, dev)
        for part in index_items(split, 64)
    ]
    assert {item.split for item in plan_items(dev, counts, 64)} == {'dev'}
    with pytest.raises(ValueError, match='line counts of s'):
        plan_items(train, counts[1:], 64)


def test_items_cross_process_borders():
    for item, block in plan([(b'a\n' * 50, b'b\n' * 50)], 16):
        assert pickle.loads(pickle.dumps(item)) == item
        assert pickle.loads(pickle.dumps(block)) == block


@pytest.mark.parametrize(
    'arguments',
    [
        {'kind': 'pairs'},
        {'kind': 'bitext'},
        {'kind': 'text', 'targets': (CorpusFile('t', 't', 1, False),)},
        {'kind': 'tsv'},
        {'kind': 'text', 'columns': (0,)},
    ],
)
def test_splits_that_make_no_sense_are_refused(arguments):
    with pytest.raises(ValueError):
        Split('train', sources=(CorpusFile('s', 's', 1, False),), **arguments)
