"""The unigram language model: of all ways to cut a token into pieces, the one of the largest score.

The score of a way is the sum of its pieces' scores, and a character without a piece has a score of
its own, 10 below the lowest. Ways to the same place are compared as they are found, by their start
and then by their length; a later one must be larger to win. So ties, and sums that differ only by
rounding, are decided as the original decides them: `tokenizers` has double precision throughout,
SentencePiece (as of 0.2.3) single precision. In SentencePiece, where the sum to a place is beyond 100,000,
it is subtracted from the sums to that place and to all that are reached after it.

A token of SentencePiece is a whole row, so rounding depends on all that comes before. What lies between
two `borders` is one step of it: the best way to the second border is that to the first one and the best
way between, with the rounding that the sum so far has. The ids of steps up to 31 bytes are kept, with the sums
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
    cache_lines,
    larger_workspace,
    memo_row,
    segment_tokens,
)
from tokcore.foreign_tokenizers.borders import (
    FIRST,
    LATER,
    NO_BORDERS,
    Borders,
    border_bits,
    borders_of_pieces,
)
from tokcore.foreign_tokenizers.compact_trie import (
    ROOT,
    compact_trie,
    has_label,
    has_piece,
    next_entry,
)
from tokcore.kernels.bytes import GOLDEN_RATIO, MIXER, grown, with_margin
from tokcore.kernels.jit import inlined_kernel, kernel, kernel_without_allocation, read_only
from tokcore.kernels.simd import CHUNK, load_word, prefetch, put_places, store_pair
from tokcore.text.pre_tokenizer import RowPart, ScannedTokens

UNKNOWN_PENALTY = 10.0
"""How far the score of a character without a piece is below the lowest score of a piece."""

_SHOWN = 60  # characters of a token that an error shows
_NO_ID = -1
_0, _1, _2, _4, _5, _8 = (np.uint64(number) for number in (0, 1, 2, 4, 5, 8))
_32, _56 = np.uint64(32), np.uint64(56)
_SPREAD, _MIXER = np.uint64(GOLDEN_RATIO), np.uint64(MIXER)
_UNKNOWN_CELL = ROOT
"""The cell of a character without a piece: no piece ends at it."""

_NOWHERE = np.uint32((1 << 32) - 1)
_ROOM = 1 << 10  # bytes of tokens that a workspace has room for at first
_MARGIN = 8  # ids that are written in advance

_LONGEST_KEPT = 31
"""Bytes of a step whose ids are kept, and its pieces at most."""

_SHORT_BITS, _LONG_BITS = 16, 15
"""log2 of the cache lines for short and for long steps that are kept: four megabytes, and two."""

_NOT_SHORT = np.uint64(16 << 56)
"""A short step has up to 15 bytes: its second word, whose last byte is their number, is below this."""

_SHORT_IDS, _IDS_KEPT = np.uint64(3), np.uint64(6)
"""Ids of a short step that has half a line, and of one that has a whole line or is long."""

_TEXT_WORDS = 4  # of a long step

_SHORT_ABOUT, _LONG_ABOUT = np.uint64(3), np.uint64(7)  # the words that `_about` has a part in
_LEVEL_SHIFT, _LEVEL = np.uint64(51), np.uint64(0x1F)
_ADDED = np.uint64((1 << 19) - 1)  # up to 2 ** _MOST_LEVEL

_ROW = 2  # column of _UnigramWork.steps, after the text

_GROUP = 32
"""Steps whose lines are prefetched, at least, before the first is read."""

_STEPS = _GROUP + CHUNK + 8
"""Room for these, with the places that are written in advance."""

_PRECISION = 24  # bits of a number of single precision

_MOST_SUM = 100_000.0
"""The sum of single precision at which SentencePiece begins anew."""

_MOST_LEVEL = 17  # log2, and above that sum
_NO_LEVEL = _MOST_LEVEL + 1


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
        keeps = single_precision and unknown is not None
        trie = compact_trie(pieces.items())
        dtype = np.float32 if single_precision else np.float64
        scores_of_ids = np.array([*scores, unknown_score], dtype)
        ids = trie.ids.copy()
        ids[_UNKNOWN_CELL] = len(scores)
        text_masks = 0xFF * np.tri(_LONGEST_KEPT + 1, 8 * _TEXT_WORDS, -1, np.uint8)
        self.state = _UnigramState(
            trie.cells,
            read_only(ids),
            read_only(scores_of_ids[ids]),
            read_only(scores_of_ids),
            _NO_ID if unknown is None else unknown,
            read_only(np.array(fallback, np.int32)),
            single_precision,
            borders_of_pieces(pieces) if single_precision else NO_BORDERS,
            min(level, _NO_LEVEL) if keeps else _NO_LEVEL,
            _MOST_SUM if single_precision else math.inf,
            read_only(text_masks.view(np.uint64)),
        )

    def workspace(self, tokens: int) -> _UnigramWork:
        return _work(_ROOM, tokens, self.state)

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        work, failure = _segment_alone(part, self.state)
        if failure:
            text = part.text[part.start : part.end].tobytes().decode('utf-8', 'replace')
            raise ValueError(self.describe_failure(text, int(failure)))
        yield work.ids[: int(work.id_bounds[1])]

    def best_way(self, token: bytes) -> list[tuple[int, bool]]:
        """Returns where each piece of a token ends, unknown characters one by one; and if it is unknown."""
        model = self.state._replace(borders=NO_BORDERS, lowest_level=_NO_LEVEL)  # in one step
        part = RowPart(with_margin(np.frombuffer(token, np.uint8)), 0, len(token), True)
        work, _ = _segment_alone(part, model)
        way, place = [], 0
        while place < len(token):
            place = int(work.starts[place])  # `_put_way` turned the links round
            cell = int(work.pieces[place])
            way.append((place, cell == _UNKNOWN_CELL or model.ids[cell] == model.unknown))
        return way

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

    cells: np.ndarray  # of the trie
    ids: np.ndarray  # int32[cells]: of the pieces that end there
    piece_scores: np.ndarray
    """Their scores; of _UNKNOWN_CELL that of a character without a piece."""

    scores: np.ndarray
    """float32[ids + 1] or float64[ids + 1], as sums are: the last is that of a character without a piece."""

    unknown: int  # the id of unknown characters, or _NO_ID
    fallback: np.ndarray  # int32[256 or 0]
    single_precision: bool
    borders: Borders
    lowest_level: int
    """log2 of a sum that no way through a step that is kept exceeds; nothing is kept if it is too large."""

    most_sum: float
    """The sum to a place is subtracted where it is beyond this."""

    text_masks: np.ndarray  # uint64[_LONGEST_KEPT + 1, 4]: the bits of texts of so many bytes


class _UnigramWork(NamedTuple):
    """The workspace; for the best way to each place of a step, the piece that ends there."""

    ids: np.ndarray  # int32
    id_bounds: np.ndarray  # uint64
    sums: np.ndarray  # float32[bytes] or float64[bytes]: the score of the way
    starts: np.ndarray  # uint32[bytes]: where the piece starts
    pieces: np.ndarray  # uint32[bytes]: the cell where it ends in the trie
    short: np.ndarray
    """uint64[2 ** _SHORT_BITS, 8]: two short steps a line: two words, see `steps`; two ids; and a third one, with
    `_about` above it. A step of more ids has the whole line."""

    long: np.ndarray
    """uint64[2 ** _LONG_BITS, 8]: a long step a line: its text and zeros, with its bytes as the last one; six ids;
    and `_about`."""

    words: np.ndarray  # uint64[_TEXT_WORDS]: the text of a long step, as in `long`
    steps: np.ndarray
    """uint64[_STEPS, 3]: of the next steps, 15 bytes of text and zeros, and their bytes, up to 31, as the last
    one; and the line in `short` or in `long`."""

    ends: np.ndarray  # uint64[_STEPS]: where they end
    best: np.ndarray  # float64[_LONGEST_KEPT + 1]: the largest score to each place of a step
    second: np.ndarray  # float64[as many]: the second largest


def _work(size: int, tokens: int, model: _UnigramState) -> _UnigramWork:
    """Returns a workspace with `size` ids at most, and for so many tokens."""
    return _UnigramWork(
        np.empty(size, np.int32),
        np.empty(tokens + 1, np.uint64),
        np.empty(size, model.scores.dtype),
        np.empty(size, np.uint32),
        np.empty(size, np.uint32),
        cache_lines(1 << _SHORT_BITS),
        cache_lines(1 << _LONG_BITS),
        np.empty(_TEXT_WORDS, np.uint64),
        np.empty((_STEPS, 3), np.uint64),
        np.empty(_STEPS, np.uint64),
        np.empty(_LONGEST_KEPT + 1, np.float64),
        np.empty(_LONGEST_KEPT + 1, np.float64),
    )


def _segment_alone(part: RowPart, model: _UnigramState) -> tuple[_UnigramWork, int]:
    """Returns the workspace behind a single token, and the failure."""
    start, end, index = (np.array([value], np.uint64) for value in (part.start, part.end, 0))
    size = part.end - part.start
    work = _work(size + 1 + _MARGIN, 1, model)
    token = ScannedTokens(part.text, start, end, np.empty(0, np.int64))
    _, failure = segment_unigram(token, MissedTokens(index, 1, size), model, work)
    return work, failure


@segment_tokens.register(_UnigramState)
@kernel_without_allocation
def segment_unigram(tokens, missed, model, work):
    """As `segment_tokens` says; `failure` is 1 + the place of a character without a piece."""
    if len(work.ids) < missed.nbytes + missed.count + _MARGIN:
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


@inlined_kernel
def _segment(text, start, size, model, work, used):
    """Writes the ids of the token text[start:start + size] to work.ids[used:], step by step.

    Returns (place, used): the size, or the place of a character without a piece where that is an
    error; and how many ids are written then.
    """
    ids, steps, short, scores = work.ids, work.steps, work.short, model.scores
    begin = used
    end = start + size
    place = start
    work.sums[_0] = 0.0
    sum_here = zero = work.sums[_0]
    # The sum of the pieces up to here is that of ids[:summed] and of what comes after; it is at most `most_here`.
    summed, most_here = used, 0
    level, limit = _lowest_level(model)
    scanned, undecided = start, FIRST
    while place < end:
        group, scanned = _find_steps(text, place, scanned, undecided, end, model, work)
        undecided = LATER
        for step in range(group):
            if most_here >= limit:
                sum_here, summed = _sum_of(ids, summed, used, scores, sum_here), used
                if abs(sum_here) > model.most_sum:
                    sum_here = zero
                    level, limit = _lowest_level(model)
                while level < _NO_LEVEL and abs(sum_here) >= limit:
                    level, limit = _next_level(level, limit, model)
                most_here = _most(sum_here)
            after, row = work.ends[step], steps[step, _ROW]
            first, second = steps[step, 0], steps[step, 1]
            length = after - place
            is_kept = False
            if second < _NOT_SHORT:
                is_second = (short[row, _4] ^ first) | (short[row, _5] ^ second) == _0
                entry = np.uint64(is_second) << _2
                about = short[row, entry | _SHORT_ABOUT]
                is_kept = (short[row, entry] ^ first) | (short[row, entry | _1] ^ second) == _0
                if is_kept and _level_kept(about) >= level:
                    # Three, since a branch on their number would be mispredicted too often.
                    store_pair(ids, used, short[row, entry | _2])
                    store_pair(ids, used + _2, about)
                    if about >> _56 > _SHORT_IDS:
                        store_pair(ids, used + _SHORT_IDS, short[row, _4])
                        ids[used + _5] = np.int32(short[row, _5])
                    used += about >> _56
                    most_here += _added(about)
                    place = after
                    continue
            elif length <= np.uint64(_LONGEST_KEPT):
                _put_words(text, place, length, model, work.words)
                is_kept = _is_kept(work.words, work.long, row)
                about = work.long[row, _LONG_ABOUT]
                if is_kept and _level_kept(about) >= level:
                    for pair in range(_0, _IDS_KEPT >> _1):
                        store_pair(ids, used + _2 * pair, work.long[row, _TEXT_WORDS + pair])
                    used += about >> _56
                    most_here += _added(about)
                    place = after
                    continue
            holds = -1
            if not is_kept and length <= np.uint64(_LONGEST_KEPT) and level <= _MOST_LEVEL:
                margin = _find_two_ways(text, place, length, model, work)
                holds = _level_of(margin, length, model)
            if holds < level:
                sum_here = _sum_of(ids, summed, used, scores, sum_here)
                work.sums[_0] = sum_here
                reached = _find_best_way(text, place, length, model, work)
                if reached < length:
                    return place - start + reached, used
                if abs(work.sums[length]) < abs(sum_here):
                    level, limit = _lowest_level(model)
                sum_here = work.sums[length]
                count, _ = _put_way(text, place, length, model, work, used)
                summed, most_here = used + count, _most(sum_here)
            else:
                count, has_unknown = _put_way(text, place, length, model, work, used)
                if has_unknown:
                    sum_here = _sum_of(ids, summed, used, scores, sum_here)
                    sum_here = _sum_of_way(length, model, work, sum_here)
                    summed, most_here = used + count, _most(sum_here)
                else:
                    about = _about(ids, used, count, scores, holds)
                    most_here += _added(about)
                    if count <= _IDS_KEPT and second < _NOT_SHORT:
                        _keep_short(first, second, ids, used, about, short, row)
                    elif count <= _IDS_KEPT:
                        _keep_long(work.words, ids, used, about, work.long, row)
            if used > begin and ids[used] == model.unknown and ids[used - _1] == model.unknown:
                # One id for the run, which began before the border.
                for number in range(used, used + count - _1):
                    ids[number] = ids[number + _1]
                count -= _1
                summed -= _1
            used += count
            place = after
    return size, used


@kernel_without_allocation
def _most(value):
    """An integer that a sum's absolute value is not above, if it is no more than 2 ** 62."""
    return np.int64(np.ceil(min(np.float64(abs(value)), 2.0**62)))


