"""Samples for a vocabulary: Tensor2Tensor's lines, and shares of rows."""

import gzip
import io
import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.corpus.corpus import CorpusFile, Split
from tokcore.corpus.declarations import Bitext, PlainText, Tsv
from tokcore.corpus.formats import format_reader, index_ranges, plan_items, read_blocks
from tokcore.corpus.order_keys import order_keys
from tokcore.corpus.stats import add_tallies, block_stats
from tokcore.counts.sampling import (
    LineSample,
    SampledLines,
    UniformSample,
    every_nth_line,
    number_blocks,
    number_items,
    rows_to_count,
    sample_file,
    starts_to_number,
)
from tokcore.text.normalizers import T2T_LINES

TEXTS = st.lists(st.text(st.sampled_from('ab é中 \t\r\u3000'), max_size=8), min_size=1, max_size=25)
SHORT = 1 << 10

PAIRS = ''.join(f'word{number} a\tmot{number % 7}\n' for number in range(400)).encode()

LINES = st.lists(
    st.text(st.sampled_from('ab é中😀 \t\r\x85\u3000\u2028\ufeff'), max_size=12), max_size=30
)
"""Blank ones, with white space of several bytes at the ends, with '\\r' anywhere."""


class Files:
    """Files in memory, some of them compressed."""

    def __init__(self, datas, compressed=False):
        self.stored = {
            str(place): gzip.compress(data, mtime=0) if compressed else data
            for place, data in enumerate(datas)
        }
        self.files = [
            CorpusFile(name, name, len(data), compressed) for name, data in self.stored.items()
        ]

    def open(self, path):
        return io.BytesIO(self.stored[path])


def split_of(form, files):
    roles = len(form.roles)
    places = [tuple(files.files[at : at + roles]) for at in range(0, len(files.files), roles)]
    return Split('train', form, tuple(places))


def sampled_split(split, files, budget, item_bytes, sides, limit=SHORT):
    """What is counted of each side, and the sum of the tallies."""
    index = [
        format_reader(split.format).index(each, files.open)
        for each in index_ranges(split, item_bytes)
    ]
    items = plan_items(split, index, item_bytes)
    starts = starts_to_number(items)
    found = {
        (place, side): sample_file(file, budget, files.open, limit, starts.get(place, ()))
        for place, pair in enumerate(split.files)
        for side, file in enumerate(pair)
    }
    numbered = number_items(items, {place: each.first_lines for (place, _), each in found.items()})
    sample = LineSample({key: each.lines for key, each in found.items()})
    counted = [[] for _ in split.format.sides]
    tallies = []
    for item in numbered:
        blocks = read_blocks(item, files.open, max(1, item_bytes), limit)
        for block in number_blocks(item, blocks):
            rows = rows_to_count(block, (split,), T2T_LINES, sides, sample)
            tallies.append(block_stats(block, rows.rows, (split,), 'skip').tally)
            for side, texts in enumerate(rows.sides):
                counted[side] += map(texts.row, range(len(texts)))
    return counted, add_tallies('train', tallies)


def as_file(lines, ends):
    return ('\n'.join(lines) + ('\n' if ends else '')).encode()


def sampled_texts(data: bytes, budget: int) -> list[str]:
    """The texts that Tensor2Tensor's loop yields, those that have any."""
    lines = [line.decode().replace('\r', '').strip() for line in lines_of(data)]
    return [lines[number] for number in plainly_sampled(data, budget, 1 << 20) if lines[number]]


@given(
    texts=st.lists(TEXTS, min_size=1, max_size=3),
    ends=st.booleans(),
    budget=st.integers(1, 120),
    item_bytes=st.integers(1, 90),
    compressed=st.booleans(),
)
def test_lines_of_text_are_those_of_each_file(texts, ends, budget, item_bytes, compressed):
    datas = [as_file(lines, ends) for lines in texts]
    files = Files(datas, compressed)
    split = split_of(PlainText(), files)
    [counted], tally = sampled_split(split, files, budget, item_bytes, frozenset({0}))
    assert counted == [text for data in datas for text in sampled_texts(data, budget)]
    assert tally.examples == len(counted)
    # A file that ends in line feeds has no line after the last of them.
    assert tally.lines == sum(len(data.removesuffix(b'\n').split(b'\n')) for data in datas if data)


@st.composite
def bitexts(draw):
    """Two files of as many lines."""
    pairs = draw(st.lists(st.tuples(*[st.text('ab é\r', max_size=8)] * 2), min_size=1, max_size=25))
    return tuple(as_file(lines, ends=True) for lines in zip(*pairs, strict=True))


