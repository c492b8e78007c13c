"""The pieces as a double array: the child of a cell by a letter is the cell at base + letter.

A cell has all that a step needs, so that the step reads memory once: the base of its children, its parent,
and the piece that ends there with its score.
"""

from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.unigram.seeds import Pieces
from tokcore.unigram.string_sorting import POSITION_BITS, entries_of, sort_strings

CELL = np.dtype([('base', np.int32), ('parent', np.int32), ('piece', np.int32), ('score', np.float32)])

NO_PIECE = -1

_FREE = -1
_TRIES = 256
"""Gaps that are tried for the children of a cell before they are put behind all others."""


class PieceTrie(NamedTuple):
    """The cells, and the cell of each piece."""

    cells: np.ndarray  # CELL[cells]
    cell_of: np.ndarray  # int32[pieces]

    @classmethod
    def of(cls, pieces: Pieces, alphabet_size: int) -> 'PieceTrie':
        entries = entries_of(pieces.starts[:-1])
        common = np.zeros(len(entries), np.int32)
        sort_strings(pieces.letters, alphabet_size, len(pieces.letters), entries, common)
        order = read_only(entries >> POSITION_BITS)
        nodes = 1 + int((np.diff(pieces.starts)[order] - 1 - common).sum())
        cell_of = np.empty(len(order), np.int32)
        room, used = nodes + 2 * alphabet_size, -1
        while used < 0:
            room += nodes // 4
            cells = np.zeros(room, CELL)
            cells['parent'], cells['piece'] = _FREE, NO_PIECE
            used = _place(pieces.letters, pieces.starts, order, alphabet_size, cells, cell_of)
        trie = cls(cells[:used].copy(), cell_of)
        trie.score(np.arange(len(order)), pieces.scores)
        return trie

    def score(self, kept: np.ndarray, scores: np.ndarray) -> 'PieceTrie':
        """Sets the scores of these pieces, which are numbered anew; switches all others off."""
        self.cells['piece'][self.cell_of] = NO_PIECE
        cell_of = self.cell_of[kept]
        self.cells['piece'][cell_of] = np.arange(len(kept))
        self.cells['score'][cell_of] = scores
        return PieceTrie(self.cells, cell_of)


@kernel
def _place(letters, starts, order, alphabet_size, cells, cell_of):
    """Places the nodes of sorted strings; returns how many cells there are, or -1 without room."""
    # Ranges of strings with a common prefix: first, last, its length and its cell.
    stack = np.empty((len(order) + 1, 4), np.int64)
    bounds = np.empty(alphabet_size + 1, np.int64)
    gaps = np.arange(len(cells))  # leads on to the next free cell
    cells[0]['parent'] = 0
    gaps[0] = 1
    used, top = 1, 0
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, len(order), 0, 0
    while top >= 0:
        low, high, depth, cell = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
        top -= 1
        if starts[order[low]] + depth + 1 == starts[order[low] + 1]:
            cell_of[order[low]] = cell
            low += 1
        if low == high:
            continue
        children = 0
        for i in range(low, high):
            letter = np.int64(letters[starts[order[i]] + depth])
            if i == low or letter != np.int64(letters[starts[order[i - 1]] + depth]):
                bounds[children] = i
                children += 1
        bounds[children] = high
        first = np.int64(letters[starts[order[low]] + depth])
        gap = _gap(gaps, first)
        base = max(used - first, 0)
        for _ in range(_TRIES):
            if gap >= used:
                break
            child = 1
            while child < children:
                letter = np.int64(letters[starts[order[bounds[child]]] + depth])
                if cells[gap - first + letter]['parent'] != _FREE:
                    break
                child += 1
            if child == children:
                base = gap - first
                break
            gap = _gap(gaps, gap + 1)
        if base + 2 * alphabet_size > len(cells):
            return -1
        cells[cell]['base'] = base
        for child in range(children):
            new = base + np.int64(letters[starts[order[bounds[child]]] + depth])
            cells[new]['parent'] = cell
            gaps[new] = new + 1
            used = max(used, new + 1)
            top += 1
            stack[top, 0], stack[top, 1] = bounds[child], bounds[child + 1]
            stack[top, 2], stack[top, 3] = depth + 1, new
    # A step may read as far as the last letter from any base on.
    return used + alphabet_size


@kernel_without_allocation
def _gap(gaps, cell):
    while gaps[cell] != cell:
        gaps[cell] = gaps[gaps[cell]]
        cell = gaps[cell]
    return cell
