"""Sorts strings of letters by packed keys, and finds how much each has in common with the one before.

Letters are numbers from 1 on; a 0 ends a string. A string is an entry: its position in the letters, and
above it any number that goes along with it.
"""

import numpy as np

from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets
from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.kernels.sorting import sort_pairs

POSITION_BITS = 32

_POSITION = (1 << POSITION_BITS) - 1


def entries_of(positions: np.ndarray) -> np.ndarray:
    """Returns int64 entries of strings at these positions, with their numbers."""
    if len(positions) and int(positions[-1]) > _POSITION:
        raise InputError(
            'the words have more than 2^32 characters; learn from a sample of the rows'
        )
    return np.arange(len(positions), dtype=np.int64) << POSITION_BITS | positions


@kernel_without_allocation
def position_of(entry):
    return entry & _POSITION


@kernel
def sort_strings(letters, alphabet_size, limit, entries, common):
    """Sorts entries in place by at least the first `limit` letters of their strings.

    `common`, zeros, gets how many letters a string and the one before it have in common; those that are
    equal in `limit` letters may have more.
    """
    bits = 1
    while alphabet_size > 1 << bits:
        bits += 1
    packed = 63 // bits
    keys = np.empty(len(entries), np.int64)
    depth, is_open = 0, True
    while is_open and depth < limit:
        is_open = False
        low = 0
        while low < len(entries):
            high = low + 1
            while high < len(entries) and common[high] == depth:
                high += 1
            if high > low + 1:
                for i in range(low, high):
                    keys[i - low] = _pack(letters, position_of(entries[i]) + depth, bits, packed)
                sort_pairs(keys, entries, low, high - low)
                for i in range(low + 1, high):
                    equal = _equal_letters(keys[i - low - 1], keys[i - low], bits, packed)
                    common[i] = depth + equal
                    is_open |= equal == packed
            low = high
        depth += packed


@kernel_without_allocation
def _pack(letters, position, bits, packed):
    """A number that compares as the next letters do, with zeros from the end on."""
    key = np.int64(0)
    for k in range(packed):
        letter = np.int64(letters[np.uint64(position + k)])
        if letter == 0:
            return key << bits * (packed - k)
        key = key << bits | letter
    return key


@kernel_without_allocation
def _equal_letters(one, other, bits, packed):
    """How many letters two keys have in common, before the end of either."""
    last = (1 << bits) - 1
    for k in range(packed):
        shift = bits * (packed - 1 - k)
        letter = one >> shift & last
        if letter == 0 or letter != other >> shift & last:
            return k
    return packed


def pick_strings(
    letters: np.ndarray, sources: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns a copy of the strings at these positions, and their starts; sizes count the 0 too."""
    starts = read_only(row_offsets(sizes))
    copied = np.zeros(int(starts[-1]), letters.dtype)
    _copy_strings(read_only(letters), read_only(sources), starts, copied)
    return read_only(copied), starts


@kernel_without_allocation
def _copy_strings(letters, sources, starts, copied):
    for i in range(len(sources)):
        for k in range(starts[i + 1] - starts[i] - 1):
            copied[np.uint64(starts[i] + k)] = letters[np.uint64(sources[i] + k)]