@kernel_without_allocation
def _lowest_level(model):
    """The lowest level, and its limit: below it what is kept for that level holds."""
    level = model.lowest_level
    if level >= _NO_LEVEL:
        return level, 0
    return level, min(1 << level, np.int64(model.most_sum) - (1 << level))


@kernel_without_allocation
def _next_level(level, limit, model):
    """The level above one, and its limit: where a sum in a step may be beyond the most, there is none."""
    farthest = np.int64(model.most_sum) - (1 << model.lowest_level)
    if limit >= farthest or level >= _MOST_LEVEL:
        return _NO_LEVEL, 0
    return level + 1, min(limit * 2, farthest)


@kernel_without_allocation
def _sum_of(ids, begin, end, scores, sum_before):
    """Returns the sum after ids[begin:end]."""
    for place in range(begin, end):
        sum_before = scores[np.uint64(ids[place])] + sum_before
    return sum_before


@inlined_kernel
def _find_steps(text, place, scanned, undecided, end, model, work):
    """Finds the next steps of text[place:end], whose borders up to `scanned` have been looked for.

    Writes them to work.steps; the lines that may keep them are prefetched. Returns (count, scanned): how
    many, and where borders are looked for next. `undecided` is as `border_bits` takes it.
    """
    steps, ends, count = work.steps, work.ends, _0
    while scanned < end and count < np.uint64(_GROUP):
        bits, after = border_bits(text, scanned, end, undecided, model.borders)
        if bits:
            count = put_places(bits, scanned, ends, count)
        scanned, undecided = after, LATER
    if scanned >= end:
        ends[count] = end
        count += _1
    for step in range(count):
        after = ends[step]
        size = min(after - place, np.uint64(_LONGEST_KEPT))
        first = load_word(text, place) & model.text_masks[size, 0]
        # Of a step that is not short, the last byte is at least 16, as no other's is.
        second = load_word(text, place + _8) & model.text_masks[size, 1] | size << _56
        if second < _NOT_SHORT:
            row = memo_row(first, second, np.uint64(64 - _SHORT_BITS))
            prefetch(work.short, row * _8)
        else:
            row = _put_words(text, place, size, model, work.words)
            prefetch(work.long, row * _8)
        steps[step, 0], steps[step, 1], steps[step, _ROW] = first, second, row
        place = after
    return count, scanned


