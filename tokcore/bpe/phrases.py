"""Phrases, the tokens of scripts without spaces: the parts that are merged alone, and their ids.

A phrase hardly occurs again, but its characters do. A token of the vocabulary that reaches across the
place between two characters, and so the result of a merge, has bytes of both side by side; and for most
pairs of ideographs there is none. So a phrase is cut at these places, and the ids of short parts are
kept:

    白日依山尽      no token has 白日, or another pair
    白 日 依 山 尽

A few tokens join a character with the first bytes of another, or the last bytes of one with another.
Phrases are never cut after the first of these, or before the second.
"""

from typing import NamedTuple

import numpy as np

from tokcore.encoding.kernels import begins_wide, cache_lines, memo_row, short_token_words
from tokcore.kernels.bytes import row_offsets, with_margin
from tokcore.kernels.hash_tables import (
    MOST_BITS,
    CharacterPairs,
    add_characters,
    bits_for,
    character_bytes,
    has_characters,
    no_pairs,
)
from tokcore.kernels.jit import inlined_kernel, kernel_without_allocation, read_only
from tokcore.kernels.simd import load_word, store_pair
from tokcore.text.unicode import CODE_POINTS, decode_word

PART_ROWS = 1 << 16
"""For one encoder; 2 MB if all are in use."""

_ROW_WORDS = 4
_FIRST, _SECOND, _IDS, _MORE = range(_ROW_WORDS)
_MOST_IDS = np.uint64(3)

IDS_AT_ONCE = 4
"""Ids that are written for a part, however many it has."""

_BEFORE, _AFTER = 1, 2
"""Bits of a character that phrases are not cut before, or after."""

_0, _1, _2, _8, _32 = (np.uint64(number) for number in (0, 1, 2, 8, 32))
_HIGH_BIT = np.uint64(0x80)


class Joins(NamedTuple):
    """The places in phrases that tokens may reach across; arrays are read-only."""

    pairs: CharacterPairs  # of characters that a token joins
    sides: np.ndarray  # uint8[0x110000]: `_BEFORE` and `_AFTER`; uint8[0]: phrases are cut nowhere


NO_CUTS = Joins(
    CharacterPairs(read_only(np.empty(0, np.uint64)), np.uint64(0)),
    read_only(np.empty(0, np.uint8)),
)
"""Phrases are cut nowhere."""


class PartMemory(NamedTuple):
    """The ids of parts that were merged lately, for one thread: a part has one row."""

    rows: np.ndarray  # uint64[a power of two, 4]: the words of a part, its ids and their number
    shift: np.uint64  # 64 - log2 of the rows


