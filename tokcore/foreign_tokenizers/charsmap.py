"""SentencePiece's `precompiled_charsmap`: strings and what replaces them, in a double array.

The layout is a number of bytes (uint32, little-endian), so many bytes of the double array of Darts,
and the replacements, each of which ends with a zero byte. A unit of the array is a uint32: its label
in bits 0 to 7 and 31, whether a string ends at it in bit 8, and the offset of its children in bits
10 to 30, times 256 if bit 9 is set. The child of node n by a byte is unit n ^ offset ^ byte, if that
has the byte as its label; the child by zero has the place of the replacement.

SentencePiece replaces the longest string at each place; `ClusterReplacements` does what `tokenizers` does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation, read_only

_LABEL = np.uint32((1 << 31) | 0xFF)
_PLACE = (1 << 31) - 1
_0, _1, _BYTE, _LAST_BYTE = (np.uint64(number) for number in (0, 1, 0xFF, 56))
_NEXT, _LOW = np.uint64(0x80), np.uint64(0x3F)  # a later byte's lead, and its other bits
_LEADS = (0, 0, 0xC0, 0xE0, 0xF0)  # the bits that characters of so many bytes begin with


class Charsmap(NamedTuple):
    """The double array and the replacements; arrays are read-only."""

    units: np.ndarray  # uint32[units]; none if nothing is replaced
    replacements: np.ndarray  # uint8[bytes]


def parse_charsmap(data: bytes) -> Charsmap | None:
    """Returns the strings and their replacements, or None if the data is damaged."""
    if not data:
        return Charsmap(read_only(np.empty(0, np.uint32)), read_only(np.empty(0, np.uint8)))
    size = int.from_bytes(data[:4], 'little')
    if len(data) <= 4 or not 0 < size < len(data) - 3 or size % 4:
        return None
    units = np.frombuffer(data, '<u4', size // 4, 4).astype(np.uint32)
    replacements = np.frombuffer(data, np.uint8, offset=4 + size).copy()
    try:
        replacements.tobytes().decode()
    except UnicodeDecodeError:
        return None
    # So no walk leaves the arrays.
    nodes = np.arange(len(units), dtype=np.uint32)
    is_node = units >> np.uint32(31) == 0
    is_node[0] = True  # the root, whose label nobody reads
    base = nodes ^ _offsets(units)
    if (base[is_node] | np.uint32(0xFF)).max(initial=0) >= len(units):
        return None
    ends = base[is_node & (units >> np.uint32(8) & np.uint32(1) == 1)]
    values = units[ends] & np.uint32(_PLACE)
    if values.max(initial=0) >= max(1, len(replacements)):
        return None
    if (replacements[values[values < len(replacements)]] & 0xC0 == 0x80).any():
        return None  # within a character
    return Charsmap(read_only(units), read_only(replacements))


def _offsets(units: np.ndarray) -> np.ndarray:
    return (units >> np.uint32(10)) << ((units & np.uint32(1 << 9)) >> np.uint32(6))


def replacement_at(charsmap: Charsmap, place: int) -> bytes:
    """Returns the replacement that begins at a place."""
    data = charsmap.replacements[place:].tobytes()
    return data.partition(b'\0')[0]


def shortest_replacement(text: bytes, charsmap: Charsmap) -> bytes | None:
    """Returns the replacement of the shortest string that a text begins with; None if there is none."""
    units = charsmap.units
    if not len(units):
        return None
    node = int(_offsets(units[:1])[0])
    for byte in text:
        if byte == 0:
            return None
        node ^= byte
        unit = int(units[node])
        if unit & int(_LABEL) != byte:
            return None
        node ^= (unit >> 10) << ((unit & (1 << 9)) >> 6)
        if unit >> 8 & 1:
            return replacement_at(charsmap, int(units[node]) & _PLACE)
    return None


class CharacterStrings(NamedTuple):
    """What a charsmap has for each of some characters."""

    begin: np.ndarray  # bool[characters]: whether a string begins with it, or ends in it
    places: np.ndarray  # int64[characters]: of the shortest one's replacement; -1 if it ends later


def strings_of_characters(codes: np.ndarray, size: int, charsmap: Charsmap) -> CharacterStrings:
    """Returns what a charsmap has for characters, int64[characters], of `size` bytes of UTF-8."""
    places = np.full(len(codes), -1, np.int64)
    units = charsmap.units
    if not len(units):
        return CharacterStrings(np.zeros(len(codes), np.bool_), places)
    go_on = np.ones(len(codes), np.bool_)
    nodes = np.full(len(codes), _offsets(units[:1])[0])
    for number in range(size):
        bits = codes >> 6 * (size - 1 - number)
        bytes_ = (bits & 0x3F | 0x80 if number else bits | _LEADS[size]).astype(np.uint32)
        nodes = np.where(go_on, nodes ^ bytes_, 0)
        node_units = units[nodes]
        go_on &= (node_units & _LABEL == bytes_) & (bytes_ != 0)
        nodes = np.where(go_on, nodes ^ _offsets(node_units), 0)
        is_end = go_on & (places < 0) & (node_units >> np.uint32(8) & np.uint32(1) == 1)
        places[is_end] = units[nodes[is_end]] & np.uint32(_PLACE)
    return CharacterStrings(go_on | (places >= 0), places)


def sizes_of_unchanged(charsmap: Charsmap) -> np.ndarray:
    """Returns the bytes of characters that SentencePiece does not replace, by their first byte.

    uint8[256]: 0 if the charsmap has a string for that byte to begin. A byte of ASCII has 1 also if each
    of these strings goes on with another character than of ASCII; then that must not follow.
    """
    sizes = np.zeros(256, np.uint8)
    for first, size in ((0, 1), (0xC0, 2), (0xE0, 3), (0xF0, 4)):
        sizes[first:] = size
    sizes[0x80:0xC0] = 0  # not the first byte of a character
    units = charsmap.units
    if not len(units):
        return sizes
    labels = np.arange(256, dtype=np.uint32)
    nodes = _offsets(units[:1])[0] ^ labels
    has_strings = units[nodes] & _LABEL == labels
    sizes[has_strings & (labels >= 0x80)] = 0
    for byte in np.flatnonzero(has_strings[:0x80]).tolist():
        unit = units[nodes[byte]]
        children = nodes[byte] ^ _offsets(unit) ^ labels[1:0x80]
        if (
            unit >> np.uint32(8) & np.uint32(1)
            or (units[children] & _LABEL == labels[1:0x80]).any()
        ):
            sizes[byte] = 0
    return sizes


def words_of_characters(charsmap: Charsmap) -> np.ndarray:
    """Returns what SentencePiece writes for characters of three bytes, whatever follows, by their code point.

    uint64[0x10000]: up to seven bytes, the first the lowest, and as the last one their number. It is 0 where
    they are more or none, or have U+0020; and where a longer string begins with the character.
    """
    words = np.zeros(1 << 16, np.uint64)
    _put_words(charsmap, words)
    return words


@kernel_without_allocation
def _put_words(charsmap, words):
    """Fills in the words of `words_of_characters`."""
    units, replacements = charsmap.units, charsmap.replacements
    for code in range(np.uint64(0x800), np.uint64(len(words))):
        lead, second = np.uint64(0xE0) | code >> np.uint64(12), code >> np.uint64(6) & _LOW | _NEXT
        own = lead | second << np.uint64(8) | (code & _LOW | _NEXT) << np.uint64(16)
        words[code] = own | np.uint64(3) << _LAST_BYTE
        if len(units) == 0:
            continue
        unit = np.uint64(units[0])
        node = _offset(unit)
        matched = 0
        while matched < 3:
            byte = own >> np.uint64(8 * matched) & _BYTE
            unit = np.uint64(units[node ^ byte])
            if unit & np.uint64(_LABEL) != byte:
                break
            node ^= byte ^ _offset(unit)
            matched += 1
            # A string may end here, even within the character.
            if unit >> np.uint64(8) & _1:
                words[code] = _0
        if matched == 3:
            words[code] = _0
            goes_on = unit >> np.uint64(8) & _1 == _0
            for byte in range(_1, _BYTE + _1):
                goes_on |= np.uint64(units[node ^ byte]) & np.uint64(_LABEL) == byte
            if not goes_on:
                words[code] = _word(replacements, np.uint64(units[node]) & np.uint64(_PLACE))


@kernel_without_allocation
def _word(replacements, place):
    """Returns the word of `words_of_characters` for the replacement at a place."""
    word = size = _0
    while place < np.uint64(len(replacements)) and replacements[place] != 0:
        byte = np.uint64(replacements[place])
        if size == np.uint64(7) or byte == np.uint64(0x20):
            return _0
        word |= byte << (size << np.uint64(3))
        size += _1
        place += _1
    return word | size << _LAST_BYTE if size else _0


@kernel_without_allocation
def longest_replacement(text, place, end, charsmap):
    """Returns the end of the longest string at text[place:end], and where its replacement is.

    The end is the place (uint64) if there is none.
    """
    units = charsmap.units
    longest, value = place, np.uint64(0)
    if len(units) == 0:
        return longest, value
    unit = np.uint64(units[0])
    node = _offset(unit)
    while place < end:
        byte = np.uint64(text[place])
        node ^= byte
        unit = np.uint64(units[node])
        if unit & np.uint64((1 << 31) | 0xFF) != byte or byte == np.uint64(0):
            break
        node ^= _offset(unit)
        place += np.uint64(1)
        if unit >> np.uint64(8) & np.uint64(1):
            longest, value = place, np.uint64(units[node]) & np.uint64(_PLACE)
    return longest, value


@kernel_without_allocation
def _offset(unit):
    return (unit >> np.uint64(10)) << ((unit & np.uint64(1 << 9)) >> np.uint64(6))
