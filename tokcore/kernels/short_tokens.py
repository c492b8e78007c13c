"""Tokens of up to 15 bytes as two words, by which caches of tokens find them.

The words are the token's bytes, zeros, and its length as the last byte.
"""

import numpy as np

from tokcore.kernels.bytes import GOLDEN_RATIO, MIXER
from tokcore.kernels.jit import kernel_without_allocation

LONGEST_SHORT = 15
"""Bytes of a token; longer ones are not cached, or in another way."""

_0, _1, _3, _8 = (np.uint64(number) for number in (0, 1, 3, 8))
_24, _32, _56 = (np.uint64(number) for number in (24, 32, 56))
_SPREAD, _MIXER = np.uint64(GOLDEN_RATIO), np.uint64(MIXER)
_LONGEST = np.uint64(LONGEST_SHORT)
_LEAD_OF_THREE = np.uint64(0xE0)
_BYTE, _THREE_BYTES = np.uint64(0xFF), np.uint64(0xFF_FF_FF)
_MARK = np.uint64(int.from_bytes('\u2581'.encode(), 'little'))
_ALL = ~_0

CACHE_LINE = 64  # bytes
_LINE_WORDS = 8


def cache_lines(number: int) -> np.ndarray:
    """Returns zeros, a cache line of memory in each row: uint64[number, 8]."""
    memory = np.zeros((number + 1) * CACHE_LINE, np.uint8)
    begin = -memory.ctypes.data % CACHE_LINE
    return memory[begin : begin + number * CACHE_LINE].view(np.uint64).reshape(-1, _LINE_WORDS)


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
