"""Kernels over the lines of a block: where they begin and end, and their TAB-separated columns.

Both look for one byte, 64 bytes at a time.
"""

import numpy as np

from tokcore.compiled.byte_masks import CHUNK, byte_range_mask, popcount, trailing_zeros
from tokcore.compiled.compilation import kernel, kernel_without_allocation

_CHUNK = np.uint64(CHUNK)
_0, _1, _2 = np.uint64(0), np.uint64(1), np.uint64(2)

# What `cut_columns` says of a line.
COVERED = 0
WITH_OTHERS = 1
MISSING_COLUMN = 2


@kernel_without_allocation
def count_lines(data):
    """The number of lines; the last may lack its '\\n'."""
    total = _0
    position, end = _0, np.uint64(len(data))
    while position + _CHUNK <= end:
        total += popcount(byte_range_mask(data, position, 0x0A, 0x0A))
        position += _CHUNK
    while position < end:
        total += np.uint64(data[position] == 0x0A)
        position += _1
    if end > _0 and data[end - _1] != 0x0A:
        total += _1
    return np.int64(total)


@kernel
def line_bounds(data):
    """Returns where each line begins, and its '\\n' or the data's end is: int64[lines] each."""
    lines = count_lines(data)
    starts = np.empty(lines, np.int64)
    ends = np.empty(lines + 2, np.int64)
    find_ends(data, ends)
    if lines > 0:
        # Whatever `find_ends` wrote behind the last '\n'.
        if data[len(data) - 1] != 0x0A:
            ends[lines - 1] = len(data)
        starts[0] = 0
    for line in range(1, lines):
        starts[line] = ends[line - 1] + 1
    return starts, ends[:lines]


@kernel_without_allocation
def find_ends(data, ends):
    """Fills in where each '\\n' is; `ends` has room for two more, which may hold anything then.

    Two are written for each 64 bytes even where there are fewer: how many there are is too often
    guessed wrong.
    """
    line = _0
    position, end = _0, np.uint64(len(data))
    while position + _CHUNK <= end:
        newlines = byte_range_mask(data, position, 0x0A, 0x0A)
        found = line + popcount(newlines)
        ends[line] = np.int64(position + trailing_zeros(newlines))
        newlines &= newlines - _1
        ends[line + _1] = np.int64(position + trailing_zeros(newlines))
        newlines &= newlines - _1
        line += _2
        while newlines != _0:
            ends[line] = np.int64(position + trailing_zeros(newlines))
            line += _1
            newlines &= newlines - _1
        line = found
        position += _CHUNK
    while position < end:
        if data[position] == 0x0A:
            ends[line] = np.int64(position)
            line += _1
        position += _1


@kernel_without_allocation
def find_tab(data, start, end):
    """Where the first TAB of data[start:end] is, else `end`."""
    position, last = np.uint64(start), np.uint64(end)
    while position < last and position + _CHUNK <= np.uint64(len(data)):
        tabs = byte_range_mask(data, position, 0x09, 0x09)
        if tabs != _0:
            return np.int64(min(position + trailing_zeros(tabs), last))
        position += _CHUNK
    while position < last:
        if data[position] == 0x09:
            return np.int64(position)
        position += _1
    return np.int64(last)


@kernel_without_allocation
def cut_columns(data, starts, ends, columns, keeps_tabs, cell_starts, cell_ends, coverage):
    """Fills in where each line's wanted columns are, and whether that is all of the line.

    `columns` int64[c], ascending; with `keeps_tabs` the last of them goes on to the line's end.
    `cell_starts`, `cell_ends` int64[lines, c]: a column that is not
    there is no bytes at the line's end. `coverage` uint8[lines]: `COVERED`, `WITH_OTHERS` if there
    are columns that are not wanted, `MISSING_COLUMN` if too few.
    """
    for line in range(len(starts)):
        end = ends[line]
        start = starts[line]
        column = 0
        found = 0
        coverage[line] = COVERED
        while found < len(columns) and start <= end:
            tab = find_tab(data, start, end)
            if columns[found] == column:
                if keeps_tabs and found + 1 == len(columns):
                    tab = end
                cell_starts[line, found] = start
                cell_ends[line, found] = tab
                found += 1
            else:
                coverage[line] = WITH_OTHERS
            start = tab + 1
            column += 1
        if start <= end:
            coverage[line] = WITH_OTHERS
        if found < len(columns):
            coverage[line] = MISSING_COLUMN
        for missing in range(found, len(columns)):
            cell_starts[line, missing] = end
            cell_ends[line, missing] = end