@kernel_without_allocation
def _put_words(text, place, length, model, words):
    """Writes the words of a long step text[place:place + length]; returns its row (uint64)."""
    mixed = _0
    for word in range(_TEXT_WORDS):
        bits = load_word(text, place + np.uint64(8 * word)) & model.text_masks[length, word]
        if word == _TEXT_WORDS - 1:
            bits |= length << _56
        words[word] = bits
        mixed = (mixed ^ bits) * _MIXER
    return (mixed ^ mixed >> _32) * _SPREAD >> np.uint64(64 - _LONG_BITS)


@kernel_without_allocation
def _is_kept(words, long, row):
    """Whether a row of the long steps is for the one with these words."""
    differs = _0
    for word in range(_TEXT_WORDS):
        differs |= words[word] ^ long[row, word]
    return differs == _0


@kernel_without_allocation
def _about(ids, used, count, scores, level):
    """Returns what is kept about ids[used:used + count], as a word (uint64) with room for an id.

    From bit 32 on, how much they may add to a sum, 19 bits; the log2 of the sum up to which they hold,
    5 bits; and their number.
    """
    most = 1.0  # for rounding, which costs each of 31 sums up to 2 ** 17 at most 2 ** -7
    for place in range(used, used + count):
        most += abs(scores[np.uint64(ids[place])])
    return count << _56 | np.uint64(level) << _LEVEL_SHIFT | np.uint64(np.ceil(most)) << _32