@given(
    pair=bitexts(),
    budget=st.integers(1, 120),
    item_bytes=st.integers(1, 90),
    compressed=st.booleans(),
    sides=st.sampled_from([{0}, {1}, {0, 1}]),
)
def test_each_side_of_a_pair_is_sampled_for_itself(pair, budget, item_bytes, compressed, sides):
    files = Files(pair, compressed)
    split = split_of(Bitext(), files)
    counted, tally = sampled_split(split, files, budget, item_bytes, frozenset(sides))
    for side, data in enumerate(pair):
        assert counted[side] == sampled_texts(data, budget)
    texts = [
        [line.replace('\r', '').strip() for line in data.decode().split('\n')[:-1]] for data in pair
    ]
    whole = [number for number, row in enumerate(zip(*texts, strict=True)) if all(row)]
    selected = set()
    for side in sides:
        found = sample_file(files.files[side], budget, files.open, SHORT).lines
        selected |= set(list(range(len(texts[0])))[found.among(0, len(texts[0]))])
    assert tally.examples == len(selected.intersection(whole))
    assert tally.not_sampled == len(whole) - tally.examples
    assert (tally.lines, tally.empty) == (len(texts[0]), len(texts[0]) - len(whole))


def test_a_line_is_counted_whatever_is_on_the_other_side_of_its_pair():
    long = b'x' * (SHORT + 1)
    datas = (b'one\ntwo\nthree\nfour', b'\n\xff\n' + long + b'\nvier\n')
    for item_bytes, compressed in itertools.product((1, 50, 1 << 20), (False, True)):
        files = Files(datas, compressed)
        split = split_of(Bitext(), files)
        counted, tally = sampled_split(split, files, 1 << 20, item_bytes, frozenset({0, 1}))
        assert counted == [['one', 'two', 'three', 'four'], ['vier']]
        assert (tally.lines, tally.examples, tally.empty, tally.rejected) == (4, 1, 1, 2)
        assert tally.not_sampled == 0