def part_memory(rows: int) -> PartMemory:
    """Returns a memory of so many rows, a power of two above 1."""
    lines = cache_lines(rows // 2)
    return PartMemory(lines.reshape(-1, _ROW_WORDS), np.uint64(65 - rows.bit_length()))


def joins_of_tokens(tokens: np.ndarray, sizes: np.ndarray) -> Joins:
    """Returns the places that no token of a byte-level vocabulary reaches across.

    Args:
        tokens: uint8: the bytes of the tokens, one after another.
        sizes: int64[tokens]: of each.
    """
    text, bounds = with_margin(tokens), read_only(row_offsets(sizes).astype(np.uint64))
    sides = np.zeros(CODE_POINTS, np.uint8)
    size = int(_add_joins(text, bounds, no_pairs(MOST_BITS), sides))
    pairs = no_pairs(bits_for(size))
    _add_joins(text, bounds, pairs, sides)
    return Joins(pairs._replace(bits=read_only(pairs.bits)), read_only(sides))


@kernel_without_allocation
def _add_joins(tokens, bounds, pairs, sides):
    """Adds the pairs of characters, and the sides, that tokens join; returns how many bits it set."""
    size = 0
    for token in range(len(bounds) - 1):
        place, end = bounds[token], bounds[token + 1]
        if place == end:
            continue
        is_cut = _continues(tokens[place])  # it begins with the last bytes of a character
        character, after = character_bytes(tokens, place)
        while is_cut and after < end and _continues(tokens[after]):
            after += _1
        place = after
        while place < end:
            following, after = character_bytes(tokens, place)
            if is_cut and after <= end:
                _add_side(following, _BEFORE, sides)
            elif is_cut:
                _join_before(tokens[place], sides)
            elif after <= end:
                size += add_characters(character, following, pairs)
            else:
                _add_side(character, _AFTER, sides)
            is_cut = False
            character, place = following, after
    return size


@kernel_without_allocation
def _add_side(character, side, sides):
    code = decode_word(character)
    if code < np.uint64(CODE_POINTS):  # tokens may have bytes that no text has
        sides[code] |= np.uint8(side)


@kernel_without_allocation
def _continues(byte):
    return byte & np.uint8(0xC0) == np.uint8(0x80)


@kernel_without_allocation
def _join_before(lead, sides):
    """Sets `_BEFORE` for all characters that begin with a byte."""
    if lead < np.uint8(0x80):
        first, number = np.int64(lead), 1
    elif lead < np.uint8(0xE0):
        first, number = np.int64(lead & np.uint8(0x1F)) << 6, 1 << 6
    elif lead < np.uint8(0xF0):
        first, number = np.int64(lead & np.uint8(0x0F)) << 12, 1 << 12
    else:
        first, number = np.int64(lead & np.uint8(0x07)) << 18, 1 << 18
    for code in range(first, min(first + number, CODE_POINTS)):
        sides[code] |= np.uint8(_BEFORE)


@kernel_without_allocation
def is_phrase(word):
    """Whether a token is taken for a phrase, by the eight bytes at its start.

    Its first character is wide, or the one after a character of one byte.
    """
    return begins_wide(word) or (word & _HIGH_BIT == _0 and begins_wide(word >> _8))


@kernel_without_allocation
def part_end(text, place, end, joins):
    """Returns where the part that begins at a place of text[place:end] ends."""
    if len(joins.sides) == 0:
        return end
    character, place = character_bytes(text, place)
    sides = joins.sides[decode_word(character)]
    while place < end:
        following, after = character_bytes(text, place)
        following_sides = joins.sides[decode_word(following)]
        is_joined = sides & np.uint8(_AFTER) | following_sides & np.uint8(_BEFORE)
        if is_joined == np.uint8(0) and not has_characters(character, following, joins.pairs):
            return place
        character, sides, place = following, following_sides, after
    return end


@kernel_without_allocation
def part_words(text, start, end):
    """The words of text[start:end], by which it is kept; (1, 0) if it is too long."""
    return short_token_words(load_word(text, start), load_word(text, start + _8), end - start)


@inlined_kernel
def recall_part(first, second, memory, ids, used):
    """Writes the ids of a part, and others up to `IDS_AT_ONCE`, to ids[used:].

    Returns how many there are, 0 if the part is not kept.
    """
    row = memo_row(first, second, memory.shift)
    if memory.rows[row, _FIRST] != first or memory.rows[row, _SECOND] != second:
        return _0
    more = memory.rows[row, _MORE]
    store_pair(ids, used, memory.rows[row, _IDS])
    store_pair(ids, used + _2, more)
    return more >> _32


@inlined_kernel
def remember_part(first, second, memory, ids, used, count):
    """Keeps that a part has the ids ids[used:used + count], if there is room for them."""
    if second == _0 or count > _MOST_IDS:
        return
    row = memo_row(first, second, memory.shift)
    memory.rows[row, _FIRST] = first
    memory.rows[row, _SECOND] = second
    two, more = np.uint64(ids[used]), count << _32
    if count > _1:
        two |= np.uint64(ids[used + _1]) << _32
    if count == _MOST_IDS:
        more |= np.uint64(ids[used + _2])
    memory.rows[row, _IDS] = two
    memory.rows[row, _MORE] = more
