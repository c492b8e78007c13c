"""The models of byte pair encoding: merges by rank, and the textbook's longest match.

The textbook's pieces are a trie: a table of pairs gives the child of a node by a character.

For merges of bytes, characters of several bytes are merged in advance. Let r be the highest rank of
the merges that make a character from its bytes. If no pair across the borders of the character has
a rank up to r, these merges always come first, and the character can be one symbol from the start.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tokcore.bpe.model_kernels import (
    MEMORY_ROWS,
    NO_ENTRY,
    NONE,
    SHORT,
    SYMBOLS_PER_BYTE,
    MergeState,
    MergeWork,
    Units,
    token_memory,
)
from tokcore.bpe.phrases import IDS_AT_ONCE, NO_CUTS, PART_ROWS, Joins, part_memory
from tokcore.encoding.encoder import DroppedCharacters
from tokcore.encoding.kernels import (
    NO_ROOM,
    MissedTokens,
    PieceIds,
    larger_workspace,
    segment_tokens,
)
from tokcore.kernels.bytes import grown
from tokcore.kernels.hash_tables import (
    NO_PAIR,
    PairTable,
    TokenLookup,
    find_pair,
    pair_table,
    token_lookup,
)
from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only, read_only_state
from tokcore.text.pre_tokenizer import RowPart, ScannedTokens
from tokcore.text.rows import Side
from tokcore.text.unicode import CODE_POINTS, next_character, whitespace_table

_NO_PIECE = -2
_0, _1 = np.uint64(0), np.uint64(1)

_SHOWN = 60  # characters of a token that an error shows

_NO_RANK = 1 << 62

_MOST_BYTES = 4  # of a character in UTF-8

_Describe = Callable[[str, int], str]
"""Returns the error for a token, of which the symbol with this index has no id."""


class MergeModel:
    """A `Model` that merges the pair of lowest rank among a token's symbols until there is none.

    Segmenting a long token takes some 50 bytes of memory for each of its bytes.
    """

    def __init__(
        self,
        merges: Sequence[tuple[int, int, int]] | np.ndarray,
        units: Units,
        *,
        size: int,
        ignore_merges: TokenLookup | None = None,
        outputs: np.ndarray | None = None,
        batched_merges: bool = False,
        ranks_of_results: bool = False,
        ranks: np.ndarray | None = None,
        joins: Joins = NO_CUTS,
        describe: _Describe | None = None,
    ):
        """Takes merges of symbols, which are numbers.

        Args:
            merges: (left, right, merged) by rank; of equal pairs the last one counts. As an array,
                int[merges, 3].
            units: the symbols of bytes or characters.
            size: all ids are below it.
            ignore_merges: the symbols of tokens that are not merged.
            outputs: int32[symbols], the id of each symbol, or `NO_ENTRY`; None if symbols are ids.
            batched_merges: all pairs of the lowest rank are merged before new pairs are considered.
            ranks_of_results: merges next to each other with the same result have the same rank.
            ranks: int64[merges], ascending: their ranks, where some are equal; None: all differ.
            joins: where phrases are not cut; if they are cut, each byte has a symbol.
            describe: returns the error for a symbol without an id.
        """
        self.size = size
        self._describe = describe
        left, right, merged = np.asarray(merges, np.int64).reshape(-1, 3).T.astype(np.uint64)
        if ranks is None:
            ranks = np.arange(len(merged))
            if ranks_of_results and len(merged):
                ranks = np.cumsum(np.append(False, np.diff(merged) != 0))
        ranks = ranks.astype(np.uint64) << np.uint64(32)
        outputs = np.empty(0, np.int32) if outputs is None else outputs
        self.state = MergeState(
            pair_table(left, right, ranks | merged),
            units,
            token_lookup({}) if ignore_merges is None else ignore_merges,
            read_only(outputs),
            int(batched_merges),
            joins,
        )

    def with_spaces(self) -> MergeModel:
        """Returns the model of text in which U+0020 stands for U+2581."""
        model = copy.copy(self)
        symbols = self.state.units.symbols.copy()
        symbols[0x20] = symbols[0x2581]
        units = self.state.units._replace(symbols=read_only(symbols))
        model.state = self.state._replace(units=units)
        return model

    def with_split_characters(self) -> MergeModel:
        """Returns the model of tokens that may begin or end within a character."""
        model = copy.copy(self)
        units = self.state.units._replace(premerged=read_only(np.empty(0, np.int32)))
        model.state = self.state._replace(units=units, joins=NO_CUTS)
        return model

    def workspace(self, tokens: int) -> MergeWork:
        return merge_work(SYMBOLS_PER_BYTE * SHORT, tokens, MEMORY_ROWS, PART_ROWS)

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        work = merge_work(SYMBOLS_PER_BYTE * (part.end - part.start) + 1 + IDS_AT_ONCE, 1)
        yield _segment_long_token(self, part, work)

    def dropped(self, normalize: Callable[[Side], Side] | None = None) -> DroppedCharacters | None:
        """Returns which characters have no symbol and so no id, as `Scheme.dropped`.

        `normalize` brings rows into the form that the model gets.
        """
        lost = lost_bytes(self.state.units)
        return None if lost is None else DroppedCharacters(lost, normalize)

    def describe_failure(self, token: str, failure: int) -> str:
        if self._describe is None:
            raise AssertionError(f'{token[:_SHOWN]!r} has a symbol without an id')
        return self._describe(token, failure - 1)


def lost_bytes(units: Units) -> np.ndarray | None:
    """Returns how many bytes of each character have no symbol, uint8[0x110000]; None: all have one.

    White space without one counts only where symbols are bytes: where they are characters, words are
    mostly cut at white space, which then is in none of them.
    """
    if units.unknown != NONE or not len(units.symbols) or (units.fallback != NONE).all():
        return None
    codes = np.arange(CODE_POINTS)
    if len(units.characters):
        is_lost = (units.symbols == 0) & ~_has_fallback(units.characters.astype(np.int64), units)
        if not is_lost.any():
            return None
        lost = _count_in_utf8(codes, is_lost)
    else:
        is_lost = (units.symbols == 0) & ~_has_fallback(codes, units) & (whitespace_table() == 0)
        lost = _count_in_utf8(codes, np.ones(256, bool)) * is_lost
    return read_only(lost.astype(np.uint8)) if lost.any() else None


def _has_fallback(codes: np.ndarray, units: Units) -> np.ndarray:
    """Returns whether all UTF-8 bytes of each character have a symbol of `fallback`, bool[codes]."""
    return _count_in_utf8(codes, units.fallback == NONE) == 0


def _count_in_utf8(codes: np.ndarray, is_counted: np.ndarray) -> np.ndarray:
    """Returns how many bytes of each character's UTF-8 are in a set of bytes, bool[256]."""
    counts = np.zeros(len(codes), np.int64)
    for least, size, lead in ((0, 1, 0), (0x80, 2, 0xC0), (0x800, 3, 0xE0), (0x10000, 4, 0xF0)):
        of_size = np.zeros(len(codes), np.int64)
        of_size += is_counted[(lead | codes >> 6 * (size - 1)) & 0xFF]
        for k in range(size - 1):
            of_size += is_counted[0x80 | codes >> 6 * k & 0x3F]
        counts = np.where(codes >= least, of_size, counts)
    return counts


