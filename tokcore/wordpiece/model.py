"""WordPiece's model: a word is cut from its left into the longest pieces, or is unknown.

The pieces are a trie over bytes, as a double array: cells stand in one array, and each names its
parent and a base; the child by a byte is the cell at base + byte, if that names this cell as its
parent. So a step is one access to memory. UTF-8 makes the longest match in bytes the one in
characters. Below `WORD_ROOT` are all pieces as they are spelt, below `REST_ROOT` what follows the
joiner in those that have one.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from tokcore.encoding.kernels import NO_ROOM, larger_workspace, segment_tokens
from tokcore.kernels.bytes import grown, row_offsets
from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.text.pre_tokenizer import RowPart

_SHOWN = 60  # characters of a word that an error shows

NO_UNKNOWN = -1
"""The unknown token's id where a vocabulary has none."""

_0, _1 = np.uint64(0), np.uint64(1)
_CONTINUED, _CONTINUATION = np.uint8(0xC0), np.uint8(0x80)

WORD_ROOT, REST_ROOT = 0, 1

_FREE = np.uint64(((1 << 32) - 1) << 32)  # as its parent such a cell has none that there is
_NO_PARENT = np.uint64(((1 << 32) - 2) << 32)
_HAS_ID = np.uint64(1)
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


class PieceIds(NamedTuple):
    """The workspace: ids[id_bounds[m]:id_bounds[m + 1]] are the m-th word's."""

    ids: np.ndarray  # int32
    id_bounds: np.ndarray  # uint64[words + 1]


class WordPieceModel:
    """A `Model`: a word's ids are those of the longest pieces from its left, or the unknown one."""

    def __init__(self, trie: PieceTrie, size: int, unknown: int | None, max_word_length: int):
        """Takes the pieces and how many ids there are.

        Args:
            trie: of the pieces.
            size: all ids are below.
            unknown: the id of a word that cannot be spelt, or None where that is an error.
            max_word_length: code points; longer words are unknown.
        """
        self.size = size
        self.state = WordPieces(trie, NO_UNKNOWN if unknown is None else unknown, max_word_length)

    def workspace(self, tokens: int) -> PieceIds:
        return PieceIds(np.empty(tokens, np.int32), np.empty(tokens + 1, np.uint64))

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        start, end = np.uint64(part.start), np.uint64(part.end)
        # An id for a character at most; where none are written the room takes no memory.
        room = min(part.end - part.start, self.state.max_word_length) + 1
        ids = np.empty(room, np.int32)
        used, left = segment_word(part.text, start, end, self.state, ids, np.uint64(0))
        if left:
            token = part.text[part.start : part.end].tobytes().decode('utf-8', 'surrogatepass')
            raise ValueError(self.unspelled(token, int(left)))
        yield ids[: int(used)]

    def unspelled(self, token: str, left: int) -> str:
        rest = token.encode('utf-8', 'surrogatepass')[-left:].decode('utf-8', 'surrogatepass')
        return (
            f'no pieces of the vocabulary spell the word {_shown(token)}, from {_shown(rest)} on, '
            'and it has no entry for unknown words; give a vocabulary with [UNK]'
        )


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN else f'{text[:_SHOWN]!r}…'


class WordPieces(NamedTuple):
    """The state: what segmenting reads of a vocabulary; read-only, so that threads can share it."""

    trie: PieceTrie
    unknown: int
    max_word_length: int  # code points; longer words are unknown


@kernel_without_allocation
def _is_longer(text, start, end, most):
    """Whether text[start:end] has more than so many code points."""
    if end - start <= np.uint64(most):
        return False
    characters = 0
    for place in range(start, end):
        characters += text[place] & _CONTINUED != _CONTINUATION
        if characters > most:
            return True
    return False


@kernel_without_allocation
def segment_word(text, start, end, model, ids, used):
    """Puts the ids of the word text[start:end] behind the first so many, places in uint64.

    Returns how many they are then and, where the word is unknown and no id stands for that, how
    many bytes of it are left, else 0. There is room for an id a byte and one more.
    """
    place, count = start, used
    if not _is_longer(text, start, end, model.max_word_length):
        root = WORD_ROOT
        while place < end:
            cell, stop = longest_piece(text, place, end, root, model.trie)
            if stop == place:
                break
            ids[count] = model.trie.ids[cell]
            count += _1
            place = stop
            root = REST_ROOT
    if place < end:
        if model.unknown == NO_UNKNOWN:
            return used, np.int64(end - place)
        ids[used] = model.unknown
        count = used + _1
    return count, np.int64(0)


@segment_tokens.register(WordPieces)
@kernel_without_allocation
def segment_words(tokens, missed, model, work):
    """Segments tokens as `segment_tokens` says; what cannot be spelt are `left` bytes of a word."""
    if len(work.ids) < missed.nbytes + missed.count:
        return 0, NO_ROOM
    used = _0
    work.id_bounds[0] = used
    for miss in range(missed.count):
        token = missed.numbers[miss]
        used, left = segment_word(
            tokens.text, tokens.starts[token], tokens.ends[token], model, work.ids, used
        )
        if left:
            return miss, left
        work.id_bounds[miss + 1] = used
    return 0, 0


@larger_workspace.register(WordPieces)
@kernel
def larger_ids(missed, model, work):
    """An id a byte and one for each; room that is not written to takes no memory."""
    return PieceIds(grown(work.ids, 0, missed.nbytes + missed.count), work.id_bounds)


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
