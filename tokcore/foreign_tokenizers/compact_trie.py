"""A trie of bytes in a quarter of the memory of `DoubleArrayTrie`, for walks that begin at every character.

Such walks are as fast as the memory that they read is small: half of their time is spent waiting for
it. Here no two nodes have the same base, so that a cell needs no parent: the child by a byte is the
cell at base + byte if its label is that byte. Nodes of most children are placed first, and those of one
child fill the gaps.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.wordpiece.model import (
    NO_CELL,
    WORD_ROOT,
    child_cell,
    double_array_trie,
)

ROOT = 0

_BYTES = 256
_FREE = 0xFF  # the label of a cell that is not used; no text of UTF-8 has this byte
_HAS_PIECE, _BASE_SHIFT = np.uint64(1 << 8), np.uint64(9)
_LABEL = np.uint64(0xFF)
_1, _8 = np.uint64(1), np.uint64(8)
_NO_PARENT = np.uint64(((1 << 32) - 2) << 32)
_LARGEST_BASE = (1 << 32 - 9) - 1  # of a cell of four bytes
_CANDIDATES = 512
"""The gaps that are tried before a node's children are put after all cells."""


class CompactTrie(NamedTuple):
    """The cells, and the ids of the pieces that end at them; arrays are read-only."""

    cells: np.ndarray
    """uint32[cells], or uint64[cells] of very many pieces: base << 9 | whether a piece ends here << 8 | label"""

    ids: np.ndarray  # int32[cells]


def compact_trie(pieces: Iterable[tuple[str, int]]) -> CompactTrie:
    """Returns the trie of distinct pieces with their ids; empty pieces are left out."""
    trie = double_array_trie(pieces, '\0')
    counts = np.zeros(len(trie.cells), np.int16)
    _count_children(trie, counts)
    nodes = np.argsort(-counts, kind='stable')[: np.count_nonzero(counts)]
    room, size = len(trie.cells), -1
    while size < 0:
        room *= 2
        places, bases, labels = np.zeros((3, len(trie.cells)), np.int32)
        gaps, is_base = np.arange(room, dtype=np.int32), np.zeros(room, np.bool_)
        size = _place(trie, read_only(nodes), places, bases, labels, gaps, is_base)
    cells, ids = np.full(size, _FREE, np.uint64), np.zeros(size, np.int32)
    cells[ROOT] |= np.uint64(bases[WORD_ROOT]) << _BASE_SHIFT
    [placed] = np.nonzero(places)
    bits = bases[placed].astype(np.uint64) << _BASE_SHIFT | labels[placed].astype(np.uint64)
    cells[places[placed]] = bits | (trie.cells[placed] & _1) << _8
    ids[places[placed]] = trie.ids[placed]
    if bases.max(initial=0) <= _LARGEST_BASE:
        cells = cells.astype(np.uint32)
    return CompactTrie(read_only(cells), read_only(ids))


@kernel_without_allocation
def next_entry(cells, entry, byte):
    """Returns the cell (uint64) of a node's child by a byte, and its entry, whose label shows whether the child exists."""
    cell = (entry >> _BASE_SHIFT) + np.uint64(byte)
    return cell, np.uint64(cells[cell])


@kernel_without_allocation
def has_label(entry, byte):
    return entry & _LABEL == np.uint64(byte)


@kernel_without_allocation
def has_piece(entry):
    """Whether a piece ends at a cell, by its entry."""
    return entry & _HAS_PIECE != np.uint64(0)


@kernel_without_allocation
def _count_children(trie, counts):
    for cell in range(len(counts) - _BYTES):
        if cell == WORD_ROOT or trie.cells[cell] < _NO_PARENT:
            for byte in range(_BYTES):
                counts[cell] += child_cell(trie.cells, np.uint64(cell), byte) != NO_CELL


@kernel_without_allocation
def _place(trie, nodes, places, bases, labels, gaps, is_base):
    """Gives each of the nodes, cells of a trie, a base of its own.

    Sets `bases` of the nodes, and of their children `places`, the new cells, and `labels`, by the old cells.
    `gaps` leads from each cell on to the next one that is free, which is itself at first. Returns how many
    cells there are, or -1 if there is no room.
    """
    gaps[ROOT] = ROOT + 1
    is_base[0] = True  # that of nodes without children
    used = ROOT + 1
    for node in nodes:
        first = 0
        while child_cell(trie.cells, np.uint64(node), first) == NO_CELL:
            first += 1
        last = _BYTES - 1
        while child_cell(trie.cells, np.uint64(node), last) == NO_CELL:
            last -= 1
        base = _free_base(trie, node, first, last, gaps, is_base, used)
        if base + 2 * _BYTES > len(gaps):
            return -1
        bases[node], is_base[base] = base, True
        for byte in range(first, last + 1):
            child = child_cell(trie.cells, np.uint64(node), byte)
            if child != NO_CELL:
                places[child], labels[child] = base + byte, byte
                gaps[base + byte] = base + byte + 1
                used = max(used, base + byte + 1)
    return used + _BYTES


@kernel_without_allocation
def _free_base(trie, node, first, last, gaps, is_base, used):
    """Returns a base of no other node for which the cells of a node's children are free.

    All cells from `used` on are free.
    """
    cell = _gap(gaps, first)
    for _ in range(_CANDIDATES):
        if cell >= used:
            break
        base = cell - first
        if not is_base[base]:
            is_free, byte = True, first + 1
            while is_free and byte <= last:
                if gaps[base + byte] != base + byte:
                    is_free = child_cell(trie.cells, np.uint64(node), byte) == NO_CELL
                byte += 1
            if is_free:
                return base
        cell = _gap(gaps, cell + 1)
    base = max(used - first, 0)
    while is_base[base]:
        base += 1
    return base


@kernel_without_allocation
def _gap(gaps, cell):
    """Returns the first free cell from a cell on; what is on the way leads farther then."""
    while gaps[cell] != cell:
        gaps[cell] = gaps[gaps[cell]]
        cell = gaps[cell]
    return cell
