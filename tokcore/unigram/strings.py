"""Strings of letters, and their order by packed keys.

Letters are numbers from 1 on; a 0 ends a string. While strings are sorted, each is an
entry: its position in the letters, and above it any number that goes along with it.
"""

from typing import NamedTuple

import numpy as np

from tokcore.errors import InputError
from tokcore.kernels.bytes import put_varint, read_varint, row_offsets
from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.kernels.sorting import sort_pairs

POSITION_BITS = 32

_POSITION = (1 << POSITION_BITS) - 1


class Strings(NamedTuple):
    """Words or pieces that are read in order, and how often each occurs."""

    letters: np.ndarray  # uint8: as varints, since most letters are among the first
    longest: int  # letters
    counts: np.ndarray  # float32[strings]

    @classmethod
    def of(cls, letters: np.ndarray, positions: np.ndarray, counts: np.ndarray) -> 'Strings':
        """Returns the strings at these positions."""
        packed = np.empty(3 * len(letters), np.uint8)
        size, longest = _pack_strings(letters, read_only(positions), packed)
        return cls(read_only(packed[:size].copy()), longest, read_only(counts))


@kernel_without_allocation
def _pack_strings(letters, positions, packed):
    """Writes strings as varints; returns the bytes written, and the letters of the longest string."""
    size = longest = 0
    for string in range(len(positions)):
        position = np.int64(positions[string])
        while letters[position] != 0:
            size = put_varint(packed, size, np.int64(letters[position]))
            position += 1
        size = put_varint(packed, size, np.int64(0))
        longest = max(longest, position - positions[string])
    return size, longest


@kernel_without_allocation
def read_string(strings, position, string):
    """Copies the letters of the string at a byte, with the 0; returns how many, without it, and its end."""
    length = np.uint64(0)
    while True:
        letter, position = read_varint(strings.letters, position)
        string[length] = letter
        if letter == 0:
            return np.int64(length), position
        length += np.uint64(1)


def starts_of(letters: np.ndarray) -> np.ndarray:
    """Returns where strings begin, and where the last one ends: int64[strings + 1]."""
    return np.flatnonzero(np.append(True, letters == 0))


def entries_of(letters: np.ndarray) -> np.ndarray:
    """Returns int64 entries of strings that are one after another, with their numbers."""
    if len(letters) > _POSITION:
        raise InputError(
            'the words have more than 2^32 characters; learn from a sample of the rows'
        )
    positions = starts_of(letters)[:-1]
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


def pick_strings(letters: np.ndarray, sources: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Returns the strings at these positions, one after another; sizes count the 0 too."""
    starts = read_only(row_offsets(sizes))
    copied = np.zeros(int(starts[-1]), letters.dtype)
    _copy_strings(read_only(letters), read_only(sources.astype(np.int64)), starts, copied)
    return read_only(copied)


@kernel_without_allocation
def _copy_strings(letters, sources, starts, copied):
    for i in range(len(sources)):
        for k in range(starts[i + 1] - starts[i] - 1):
            copied[np.uint64(starts[i] + k)] = letters[np.uint64(sources[i] + k)]
