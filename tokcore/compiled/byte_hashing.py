"""Hashing short strings of bytes and comparing them, words and chunks at a time."""

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.compiled.wide_loads import CHUNK, load_word, mismatch_mask

GOLDEN_RATIO = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: as a multiplier it spreads consecutive keys (Knuth)."""

MIXER = 0xD6E8FEB86659FD93
"""An odd multiplier that brings the bits of a word into its highest."""

_SPREAD, _MIXER = np.uint64(GOLDEN_RATIO), np.uint64(MIXER)
_HALF = np.uint64(32)
_ZERO, _ONE, _THREE = np.uint64(0), np.uint64(1), np.uint64(3)
_WORD, _CHUNK = np.uint64(8), np.uint64(CHUNK)


@kernel_without_allocation
def low_bytes(word, number):
    """The lowest `number` bytes of a word, 1 to 8; the others are 0."""
    unwanted = (_WORD - number) << _THREE
    return (word << unwanted) >> unwanted


@kernel_without_allocation
def hash_bytes(text, start, end):
    """A 64-bit hash of text[start:end], good in its high bits; eight bytes may be read behind."""
    value = (end - start) * _SPREAD
    while start + _WORD < end:
        value = (value ^ load_word(text, start)) * _SPREAD
        value ^= value >> _HALF
        start += _WORD
    if start < end:
        value = (value ^ low_bytes(load_word(text, start), end - start)) * _SPREAD
    return (value ^ (value >> _HALF)) * _MIXER


@kernel_without_allocation
def same_bytes(text, start, data, begin, length):
    """Whether text[start:start + length] and data[begin:begin + length] are equal."""
    while length > _CHUNK:
        if mismatch_mask(text, start, data, begin) != _ZERO:
            return False
        start += _CHUNK
        begin += _CHUNK
        length -= _CHUNK
    # Most tokens end here, with no branch on their length.
    return mismatch_mask(text, start, data, begin) & ((_ONE << length) - _ONE) == _ZERO
