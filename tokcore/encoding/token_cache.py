"""The token cache: ids of short tokens met before, 2-way set-associative and of a fixed size.

A token of up to 15 bytes is two words: its bytes, zeros, and its length as the last byte. So to
compare the words is to compare the tokens. Row r of `slots` (uint64[power of two, 8]) is one cache
line with two entries of four words: the token, two ids, one more and above it their number. The
first entry of a row is the one met again and the second the newest one, so what comes once pushes
out only its like. Looking up goes by groups: first the rows of a group are called for, then read.
"""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.byte_hashing import GOLDEN_RATIO, MIXER
from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.compiled.wide_loads import load_word, prefetch

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
_0, _1, _2, _3, _8 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(8)
_32, _56 = np.uint64(32), np.uint64(56)
_LONGEST = np.uint64(LONGEST_REMEMBERED)
_LEAD_OF_THREE = np.uint64(0xE0)
_BYTE = np.uint64(0xFF)
_ALL = ~_0
_CACHE_LINE = 64  # bytes


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