def merge_work(symbols: int, tokens: int, remembered: int = 0, parts: int = 2) -> MergeWork:
    """Returns a workspace for tokens that have so many symbols in all.

    `remembered` is the number of rows of its `TokenMemory`, `parts` that of its `PartMemory`.
    """
    return MergeWork(
        np.empty(symbols, np.int32),
        np.empty(tokens + 1, np.uint64),
        np.empty(symbols, np.uint64),
        np.empty(symbols, np.uint32),
        np.empty(symbols, np.uint32),
        np.empty(3 * symbols, np.uint64),
        np.empty(symbols, np.uint64),
        token_memory(remembered),
        part_memory(parts),
    )


def premerged_characters(
    characters: Mapping[int, bytes],
    symbols: Sequence[int],
    merges: Sequence[tuple[int, int, int]] | np.ndarray,
) -> np.ndarray:
    """Returns the symbols + 1 of characters that can be one symbol from the start, 0 for others.

    Args:
        characters: code points and their UTF-8, as candidates.
        symbols: the symbol + 1 of each byte, 0 if it has none.
        merges: (left, right, merged) by rank; of equal pairs the last one counts. As an array,
            int[merges, 3].

    Returns:
        int32[0x110000]; memory that is not written to is not allocated.
    """
    triples = np.asarray(merges, np.int64).reshape(-1, 3)
    size = 1 + max(int(triples.max(initial=0)), *symbols, 0)
    lowest_as_left, lowest_as_right = np.full((2, size), _NO_RANK)
    # Later ones are written over by earlier ones.
    lowest_as_left[triples[::-1, 0]] = np.arange(len(triples))[::-1]
    lowest_as_right[triples[::-1, 1]] = np.arange(len(triples))[::-1]

    codes, sizes = (
        np.fromiter(column, np.int64) for column in (characters, map(len, characters.values()))
    )
    spelled = b''.join(utf8.ljust(_MOST_BYTES) for utf8 in characters.values())
    parts = (
        np.array(symbols, np.int64)[np.frombuffer(spelled, np.uint8)].reshape(-1, _MOST_BYTES) - 1
    )
    is_part = np.arange(_MOST_BYTES) < sizes.reshape(-1, 1)
    have_symbols = ((parts >= 0) | ~is_part).all(axis=1)
    parts = np.where(is_part, parts, -1)[have_symbols]
    codes, sizes, numbers = codes[have_symbols], sizes[have_symbols], np.arange(len(parts))

    pairs, ranks = _pairs_within(triples, parts, size)
    highest, lowest_across = np.full((2, len(parts)), [[-1], [_NO_RANK]])
    for _ in range(_MOST_BYTES):
        across = lowest_as_right[parts[:, 0]], lowest_as_left[parts[numbers, sizes - 1]]
        lowest_across = np.minimum(lowest_across, np.minimum(*across))
        found = parts[:, :-1] * size + parts[:, 1:]
        places = np.searchsorted(pairs, found)
        are_merges = (pairs[places] == found) & (parts[:, 1:] >= 0)
        found_ranks = np.where(are_merges, ranks[places], _NO_RANK)
        first = found_ranks.argmin(axis=1)
        lowest = found_ranks[numbers, first]
        merged = np.flatnonzero(lowest < _NO_RANK)
        first, lowest = first[merged], lowest[merged]
        highest[merged] = np.maximum(highest[merged], lowest)
        parts[merged, first] = triples[lowest, 2]
        for place in range(1, _MOST_BYTES - 1):
            behind = merged[first < place]
            parts[behind, place] = parts[behind, place + 1]
        parts[merged, -1] = -1
        sizes[merged] -= 1
    are_whole = (sizes == 1) & (lowest_across > highest)
    premerged = np.zeros(CODE_POINTS, np.int32)
    premerged[codes[are_whole]] = parts[are_whole, 0] + 1
    return read_only(premerged)


