"""WordPiece's model: a word is segmented into the longest pieces from the left, or is unknown.

The pieces are a trie of bytes in a double array. A node is a cell with its parent and a base; its
child by a byte is the cell at base + byte, if that has this node as its parent. So a step reads
memory once. In UTF-8 the longest match in bytes is the longest in characters. `WORD_ROOT` has all
pieces as they are, `JOINED_ROOT` those with the joiner, without it.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from tokcore.encoding.kernels import NO_ROOM, PieceIds, larger_workspace, segment_tokens
from tokcore.kernels.bytes import grown, row_offsets
from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only, read_only_state
from tokcore.options import shown
from tokcore.text.pre_tokenizer import RowPart

_NO_UNKNOWN = -1
"""The unknown token's id where a vocabulary has none."""

_0, _1 = np.uint64(0), np.uint64(1)
_CONTINUED, _CONTINUATION = np.uint8(0xC0), np.uint8(0x80)

WORD_ROOT, JOINED_ROOT = 0, 1
"""The root of pieces at the start of a word, and that of pieces after a joiner."""

NO_CELL = np.uint64((1 << 64) - 1)

_FREE = np.uint64(((1 << 32) - 1) << 32)  # the parent is a cell that does not exist
_NO_PARENT = np.uint64(((1 << 32) - 2) << 32)
_HAS_ID = np.uint64(1)
_PARENT_SHIFT, _BASE_SHIFT = np.uint64(32), np.uint64(1)
_BASE_BITS = np.uint64((1 << 31) - 1)
_BYTES = 256

_CANDIDATES = 256
"""The bases that are tried before a node's children are put after all cells. Half of the cells are
used then; with 8,192 candidates hardly more are, and building takes eight times as long."""


class DoubleArrayTrie(NamedTuple):
    """The cells, and the ids of the pieces that end at them; arrays are read-only."""

    cells: np.ndarray  # uint64[cells]: parent << 32 | base << 1 | whether a piece ends here
    ids: np.ndarray  # int32[cells]


class WordPieceModel:
    """A `Model`: a word is segmented into the longest pieces from the left, or is unknown."""

    def __init__(self, trie: DoubleArrayTrie, size: int, unknown: int | None, max_word_length: int):
        """Takes the pieces.

        Args:
            trie: of the pieces.
            size: all ids are below it.
            unknown: the id of words that cannot be segmented; None: they are errors.
            max_word_length: in code points; longer words are unknown.
        """
        self.size = size
        self.state = _WordPieces(trie, _NO_UNKNOWN if unknown is None else unknown, max_word_length)

    def workspace(self, tokens: int) -> PieceIds:
        return PieceIds.of(tokens, room=tokens)

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        start, end = np.uint64(part.start), np.uint64(part.end)
        # At most an id for each character; memory that is not written to is not allocated.
        room = min(part.end - part.start, self.state.max_word_length) + 1
        ids = np.empty(room, np.int32)
        state = read_only_state(self.state)
        used, failure = _segment_word(part.text, start, end, state, ids, np.uint64(0))
        if failure:
            token = part.text[part.start : part.end].tobytes().decode('utf-8', 'surrogatepass')
            raise ValueError(self.describe_failure(token, int(failure)))
        yield ids[: int(used)]

    def describe_failure(self, token: str, failure: int) -> str:
        rest = token.encode('utf-8', 'surrogatepass')[-failure:].decode('utf-8', 'surrogatepass')
        return (
            f'no pieces of the vocabulary spell the word {shown(token)}, from {shown(rest)} on, '
            'and it has no entry for unknown words; give a vocabulary with [UNK]'
        )


class _WordPieces(NamedTuple):
    """The state."""

    trie: DoubleArrayTrie
    unknown: int  # the id of unknown words, or _NO_UNKNOWN
    max_word_length: int  # in code points


@kernel_without_allocation
def _is_longer(text, start, end, most):
    """Whether text[start:end] has more than `most` code points."""
    if end - start <= np.uint64(most):
        return False
    characters = 0
    for position in range(start, end):
        characters += text[position] & _CONTINUED != _CONTINUATION
        if characters > most:
            return True
    return False


@kernel_without_allocation
def _segment_word(text, start, end, model, ids, used):
    """Writes the ids of the word text[start:end] (uint64) to ids[used:].

    Returns the number of ids then, and 0; or, if the word is unknown and `model.unknown` is
    `_NO_UNKNOWN`, the length of the rest that no piece is a prefix of. `ids` must have room for an id
    for each byte, and one more.
    """
    position, count = start, used
    if not _is_longer(text, start, end, model.max_word_length):
        root = WORD_ROOT
        while position < end:
            cell, piece_end = longest_piece(text, position, end, root, model.trie)
            if piece_end == position:
                break
            ids[count] = model.trie.ids[cell]
            count += _1
            position = piece_end
            root = JOINED_ROOT
    if position < end:
        if model.unknown == _NO_UNKNOWN:
            return used, np.int64(end - position)
        ids[used] = model.unknown
        count = used + _1
    return count, np.int64(0)


