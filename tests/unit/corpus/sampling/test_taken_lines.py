"""The lines of a file that are taken, against a loop over its lines as Tensor2Tensor writes it."""

import gzip
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.corpus.dataset import CorpusFile
from tokcore.corpus.sampling.sampling_kernels import count_characters, every_line
from tokcore.corpus.sampling.taken_lines import TakenLines, sample_file

LINES = st.lists(
    st.text(st.sampled_from('ab é中😀 \t\r\x85\u3000\u2028'), max_size=12), max_size=30
)
"""Blank ones, with white space of several bytes at the ends, with '\\r' anywhere."""


@st.composite
def texts(draw) -> bytes:
    text = '\n'.join(draw(LINES)) + draw(st.sampled_from(['', '\n']))
    return text.encode()


def sampled(data: bytes, budget: int, max_line_bytes=1 << 20, starts=(), compressed=False):
    """What the pass finds, over the data as a file."""
    stored = gzip.compress(data, mtime=0) if compressed else data
    file = CorpusFile('text', 'text', len(stored), compressed)
    return sample_file(file, budget, lambda path: io.BytesIO(stored), max_line_bytes, starts)


def lines_of(data: bytes) -> list[bytes]:
    return data.removesuffix(b'\n').split(b'\n') if data else []


def plainly_taken(data: bytes, budget: int, max_line_bytes: int = 1 << 20) -> list[int]:
    """The numbers of the lines taken; one that is too long or no UTF-8 costs nothing."""
    to_skip = int(len(data) / budget / 2)
    left, skipped, taken = budget, 0, []
    for number, line in enumerate(lines_of(data)):
        if skipped < to_skip:
            skipped += 1
            continue
        if left <= 0:
            break
        skipped = 0
        taken.append(number)
        try:
            text = line.replace(b'\r', b'').decode().strip()
        except UnicodeDecodeError:
            continue
        if len(line) <= max_line_bytes:
            left -= len(text)
    return taken


@given(data=texts(), budget=st.integers(1, 400), compressed=st.booleans())
@settings(deadline=None)
def test_lines_are_taken_as_a_loop_over_them_takes_them(data, budget, compressed):
    lines = len(lines_of(data))
    taken = sampled(data, budget, compressed=compressed).taken
    expected = plainly_taken(data, budget)
    assert list(range(lines))[taken.among(0, lines)] == expected
    assert taken.lines == len(expected)


@given(
    parts=st.lists(st.sampled_from([b'ab', b'\xff', b'\xe4\xb8', b'\r', b'abcdefgh', b'\n']), max_size=60),
    budget=st.integers(1, 100),
    limit=st.integers(1, 10),
)
@settings(deadline=None)
def test_lines_that_cannot_be_used_keep_their_numbers_and_cost_nothing(parts, budget, limit):
    data = b''.join(parts)
    lines = len(lines_of(data))
    taken = sampled(data, budget, limit).taken
    assert list(range(lines))[taken.among(0, lines)] == plainly_taken(data, budget, limit)


def test_a_line_that_is_read_over_keeps_its_number_and_costs_nothing():
    long = b'x' * (3 << 20)
    data = b'\n'.join([b'one', long, b'two', long, b'three', b'four', b'five', long])
    # Of 9 MiB every second line is taken, three of them too long and one with four characters.
    begins = [data.index(line) for line in (b'two', b'three', b'four', b'five')]
    found = sampled(data, len(data) // 3, max_line_bytes=1 << 20, starts=begins)
    assert found.taken == TakenLines(2, 4)
    assert found.first_lines == (2, 4, 5, 6)
    # Each is taken while a character of the budget is left.
    found = sampled(b'ab\n' * 3 + long, 3 << 20, max_line_bytes=1 << 20)
    assert found.taken == TakenLines(1, 4)


def test_a_line_of_the_longest_that_is_read_costs_what_it_has():
    assert sampled(b'four\n' * 9, 100, max_line_bytes=4).taken == TakenLines(1, 9)
    assert sampled(b'four\n' * 9, 30, max_line_bytes=4).taken == TakenLines(1, 8)
    assert sampled(b'four\n' * 9, 30, max_line_bytes=3).taken == TakenLines(1, 9)


@pytest.mark.parametrize(
    ('budget', 'numbers'),
    [(2501, range(626)), (2500, range(1, 1000, 2)), (1000, range(2, 752, 3)), (1, range(0))],
)
def test_tensor2tensors_rounding_takes_the_head_or_every_so_manieth_line(budget, numbers):
    """Of 1,000 lines of five bytes, as the original was seen to do."""
    taken = sampled(b'abcd\n' * 1000, budget).taken
    assert list(range(1000))[taken.among(0, 1000)] == list(numbers)


def test_a_file_without_lines_has_none_to_take():
    assert sampled(b'', 10).taken == TakenLines(1, 0)
    assert sampled(b'', 10, compressed=True).taken == TakenLines(1, 0)


@given(st.integers(1, 9), st.integers(0, 9), st.integers(0, 40), st.integers(0, 40))
def test_those_taken_are_found_among_the_lines_from_any_on(period, lines, first, count):
    taken = set(range(period - 1, period * lines, period))
    found = list(range(first, first + count))[TakenLines(period, lines).among(first, count)]
    assert found == [number for number in range(first, first + count) if number in taken]


@given(data=texts(), budget=st.integers(1, 400), step=st.integers(1, 50))
@settings(deadline=None)
def test_it_tells_which_line_begins_first_from_a_byte_on(data, budget, step):
    starts = range(step, len(data), step)
    found = sampled(data, budget, starts=starts)
    begins = np.cumsum([0, *(len(line) + 1 for line in lines_of(data))])[:-1]
    behind = found.taken.period * found.taken.lines
    for start, number in zip(starts, found.first_lines, strict=True):
        expected = int(np.searchsorted(begins, start))
        assert number == expected or (number >= behind and expected >= behind)


@given(
    data=st.text('ab\n', max_size=300).map(str.encode),
    first=st.integers(0, 9),
    period=st.integers(1, 9),
)
@settings(deadline=None)
def test_every_so_manieth_line_is_found(data, first, period):
    lines = lines_of(data)
    number, starts, ends = every_line(np.frombuffer(data, np.uint8), first, period)
    assert number == len(lines)
    assert [data[start:end] for start, end in zip(starts, ends)] == lines[first::period]


@given(st.lists(st.text('a é中😀', max_size=40), max_size=12), st.text('é中😀', max_size=40))
@settings(deadline=None)
def test_characters_are_those_of_each_row_and_not_of_its_neighbours(rows, behind):
    stored = [row.encode() for row in rows]
    text = np.frombuffer(b'|'.join([*stored, behind.encode()]), np.uint8)
    sizes = np.array([len(each) + 1 for each in stored], np.int64)
    ends = np.cumsum(sizes) - 1
    characters = np.full(len(rows), -1, np.int64)
    count_characters(text, ends - sizes + 1, ends, characters)
    assert characters.tolist() == [*map(len, rows)]