def test_lines_that_cannot_be_used_are_left_out_in_and_outside_the_sample():
    long = b'x' * (SHORT + 1)
    data = b'one\n' + long + b'\ntwo\n\xff\nthree\n' + long
    for item_bytes, compressed in itertools.product((1, 7, 1 << 20), (False, True)):
        files = Files([data], compressed)
        split = split_of(PlainText(), files)
        # Every second line: a long one, one that is no UTF-8, and a long one.
        [counted], tally = sampled_split(split, files, len(data) // 3, item_bytes, frozenset({0}))
        assert counted == []
        assert (tally.lines, tally.examples, tally.rejected, tally.not_sampled) == (6, 0, 3, 3)
        # And of all lines those between and after them.
        [counted], tally = sampled_split(split, files, len(data), item_bytes, frozenset({0}))
        assert counted == ['one', 'two', 'three']


def test_a_sample_of_lines_is_of_lines_over_many_blocks_and_items():
    """Files of more than the pass reads at a time, and items that end anywhere in them."""
    dice = np.random.default_rng(5)
    lines = [b'x' * size for size in dice.integers(0, 300, 20_000)]
    data = b'\n'.join(lines)
    files = Files([data])
    split = split_of(PlainText(), files)
    for budget in (len(data), len(data) // 9, len(data) // 300):
        [counted], _ = sampled_split(split, files, budget, 100_000, frozenset({0}))
        assert counted == sampled_texts(data, budget)


@pytest.mark.parametrize('compressed', [False, True])
def test_rows_by_order_key_are_the_same_however_they_are_cut(compressed):
    files = Files([PAIRS, PAIRS], compressed)
    split = split_of(Tsv((0, 1)), files)
    threshold = (1 << 64) // 5
    expected = Counter()
    starts = np.cumsum([0, *map(len, PAIRS.splitlines(keepends=True))])[:-1]
    for place in (0, 1):
        for number in np.flatnonzero(order_keys(place, starts, 0) < np.uint64(threshold)):
            expected[place, f'word{number} a', f'mot{number % 7}'] += 1
    assert 100 < expected.total() < 220
    for item_bytes in (1, 100, 1 << 20):
        found = Counter()
        tallies = []
        for item in plan_items(split, (), item_bytes):
            for block in read_blocks(item, files.open, item_bytes):
                counted = rows_to_count(
                    block, (split,), T2T_LINES, frozenset({0}), UniformSample(threshold)
                )
                source, target = counted.sides
                for row in range(len(counted.rows)):
                    found[block.file_index, source.row(row), target.row(row)] += 1
                tallies.append(block_stats(block, counted.rows, (split,), 'stop').tally)
        assert found == expected
        tally = add_tallies('train', tallies)
        assert (tally.lines, tally.examples) == (800, expected.total())
        assert tally.not_sampled == 800 - tally.examples


def test_without_a_sample_all_rows_are_counted():
    files = Files([b'one\n\ntwo\n'])
    split = split_of(PlainText(), files)
    [item] = plan_items(split)
    [block] = read_blocks(item, files.open)
    counted = rows_to_count(block, (split,), T2T_LINES, frozenset({0}), None)
    assert [counted.sides[0].row(row) for row in range(2)] == ['one', 'two']
    assert counted.rows.not_sampled == 0


def test_files_that_are_not_in_a_sample_of_lines_give_none():
    files = Files([b'one\n', b'two\n'])
    split = split_of(PlainText(), files)
    sample = LineSample({(1, 0): SampledLines(1, 1)})
    found = []
    for item in number_items(plan_items(split), {0: [0], 1: [0]}):
        for block in number_blocks(item, read_blocks(item, files.open)):
            counted = rows_to_count(block, (split,), T2T_LINES, frozenset({0}), sample)
            found.append((len(counted.sides[0]), counted.rows.not_sampled))
    assert found == [(0, 1), (1, 0)]


@st.composite
def texts(draw) -> bytes:
    text = '\n'.join(draw(LINES)) + draw(st.sampled_from(['', '\n']))
    return text.encode()


def sampled(data: bytes, budget: int, max_line_bytes=1 << 20, starts=()):
    """What the pass finds, over the data as a file."""
    files = Files([data])
    return sample_file(files.files[0], budget, files.open, max_line_bytes, starts)


def lines_of(data: bytes) -> list[bytes]:
    return data.removesuffix(b'\n').split(b'\n') if data else []


def plainly_sampled(data: bytes, budget: int, max_line_bytes: int) -> list[int]:
    """The numbers of the sampled lines; one that is too long or not UTF-8 costs nothing."""
    to_skip = int(len(data) / budget / 2)
    left, skipped, selected = budget, 0, []
    for number, line in enumerate(lines_of(data)):
        if skipped < to_skip:
            skipped += 1
            continue
        if left <= 0:
            break
        skipped = 0
        selected.append(number)
        text = line if number else line.removeprefix(b'\xef\xbb\xbf')
        try:
            text = text.replace(b'\r', b'').decode().strip()
        except UnicodeDecodeError:
            continue
        if len(line) <= max_line_bytes:
            left -= len(text)
    return selected


@given(
    parts=st.lists(
        st.sampled_from([b'ab', b'\xff', b'\xe4\xb8', b'\r', b'abcdefgh', b'\n']), max_size=60
    ),
    budget=st.integers(1, 100),
    limit=st.integers(1, 10),
)
def test_lines_that_cannot_be_used_keep_their_numbers_and_cost_nothing(parts, budget, limit):
    data = b''.join(parts)
    lines = len(lines_of(data))
    selected = sampled(data, budget, limit).lines
    assert list(range(lines))[selected.among(0, lines)] == plainly_sampled(data, budget, limit)


def test_a_line_that_is_read_over_keeps_its_number_and_costs_nothing():
    long = b'x' * (3 << 20)
    data = b'\n'.join([b'one', long, b'two', long, b'three', b'four', b'five', long])
    # Of 9 MiB every second line is sampled, three of them too long and one with four characters.
    begins = [data.index(line) for line in (b'two', b'three', b'four', b'five')]
    found = sampled(data, len(data) // 3, max_line_bytes=1 << 20, starts=begins)
    assert found.lines == SampledLines(2, 4)
    assert found.first_lines == (2, 4, 5, 6)
    # Each is sampled while a character of the budget is left.
    found = sampled(b'ab\n' * 3 + long, 3 << 20, max_line_bytes=1 << 20)
    assert found.lines == SampledLines(1, 4)


@given(data=texts(), budget=st.integers(1, 400), step=st.integers(1, 50))
def test_it_tells_which_line_begins_first_from_a_byte_on(data, budget, step):
    starts = range(step, len(data), step)
    found = sampled(data, budget, starts=starts)
    begins = np.cumsum([0, *(len(line) + 1 for line in lines_of(data))])[:-1]
    behind = found.lines.period * found.lines.count
    for start, number in zip(starts, found.first_lines, strict=True):
        expected = int(np.searchsorted(begins, start))
        assert number == expected or (number >= behind and expected >= behind)


@given(
    data=st.text('ab\n', max_size=300).map(str.encode),
    first=st.integers(0, 9),
    period=st.integers(1, 9),
)
def test_every_nth_line_is_found(data, first, period):
    lines = lines_of(data)
    number, starts, ends = every_nth_line(np.frombuffer(data, np.uint8), first, period)
    assert number == len(lines)
    assert [data[start:end] for start, end in zip(starts, ends)] == lines[first::period]
