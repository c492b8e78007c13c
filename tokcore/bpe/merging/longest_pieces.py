"""The textbook's way to encode: the longest piece that begins the rest of a token, again and again.

Pieces are a trie: nodes are numbers, and a table of pairs gives the child of a node by a character.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tokcore.bpe.merging.merging_tokens import NO_ENTRY
from tokcore.bpe.merging.pair_table import NO_PAIR, PairTable, find_pair, pair_table
from tokcore.compiled.compilation import kernel, kernel_without_allocation, read_only
from tokcore.compiled.ragged_bytes import grown
from tokcore.encoding.model import NO_ROOM, MissedTokens, larger_workspace, segment_tokens
from tokcore.text.pre_tokenizer import RowPart, ScannedTokens
from tokcore.text.utf8 import next_character

_NO_PIECE = -2
_0, _1 = np.uint64(0), np.uint64(1)


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
