"""Kernels that encode rows, some thousand tokens at a time; the token cache; what a model is.

For these tokens there is a loop that finds them, one that looks them up in the cache, one that
segments those that it lacks, and one that writes the ids in order: so each loop waits for memory
once, and the processor predicts its branches. The types of two states choose how tokens are found
and segmented, see `tokcore.encoding`.

The cache is 2-way set-associative: a row of `slots` is one cache line with two entries, the first
the last one that was used again, the second the newest. A token of up to 15 bytes is two words: its
bytes, zeros, and its length as the last byte. A token of 16 to 31 bytes has a whole line of
`long_slots`: four words for its bytes, and four for up to eight ids.
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
"""The tokens of one pass, at most."""

_0, _1, _2, _32 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(32)

NO_ROOM = -1

_LONGEST_REMEMBERED = 15
"""Bytes of a token in the cache."""

_IDS_REMEMBERED = 3
"""Ids of a token in the cache; the model gets a token of more each time."""

_LONGEST_OF_LINE = np.uint64(31)
_IDS_OF_LINE = 8
"""Bytes and ids of a longer token, which has a line by itself."""

_LONG_LINES = 2
"""log2 of how many times fewer lines there are for longer tokens: of English, one in a hundred tokens
is so long."""

_IS_LINE = np.uint64(1 << 63)
"""Marks the number of a line of `long_slots` among packed ids."""

_ROW_WORDS = 8
_GROUP = 64
"""Tokens whose cache rows are prefetched before the first is read."""

_TOKEN, _TOKEN_END, _IDS, _MORE = 0, 1, 2, 3  # words of an entry
_NEWEST = 4  # the words of the second entry follow those of the first

_SPREAD, _MIXER = np.uint64(GOLDEN_RATIO), np.uint64(MIXER)
_3, _4, _8, _16 = (np.uint64(number) for number in (3, 4, 8, 16))
_56 = np.uint64(56)
_LONGEST = np.uint64(_LONGEST_REMEMBERED)
_SIZE_BITS = np.uint64(0xF)
_LEAD_OF_THREE = np.uint64(0xE0)
_BYTE, _THREE_BYTES, _24 = np.uint64(0xFF), np.uint64(0xFF_FF_FF), np.uint64(24)
_MARK = np.uint64(int.from_bytes('\u2581'.encode(), 'little'))
_ALL = ~_0
CACHE_LINE = 64  # bytes


class Surround(NamedTuple):
    """The ids before and after each row, int32[...], read-only."""

    before: np.ndarray
    after: np.ndarray

    @classmethod
    def of(cls, before: Sequence[int], after: Sequence[int]) -> 'Surround':
        return _surround(tuple(before), tuple(after))


class IdRows(NamedTuple):
    """Rows of ids that are being written: row r is ids[offsets[r]:offsets[r + 1]]."""

    ids: np.ndarray  # int32
    used: int  # how many of `ids` are written
    offsets: np.ndarray  # int64[rows + 1], of which the first is set


@kernel
def encode_rows(rows, surround, pre_tokenizer, model, cache, tokens, work, out):
    """Encodes rows, and appends their ids and those of the surround to `out`.

    Args:
        rows: `TextRows`.
        surround: `Surround`.
        pre_tokenizer, model: the states.
        cache: `TokenCache`.
        tokens: `ScannedTokens` with room for `TOKENS`, which is overwritten.
        work: the model's workspace, which is overwritten.
        out: `IdRows`; all but the first of its offsets are set.

    Returns (ids, used, start, end, failure): the array, which may be a larger copy, and how much of
    it is written. If the model has no ids for tokens.text[start:end], it stops there and `failure`
    is as in `segment_tokens`; otherwise `failure` is 0.
    """
    ids = grown(out.ids, out.used, len(surround.before))
    used = out.used + len(surround.before)
    around = len(surround.before) + len(surround.after)
    row, position = 0, -1
    while row < len(rows.starts):
        done = row
        row, position, count = scan_tokens(rows, row, position, pre_tokenizer, tokens)
        misses, missed_bytes, most = look_up(tokens, count, cache)
        missed = MissedTokens(cache.missed, misses, missed_bytes)
        if misses:
            number, failure = segment_tokens(tokens, missed, model, work)
            if failure == NO_ROOM:
                work = larger_workspace(missed, model, work)
                number, failure = segment_tokens(tokens, missed, model, work)
            if failure:
                token = missed.numbers[number]
                return ids, used, tokens.starts[token], tokens.ends[token], failure
            insert_ids(missed, work.ids, work.id_bounds, cache)
            most += np.int64(work.id_bounds[misses])
        ids = grown(ids, used, most + _IDS_REMEMBERED * count + (row - done) * around + 4)
        used = _put_rows(
            cache, work.ids, tokens.row_tokens, done, row, count, surround,
            IdRows(ids, used, out.offsets),
        )  # fmt: skip
        # Only now: the lines that were found must stay until their ids are written.
        _insert_long(tokens, missed, work.ids, work.id_bounds, cache.long_slots, cache.long_shift)
        _put_surround(surround, done, row, ids, out.offsets)
    return ids, used - len(surround.before), _0, _0, 0


@functools.lru_cache
def _surround(before: tuple[int, ...], after: tuple[int, ...]) -> Surround:
    return Surround(*(read_only(np.array(ids, np.int32)) for ids in (before, after)))


@kernel_without_allocation
def _put_rows(cache, segmented_ids, row_tokens, done, row, count, surround, out):
    """Appends the ids of `count` tokens to `out`; returns how many ids are written then.

    Rows `done` up to `row` end among these tokens, at row_tokens[r + 1]; places are left for their
    surround, and for the ids before the next row. Three ids are written for each token, whatever
    their number, since a branch on it would be mispredicted too often.
    """
    before, after = np.uint64(len(surround.before)), np.uint64(len(surround.after))
    token, used = _0, np.uint64(out.used)
    ids, packed_ids = out.ids, cache.packed_ids
    while True:
        end = np.uint64(row_tokens[done + 1] if done < row else count)
        while token < end:
            more = packed_ids[_2 * token + _1]
            size = more >> _32
            if size <= np.uint64(_IDS_REMEMBERED):
                store_pair(ids, used, packed_ids[_2 * token])
                store_pair(ids, used + _2, more)
            else:
                first = packed_ids[_2 * token]
                if first >= _IS_LINE:
                    for pair in range(_0, _4):
                        word = cache.long_slots[first - _IS_LINE, _4 + pair]
                        store_pair(ids, used + _2 * pair, word)
                else:
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
    """Writes the ids before and after rows `done` up to `row`, whose own ids are written."""
    before, after = np.uint64(len(surround.before)), np.uint64(len(surround.after))
    while done < row:
        start, end = np.uint64(offsets[done]), np.uint64(offsets[done + 1]) - after
        for k in range(before):
            ids[start + k] = surround.before[k]
        for k in range(after):
            ids[end + k] = surround.after[k]
        done += 1


class MissedTokens(NamedTuple):
    """The numbers of the tokens that the cache lacks, numbers[:count], and their bytes in all."""

    numbers: np.ndarray  # uint64
    count: int  # type: ignore[assignment]  # nobody needs tuple.count
    nbytes: int


@kernel_family('model')
def segment_tokens(tokens, missed, model, work):
    """Segments the `missed` of the scanned tokens, no more than the workspace is for.

    Writes the ids of the m-th of them to work.ids[work.id_bounds[m]:work.id_bounds[m + 1]]. Returns
    (number, failure). If the model has no ids for a token, `number` is its number among the missed
    ones and `failure`, above 0, says where in it, as the model counts; otherwise `failure` is 0, or
    `NO_ROOM` if `work` is too small.
    """


@kernel_family('model')
def larger_workspace(missed, model, work):
    """Returns a workspace of the type of `work` that has room for these `MissedTokens`."""


class Workspace(Protocol):
    """The arrays that `segment_tokens` writes, a `NamedTuple`; a model may need more than these."""

    @property
    def ids(self) -> np.ndarray:
        """int32, of any size."""

    @property
    def id_bounds(self) -> np.ndarray:
        """uint64[tokens + 1]."""


class PieceIds(NamedTuple):
    """The workspace of models that need no more arrays."""

    ids: np.ndarray  # int32
    id_bounds: np.ndarray  # uint64[tokens + 1]

    @classmethod
    def of(cls, tokens: int, room: int) -> 'PieceIds':
        """Returns a workspace for so many tokens at once, with room for so many ids."""
        return cls(np.empty(room, np.int32), np.empty(tokens + 1, np.uint64))


class Model(Protocol):
    """Gives the ids of tokens. Threads share it, so kernels write to a workspace instead."""

    @property
    def size(self) -> int:
        """The number of ids."""

    @property
    def state(self) -> NamedTuple:
        """Its read-only arrays, in a type that selects the body of `segment_tokens`."""

    def workspace(self, tokens: int) -> Workspace:
        """Returns the arrays that `segment_tokens` writes for so many tokens at once."""

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        """Yields the ids of a long token, in arrays of integers.

        Raises ValueError with the sentence of `describe_failure` if the model has no ids for it.
        """

    def describe_failure(self, token: str, failure: int) -> str:
        """Returns a sentence about a token without ids; `failure` is that of `segment_tokens`."""


class TokenCache(NamedTuple):
    """The slots, and the tokens of the last `look_up`, which `insert_ids` reads."""

    slots: np.ndarray  # uint64[a power of two, 8]
    shift: np.uint64  # 64 - log2 of the rows in `slots`
    packed_ids: np.ndarray  # uint64[2 * tokens]: two words for each token, its ids and their number
    words: np.ndarray  # uint64[2 * tokens]: the two words of each token
    missed: np.ndarray  # uint64[tokens]: the numbers of the tokens that are not in the cache
    rows: np.ndarray  # uint64[_GROUP]: the row of each token of a group
    long_slots: np.ndarray  # uint64[a power of two, 8]: longer tokens
    long_shift: np.uint64


def empty_cache(nbytes: int) -> TokenCache:
    """Returns a cache for `TOKENS` at once, with `cache_memory(nbytes)` or somewhat less."""
    bits = max(1, (nbytes // CACHE_LINE).bit_length() - 1)
    long_bits = max(1, bits - _LONG_LINES)
    slots, long_slots = cache_lines(1 << bits), cache_lines(1 << long_bits)
    packed_ids, words = (np.empty(2 * TOKENS, np.uint64) for _ in range(2))
    missed, rows = np.empty(TOKENS, np.uint64), np.empty(_GROUP, np.uint64)
    return TokenCache(
        slots, np.uint64(64 - bits), packed_ids, words, missed, rows,
        long_slots, np.uint64(64 - long_bits),
    )  # fmt: skip


def cache_memory(nbytes: int) -> int:
    """Returns how many bytes a cache takes that has `nbytes` for tokens of up to 15 bytes."""
    return nbytes + (nbytes >> _LONG_LINES)


def cache_lines(number: int) -> np.ndarray:
    """Returns zeros, a cache line of memory in each row: uint64[number, 8]."""
    memory = np.zeros((number + 1) * CACHE_LINE, np.uint8)
    begin = -memory.ctypes.data % CACHE_LINE
    return memory[begin : begin + number * CACHE_LINE].view(np.uint64).reshape(-1, _ROW_WORDS)


@kernel_without_allocation
def begins_wide(word):
    """Whether the first character of a token takes three bytes or more, by the eight bytes at its start.

    So do scripts without spaces, whose tokens are phrases that hardly occur again. What U+2581 is in
    front of, which is a space in some vocabularies, is judged by its next character.
    """
    lead = word >> _24 if word & _THREE_BYTES == _MARK else word
    return lead & _BYTE >= _LEAD_OF_THREE


@kernel_without_allocation
def token_words(word, next_word, length):
    """The two words of a token, from the 16 bytes at its start; (1, 0) if it is not cached.

    Longer tokens are not cached, nor are those of more than 8 bytes that begin wide.
    """
    if length > _8 and begins_wide(word):
        return _1, _0
    return short_token_words(word, next_word, length)


@kernel_without_allocation
def short_token_words(word, next_word, length):
    """The two words of a token of up to 15 bytes, from the 16 bytes at its start; (1, 0) if longer."""
    # No branches: how long a token is cannot be guessed. No shift is by 64, which is undefined.
    low = min(length, _8)
    high = max(min(length, _LONGEST), _8) - _8
    first = word & (_ALL >> (np.uint64(64) - (low << _3)))
    second = next_word & ((_1 << (high << _3)) - _1) | length << _56
    if length > _LONGEST:
        return _1, _0
    return first, second


@kernel_without_allocation
def memo_row(first, second, shift):
    """The row of the cache for a token, of 2 ** (64 - shift)."""
    mixed = second * _MIXER
    return ((first ^ mixed ^ (mixed >> _32)) * _SPREAD) >> shift


@kernel_without_allocation
def look_up(tokens, count, cache):
    """Looks up the first `count` of the scanned tokens in the cache.

    Sets cache.words for all of them and cache.packed_ids for those that are there, and writes the
    numbers of the others to cache.missed. Returns how many are missed, their bytes, and the room for
    the ids of those that have a line by themselves.
    """
    slots, packed_ids, words, rows = cache.slots, cache.packed_ids, cache.words, cache.rows
    misses = missed_bytes = line_ids = _0
    for group in range(_0, np.uint64(count), np.uint64(_GROUP)):
        size = min(np.uint64(_GROUP), np.uint64(count) - group)
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
                packed_ids[_2 * token] = slots[row, _IDS]
                packed_ids[_2 * token + _1] = slots[row, _MORE]
            elif (
                slots[row, _NEWEST + _TOKEN] == first and slots[row, _NEWEST + _TOKEN_END] == second
            ):
                packed_ids[_2 * token] = slots[row, _NEWEST + _IDS]
                packed_ids[_2 * token + _1] = slots[row, _NEWEST + _MORE]
                for word in range(_NEWEST):
                    other = slots[row, word]
                    slots[row, word] = slots[row, _NEWEST + word]
                    slots[row, _NEWEST + word] = other
            elif second == _0 and _find_long(tokens, token, cache):
                line_ids += np.uint64(_IDS_OF_LINE)
            else:
                cache.missed[misses] = token
                misses += _1
                missed_bytes += tokens.ends[token] - tokens.starts[token]
    return np.int64(misses), np.int64(missed_bytes), np.int64(line_ids)


@kernel_without_allocation
def _find_long(tokens, token, cache):
    """Sets cache.packed_ids for a token that has a line by itself; returns whether it has."""
    start = tokens.starts[token]
    length = tokens.ends[token] - start
    if not _may_have_line(tokens.text, start, length):
        return False
    first, second, third, fourth, line = _long_words(tokens.text, start, length, cache.long_shift)
    slots = cache.long_slots
    size = slots[line, 2] & _SIZE_BITS
    if (
        slots[line, 0] != first or slots[line, 1] != second or slots[line, 3] != fourth
        or slots[line, 2] ^ size != third or size == _0
    ):  # fmt: skip
        return False
    if size <= np.uint64(_IDS_REMEMBERED):
        cache.packed_ids[_2 * token] = slots[line, 4]
        cache.packed_ids[_2 * token + _1] = size << _32 | slots[line, 5]
    else:
        cache.packed_ids[_2 * token] = _IS_LINE | line
        cache.packed_ids[_2 * token + _1] = size << _32
    return True


@kernel_without_allocation
def _may_have_line(text, start, length):
    return _LONGEST < length <= _LONGEST_OF_LINE and not begins_wide(load_word(text, start))


@kernel_without_allocation
def _long_words(text, start, length, shift):
    """The four words of a token of 16 to 31 bytes, and its line of 2 ** (64 - shift).

    The words are its first and its last 16 bytes. These overlap by a byte at least, so the first of
    the last 16 makes room for the length, and for the number of ids in its low four bits.
    """
    first, second = load_word(text, start), load_word(text, start + _8)
    end = start + length
    third = load_word(text, end - _16) & ~_BYTE | (length - _16) << _4
    fourth = load_word(text, end - _8)
    mixed = ((first * _MIXER + second) * _MIXER + third) * _MIXER + fourth
    return first, second, third, fourth, ((mixed ^ (mixed >> _32)) * _SPREAD) >> shift


@kernel_without_allocation
def _insert_long(tokens, missed, ids, id_bounds, slots, shift):
    """Gives a line to each missed token of 16 to 31 bytes that has up to eight ids."""
    for miss in range(np.uint64(missed.count)):
        token = missed.numbers[miss]
        start, begin = tokens.starts[token], id_bounds[miss]
        length, size = tokens.ends[token] - start, id_bounds[miss + _1] - begin
        if size > np.uint64(_IDS_OF_LINE) or not _may_have_line(tokens.text, start, length):
            continue
        first, second, third, fourth, line = _long_words(tokens.text, start, length, shift)
        slots[line, 0], slots[line, 1] = first, second
        slots[line, 2], slots[line, 3] = third | size, fourth
        for k in range(_0, np.uint64(_IDS_OF_LINE), _2):
            pair = _0
            if k < size:
                pair = np.uint64(ids[begin + k])
            if k + _1 < size:
                pair |= np.uint64(ids[begin + k + _1]) << _32
            slots[line, _4 + (k >> _1)] = pair


@kernel_without_allocation
def insert_ids(missed, ids, id_bounds, cache):
    """Sets cache.packed_ids for the missed tokens, and inserts those that can be cached.

    ids[id_bounds[m]:id_bounds[m + 1]] are the ids of the m-th. If they do not fit into two words,
    the words are their first index and their number << 32.
    """
    slots, packed_ids, words = cache.slots, cache.packed_ids, cache.words
    for miss in range(np.uint64(missed.count)):
        token = missed.numbers[miss]
        begin = id_bounds[miss]
        count = id_bounds[miss + _1] - begin
        if count > np.uint64(_IDS_REMEMBERED):
            packed_ids[_2 * token] = begin
            packed_ids[_2 * token + _1] = count << _32
            continue
        two = np.uint64(ids[begin])
        more = count << _32
        if count > _1:
            two |= np.uint64(ids[begin + _1]) << _32
        if count == np.uint64(_IDS_REMEMBERED):
            more |= np.uint64(ids[begin + np.uint64(2)])
        packed_ids[_2 * token] = two
        packed_ids[_2 * token + _1] = more
        first, second = words[_2 * token], words[_2 * token + _1]
        if second != _0:
            row = memo_row(first, second, cache.shift)
            # The same token may occur twice among the missed ones.
            if slots[row, _TOKEN] == first and slots[row, _TOKEN_END] == second:
                continue
            entry = 0 if slots[row, _TOKEN_END] == _0 else _NEWEST
            slots[row, entry + _TOKEN] = first
            slots[row, entry + _TOKEN_END] = second
            slots[row, entry + _IDS] = two
            slots[row, entry + _MORE] = more