@kernel_without_allocation
def _level_kept(about):
    return np.int64(about >> _LEVEL_SHIFT & _LEVEL)


@kernel_without_allocation
def _added(about):
    return np.int64(about >> _32 & _ADDED)


@kernel_without_allocation
def _keep_short(first, second, ids, used, about, short, row):
    """Keeps the ids of a short step, from ids[used] on.

    The first step of a line stays, as most are frequent; but one of more than three ids has the whole line.
    """
    count = about >> _56
    entry = _0
    if count > _SHORT_IDS:
        short[row, _4] = _pair(ids, used + _SHORT_IDS, count - _SHORT_IDS)
        short[row, _5] = np.uint64(ids[used + _5]) if count == _IDS_KEPT else _0
    elif short[row, _SHORT_ABOUT] != _0 and short[row, _SHORT_ABOUT] >> _56 <= _SHORT_IDS:
        entry = _4
    else:
        short[row, _5] = _0
    short[row, entry], short[row, entry | _1] = first, second
    short[row, entry | _2] = _pair(ids, used, count)
    if count >= _SHORT_IDS:
        about |= np.uint64(ids[used + _2])
    short[row, entry | _SHORT_ABOUT] = about


@kernel_without_allocation
def _keep_long(words, ids, used, about, long, row):
    """Keeps the ids of a long step, from ids[used] on."""
    count = about >> _56
    for word in range(_TEXT_WORDS):
        long[row, word] = words[word]
    for pair in range(_0, count, _2):
        long[row, np.uint64(_TEXT_WORDS) + (pair >> _1)] = _pair(ids, used + pair, count - pair)
    long[row, _LONG_ABOUT] = about


