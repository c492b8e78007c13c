"""Hash tables for kernels: by pairs of numbers, tokens, edges of tries, and pairs of characters.

All use open addressing, except the pairs of characters: those are a set with a bit for each hash, so a
pair with the hash of an added one is found, too. In a pair table slot s is two words, so that one cache line has both: left << 32 | right, and the
value. A free slot has `NO_PAIR` in both, so what is not in the table has the largest value of all.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tokcore.kernels.bytes import (
    GOLDEN_RATIO,
    MIXER,
    hash_bytes,
    row_offsets,
    same_bytes,
    with_margin,
)
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import load_word

NO_PAIR = np.uint64(0xFFFF_FFFF_FFFF_FFFF)

_SPREAD, _MIXER = np.uint64(GOLDEN_RATIO), np.uint64(MIXER)
_0, _1, _2, _3, _4, _6 = (np.uint64(number) for number in (0, 1, 2, 3, 4, 6))
_15, _29, _32, _63, _64 = (np.uint64(number) for number in (15, 29, 32, 63, 64))
_ALL = np.uint64((1 << 64) - 1)

_NOT_FOUND = -1

_CODE_BITS = np.uint64(21)

ABSENT = -1

_LEAST_BITS, MOST_BITS = 12, 22
"""log2 of the bits; at most half a megabyte, which a processor has near."""

_BITS_PER_PAIR = 16
"""At least, so that one pair of fifteen at most has the hash of another; with 4 it is one of six."""

_SIZES = read_only(np.array([1] * 12 + [2, 2, 3, 4], np.uint64))
"""The bytes of a character, by the upper half of the first one."""


class PairTable(NamedTuple):
    """A table from pairs of numbers to numbers; threads share it."""

    slots: np.ndarray  # uint64[2 * 2 ** (64 - shift)], read-only
    shift: np.uint64
    bits: np.ndarray
    """uint64[2 ** (64 - shift) / 8], read-only: a bit is set for each pair, by eight times as many hashes;
    most pairs that are not in the table are found not to be in it there, which is small."""


@kernel_without_allocation
def find_pair(left, right, table):
    """Returns the value (uint64) of a pair of numbers (uint64) below 2^32, `NO_PAIR` if none."""
    key = left << _32 | right
    spread = _spread(key)
    bit = spread >> (table.shift - _3)
    if table.bits[bit >> _6] >> (bit & _63) & _1 == _0:
        return NO_PAIR
    slots = table.slots
    mask = np.uint64(len(slots)) - _1
    place = (spread >> table.shift) * _2
    while True:
        stored = slots[place]
        if stored == key or stored == NO_PAIR:
            return slots[place + _1]
        place = (place + _2) & mask


def pair_table(left: np.ndarray, right: np.ndarray, values: np.ndarray) -> PairTable:
    """Returns a table of pairs; of equal ones the last has its value.

    Args:
        left: uint64[pairs], below 2^32 and not all ones together with `right`.
        right: as many.
        values: as many, below `NO_PAIR`.
    """
    bits = max(4, (4 * len(left)).bit_length() - 1)
    slots = np.full(2 << bits, NO_PAIR, np.uint64)
    shift = np.uint64(64 - bits)
    bit_words = np.zeros(1 << bits >> 3, np.uint64)
    _insert_pairs(read_only(left << _32 | right), read_only(values), slots, shift, bit_words)
    return PairTable(read_only(slots), shift, read_only(bit_words))


@kernel_without_allocation
def _spread(key):
    mixed = key * _MIXER
    return (mixed ^ (mixed >> _29)) * _SPREAD


@kernel_without_allocation
def _insert_pairs(keys, values, slots, shift, bits):
    mask = np.uint64(len(slots)) - _1
    for k in range(len(keys)):
        spread = _spread(keys[k])
        bit = spread >> (shift - _3)
        bits[bit >> _6] |= _1 << (bit & _63)
        place = (spread >> shift) * _2
        while slots[place] != keys[k] and slots[place] != NO_PAIR:
            place = (place + _2) & mask
        slots[place] = keys[k]
        slots[place + _1] = values[k]


class TokenLookup(NamedTuple):
    """An open-addressing table of tokens and their values; arrays are read-only."""

    slots: np.ndarray  # int32[2^k]: the index of a token, or _NOT_FOUND; int32[0]: there are none
    data: np.ndarray  # uint8: the tokens, and a margin
    offsets: np.ndarray  # uint64[tokens + 1]
    values: np.ndarray  # int32[tokens]


def token_lookup(values: Mapping[bytes, int]) -> TokenLookup:
    """Returns a table of the values of tokens, from 0 on."""
    data = np.frombuffer(b''.join(values), np.uint8)
    return token_lookup_of(data, [*map(len, values)], [*values.values()])


def token_lookup_of(
    data: np.ndarray, sizes: Sequence[int] | np.ndarray, values: Sequence[int] | np.ndarray
) -> TokenLookup:
    """Returns the same for distinct tokens whose bytes are one after another.

    Args:
        data: uint8: the tokens.
        sizes: of each.
        values: as many, from 0 on.
    """
    data = with_margin(data)
    offsets = read_only(row_offsets(sizes).astype(np.uint64))
    numbers = read_only(np.array(values, np.int32))
    count = len(numbers)
    slots = np.full(1 << (2 * count).bit_length() if count else 0, _NOT_FOUND, np.int32)
    if count:
        _insert_tokens(TokenLookup(read_only(slots), data, offsets, numbers), slots)
    return TokenLookup(read_only(slots), data, offsets, numbers)


@kernel_without_allocation
def find_token(text, start, end, table):
    """Returns the value of text[start:end] (uint64, with a margin after it), or `_NOT_FOUND`."""
    if len(table.slots) == 0:
        return np.int64(_NOT_FOUND)
    mask = np.uint64(len(table.slots)) - _1
    slot = hash_bytes(text, start, end) & mask
    while True:
        token = table.slots[slot]
        if token == _NOT_FOUND:
            return np.int64(_NOT_FOUND)
        begin = table.offsets[token]
        length = table.offsets[token + 1] - begin
        if length == end - start and same_bytes(text, start, table.data, begin, length):
            return np.int64(table.values[token])
        slot = (slot + _1) & mask


@kernel_without_allocation
def _insert_tokens(table, slots):
    mask = np.uint64(len(slots)) - _1
    for token in range(len(table.values)):
        begin, end = table.offsets[token], table.offsets[token + 1]
        slot = hash_bytes(table.data, begin, end) & mask
        while slots[slot] != _NOT_FOUND:
            slot = (slot + _1) & mask
        slots[slot] = token


class Edges(NamedTuple):
    """The edges of a trie; the key is (parent << 21 | code point) + 1."""

    keys: np.ndarray  # uint64[a power of two]: 0 where the slot is free
    children: np.ndarray  # int32, as many
    shift: np.uint64  # 64 - log2 of their number


def empty_edges(most: int) -> Edges:
    """Returns a table without edges that has room for `most`."""
    bits = max(4, (2 * most).bit_length())
    return Edges(
        np.zeros(1 << bits, np.uint64), np.empty(1 << bits, np.int32), np.uint64(64 - bits)
    )


@kernel_without_allocation
def child_of(edges, parent, code):
    """The child by a code point, or `ABSENT`."""
    slot, key = _find_slot(edges, parent, code)
    return np.int64(edges.children[slot]) if edges.keys[slot] == key else np.int64(ABSENT)


@kernel_without_allocation
def child_or_new(edges, parent, code, new):
    """The child by a code point; `new`, which is then its number, where there was none."""
    slot, key = _find_slot(edges, parent, code)
    if edges.keys[slot] != key:
        edges.keys[slot] = key
        edges.children[slot] = new
    return np.int64(edges.children[slot])


@kernel_without_allocation
def _find_slot(edges, parent, code):
    """The slot of an edge and its key; the slot is free if there is no such edge."""
    mask = np.uint64(len(edges.keys) - 1)
    key = (np.uint64(parent) << _CODE_BITS | np.uint64(code)) + _1
    slot = (key ^ key >> np.uint64(29)) * _SPREAD >> edges.shift
    while edges.keys[slot] != key and edges.keys[slot] != np.uint64(0):
        slot = (slot + _1) & mask
    return slot, key


class CharacterPairs(NamedTuple):
    """A set of pairs of neighboring characters, which are numbers as `character_bytes` returns them."""

    bits: np.ndarray  # uint64[...]
    shift: np.uint64  # 64 - log2 of the number of bits


def no_pairs(bits: int) -> CharacterPairs:
    """Returns a set without pairs, of 2 ** bits bits."""
    return CharacterPairs(np.zeros(1 << bits - 6, np.uint64), np.uint64(64 - bits))


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
    return pairs.bits[bit >> _6] >> (bit & _63) & _1 != _0


@kernel_without_allocation
def add_characters(character, following, pairs):
    """Adds a pair; returns 1, or 0 if its bit was set already."""
    bit = _pair_bit(character, following, pairs.shift)
    is_new = pairs.bits[bit >> _6] >> (bit & _63) & _1 ^ _1
    pairs.bits[bit >> _6] |= _1 << (bit & _63)
    return np.int64(is_new)


@kernel_without_allocation
def _pair_bit(character, following, shift):
    return (character * _MIXER ^ following) * _SPREAD >> shift
