"""Pairs of numbers and what each stands for, as an open-addressing table in one array.

Slot s is two words, so that one cache line brings both: left << 32 | right, and the value. A free
slot has `NO_PAIR` in both, so that what is not found has the largest value of all.
"""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.byte_hashing import GOLDEN_RATIO, MIXER
from tokcore.compiled.compilation import kernel_without_allocation, read_only

NO_PAIR = np.uint64(0xFFFF_FFFF_FFFF_FFFF)

_SPREAD, _MIXER = np.uint64(GOLDEN_RATIO), np.uint64(MIXER)
_1, _2, _29, _32 = np.uint64(1), np.uint64(2), np.uint64(29), np.uint64(32)


class PairTable(NamedTuple):
    """The state that kernels read; threads share it."""

    slots: np.ndarray  # uint64[2 * 2 ** (64 - shift)], read-only
    shift: np.uint64


@kernel_without_allocation
def _slot(key, shift):
    mixed = key * _MIXER
    return ((mixed ^ (mixed >> _29)) * _SPREAD) >> shift


@kernel_without_allocation
def find_pair(left, right, table):
    """Returns the value (uint64) of a pair of numbers (uint64) below 2^32, `NO_PAIR` if none."""
    key = left << _32 | right
    slots = table.slots
    mask = np.uint64(len(slots)) - _1
    place = _slot(key, table.shift) * _2
    while True:
        found = slots[place]
        if found == key or found == NO_PAIR:
            return slots[place + _1]
        place = (place + _2) & mask


@kernel_without_allocation
def _insert_pairs(keys, values, slots, shift):
    mask = np.uint64(len(slots)) - _1
    for k in range(len(keys)):
        place = _slot(keys[k], shift) * _2
        while slots[place] != keys[k] and slots[place] != NO_PAIR:
            place = (place + _2) & mask
        slots[place] = keys[k]
        slots[place + _1] = values[k]


def pair_table(left: np.ndarray, right: np.ndarray, values: np.ndarray) -> PairTable:
    """Returns a table of pairs; of equal ones the last has its value.

    Args:
        left: uint64[pairs], below 2^32 and not all ones together with `right`.
        right: as many.
        values: as many, below `NO_PAIR`.
    """
    bits = max(4, (4 * len(left)).bit_length() - 1)
    slots = np.full(2 << bits, NO_PAIR, np.uint64)
    shift = np.uint64(64 - bits)
    _insert_pairs(read_only(left << _32 | right), read_only(values), slots, shift)
    return PairTable(read_only(slots), shift)
