"""Rows of bytes of any length, one after another in one array, and room for more of them."""

import numpy as np
from numpy.typing import ArrayLike

from tokcore.compiled.compilation import kernel, kernel_without_allocation
from tokcore.compiled.wide_loads import CHUNK, copy_chunk, load_word, store_word

_0 = np.uint64(0)
_CHUNK, _WORD = np.uint64(CHUNK), np.uint64(8)


@kernel_without_allocation
def copy_bytes(target, to, source, start, length):
    """Copies source[start:start + length] to target[to:], places in uint64.

    By chunks or words of which the last may cover bytes that were copied already: what is copied is
    short, and a loop over its bytes would mostly begin and end.
    """
    if length < _WORD:
        for byte in range(length):
            target[to + byte] = source[start + byte]
    elif length < _CHUNK:
        last = length - _WORD
        copied = np.uint64(0)
        while copied < last:
            store_word(target, to + copied, load_word(source, start + copied))
            copied += _WORD
        store_word(target, to + last, load_word(source, start + last))
    else:
        last = length - _CHUNK
        copied = np.uint64(0)
        while copied < last:
            copy_chunk(target, to + copied, source, start + copied)
            copied += _CHUNK
        copy_chunk(target, to + last, source, start + last)


def row_offsets(lengths: ArrayLike) -> np.ndarray:
    """Returns where rows of these lengths begin, one after another, and where they end.

    >>> row_offsets([3, 0, 2])
    array([0, 3, 3, 5])

    int64[rows + 1].
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


@kernel
def prepend_rows(text, starts, ends, prefix):
    """Returns the rows one after another, a prefix in front of each, with their starts and ends."""
    rows = len(starts)
    size = rows * len(prefix)
    for row in range(rows):
        size += ends[row] - starts[row]
    joined = np.empty(size, np.uint8)
    joined_starts = np.empty(rows, np.int64)
    joined_ends = np.empty(rows, np.int64)
    position = _0
    for row in range(rows):
        joined_starts[row] = np.int64(position)
        copy_bytes(joined, position, prefix, _0, np.uint64(len(prefix)))
        position += np.uint64(len(prefix))
        length = np.uint64(ends[row] - starts[row])
        copy_bytes(joined, position, text, np.uint64(starts[row]), length)
        position += length
        joined_ends[row] = np.int64(position)
    return joined, joined_starts, joined_ends


@kernel
def pick_ranges(data, starts, ends):
    """Returns the data and offsets of the tokens data[starts[i]:ends[i]], one after another."""
    offsets = np.empty(len(starts) + 1, np.int64)
    offsets[0] = 0
    for token in range(len(starts)):
        offsets[token + 1] = offsets[token] + ends[token] - starts[token]
    picked = np.empty(offsets[len(starts)], np.uint8)
    for token in range(len(starts)):
        start, length = np.uint64(starts[token]), np.uint64(ends[token] - starts[token])
        copy_bytes(picked, np.uint64(offsets[token]), data, start, length)
    return picked, offsets


@kernel
def grown(array, used, size):
    """The array, or a larger copy if it has no `size` places behind the first `used`."""
    if used + size <= len(array):
        return array
    # By half and not twofold: blocks of rare characters decide on how much memory a job takes.
    larger = np.empty(max(len(array) + len(array) // 2, used + size), array.dtype)
    larger[:used] = array[:used]
    return larger
