"""The unigram language model: of all ways to cut a token into pieces, the one of the largest score.

The score of a way is the sum of its pieces' scores, and a character without a piece has a score of
its own, 10 below the lowest. Ways to the same place are compared as they are found, by their start
and then by their length; a later one must be larger to win. So ties, and sums that differ only by
rounding, are decided as the original decides them: `tokenizers` has double precision throughout,
SentencePiece (as of 0.2.3) single precision. In SentencePiece, where the sum to a place is beyond 100,000,
it is subtracted from the sums to that place and to all that are reached behind it.

A token of SentencePiece is a whole row, so rounding depends on all that comes before. What lies between
two `borders` is one step of it: the best way to the second border is that to the first one and the best
way between, with the rounding that the sum so far has. The ids of short steps are kept, with the sums
up to which rounding cannot change them: a way of n pieces is off by at most n times the rounding of one
sum, and so no other way wins that is worse by more than twice as much.
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
    memo_row,
    segment_tokens,
    token_words,
)
from tokcore.kernels.bytes import grown
from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.kernels.simd import load_word, prefetch
from tokcore.pretrained.borders import NO_BORDERS, Borders, borders_of_pieces, next_border
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
_0, _1, _2, _3, _4, _8 = (np.uint64(number) for number in (0, 1, 2, 3, 4, 8))
_32, _40, _BYTE, _LOW = (np.uint64(number) for number in (32, 40, 0xFF, 0xFFFF_FFFF))
_NOWHERE = np.uint32((1 << 32) - 1)
_ROOM = 1 << 10  # bytes of tokens that a workspace has room for at first

_LONGEST_KEPT = 15
"""Bytes of a step whose ids are kept, and its pieces at most."""

_IDS_KEPT = 3
_KEPT_BITS = 15
"""log2 of the rows of two steps each, a cache line: two megabytes."""

_GROUP = 32
"""Steps whose rows are prefetched before the first is read."""

_STEP_END, _STEP_TEXT, _STEP_ROW = 0, 1, 3  # columns of _UnigramWork.steps; the text is two words

_MOST_LEVEL = 60
_MOST_SUM = 100_000.0
"""The sum of single precision at which SentencePiece begins anew."""
_PRECISION = 24  # bits of a number of single precision


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
        largest = max((abs(scores[id_]) for id_ in pieces.values()), default=0.0)
        level = math.frexp((_LONGEST_KEPT + 1) * max(largest, abs(unknown_score), 1.0))[1]
        self.state = _UnigramState(
            double_array_trie(pieces.items(), '\0'),
            read_only(np.array(scores, np.float64)),
            float(unknown_score),
            _NO_ID if unknown is None else unknown,
            read_only(np.array(fallback, np.int32)),
            single_precision,
            borders_of_pieces(pieces) if single_precision else NO_BORDERS,
            level if single_precision else _MOST_LEVEL + 1,
            _MOST_SUM if single_precision else math.inf,
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
    borders: Borders
    lowest_level: int
    """log2 of a sum that no way through a short step exceeds; nothing is kept if it is too large."""

    most_sum: float
    """The sum to a place is subtracted where it is beyond this."""


class _UnigramWork(NamedTuple):
    """The workspace; for the best way to each place of a step, the piece that ends there."""

    ids: np.ndarray  # int32
    id_bounds: np.ndarray  # uint64
    sums: np.ndarray  # float64[bytes]: the score of the way
    starts: np.ndarray  # uint32[bytes]: where the piece starts
    pieces: np.ndarray  # int32[bytes]: its id
    kept: np.ndarray
    """uint64[2 ** _KEPT_BITS, 8]: two steps a row. Of each the two words of its text, two ids, and a
    word with the third id, the number of ids in bits 32 to 39, and above them the log2 of the sum up to
    which they hold."""
    steps: np.ndarray  # uint64[_GROUP, 4]: the ends, the words and the rows in `kept` of next steps
    best: np.ndarray  # float64[_LONGEST_KEPT + 1]: the largest score to each place of a short step
    second: np.ndarray  # float64[as many]: the second largest


def _work(size: int, tokens: int) -> _UnigramWork:
    """Returns a workspace for tokens of so many bytes in all, and one for each token."""
    return _UnigramWork(
        np.empty(size, np.int32),
        np.empty(tokens + 1, np.uint64),
        np.empty(size, np.float64),
        np.empty(size, np.uint32),
        np.empty(size, np.int32),
        np.zeros((1 << _KEPT_BITS, 8), np.uint64),
        np.empty((_GROUP, 4), np.uint64),
        np.empty(_LONGEST_KEPT + 1, np.float64),
        np.empty(_LONGEST_KEPT + 1, np.float64),
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
        place, used = _segment(tokens.text, start, size, model, work, used)
        if place < size:
            return np.int64(miss), np.int64(place + _1)
        work.id_bounds[miss + _1] = used
    return 0, 0


@kernel_without_allocation
def _segment(text, start, size, model, work, used):
    """Writes the ids of the token text[start:start + size] to work.ids[used:], step by step.

    Returns (place, used): the size, or the place of a character without a piece where that is an
    error; and how many ids are written then.
    """
    ids, steps = work.ids, work.steps
    begin = used
    end = start + size
    place = start
    lowest = 2.0**model.lowest_level
    sum_here, level, limit = 0.0, model.lowest_level, lowest
    while place < end:
        group = _find_steps(text, place, end, model, work)
        for step in range(group):
            if abs(sum_here) > model.most_sum:
                sum_here, level, limit = 0.0, model.lowest_level, lowest
            while abs(sum_here) >= limit and level <= _MOST_LEVEL:
                level += 1
                limit *= 2.0
            after = steps[step, _STEP_END]
            first, row = steps[step, _STEP_TEXT], steps[step, _STEP_ROW]
            second = steps[step, _STEP_TEXT + 1]
            # Where a sum in the step may be beyond the most, nothing that is kept holds.
            is_short = (
                second != _0 and level <= _MOST_LEVEL and abs(sum_here) + lowest <= model.most_sum
            )
            column = _kept_column(first, second, row, work.kept)
            if is_short and column != _8 and work.kept[row, column + _3] >> _40 >= np.uint64(level):
                two, more = work.kept[row, column + _2], work.kept[row, column + _3]
                count = more >> _32 & _BYTE
                for number in range(count):
                    id_ = (
                        two & _LOW
                        if number == _0
                        else (two >> _32 if number == _1 else more & _LOW)
                    )
                    ids[used] = np.int32(id_)
                    sum_here = _rounded(model.scores[id_] + sum_here, model)
                    used += _1
                place = after
                continue
            length = after - place
            reached = _find_best_way(text, place, length, sum_here, model, work)
            if reached < length:
                return place - start + reached, used
            sum_here = work.sums[length]
            has_unknown = _has_unknown(length, model, work)
            count = _put_way(text, place, length, model, work, used) - used
            if is_short and column == _8 and not has_unknown and count <= np.uint64(_IDS_KEPT):
                holds = _level_of(_margin(text, place, length, model, work), length, model)
                if holds >= level:
                    _keep(first, second, ids, used, count, holds, work.kept, row)
            if used > begin and ids[used] == model.unknown and ids[used - _1] == model.unknown:
                # One id for the run, which began before the border.
                for number in range(used, used + count - _1):
                    ids[number] = ids[number + _1]
                count -= _1
            used += count
            place = after
    return size, used


@kernel_without_allocation
def _find_steps(text, place, end, model, work):
    """Writes the next steps of text[place:end] to work.steps; returns how many.

    The rows of `work.kept` are prefetched.
    """
    count = _0
    while place < end and count < np.uint64(_GROUP):
        after = next_border(text, place, end, model.borders)
        first, second = token_words(
            load_word(text, place), load_word(text, place + _8), after - place
        )
        row = memo_row(first, second, np.uint64(64 - _KEPT_BITS))
        prefetch(work.kept, row * _8)
        work.steps[count, _STEP_END] = after
        work.steps[count, _STEP_TEXT] = first
        work.steps[count, _STEP_TEXT + 1] = second
        work.steps[count, _STEP_ROW] = row
        count += _1
        place = after
    return count


@kernel_without_allocation
def _kept_column(first, second, row, kept):
    """The first column (uint64) of what is kept for a text of two words, or 8."""
    if kept[row, 0] == first and kept[row, 1] == second:
        return _0
    return _4 if kept[row, 4] == first and kept[row, 5] == second else _8


@kernel_without_allocation
def _keep(first, second, ids, used, count, level, kept, row):
    """Keeps the ids of a short step, ids[used:used + count], as the newest of its row."""
    column = _0 if kept[row, 1] == _0 else _4
    two = np.uint64(ids[used])
    more = np.uint64(level) << _40 | count << _32
    if count > _1:
        two |= np.uint64(ids[used + _1]) << _32
    if count > _2:
        more |= np.uint64(ids[used + _2])
    kept[row, column] = first
    kept[row, column + _1] = second
    kept[row, column + _2] = two
    kept[row, column + _3] = more


@kernel_without_allocation
def _has_unknown(size, model, work):
    """Whether the best way to the end of a step has unknown characters."""
    end = size
    while end > _0:
        if work.pieces[end] == model.unknown:
            return True
        end = np.uint64(work.starts[end])
    return False


@kernel_without_allocation
def _level_of(margin, size, model):
    """The log2 of the largest sum up to which rounding changes no choice in a step of `size` bytes.

    Two ways have at most twice as many pieces as there are bytes. Before a sum of 2 ** level no sum in
    the step exceeds 2 ** (level + 1), and its rounding 2 ** (level - 24). It is -1 if there is none.
    """
    level = model.lowest_level
    most = np.float64(size) * 2.0 ** (level + 1 - _PRECISION)
    if margin <= most:
        return -1
    while level < _MOST_LEVEL and margin > most * 2.0:
        level += 1
        most *= 2.0
    return level


@kernel_without_allocation
def _margin(text, start, size, model, work):
    """How much the best way through the short step text[start:start + size] is better than any other."""
    best, second, cells = work.best, work.second, model.trie.cells
    for place in range(size + _1):
        best[place] = second[place] = -np.inf
    best[_0] = 0.0
    place = _0
    while place < size:
        character_end = min(place + _character_length(text[start + place]), size)
        has_character = False
        cell, end = np.uint64(WORD_ROOT), place
        while end < size:
            cell = child_cell(cells, cell, text[start + end])
            if cell == NO_CELL:
                break
            end += _1
            if piece_ends_at(cells, cell):
                has_character |= end == character_end
                _add_ways(place, end, model.scores[np.uint64(model.trie.ids[cell])], work)
        if not has_character:
            _add_ways(place, character_end, model.unknown_score, work)
        place = character_end
    return best[size] - second[size]


@kernel_without_allocation
def _add_ways(start, end, score, work):
    best, second = work.best, work.second
    for there in (best[start] + score, second[start] + score):
        if there > best[end]:
            best[end], second[end] = there, best[end]
        elif there > second[end]:
            second[end] = there


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
        work.kept,
        work.steps,
        work.best,
        work.second,
    )


@kernel_without_allocation
def _find_best_way(text, start, size, sum_before, model, work):
    """Finds the best way to each place of the step text[start:start + size], after a sum of scores.

    Returns the size, or the place of a character without a piece where that is an error.
    """
    cells, sums, starts = model.trie.cells, work.sums, work.starts
    for place in range(size + _1):
        starts[place] = _NOWHERE
    sums[_0] = sum_before
    place = farthest = _0
    while place < size:
        sum_here = sums[place]
        if abs(sum_here) > model.most_sum:
            for end in range(place + _1, farthest + _1):
                if starts[end] != _NOWHERE:
                    sums[end] = _rounded(sums[end] - sum_here, model)
            sums[place] = sum_here = 0.0
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
                farthest = max(farthest, end)
        if not has_character:
            sum_there = _rounded(model.unknown_score + sum_here, model)
            if starts[character_end] == _NOWHERE or sum_there > sums[character_end]:
                if model.unknown == _NO_ID:
                    return place
                id_ = np.int32(model.unknown)
                _set_way(work, character_end, sum_there, place, id_)
                farthest = max(farthest, character_end)
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