def _pairs_within(
    merges: np.ndarray, symbols: np.ndarray, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns left * size + right, ascending, and the rank, of the merges that text of symbols may need.

    The symbols are bytes of characters, which are one symbol after at most three merges. A last pair
    is above all others.
    """
    may_be = np.zeros(size + 1, bool)
    may_be[symbols] = True  # -1, for no symbol, is the last
    for _ in range(_MOST_BYTES - 1):
        are_within = may_be[merges[:, 0]] & may_be[merges[:, 1]]
        may_be[merges[are_within, 2]] = True
    ranks = np.flatnonzero(are_within)[::-1]
    pairs, last = np.unique(merges[ranks, 0] * size + merges[ranks, 1], return_index=True)
    return np.append(pairs, size * size), np.append(ranks[last], _NO_RANK)


class LongestPieceModel:
    """A `Model` that takes the longest piece from the left, again and again."""

    def __init__(
        self, pieces: Sequence[str], ids: Sequence[int], unknown: int, describe: _Describe
    ):
        """Takes the pieces, none of them empty, and the id of each, or `NO_ENTRY`.

        Args:
            unknown: the id of the rest of a token that no piece is a prefix of, or `NO_ENTRY`.
            describe: returns the error for a piece without an id.
        """
        self.size = 1 + max((*ids, unknown, 0))
        self._describe = describe
        nodes: dict[tuple[int, int], int] = {}
        id_of_node: dict[int, int] = {}
        for piece, id_ in zip(pieces, ids, strict=True):
            node = 0
            for character in piece:
                node = nodes.setdefault((node, ord(character)), len(nodes) + 1)
            id_of_node.setdefault(node, id_)
        edges = np.array([*nodes], np.uint64).reshape(-1, 2)
        children = pair_table(
            np.ascontiguousarray(edges[:, 0]),
            np.ascontiguousarray(edges[:, 1]),
            np.array([*nodes.values()], np.uint64),
        )
        node_ids = [id_of_node.get(node, _NO_PIECE) for node in range(len(nodes) + 1)]
        self.state = _LongestPieces(children, read_only(np.array(node_ids, np.int32)), unknown)

    def workspace(self, tokens: int) -> PieceIds:
        return PieceIds.of(tokens, room=tokens)

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        work = PieceIds.of(1, room=part.end - part.start)
        yield _segment_long_token(self, part, work)

    def describe_failure(self, token: str, failure: int) -> str:
        return self._describe(token, failure - 1)


class _LongestPieces(NamedTuple):
    """The state; arrays are read-only."""

    children: PairTable  # of (node, character): the child; 0 is the root
    ids: np.ndarray  # int32[nodes]: of the piece that ends here, NO_ENTRY or _NO_PIECE
    unknown: int  # the id of a rest that no piece is a prefix of, or NO_ENTRY


@segment_tokens.register(_LongestPieces)
@kernel_without_allocation
def _segment_by_length(tokens, missed, model, work):
    """Segments tokens as `segment_tokens` says.

    If a piece has no id, `failure` is 1 + its index among the pieces of the token.
    """
    if len(work.ids) < missed.nbytes:
        return 0, NO_ROOM
    used = _0
    work.id_bounds[0] = _0
    for miss in range(np.uint64(missed.count)):
        token = missed.numbers[miss]
        position, end = np.int64(tokens.starts[token]), np.int64(tokens.ends[token])
        while position < end:
            position, id_ = _longest_piece(tokens.text, position, end, model)
            if id_ == NO_ENTRY:
                return np.int64(miss), np.int64(used - work.id_bounds[miss] + _1)
            work.ids[used] = id_
            used += _1
        work.id_bounds[miss + _1] = used
    return 0, 0


@kernel_without_allocation
def _longest_piece(text, position, end, model):
    """Returns the end and the id of the longest piece at a position, or the end of the token."""
    piece_end, id_ = end, np.int32(model.unknown)
    node = _0
    while position < end:
        code, position = next_character(text, position)
        node = find_pair(node, np.uint64(code), model.children)
        if node == NO_PAIR:
            break
        if model.ids[node] != _NO_PIECE:
            piece_end, id_ = position, model.ids[node]
    return piece_end, id_


@larger_workspace.register(_LongestPieces)
@kernel
def _larger_piece_ids(missed, model, work):
    """As `larger_workspace` says."""
    return PieceIds(grown(work.ids, 0, missed.nbytes), work.id_bounds)


def _segment_long_token(
    model: MergeModel | LongestPieceModel, part: RowPart, work: MergeWork | PieceIds
) -> np.ndarray:
    """Returns the ids of one token, with a workspace that has room for it.

    Raises:
        ValueError: a piece of it has no id.
    """
    start, end, index = (np.array([value], np.uint64) for value in (part.start, part.end, 0))
    token = ScannedTokens(part.text, start, end, np.empty(0, np.int64))
    missed, state = MissedTokens(index, 1, part.end - part.start), read_only_state(model.state)
    _, failure = segment_tokens(token, missed, state, work)
    if failure:
        text = part.text[part.start : part.end].tobytes().decode('utf-8', 'replace')
        raise ValueError(model.describe_failure(text, int(failure)))
    return work.ids[: int(work.id_bounds[1])]
