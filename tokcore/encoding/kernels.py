"""Rows of text to rows of ids, some thousand tokens a pass; the token cache; what a model is.

The passes: find the tokens, look them up, segment those that the cache does not have, put the ids
in order. Each is a loop over all of these tokens: memory is waited for once, and the processor
predicts the branches of a pass. How tokens are found and segmented is chosen by the types of two
states, see `tokcore.encoding`. The cache is 2-way set-associative: a row of `slots` is one cache
line with two entries, the first the one used again and the second the newest. A token of up to 15
bytes is two words: its bytes, zeros, and its length as the last byte.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from tokcore.kernels.bytes import GOLDEN_RATIO, MIXER, grown
from tokcore.kernels.jit import kernel, kernel_family, kernel_without_allocation, read_only
from tokcore.kernels.simd import load_word, prefetch, store_pair
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, RowPart, scan_tokens

TOKENS = 1024 + CHUNK_TOKENS
"""Places for the tokens of one pass."""

_0, _1, _2, _32 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(32)

NO_ROOM = -1

LONGEST_REMEMBERED = 15
"""Bytes."""

IDS_REMEMBERED = 3
"""Tokens of more ids are segmented each time."""

ROW_WORDS = 8
GROUP = 64
"""Tokens whose rows are called for before any is read."""

_TOKEN, _TOKEN_END, _IDS, _MORE = 0, 1, 2, 3  # words of an entry
_NEWEST = 4  # the second entry's words come behind the first's

_SPREAD, _MIXER = np.uint64(GOLDEN_RATIO), np.uint64(MIXER)
_3, _8 = np.uint64(3), np.uint64(8)
_56 = np.uint64(56)
_LONGEST = np.uint64(LONGEST_REMEMBERED)
_LEAD_OF_THREE = np.uint64(0xE0)
_BYTE = np.uint64(0xFF)
_ALL = ~_0
_CACHE_LINE = 64  # bytes


class Surround(NamedTuple):
    """The ids that stand before and after each row, int32[...], read-only."""

    before: np.ndarray
    after: np.ndarray

    @classmethod
    def of(cls, before: Sequence[int], after: Sequence[int]) -> 'Surround':
        return _surround(tuple(before), tuple(after))


class IdRows(NamedTuple):
    """Where rows of ids go: row r is ids[offsets[r]:offsets[r + 1]]."""

    ids: np.ndarray  # int32, of which so many are used
    used: int
    offsets: np.ndarray  # int64[rows + 1], of which the first is set


@kernel
def encode_rows(rows, surround, pre_tokenizer, model, cache, tokens, work, out):
    """Encodes `TextRows`, each with its `Surround`, to `IdRows` behind those that there are.

    `pre_tokenizer` and `model` are states, `tokens` (`ScannedTokens`, of `TOKENS` places), `work`
    and what `TokenCache` has beside its slots are for its own use. Of out.offsets all but the first
    are set. Returns (ids, used, start, end, left); the array is the one given or a larger one.
    Where tokens.text[start:end] cannot be spelt it stops, `left` as `segment_tokens` says; else
    that is 0.
    """
    ids = grown(out.ids, out.used, len(surround.before))
    used = out.used + len(surround.before)
    around = len(surround.before) + len(surround.after)
    row, position = 0, -1
    while row < len(rows.starts):
        done = row
        row, position, count = scan_tokens(rows, row, position, pre_tokenizer, tokens)
        missed = MissedTokens(cache.missed, *look_up(tokens, count, cache))
        most = 0
        if missed.count:
            number, left = segment_tokens(tokens, missed, model, work)
            if left == NO_ROOM:
                work = larger_workspace(missed, model, work)
                number, left = segment_tokens(tokens, missed, model, work)
            if left:
                token = missed.numbers[number]
                return ids, used, tokens.starts[token], tokens.ends[token], left
            insert_ids(missed, work.ids, work.id_bounds, cache)
            most = np.int64(work.id_bounds[missed.count])
        ids = grown(ids, used, most + IDS_REMEMBERED * count + (row - done) * around + 4)
        used = _put_rows(
            cache.found, work.ids, tokens.row_tokens, done, row, count, surround,
            IdRows(ids, used, out.offsets),
        )  # fmt: skip
        _put_surround(surround, done, row, ids, out.offsets)
    return ids, used - len(surround.before), _0, _0, 0


@functools.lru_cache
def _surround(before: tuple[int, ...], after: tuple[int, ...]) -> Surround:
    return Surround(*(read_only(np.array(ids, np.int32)) for ids in (before, after)))


@kernel_without_allocation
def _put_rows(found, segmented_ids, row_tokens, done, row, count, surround, out):
    """Puts the ids of so many tokens behind those of `IdRows`; returns how many are used then.

    The rows from `done` up to `row` end among them, by row_tokens[r + 1]; places are left for their
    `Surround`, and for what stands before the row behind them. Always writes three ids for a token
    and advances by the true number: a branch on it is mispredicted too often.
    """
    before, after = np.uint64(len(surround.before)), np.uint64(len(surround.after))
    token, used = _0, np.uint64(out.used)
    ids = out.ids
    while True:
        end = np.uint64(row_tokens[done + 1] if done < row else count)
        while token < end:
            more = found[_2 * token + _1]
            size = more >> _32
            if size <= np.uint64(IDS_REMEMBERED):
                store_pair(ids, used, found[_2 * token])
                store_pair(ids, used + _2, more)
            else:
                first = found[_2 * token]
                for k in range(size):
                    ids[used + k] = segmented_ids[first + k]
            used += size
            token += _1
        if done == row:
            return np.int64(used)
        used += after
        done += 1
        out.offsets[done] = np.int64(used)
        used += before


@kernel_without_allocation
def _put_surround(surround, done, row, ids, offsets):
    """Puts the ids around the rows from `done` up to `row`, when what is between is there."""
    before, after = np.uint64(len(surround.before)), np.uint64(len(surround.after))
    while done < row:
        start, end = np.uint64(offsets[done]), np.uint64(offsets[done + 1]) - after
        for k in range(before):
            ids[start + k] = surround.before[k]
        for k in range(after):
            ids[end + k] = surround.after[k]
        done += 1


class MissedTokens(NamedTuple):
    """Tokens that the cache did not have: numbers[:count], of so many bytes in all."""

    numbers: np.ndarray  # uint64
    count: int
    nbytes: int


@kernel_family('model')
def segment_tokens(tokens, missed, model, work):
    """Segments the `MissedTokens` among the `ScannedTokens`; see `Model.workspace` for how many.

    Puts the ids of the m-th of them into work.ids, from work.id_bounds[m] up to id_bounds[m + 1].
    Returns (number, left). Where one cannot be spelt, `number` says which of the missed and `left`,
    as the model counts, how much of it; otherwise `left` is 0, or `NO_ROOM` if `work` is too small.
    """


@kernel_family('model')
def larger_workspace(missed, model, work):
    """Returns a workspace of the type of `work` that has room to segment these `MissedTokens`."""


class Model(Protocol):
    """Gives the ids of tokens. Threads share it, and what kernels write is not kept in it."""

    @property
    def size(self) -> int:
        """All ids are below."""

    @property
    def state(self) -> NamedTuple:
        """What is read only, of the type that selects the body of `segment_tokens`."""

    def workspace(self, tokens: int) -> NamedTuple:
        """Returns arrays that a body writes, to segment so many tokens at once.

        Among them are `ids` (int32, of any size) and `id_bounds` (uint64[tokens + 1]).
        """

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        """Yields the ids (integers) of a long token, as many as come at once.

        Raises ValueError with a sentence, as `unspelled`, if it cannot be spelt.
        """

    def unspelled(self, token: str, left: int) -> str:
        """Returns a sentence about a token that cannot be spelt, `left` as of `segment_tokens`."""


class TokenCache(NamedTuple):
    """The slots, and what was asked for last: `look_up` writes it and `insert_ids` reads it."""

    slots: np.ndarray  # uint64[a power of two, 8]
    shift: np.uint64  # 64 - log2 of the rows in `slots`
    found: np.ndarray  # uint64[2 * tokens]: the two words of ids of each token
    words: np.ndarray  # uint64[2 * tokens]: the two words of each token
    missed: np.ndarray  # uint64[tokens]: numbers of tokens that were not found
    rows: np.ndarray  # uint64[GROUP]: of the tokens of a group


def empty_cache(nbytes: int, tokens: int) -> TokenCache:
    """Returns a cache of about so many bytes, 2 rows at least, for so many tokens at once."""
    row_bytes = 8 * ROW_WORDS
    bits = max(1, (nbytes // row_bytes).bit_length() - 1)
    memory = np.zeros((row_bytes << bits) + _CACHE_LINE, np.uint8)
    begin = -memory.ctypes.data % _CACHE_LINE
    slots = memory[begin : begin + (row_bytes << bits)].view(np.uint64).reshape(-1, ROW_WORDS)
    found, words = (np.empty(2 * tokens, np.uint64) for _ in range(2))
    missed, rows = np.empty(tokens, np.uint64), np.empty(GROUP, np.uint64)
    return TokenCache(slots, np.uint64(64 - bits), found, words, missed, rows)


@kernel_without_allocation
def token_words(word, next_word, length):
    """The two words of a token, from the 16 bytes that begin with it; (1, 0) if it has no place.

    Longer tokens have none, nor have those of more than 8 bytes whose characters take three or
    more: unspaced scripts, where such a token is a phrase that hardly comes back.
    """
    # No branches: how long a token is cannot be guessed. No shift is by 64, which is undefined.
    low = min(length, _8)
    high = max(min(length, _LONGEST), _8) - _8
    first = word & (_ALL >> (np.uint64(64) - (low << _3)))
    second = next_word & ((_1 << (high << _3)) - _1) | length << _56
    if length > _LONGEST or (length > _8 and word & _BYTE >= _LEAD_OF_THREE):
        return _1, _0
    return first, second


@kernel_without_allocation
def memo_row(first, second, shift):
    """The row where a token belongs, of 2 ** (64 - shift)."""
    mixed = second * _MIXER
    return ((first ^ mixed ^ (mixed >> _32)) * _SPREAD) >> shift


@kernel_without_allocation
def look_up(tokens, count, cache):
    """Looks for the first so many `ScannedTokens` in the cache.

    Sets the words in cache.found of those that are there, and in cache.words of all. Puts the
    numbers of the others into cache.missed; returns how many they are and how many bytes they have.
    """
    slots, found, words, rows = cache.slots, cache.found, cache.words, cache.rows
    misses = missed_bytes = _0
    for group in range(_0, np.uint64(count), np.uint64(GROUP)):
        size = min(np.uint64(GROUP), np.uint64(count) - group)
        for k in range(size):
            start = tokens.starts[group + k]
            length = tokens.ends[group + k] - start
            first, second = token_words(
                load_word(tokens.text, start), load_word(tokens.text, start + _8), length
            )
            words[_2 * (group + k)] = first
            words[_2 * (group + k) + _1] = second
            rows[k] = memo_row(first, second, cache.shift)
            prefetch(slots, rows[k] * _8)
        for k in range(size):
            token, row = group + k, rows[k]
            first, second = words[_2 * token], words[_2 * token + _1]
            if slots[row, _TOKEN] == first and slots[row, _TOKEN_END] == second:
                found[_2 * token] = slots[row, _IDS]
                found[_2 * token + _1] = slots[row, _MORE]
            elif (
                slots[row, _NEWEST + _TOKEN] == first and slots[row, _NEWEST + _TOKEN_END] == second
            ):
                found[_2 * token] = slots[row, _NEWEST + _IDS]
                found[_2 * token + _1] = slots[row, _NEWEST + _MORE]
                for word in range(_NEWEST):
                    other = slots[row, word]
                    slots[row, word] = slots[row, _NEWEST + word]
                    slots[row, _NEWEST + word] = other
            else:
                cache.missed[misses] = token
                misses += _1
                missed_bytes += tokens.ends[token] - tokens.starts[token]
    return np.int64(misses), np.int64(missed_bytes)


@kernel_without_allocation
def insert_ids(missed, ids, id_bounds, cache):
    """Sets the words in cache.found of the `MissedTokens`, and enters those that have a place.

    ids[id_bounds[m]:id_bounds[m + 1]] are the ids of the m-th. Where they are too many for two
    words, these are where they begin and their number << 32.
    """
    slots, found, words = cache.slots, cache.found, cache.words
    for miss in range(np.uint64(missed.count)):
        token = missed.numbers[miss]
        begin = id_bounds[miss]
        count = id_bounds[miss + _1] - begin
        if count > np.uint64(IDS_REMEMBERED):
            found[_2 * token] = begin
            found[_2 * token + _1] = count << _32
            continue
        two = np.uint64(ids[begin])
        more = count << _32
        if count > _1:
            two |= np.uint64(ids[begin + _1]) << _32
        if count == np.uint64(IDS_REMEMBERED):
            more |= np.uint64(ids[begin + np.uint64(2)])
        found[_2 * token] = two
        found[_2 * token + _1] = more
        first, second = words[_2 * token], words[_2 * token + _1]
        if second != _0:
            row = memo_row(first, second, cache.shift)
            # It may have been missed some tokens ago too, and be there by now.
            if slots[row, _TOKEN] == first and slots[row, _TOKEN_END] == second:
                continue
            entry = 0 if slots[row, _TOKEN_END] == _0 else _NEWEST
            slots[row, entry + _TOKEN] = first
            slots[row, entry + _TOKEN_END] = second
            slots[row, entry + _IDS] = two
            slots[row, entry + _MORE] = more