@kernel_without_allocation
def _pair(ids, place, count):
    """Returns ids[place:place + 2] as a word, or one id if `count` is 1."""
    pair = np.uint64(ids[place])
    if count > _1:
        pair |= np.uint64(ids[place + _1]) << _32
    return pair


@kernel_without_allocation
def _level_of(margin, size, model):
    """The log2 of the largest sum up to which rounding changes no choice in a step of `size` bytes.

    Two ways have at most twice as many pieces as there are bytes. Before a sum of 2 ** level no sum in
    the step exceeds 2 ** (level + 1), and its rounding 2 ** (level - 24). The margin is a sum of double
    precision, whose rounding is far less than that of one more piece. It is -1 if there is none.
    """
    level = model.lowest_level
    most = np.float64(size + _1) * 2.0 ** (level + 1 - _PRECISION)
    if margin <= most:
        return -1
    while level < _MOST_LEVEL and margin > most * 2.0:
        level += 1
        most *= 2.0
    return level


@inlined_kernel
def _find_two_ways(text, start, size, model, work):
    """Finds the best way to each place of the step text[start:start + size], in double precision.

    Returns how much the way to its end is better than any other.
    """
    best, second = work.best, work.second
    cells, scores = model.cells, model.piece_scores
    for place in range(size + _1):
        best[place] = second[place] = -np.inf
    best[_0] = 0.0
    place = _0
    while place < size:
        character_end = min(place + _character_length(text[start + place]), size)
        has_character = False
        entry, end = np.uint64(cells[ROOT]), place
        while end < size:
            byte = text[start + end]
            cell, entry = next_entry(cells, entry, byte)
            if not has_label(entry, byte):
                break
            end += _1
            if has_piece(entry):
                has_character |= end == character_end
                _add_ways(place, end, cell, scores[cell], work)
        if not has_character:
            cell = np.uint64(_UNKNOWN_CELL)
            _add_ways(place, character_end, cell, scores[cell], work)
        place = character_end
    return best[size] - second[size]


