"""Kernels of Tensor2Tensor's rule for lines: every '\\r' dropped, both ends without white space.

Stripping looks at a row's ends only, so it costs by the row and not by the byte.
"""

import numpy as np

from tokcore.compiled.compilation import kernel, kernel_without_allocation
from tokcore.text.utf8 import next_character


@kernel
def drop_returns(text, starts, ends):
    """Returns the rows without their '\\r', one after another, with their starts and ends."""
    size = 0
    for row in range(len(starts)):
        size += ends[row] - starts[row]
    kept = np.empty(size, np.uint8)
    kept_starts = np.empty(len(starts), np.int64)
    kept_ends = np.empty(len(starts), np.int64)
    size = 0
    for row in range(len(starts)):
        kept_starts[row] = size
        for position in range(starts[row], ends[row]):
            if text[position] != 0x0D:
                kept[size] = text[position]
                size += 1
        kept_ends[row] = size
    return kept[:size], kept_starts, kept_ends


@kernel_without_allocation
def strip_start(text, start, end, whitespace):
    """Where text[start:end] begins without the whitespace in front, at most `end`."""
    while start < end:
        character, behind = next_character(text, start)
        if not whitespace[character]:
            break
        start = behind
    return start


@kernel_without_allocation
def strip_end(text, start, end, whitespace):
    """Where text[start:end] ends without the whitespace behind, at least `start`."""
    while start < end:
        last = end - 1
        while text[last] & 0xC0 == 0x80:
            last -= 1
        if not whitespace[next_character(text, last)[0]]:
            break
        end = last
    return end


@kernel_without_allocation
def strip_rows(text, rows, damaged, whitespace, stripped):
    """Fills in where each row begins and ends without white space; nowhere if it is damaged.

    `rows` and `stripped` are (starts, ends), int64[rows] each.
    """
    starts, ends = rows
    stripped_starts, stripped_ends = stripped
    for row in range(len(damaged)):
        start = ends[row]
        end = ends[row]
        if not damaged[row]:
            start = strip_start(text, starts[row], end, whitespace)
            end = strip_end(text, start, end, whitespace)
        stripped_starts[row] = start
        stripped_ends[row] = end
