"""Tries in the making: edges in a hash table, a child by its parent and a code point."""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.byte_hashing import GOLDEN_RATIO
from tokcore.compiled.compilation import kernel_without_allocation

_SPREAD = np.uint64(GOLDEN_RATIO)
_CODE_BITS = np.uint64(21)
_1 = np.uint64(1)
ABSENT = -1


class Edges(NamedTuple):
    """The edge of a parent and a code point has the key parent << 21 | code point, and 1 added."""

    keys: np.ndarray  # uint64[a power of two]: 0 where there is none
    children: np.ndarray  # int32, as many
    shift: np.uint64  # 64 - log2 of their number


def empty_edges(most: int) -> Edges:
    """Returns room for so many edges."""
    bits = max(4, (2 * most).bit_length())
    return Edges(np.zeros(1 << bits, np.uint64), np.empty(1 << bits, np.int32), np.uint64(64 - bits))


@kernel_without_allocation
def find_slot(edges, parent, code):
    """The slot of an edge: where it is, or where it belongs."""
    mask = np.uint64(len(edges.keys) - 1)
    key = (np.uint64(parent) << _CODE_BITS | np.uint64(code)) + _1
    slot = (key ^ key >> np.uint64(29)) * _SPREAD >> edges.shift
    while edges.keys[slot] != key and edges.keys[slot] != np.uint64(0):
        slot = (slot + _1) & mask
    return slot, key


@kernel_without_allocation
def child_of(edges, parent, code):
    """The child by a code point, or `ABSENT`."""
    slot, key = find_slot(edges, parent, code)
    return np.int64(edges.children[slot]) if edges.keys[slot] == key else np.int64(ABSENT)


@kernel_without_allocation
def child_or_new(edges, parent, code, new):
    """The child by a code point; `new`, which is then its number, where there was none."""
    slot, key = find_slot(edges, parent, code)
    if edges.keys[slot] != key:
        edges.keys[slot] = key
        edges.children[slot] = new
    return np.int64(edges.children[slot])
