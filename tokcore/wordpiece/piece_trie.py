"""The trie of a vocabulary's pieces over bytes, as a double array.

Cells stand in one array, and each names its parent and a base: the child by a byte is the cell at
the base + that byte, if that names this cell as its parent. So a step is one look at memory. UTF-8
makes the longest match in bytes the one in characters.

There are two roots: below `WORD_ROOT` are all pieces as they are spelt, below `REST_ROOT` what
follows the joiner in those that have one.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tokcore.compiled.compilation import kernel, kernel_without_allocation, read_only
from tokcore.compiled.ragged_bytes import row_offsets

WORD_ROOT, REST_ROOT = 0, 1

_FREE = np.uint64(((1 << 32) - 1) << 32)  # as its parent such a cell has none that there is
_NO_PARENT = np.uint64(((1 << 32) - 2) << 32)
_1, _HAS_ID = np.uint64(1), np.uint64(1)
_PARENT_SHIFT, _BASE_SHIFT = np.uint64(32), np.uint64(1)
_BASE_BITS = np.uint64((1 << 31) - 1)
_BYTES = 256

_CELLS_TRIED = 256
"""Where a place for several children is looked for before they come last. Half of the cells are
taken then; with 8,192 tried it is hardly more, and building takes eight times as long."""


class PieceTrie(NamedTuple):
    """The cells, and at the places of those where pieces end the ids of these; read-only."""

    cells: np.ndarray  # uint64[...]: the parent's place << 32 | base << 1 | is a piece's end
    ids: np.ndarray  # int32[...]


def piece_trie(pieces: Iterable[tuple[str, int]], joiner: str) -> PieceTrie:
    """Returns the trie of distinct pieces with their ids; an empty one is in none."""
    whole = [(piece.encode('utf-8', 'surrogatepass'), id_) for piece, id_ in pieces]
    mark = joiner.encode('utf-8', 'surrogatepass')
    rest = [(piece.removeprefix(mark), id_) for piece, id_ in whole if piece.startswith(mark)]
    words, rest = (sorted(each for each in some if each[0]) for some in (whole, rest))
    both = words + rest
    data = np.frombuffer(b''.join(piece for piece, _ in both), np.uint8)
    offsets = row_offsets([len(piece) for piece, _ in both])
    ids = np.array([id_ for _, id_ in both], np.int32)
    found = build_cells(read_only(data), read_only(offsets), read_only(ids), len(words))
    return PieceTrie(*map(read_only, found))


@kernel_without_allocation
def longest_piece(text, place, end, root, trie):
    """The longest piece below a root that text[place:] begins with: its cell and its end.

    (root, place) if there is none. Places are uint64.
    """
    cells = trie.cells
    cell, entry = np.uint64(root), cells[root]
    found, found_end = cell, place
    while place < end:
        child = (entry >> _BASE_SHIFT & _BASE_BITS) + np.uint64(text[place])
        entry = cells[child]
        if entry >> _PARENT_SHIFT != cell:
            break
        cell = child
        place += _1
        if entry & _HAS_ID:
            found, found_end = cell, place
    return found, found_end


@kernel_without_allocation
def _free_base(cells, used, first, children, count):
    """A base under which the cells of so many bytes, ascending, are free, `first` or behind it.

    From `used` on all cells are.
    """
    for place in range(max(first, children[0]), min(first + _CELLS_TRIED, used)):
        base = place - children[0]
        taken = False
        for child in range(count):
            at = base + children[child]
            if at < used and cells[at] != _FREE:
                taken = True
                break
        if not taken:
            return base
    return max(used - children[0], 0)


@kernel
def _with_room(cells, ids, size):
    """The cells and ids, or larger copies of them with free cells behind, if they are fewer."""
    if size <= len(cells):
        return cells, ids
    larger = np.full(2 * size, _FREE)
    larger[: len(cells)] = cells
    larger_ids = np.zeros(2 * size, np.int32)
    larger_ids[: len(ids)] = ids
    return larger, larger_ids


@kernel_without_allocation
def _children(data, offsets, first, last, depth, starts, children):
    """Finds the bytes at `depth` of some strings that ascend, and the first string of each.

    Returns how many there are; starts[of that number] is `last`.
    """
    count = 0
    for string in range(first, last):
        byte = np.int64(data[offsets[string] + depth])
        if count == 0 or children[count - 1] != byte:
            children[count], starts[count] = byte, string
            count += 1
    starts[count] = last
    return count


@kernel
def build_cells(data, offsets, string_ids, words):
    """Returns the cells and ids of strings, data[offsets[i]:offsets[i + 1]] with string_ids[i].

    The first so many stand below `WORD_ROOT`, the others below `REST_ROOT`. Both kinds ascend, are
    distinct and not empty. Nodes are placed level by level: most steps are near the roots.
    """
    cells, ids = np.full(2 * _BYTES, _FREE), np.zeros(2 * _BYTES, np.int32)
    cells[WORD_ROOT] = cells[REST_ROOT] = _NO_PARENT
    queue = np.empty((len(data) + 2, 4), np.int32)  # first and last string, depth, cell
    queue[:2] = 0
    queue[WORD_ROOT, 1] = queue[REST_ROOT, 0] = words
    queue[REST_ROOT, 1] = len(string_ids)
    queue[REST_ROOT, 3] = REST_ROOT
    starts, children = np.empty(_BYTES + 1, np.int64), np.empty(_BYTES, np.int64)
    done, queued, used, first_free = 0, 2, 2, 2
    while done < queued:
        first, last, depth = queue[done, 0], queue[done, 1], queue[done, 2]
        cell = queue[done, 3]
        done += 1
        if depth and offsets[first] + depth == offsets[first + 1]:
            cells[cell] |= _HAS_ID
            ids[cell] = string_ids[first]
            first += 1
        count = _children(data, offsets, first, last, depth, starts, children)
        if count == 0:
            continue
        while cells[first_free] != _FREE:
            first_free += 1
        base = _free_base(cells, used, first_free, children, count)
        cells, ids = _with_room(cells, ids, base + 2 * _BYTES)
        cells[cell] |= np.uint64(base) << _BASE_SHIFT
        used = max(used, base + children[count - 1] + 1)
        for child in range(count):
            at = base + children[child]
            cells[at] = np.uint64(cell) << _PARENT_SHIFT
            queue[queued, 0], queue[queued, 1] = starts[child], starts[child + 1]
            queue[queued, 2], queue[queued, 3] = depth + 1, at
            queued += 1
    # A step may look so far behind the last cell.
    return cells[: used + _BYTES].copy(), ids[: used + _BYTES].copy()