@inlined_kernel
def _add_ways(place, end, cell, score, work):
    """Adds the two best ways to a place, each with the piece of a cell, to those to its end."""
    best, second = work.best, work.second
    there = best[place] + np.float64(score)
    if there > best[end]:
        second[end] = max(best[end], second[place] + np.float64(score))
        best[end] = there
        work.starts[end] = np.uint32(place)
        work.pieces[end] = np.uint32(cell)
    elif there > second[end]:
        second[end] = there


@larger_workspace.register(_UnigramState)
@kernel
def _larger_unigram_work(missed, model, work):
    """As `larger_workspace` says; what the arrays hold is not needed."""
    size = missed.nbytes + missed.count + _MARGIN
    return _UnigramWork(
        grown(work.ids, 0, size),
        work.id_bounds,
        grown(work.sums, 0, size),
        grown(work.starts, 0, size),
        grown(work.pieces, 0, size),
        work.short,
        work.long,
        work.words,
        work.steps,
        work.ends,
        work.best,
        work.second,
    )


@inlined_kernel
def _find_best_way(text, start, size, model, work):
    """Finds the best way to each place of the step text[start:start + size], after the sum work.sums[0].

    Returns the size, or the place of a character without a piece where that is an error.
    """
    cells, sums, starts, pieces = model.cells, work.sums, work.starts, work.pieces
    scores = model.piece_scores
    for place in range(size + _1):
        starts[place] = _NOWHERE
    place = farthest = _0
    while place < size:
        sum_here = sums[place]
        if abs(sum_here) > model.most_sum:
            _begin_anew(place, farthest, work)
            sum_here = sums[place]
        character_end = min(place + _character_length(text[start + place]), size)
        has_character = False
        entry, end = np.uint64(cells[ROOT]), place
        while end < size:
            byte = text[start + end]
            cell, entry = next_entry(cells, entry, byte)
            if not has_label(entry, byte):
                break
            end += _1
            if has_piece(entry):
                has_character |= end == character_end
                sum_there = scores[cell] + sum_here
                if starts[end] == _NOWHERE or sum_there > sums[end]:
                    sums[end], starts[end] = sum_there, np.uint32(place)
                    pieces[end] = np.uint32(cell)
                farthest = max(farthest, end)
        if not has_character:
            sum_there = scores[np.uint64(_UNKNOWN_CELL)] + sum_here
            if starts[character_end] == _NOWHERE or sum_there > sums[character_end]:
                if model.unknown == _NO_ID:
                    return place
                sums[character_end], starts[character_end] = sum_there, np.uint32(place)
                pieces[character_end] = np.uint32(_UNKNOWN_CELL)
            farthest = max(farthest, character_end)
        place = character_end
    return size