@segment_tokens.register(_WordPieces)
@kernel_without_allocation
def segment_words(tokens, missed, model, work):
    """As `segment_tokens` says; `failure` is the length of the rest, which no piece begins."""
    if len(work.ids) < missed.nbytes + missed.count:
        return 0, NO_ROOM
    used = _0
    work.id_bounds[0] = used
    for miss in range(missed.count):
        token = missed.numbers[miss]
        used, failure = _segment_word(
            tokens.text, tokens.starts[token], tokens.ends[token], model, work.ids, used
        )
        if failure:
            return miss, failure
        work.id_bounds[miss + 1] = used
    return 0, 0


@larger_workspace.register(_WordPieces)
@kernel
def larger_ids(missed, model, work):
    """As `larger_workspace` says; memory that is not written to is not allocated."""
    return PieceIds(grown(work.ids, 0, missed.nbytes + missed.count), work.id_bounds)


def double_array_trie(pieces: Iterable[tuple[str, int]], joiner: str) -> DoubleArrayTrie:
    """Returns the trie of distinct pieces with their ids; empty pieces are left out."""
    prefix = joiner.encode('utf-8', 'surrogatepass')
    words = [(piece.encode('utf-8', 'surrogatepass'), id_) for piece, id_ in pieces]
    joined = [(piece.removeprefix(prefix), id_) for piece, id_ in words if piece.startswith(prefix)]
    words, joined = (sorted(item for item in items if item[0]) for items in (words, joined))
    items = words + joined
    data = np.frombuffer(b''.join(piece for piece, _ in items), np.uint8)
    offsets = row_offsets([len(piece) for piece, _ in items])
    ids = np.array([id_ for _, id_ in items], np.int32)
    cells, ids = _build_cells(read_only(data), read_only(offsets), read_only(ids), len(words))
    return DoubleArrayTrie(read_only(cells), read_only(ids))


@kernel_without_allocation
def longest_piece(text, position, end, root, trie):
    """Returns the cell and the end (uint64) of the longest piece that starts at a position.

    If there is none, these are the root and the position.
    """
    cells = trie.cells
    cell, entry = np.uint64(root), cells[root]
    piece, piece_end = cell, position
    while position < end:
        child = (entry >> _BASE_SHIFT & _BASE_BITS) + np.uint64(text[position])
        entry = cells[child]
        if entry >> _PARENT_SHIFT != cell:
            break
        cell = child
        position += _1
        if entry & _HAS_ID:
            piece, piece_end = cell, position
    return piece, piece_end


@kernel_without_allocation
def child_cell(cells, cell, byte):
    """Returns the cell (uint64) of a cell's child by a byte, or `NO_CELL`."""
    child = (cells[cell] >> _BASE_SHIFT & _BASE_BITS) + np.uint64(byte)
    return child if cells[child] >> _PARENT_SHIFT == cell else NO_CELL


@kernel_without_allocation
def _free_base(cells, used, first, children, count):
    """Returns a base for which the cells of `count` ascending bytes are free, from `first` on.

    All cells from `used` on are free.
    """
    for cell in range(max(first, children[0]), min(first + _CANDIDATES, used)):
        base = cell - children[0]
        is_free = True
        for child in range(count):
            other = base + children[child]
            if other < used and cells[other] != _FREE:
                is_free = False
                break
        if is_free:
            return base
    return max(used - children[0], 0)


@kernel
def _with_room(cells, ids, size):
    """Returns the cells and ids, or larger copies if there are fewer than `size`."""
    if size <= len(cells):
        return cells, ids
    larger = np.full(2 * size, _FREE)
    larger[: len(cells)] = cells
    larger_ids = np.zeros(2 * size, np.int32)
    larger_ids[: len(ids)] = ids
    return larger, larger_ids


@kernel_without_allocation
def _children(data, offsets, first, last, depth, starts, children):
    """Finds the distinct bytes at `depth` of ascending strings, and the first string of each.

    Returns how many there are; starts[that number] is `last`.
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
def _build_cells(data, offsets, string_ids, words):
    """Returns the cells and ids of strings, data[offsets[i]:offsets[i + 1]] with string_ids[i].

    The first `words` strings belong to `WORD_ROOT`, the others to `JOINED_ROOT`. Both ascend, are
    distinct and not empty. Cells are in the order of levels, since most steps are near the roots.
    """
    cells, ids = np.full(2 * _BYTES, _FREE), np.zeros(2 * _BYTES, np.int32)
    cells[WORD_ROOT] = cells[JOINED_ROOT] = _NO_PARENT
    queue = np.empty((len(data) + 2, 4), np.int32)  # first and last string, depth, cell
    queue[:2] = 0
    queue[WORD_ROOT, 1] = queue[JOINED_ROOT, 0] = words
    queue[JOINED_ROOT, 1] = len(string_ids)
    queue[JOINED_ROOT, 3] = JOINED_ROOT
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
            target = base + children[child]
            cells[target] = np.uint64(cell) << _PARENT_SHIFT
            queue[queued, 0], queue[queued, 1] = starts[child], starts[child + 1]
            queue[queued, 2], queue[queued, 3] = depth + 1, target
            queued += 1
    # A base is an index of a cell, and a byte is added to it.
    return cells[: used + _BYTES].copy(), ids[: used + _BYTES].copy()
