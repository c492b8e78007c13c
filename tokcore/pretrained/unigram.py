"""The unigram language model: of all ways to cut a token into pieces, the one of the largest score.

The score of a way is the sum of its pieces' scores, and a character without a piece has a score of
its own, 10 below the lowest. Ways to the same place are compared as they are found, by their start
and then by their length; a later one must be larger to win. So ties, and sums that differ only by
rounding, are decided as the original decides them: `tokenizers` has double precision throughout,
SentencePiece (as of 0.2.3) single precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tokcore.encoding.kernels import (
    NO_ROOM,
    MissedTokens,
    larger_workspace,
    segment_tokens,
)
from tokcore.kernels.bytes import grown
from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.text.pre_tokenizer import RowPart, ScannedTokens
from tokcore.wordpiece.model import (
    NO_CELL,
    WORD_ROOT,
    DoubleArrayTrie,
    child_cell,
    double_array_trie,
    piece_ends_at,
)

UNKNOWN_PENALTY = 10.0
"""How far the score of a character without a piece is below the lowest score of a piece."""

_SHOWN = 60  # characters of a token that an error shows
_NO_ID = -1
_0, _1 = np.uint64(0), np.uint64(1)
_NOWHERE = np.uint32((1 << 32) - 1)
_ROOM = 1 << 10  # bytes of tokens that a workspace has room for at first


class UnigramModel:
    """A `Model` of pieces with scores.

    Segmenting a long token takes some 20 bytes of memory for each of its bytes.
    """

    def __init__(
        self,
        pieces: Mapping[str, int],
        scores: Sequence[float],
        unknown_score: float,
        unknown: int | None,
        fallback: Sequence[int] = (),
        single_precision: bool = False,
    ):
        """Takes the pieces that text is cut into.

        Args:
            pieces: their ids.
            scores: of all ids, also of those that no piece here has.
            unknown_score: of a character without a piece.
            unknown: the id of a run of such characters; None: they are errors.
            fallback: the ids of the 256 bytes, -1 where there is none; with all of them a run of
                unknown characters becomes the ids of its bytes.
            single_precision: whether sums are as in SentencePiece.
        """
        self.size = len(scores)
        self.state = _UnigramState(
            double_array_trie(pieces.items(), '\0'),
            read_only(np.array(scores, np.float64)),
            float(unknown_score),
            _NO_ID if unknown is None else unknown,
            read_only(np.array(fallback, np.int32)),
            single_precision,
        )

    def workspace(self, tokens: int) -> _UnigramWork:
        return _work(_ROOM, tokens)

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        start, end, index = (np.array([value], np.uint64) for value in (part.start, part.end, 0))
        size = part.end - part.start
        work = _work(size + 1, 1)
        token = ScannedTokens(part.text, start, end, np.empty(0, np.int64))
        _, failure = segment_unigram(token, MissedTokens(index, 1, size), self.state, work)
        if failure:
            text = part.text[part.start : part.end].tobytes().decode('utf-8', 'replace')
            raise ValueError(self.describe_failure(text, int(failure)))
        yield work.ids[: int(work.id_bounds[1])]

    def describe_failure(self, token: str, failure: int) -> str:
        rest = token.encode('utf-8', 'surrogatepass')[failure - 1 :].decode('utf-8', 'replace')
        return (
            f'the vocabulary has no piece for {rest[:1]!r} in {token[:_SHOWN]!r}, and no entry for '
            'unknown characters; give a vocabulary whose "unk_id" is set'
        )


def unknown_score(scores: Sequence[float]) -> float:
    """Returns the score of a character without a piece, as `tokenizers` has it."""
    return min(scores, default=math.inf) - UNKNOWN_PENALTY


class _UnigramState(NamedTuple):
    """The state; arrays are read-only."""

    trie: DoubleArrayTrie
    scores: np.ndarray  # float64[ids]
    unknown_score: float
    unknown: int  # the id of unknown characters, or _NO_ID
    fallback: np.ndarray  # int32[256 or 0]
    single_precision: bool


class _UnigramWork(NamedTuple):
    """The workspace; for the best way to each place of a token, the piece that ends there."""

    ids: np.ndarray  # int32
    id_bounds: np.ndarray  # uint64
    sums: np.ndarray  # float64[bytes]: the score of the way
    starts: np.ndarray  # uint32[bytes]: where the piece starts
    pieces: np.ndarray  # int32[bytes]: its id


def _work(size: int, tokens: int) -> _UnigramWork:
    """Returns a workspace for tokens of so many bytes in all, and one for each token."""
    return _UnigramWork(
        np.empty(size, np.int32),
        np.empty(tokens + 1, np.uint64),
        np.empty(size, np.float64),
        np.empty(size, np.uint32),
        np.empty(size, np.int32),
    )


@segment_tokens.register(_UnigramState)
@kernel_without_allocation
def segment_unigram(tokens, missed, model, work):
    """As `segment_tokens` says; `failure` is 1 + the place of a character without a piece."""
    if len(work.ids) < missed.nbytes + missed.count:
        return 0, NO_ROOM
    used = _0
    work.id_bounds[0] = _0
    for miss in range(np.uint64(missed.count)):
        token = missed.numbers[miss]
        start, size = tokens.starts[token], tokens.ends[token] - tokens.starts[token]
        place = _find_best_way(tokens.text, start, size, model, work)
        if place < size:
            return np.int64(miss), np.int64(place + _1)
        used = _put_way(tokens.text, start, size, model, work, used)
        work.id_bounds[miss + _1] = used
    return 0, 0


@larger_workspace.register(_UnigramState)
@kernel
def _larger_unigram_work(missed, model, work):
    """As `larger_workspace` says; what the arrays hold is not needed."""
    size = missed.nbytes + missed.count
    return _UnigramWork(
        grown(work.ids, 0, size),
        work.id_bounds,
        grown(work.sums, 0, size),
        grown(work.starts, 0, size),
        grown(work.pieces, 0, size),
    )


@kernel_without_allocation
def _find_best_way(text, start, size, model, work):
    """Finds the best way to each place of the token text[start:start + size].

    Returns the size, or the place of a character without a piece where that is an error.
    """
    cells, sums, starts = model.trie.cells, work.sums, work.starts
    for place in range(size + _1):
        starts[place] = _NOWHERE
    sums[_0] = 0.0
    place = _0
    while place < size:
        sum_here = sums[place]
        character_end = min(place + _character_length(text[start + place]), size)
        has_character = False
        cell, end = np.uint64(WORD_ROOT), place
        while end < size:
            cell = child_cell(cells, cell, text[start + end])
            if cell == NO_CELL:
                break
            end += _1
            if piece_ends_at(cells, cell):
                id_ = model.trie.ids[cell]
                has_character |= end == character_end
                sum_there = _rounded(model.scores[np.uint64(id_)] + sum_here, model)
                if starts[end] == _NOWHERE or sum_there > sums[end]:
                    _set_way(work, end, sum_there, place, id_)
        if not has_character:
            sum_there = _rounded(model.unknown_score + sum_here, model)
            if starts[character_end] == _NOWHERE or sum_there > sums[character_end]:
                if model.unknown == _NO_ID:
                    return place
                id_ = np.int32(model.unknown)
                _set_way(work, character_end, sum_there, place, id_)
        place = character_end
    return size


@kernel_without_allocation
def _rounded(value, model):
    # The sum of two numbers of single precision is the same in double precision, rounded.
    return np.float64(np.float32(value)) if model.single_precision else value


@kernel_without_allocation
def _set_way(work, end, score, start, id_):
    work.sums[end] = score
    work.starts[end] = np.uint32(start)
    work.pieces[end] = id_


@kernel_without_allocation
def _character_length(byte):
    """The bytes of a character that begins with this one."""
    return (
        _1
        + np.uint64(byte >= np.uint8(0xC0))
        + np.uint64(byte >= np.uint8(0xE0))
        + np.uint64(byte >= np.uint8(0xF0))
    )


@kernel_without_allocation
def _put_way(text, start, size, model, work, used):
    """Writes the ids of the best way to work.ids[used:]; returns how many are written then."""
    # The links lead from the end to the start; they are turned round.
    ends = work.starts
    end, next_end = size, _0
    while end > _0:
        before = np.uint64(ends[end])
        ends[end] = np.uint32(next_end)
        next_end = end
        end = before
    begin, end = _0, next_end
    unknown_from, is_unknown = _0, False
    while begin < size:
        id_ = work.pieces[end]
        if id_ == model.unknown:
            if not is_unknown:
                unknown_from, is_unknown = begin, True
        else:
            if is_unknown:
                used = _put_unknown(
                    text, start + unknown_from, start + begin, model, work.ids, used
                )
                is_unknown = False
            work.ids[used] = id_
            used += _1
        begin = end
        end = np.uint64(ends[end])
    if is_unknown:
        used = _put_unknown(text, start + unknown_from, start + size, model, work.ids, used)
    return used


@kernel_without_allocation
def _put_unknown(text, start, end, model, ids, used):
    """Writes the ids of the run of unknown characters text[start:end]."""
    if not model.single_precision:
        # `tokenizers` looks such a run up among all pieces.
        cell = np.uint64(WORD_ROOT)
        for place in range(start, end):
            cell = child_cell(model.trie.cells, cell, text[place])
            if cell == NO_CELL:
                break
        if cell != NO_CELL and piece_ends_at(model.trie.cells, cell):
            ids[used] = model.trie.ids[cell]
            return used + _1
    has_bytes = len(model.fallback) > 0
    for place in range(start, end):
        if has_bytes:
            has_bytes = model.fallback[text[place]] >= 0
    if not has_bytes:
        ids[used] = model.unknown
        return used + _1
    for place in range(start, end):
        ids[used] = model.fallback[text[place]]
        used += _1
    return used