@kernel_without_allocation
def _begin_anew(place, farthest, work):
    """Subtracts the sum to a place from the sums to that place and to those reached after it."""
    sums = work.sums
    for end in range(place + _1, farthest + _1):
        if work.starts[end] != _NOWHERE:
            sums[end] -= sums[place]
    sums[place] = 0.0


@kernel_without_allocation
def _character_length(byte):
    """The bytes of a character that begins with this one."""
    return (
        _1
        + np.uint64(byte >= np.uint8(0xC0))
        + np.uint64(byte >= np.uint8(0xE0))
        + np.uint64(byte >= np.uint8(0xF0))
    )


@inlined_kernel
def _put_way(text, start, size, model, work, used):
    """Writes the ids of the best way to work.ids[used:].

    Returns how many, and whether it has unknown characters.
    """
    # The links lead from the end to the start; they are turned round.
    ids, pieces, ends = work.ids, work.pieces, work.starts
    first_id = used
    end, next_end = size, _0
    while end > _0:
        before = np.uint64(ends[end])
        ends[end] = np.uint32(next_end)
        next_end = end
        end = before
    ends[_0] = np.uint32(next_end)
    begin, end = _0, next_end
    unknown_from, is_unknown, has_unknown = _0, False, False
    while begin < size:
        cell = np.uint64(pieces[end])
        id_ = model.ids[cell]
        if cell == np.uint64(_UNKNOWN_CELL) or id_ == model.unknown:
            if not is_unknown:
                unknown_from, is_unknown, has_unknown = begin, True, True
        else:
            if is_unknown:
                used = _put_unknown(text, start + unknown_from, start + begin, model, ids, used)
                is_unknown = False
            ids[used] = id_
            used += _1
        begin = end
        end = np.uint64(ends[end])
    if is_unknown:
        used = _put_unknown(text, start + unknown_from, start + size, model, ids, used)
    return used - first_id, has_unknown


@kernel_without_allocation
def _sum_of_way(size, model, work, sum_before):
    """Returns the sum after the way that `_put_way` wrote, from that before it."""
    place = _0
    while place < size:
        place = np.uint64(work.starts[place])
        sum_before = model.piece_scores[np.uint64(work.pieces[place])] + sum_before
    return sum_before


@kernel_without_allocation
def _put_unknown(text, start, end, model, ids, used):
    """Writes the ids of the run of unknown characters text[start:end]."""
    if not model.single_precision:
        # `tokenizers` looks such a run up among all pieces.
        cell, entry, place = np.uint64(ROOT), np.uint64(model.cells[ROOT]), start
        while place < end:
            cell, entry = next_entry(model.cells, entry, text[place])
            if not has_label(entry, text[place]):
                break
            place += _1
        if place == end and has_piece(entry):
            ids[used] = model.ids[cell]
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
