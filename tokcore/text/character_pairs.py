"""A set of pairs of neighboring characters for kernels: a bit for each hash of a pair.

A pair with the hash of another that was added is found, too.
"""

from typing import NamedTuple

import numpy as np

from tokcore.kernels.bytes import GOLDEN_RATIO, MIXER
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import load_word

_LEAST_BITS, MOST_BITS = 12, 22
"""log2 of the bits; at most half a megabyte, which a processor has near."""

_BITS_PER_PAIR = 16
"""At least, so that one pair of fifteen at most has the hash of another; with 4 it is one of six."""

_WORD_BITS = 6
_0, _1, _3, _4, _15 = (np.uint64(number) for number in (0, 1, 3, 4, 15))
_SIZES = read_only(np.array([1] * 12 + [2, 2, 3, 4], np.uint64))
"""The bytes of a character, by the upper half of the first one."""

_WORD_SHIFT, _IN_WORD = np.uint64(_WORD_BITS), np.uint64((1 << _WORD_BITS) - 1)
_ALL, _64 = np.uint64((1 << 64) - 1), np.uint64(64)
_SPREAD, _MIXER = np.uint64(GOLDEN_RATIO), np.uint64(MIXER)


class CharacterPairs(NamedTuple):
    """The set; characters are the numbers of `character_bytes`."""

    bits: np.ndarray  # uint64[...]
    shift: np.uint64  # 64 - log2 of the number of bits


def no_pairs(bits: int) -> CharacterPairs:
    """Returns a set without pairs, of 2 ** bits bits."""
    return CharacterPairs(np.zeros(1 << bits - _WORD_BITS, np.uint64), np.uint64(64 - bits))


def bits_for(size: int) -> int:
    """Returns log2 of the bits of a set, of which `size` are set if it has `MOST_BITS`."""
    bits = MOST_BITS
    while _BITS_PER_PAIR * size <= 1 << bits - 1 and bits > _LEAST_BITS:
        bits -= 1
    return bits


@kernel_without_allocation
def character_bytes(text, place):
    """Returns the bytes of the character at a place, as a number, and where it ends."""
    word = load_word(text, place)
    size = _SIZES[word >> _4 & _15]
    return word & (_ALL >> (_64 - (size << _3))), place + size


@kernel_without_allocation
def has_characters(character, following, pairs):
    """Whether a pair was added, or one with its hash."""
    bit = _pair_bit(character, following, pairs.shift)
    return pairs.bits[bit >> _WORD_SHIFT] >> (bit & _IN_WORD) & _1 != _0


@kernel_without_allocation
def add_characters(character, following, pairs):
    """Adds a pair; returns 1, or 0 if its bit was set already."""
    bit = _pair_bit(character, following, pairs.shift)
    is_new = pairs.bits[bit >> _WORD_SHIFT] >> (bit & _IN_WORD) & _1 ^ _1
    pairs.bits[bit >> _WORD_SHIFT] |= _1 << (bit & _IN_WORD)
    return np.int64(is_new)


@kernel_without_allocation
def _pair_bit(character, following, shift):
    return (character * _MIXER ^ following) * _SPREAD >> shift
