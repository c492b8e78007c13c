"""What a token is made of before anything is merged: bytes or characters, as symbols.

A character without a symbol becomes what `tokenizers` makes of it: the symbols of its UTF-8 bytes
if there are all of these, else the unknown one, or nothing.
"""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.text.unicode_tables import CODE_POINTS
from tokcore.text.utf8 import next_character

MOST_SYMBOLS = 2
"""For a byte: in byte-level text it is a character of up to two bytes, with a symbol each."""

NONE = -1

_LEAD = 0xC0
"""Bytes from here on begin a character of several."""

_0, _1 = np.uint64(0), np.uint64(1)


class Units(NamedTuple):
    """The symbols of single bytes or characters; arrays are read-only."""

    symbols: np.ndarray
    """int32[256 or 0x110000]: 1 + the symbol of a byte or character, 0 if it has none; int32[0]:
    characters are symbols themselves, and the last of a token is `CODE_POINTS` + itself."""

    characters: np.ndarray
    """uint32[256]: the characters that stand for bytes in byte-level text; uint32[0]: symbols are
    of characters."""

    whole: np.ndarray
    """int32[0x110000]: 1 + the symbol of a character that is not taken as bytes, see
    `whole_characters`; int32[0] where none is."""

    fallback: np.ndarray  # int32[256]: the symbols of <0x00> to <0xFF>, or NONE
    unknown: int  # the symbol of what has none, or NONE
    fuse_unknown: int  # whether one stands for a run of them


@kernel_without_allocation
def put_symbols(text, start, end, units, symbols, used):
    """Puts those of text[start:end] into symbols[used:]; returns how many they are."""
    begin = used
    place, end = np.int64(start), np.int64(end)
    pending = False  # an unknown symbol waits whether more are fused with it
    while place < end:
        if len(units.whole) and text[np.uint64(place)] >= _LEAD:
            code, behind = next_character(text, place)
            symbol = units.whole[np.uint64(code)]
            if symbol and not pending:
                symbols[used] = symbol - np.int32(1)
                used += _1
                place = behind
                continue
        if len(units.characters):
            code, behind = np.int64(text[np.uint64(place)]), place + 1
        else:
            code, behind = next_character(text, place)
        place = behind
        if len(units.symbols) == 0:
            symbols[used] = np.int32(code if place < end else code + CODE_POINTS)
            used += _1
            continue
        symbol = units.symbols[np.uint64(code)]
        if symbol:
            if pending:
                symbols[used] = np.int32(units.unknown)
                used += _1
                pending = False
            symbols[used] = symbol - np.int32(1)
            used += _1
            continue
        if len(units.characters):
            code = np.int64(units.characters[np.uint64(code)])
        count = _put_fallback(code, units.fallback, symbols, used)
        used += count
        if count == _0 and units.unknown != NONE:
            if pending and not units.fuse_unknown:
                symbols[used] = np.int32(units.unknown)
                used += _1
            pending = True
    if pending:
        symbols[used] = np.int32(units.unknown)
        used += _1
    return used - begin


@kernel_without_allocation
def _put_fallback(code, fallback, symbols, used):
    """Puts the symbols of a character's UTF-8 if all of them are there; returns how many."""
    if code < 0x80:
        size, lead = 1, 0
    elif code < 0x800:
        size, lead = 2, 0xC0
    elif code < 0x10000:
        size, lead = 3, 0xE0
    else:
        size, lead = 4, 0xF0
    for k in range(size):
        byte = code >> 6 * (size - 1 - k)
        byte = lead | byte if k == 0 else 0x80 | byte & 0x3F
        symbol = fallback[np.uint64(byte)]
        if symbol == NONE:
            return _0
        symbols[used + np.uint64(k)] = symbol
    return np.uint64(size)
