"""Kernels of the pass that samples a file: every so-manieth line, and its characters."""

import numpy as np

from tokcore.compiled.byte_masks import CHUNK, byte_range_mask, popcount, trailing_zeros
from tokcore.compiled.compilation import kernel, kernel_without_allocation
from tokcore.corpus.formats.line_kernels import count_lines, line_bounds

_CHUNK = np.uint64(CHUNK)
_0, _1 = np.uint64(0), np.uint64(1)


@kernel
def every_line(data, first, period):
    """Returns how many lines there are, and where every `period`-th begins and ends.

    `first` is the first of these, from 0 on. Starts and ends are int64[...], without the '\\n'; the
    last line may lack it.
    """
    if period == 1:
        starts, ends = line_bounds(data)
        return len(starts), starts[first:], ends[first:]
    lines = count_lines(data)
    taken = 0
    if first < lines:
        taken = 1 + (lines - 1 - first) // period
    starts = np.zeros(taken, np.int64)
    ends = np.full(taken, len(data), np.int64)
    if taken > 0:
        find_lines(data, first, period, starts, ends)
    return lines, starts, ends


@kernel_without_allocation
def find_lines(data, first, period, starts, ends):
    """Fills in the bounds for `every_line`, of a period above 1.

    `starts` holds 0 and `ends` the size of the data. The '\\n' before a line and that behind it are looked for by their numbers, so that of 64 bytes
    without either only the number is counted.
    """
    line = 0
    is_within = first == 0
    wanted = np.uint64(first) if is_within else np.uint64(first - 1)
    seen = _0
    position, size = _0, np.uint64(len(data))
    while position < size and line < len(starts):
        if position + _CHUNK <= size:
            feeds = byte_range_mask(data, position, 0x0A, 0x0A)
        else:
            feeds = _0
            for byte in range(size - position):
                is_feed = data[position + np.uint64(byte)] == 0x0A
                feeds |= np.uint64(is_feed) << np.uint64(byte)
        number = seen
        seen += popcount(feeds)
        while wanted < seen and line < len(starts):
            while number < wanted:
                feeds &= feeds - _1
                number += _1
            place = np.int64(position + trailing_zeros(feeds))
            if not is_within:
                starts[line] = place + 1
                is_within = True
                wanted += _1
                continue
            ends[line] = place
            line += 1
            is_within = False
            wanted += np.uint64(period - 1)
        position += _CHUNK


@kernel_without_allocation
def count_characters(text, starts, ends, characters):
    """Fills in how many characters each row has: its bytes but for those that go on with one.

    Rows are valid UTF-8.
    """
    size = np.uint64(len(text))
    for row in range(len(starts)):
        position, end = np.uint64(starts[row]), np.uint64(ends[row])
        found = end - position
        while position < end and position + _CHUNK <= size:
            inside = ~_0
            if end - position < _CHUNK:
                inside = (_1 << (end - position)) - _1
            found -= popcount(byte_range_mask(text, position, 0x80, 0xBF) & inside)
            position += _CHUNK
        while position < end:
            found -= np.uint64(text[position] & 0xC0 == 0x80)
            position += _1
        characters[row] = np.int64(found)
