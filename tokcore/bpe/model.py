"""The models of byte pair encoding: merges by rank, and the textbook's longest piece first.

The textbook's pieces are a trie: nodes are numbers, and a table of pairs gives the child of a node
by a character. In byte-level text, characters of several bytes are merged in advance: let r be the
largest rank of the merges that make a character from its bytes. If no pair across its borders has
a rank up to r, these merges always come first, and the character can be one symbol from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tokcore.bpe.model_kernels import (
    MOST_SYMBOLS,
    NO_ENTRY,
    SHORT,
    MergeState,
    MergeWork,
    Units,
    segment_by_merges,
)
from tokcore.encoding.kernels import NO_ROOM, MissedTokens, larger_workspace, segment_tokens
from tokcore.kernels.bytes import grown
from tokcore.kernels.hash_tables import (
    NO_PAIR,
    PairTable,
    WholeTokens,
    find_pair,
    pair_table,
    whole_tokens,
)
from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.text.pre_tokenizer import RowPart, ScannedTokens
from tokcore.text.unicode import CODE_POINTS, next_character

_NO_PIECE = -2
_0, _1 = np.uint64(0), np.uint64(1)

NO_WHOLE_TOKENS: dict[bytes, int] = {}

_SHOWN = 60  # characters of a token that an error shows

_NEVER = 1 << 62


class LongestPieceModel:
    """A `Model` of pieces, of which the longest that begins the rest of a token is taken."""

    def __init__(
        self,
        pieces: Sequence[str],
        ids: Sequence[int],
        unknown: int,
        describe: Callable[[str, int], str],
    ):
        """Takes the pieces and the id of each, or `NO_ENTRY`.

        Args:
            pieces: not empty ones.
            ids: as many.
            unknown: the id of a rest that no piece begins, or `NO_ENTRY`.
            describe: says of a token and the number of a piece that there is no id for it.
        """
        self.size = 1 + max((*ids, unknown, 0))
        self._describe = describe
        nodes: dict[tuple[int, int], int] = {}
        ends: dict[int, int] = {}
        for piece, id_ in zip(pieces, ids, strict=True):
            node = 0
            for character in piece:
                node = nodes.setdefault((node, ord(character)), len(nodes) + 1)
            ends.setdefault(node, id_)
        edges = np.array([*nodes], np.uint64).reshape(-1, 2)
        below = np.array([*nodes.values()], np.uint64)
        children = pair_table(
            np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1]), below
        )
        at_nodes = [ends.get(node, _NO_PIECE) for node in range(len(nodes) + 1)]
        self.state = LongestPieces(children, read_only(np.array(at_nodes, np.int32)), unknown)

    def workspace(self, tokens: int) -> PieceIds:
        return PieceIds(np.empty(tokens, np.int32), np.empty(tokens + 1, np.uint64))

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        nbytes = part.end - part.start
        work = self.workspace(nbytes)
        start, end, number = (np.array([each], np.uint64) for each in (part.start, part.end, 0))
        token = ScannedTokens(part.text, start, end, np.empty(0, np.int64))
        _, left = segment_by_length(token, MissedTokens(number, 1, nbytes), self.state, work)
        if left:
            text = part.text[part.start : part.end].tobytes().decode('utf-8', 'replace')
            raise ValueError(self.unspelled(text, int(left)))
        yield work.ids[: int(work.id_bounds[1])]

    def unspelled(self, token: str, left: int) -> str:
        return self._describe(token, left - 1)


class LongestPieces(NamedTuple):
    """The state; arrays are read-only."""

    children: PairTable  # of (node, character): the node below; 0 is the root
    pieces: np.ndarray  # int32[nodes]: the id of the piece that ends here, NO_ENTRY or _NO_PIECE
    unknown: int  # the id of a rest that no piece begins


class PieceIds(NamedTuple):
    """The workspace."""

    ids: np.ndarray  # int32
    id_bounds: np.ndarray  # uint64


@segment_tokens.register(LongestPieces)
@kernel_without_allocation
def segment_by_length(tokens, missed, model, work):
    """Segments tokens as `segment_tokens` says.

    Where a piece has no id, `left` is 1 + the number of the token's pieces before it.
    """
    if len(work.ids) < missed.nbytes:
        return 0, NO_ROOM
    used = _0
    work.id_bounds[0] = _0
    for miss in range(np.uint64(missed.count)):
        token = missed.numbers[miss]
        place, end = np.int64(tokens.starts[token]), np.int64(tokens.ends[token])
        while place < end:
            place, id_ = _longest(tokens.text, place, end, model)
            if id_ == NO_ENTRY:
                return np.int64(miss), np.int64(used - work.id_bounds[miss] + _1)
            work.ids[used] = id_
            used += _1
        work.id_bounds[miss + _1] = used
    return 0, 0


@kernel_without_allocation
def _longest(text, place, end, model):
    """Where the longest piece that begins here ends, and its id; if none does, the end."""
    found, id_ = end, np.int32(model.unknown)
    node = _0
    while place < end:
        code, place = next_character(text, place)
        node = find_pair(node, np.uint64(code), model.children)
        if node == NO_PAIR:
            break
        if model.pieces[node] != _NO_PIECE:
            found, id_ = place, model.pieces[node]
    return found, id_


@larger_workspace.register(LongestPieces)
@kernel
def larger_piece_ids(missed, model, work):
    """As `larger_workspace` says."""
    return PieceIds(grown(work.ids, 0, missed.nbytes), work.id_bounds)


class MergeModel:
    """A `Model`: a token's symbols, of which the pair of lowest rank is merged until there is none.

    A long token takes some 50 bytes of memory for each of its own while it is segmented.
    """

    def __init__(
        self,
        merges: np.ndarray,
        units: Units,
        *,
        size: int,
        whole: dict[bytes, int] | WholeTokens = NO_WHOLE_TOKENS,
        outputs: np.ndarray | None = None,
        at_once: bool = False,
        describe: Callable[[str, int], str] | None = None,
    ):
        """Takes symbols by number.

        Args:
            merges: int64[merges, 3], left and right and what they become, by rank; of equal pairs
                the last one counts.
            units: what a token is made of.
            size: all ids are below.
            whole: the symbols of tokens that are not merged.
            outputs: int32[symbols], the id of each symbol, or `NO_ENTRY`; None: they are ids.
            at_once: all pairs of the lowest rank are merged before others are looked at.
            describe: says of a token, and which symbol of it, that there is no id for it.
        """
        self.size = size
        self._describe = describe
        left, right, new = merges.reshape(-1, 3).T.astype(np.uint64)
        ranks = np.arange(len(new), dtype=np.uint64) << np.uint64(32)
        pairs = pair_table(left, right, ranks | new)
        outputs = np.empty(0, np.int32) if outputs is None else outputs
        self.state = MergeState(
            pairs,
            units,
            whole if isinstance(whole, WholeTokens) else whole_tokens(whole),
            read_only(outputs),
            int(at_once),
        )

    def workspace(self, tokens: int) -> MergeWork:
        return _workspace(MOST_SYMBOLS * SHORT, tokens)

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        nbytes = part.end - part.start
        work = _workspace(MOST_SYMBOLS * nbytes + 1, 1)
        start, end, number = (np.array([each], np.uint64) for each in (part.start, part.end, 0))
        token = ScannedTokens(part.text, start, end, np.empty(0, np.int64))
        _, left = segment_by_merges(token, MissedTokens(number, 1, nbytes), self.state, work)
        if left:
            text = part.text[part.start : part.end].tobytes().decode('utf-8', 'replace')
            raise ValueError(self.unspelled(text, int(left)))
        yield work.ids[: int(work.id_bounds[1])]

    def unspelled(self, token: str, left: int) -> str:
        if self._describe is None:
            raise AssertionError(f'{token[:_SHOWN]!r} is a token like others')
        return self._describe(token, left - 1)


def merge_numbers(merges: Sequence[tuple[int, int, int]]) -> np.ndarray:
    """Returns merges as `MergeModel` takes them: int64[merges, 3]."""
    return np.array(merges, np.int64).reshape(-1, 3)


def _workspace(symbols: int, tokens: int) -> MergeWork:
    return MergeWork(
        np.empty(symbols, np.int32),
        np.empty(tokens + 1, np.uint64),
        np.empty(symbols, np.uint64),
        np.empty(symbols, np.uint32),
        np.empty(symbols, np.uint32),
        np.empty(3 * symbols, np.uint64),
        np.empty(symbols, np.uint64),
    )


def whole_characters(
    characters: Mapping[int, bytes], symbols: Sequence[int], merges: Sequence[tuple[int, int, int]]
) -> np.ndarray:
    """Returns 1 + the symbol of each character that can be taken whole, else 0.

    Args:
        characters: code points with their UTF-8, that may have symbols.
        symbols: 1 + the symbol of each byte, 0 if it has none.
        merges: left, right and what they become, by rank; of equal pairs the last counts.

    int32[0x110000], of which what is not set takes no memory.
    """
    ranks = {(left, right): (rank, new) for rank, (left, right, new) in enumerate(merges)}
    first_as_left: dict[int, int] = {}
    first_as_right: dict[int, int] = {}
    for (left, right), (rank, _) in ranks.items():
        first_as_left[left] = min(rank, first_as_left.get(left, _NEVER))
        first_as_right[right] = min(rank, first_as_right.get(right, _NEVER))
    whole = np.zeros(CODE_POINTS, np.int32)
    for code, coded in characters.items():
        parts = [symbols[byte] - 1 for byte in coded]
        last = -1
        border = _NEVER
        while min(parts) >= 0:
            border = min(
                border,
                first_as_right.get(parts[0], _NEVER),
                first_as_left.get(parts[-1], _NEVER),
            )
            found = [
                (*ranks[pair], place)
                for place, pair in enumerate(zip(parts, parts[1:], strict=False))
                if pair in ranks
            ]
            if not found:
                break
            rank, new, place = min(found, key=lambda each: (each[0], each[2]))
            last = max(last, rank)
            parts[place : place + 2] = [new]
        if len(parts) == 1 and border > last:
            whole[code] = parts[0] + 1
    return read_only(whole)
