"""Character references such as `&amp;` and `&#233;`, replaced by the characters they stand for.

SGM has the five names that XML defines, and numbers of characters that XML allows. Anything else
after a `&` stays, and nothing is decoded twice. The filter `paracrawl` replaces the entities in
ParaCrawl's releases as `_raw_sentences` of Tensor2Tensor's `data_generators/cleaner_en_xx.py` does:
one kind after another, so that one replacement may leave an entity for the next.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tokcore.corpus.corpus import Filtered, RowFilter
from tokcore.kernels.jit import kernel, kernel_without_allocation
from tokcore.text.rewriting import find_byte, rewrite_rows
from tokcore.text.rows import Side

_ENTITIES = (
    (re.compile(rb'&amp;'), b'&'),
    (re.compile(rb'& ?amp;'), b'&'),
    (re.compile(rb'& ?apos;'), b"'"),
    (re.compile(rb'& ?quot;'), b'"'),
    (re.compile(rb'& ?lt;'), b'<'),
    (re.compile(rb'& ?gt;'), b'>'),
)

_MOST_DIGITS = 10


@dataclass(frozen=True)
class ParaCrawl(RowFilter):
    """Replaces `&amp;`, then `& amp;`, `& apos;`, `& quot;`, `& lt;` and `& gt;`, blank or not."""

    name = 'paracrawl'
    drops_rows = False

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        return Filtered(tuple(map(_replace_entities, sides)), np.arange(len(sides[0])))


def _replace_entities(side: Side) -> Side:
    has_ampersand = np.empty(len(side), np.uint8)
    find_byte(*side.arrays(), ord('&'), has_ampersand)
    return rewrite_rows(side, np.flatnonzero(has_ampersand), _replace_in_lines)


def _replace_in_lines(lines: bytes) -> bytes:
    for entity, character in _ENTITIES:
        lines = entity.sub(character, lines)
    return lines


@kernel
def decode_references(text, starts, ends):
    """Returns the rows text[starts:ends], their references decoded, one after another.

    As (text, starts, ends), with a line feed before each row.
    """
    size = len(starts)
    for row in range(len(starts)):
        size += ends[row] - starts[row]
    decoded = np.empty(size, np.uint8)
    decoded_starts = np.empty(len(starts), np.int64)
    decoded_ends = np.empty(len(starts), np.int64)
    size = 0
    for row in range(len(starts)):
        decoded[size] = 0x0A
        size += 1
        decoded_starts[row] = size
        position, end = starts[row], ends[row]
        while position < end:
            character, after = np.int64(-1), position
            if text[position] == 0x26:
                character, after = _read_reference(text, position + 1, end)
            if character < 0:
                decoded[size] = text[position]
                size += 1
                position += 1
            else:
                size = _put_character(decoded, size, character)
                position = after
        decoded_ends[row] = size
    return decoded[:size], decoded_starts, decoded_ends


@kernel_without_allocation
def _read_reference(text, position, end):
    """Returns the code point of the reference after a `&`, or -1, and where the reference ends."""
    if position < end and text[position] == 0x23:
        return _read_number(text, position + 1, end)
    word = np.int64(0)
    for index in range(position, min(position + 5, end)):
        if text[index] == 0x3B:
            return _named_character(word), index + 1
        word = word << 8 | np.int64(text[index])
    return np.int64(-1), position


@kernel_without_allocation
def _put_character(text, size, character):
    """Writes a code point as UTF-8 at `size`; returns where it ends."""
    if character < 0x80:
        text[size] = character
        return size + 1
    if character < 0x800:
        text[size] = 0xC0 | character >> 6
        text[size + 1] = 0x80 | character & 0x3F
        return size + 2
    if character < 0x10000:
        text[size] = 0xE0 | character >> 12
        text[size + 1] = 0x80 | character >> 6 & 0x3F
        text[size + 2] = 0x80 | character & 0x3F
        return size + 3
    text[size] = 0xF0 | character >> 18
    text[size + 1] = 0x80 | character >> 12 & 0x3F
    text[size + 2] = 0x80 | character >> 6 & 0x3F
    text[size + 3] = 0x80 | character & 0x3F
    return size + 4


@kernel_without_allocation
def _named_character(word):
    """Returns the code point of a name, which is a number made of its bytes, or -1."""
    if word == 0x616D70:
        return np.int64(0x26)
    if word == 0x6C74:
        return np.int64(0x3C)
    if word == 0x6774:
        return np.int64(0x3E)
    if word == 0x71756F74:
        return np.int64(0x22)
    if word == 0x61706F73:
        return np.int64(0x27)
    return np.int64(-1)


@kernel_without_allocation
def _read_number(text, position, end):
    """Returns the code point of the number after `&#`, or -1, and where the reference ends.

    The number is decimal, or hexadecimal after an x.
    """
    base = np.int64(10)
    if position < end and (text[position] | 0x20) == 0x78:
        base = np.int64(16)
        position += 1
    value, digits = np.int64(0), 0
    while position < end and digits <= _MOST_DIGITS:
        byte = np.int64(text[position])
        lower = byte | 0x20
        position += 1
        if byte == 0x3B:
            if digits > 0 and _is_character(value):
                return value, position
            break
        if 0x30 <= byte <= 0x39:
            value = value * base + byte - 0x30
        elif base == 16 and 0x61 <= lower <= 0x66:
            value = value * base + lower - 0x61 + 10
        else:
            break
        digits += 1
    return np.int64(-1), position


@kernel_without_allocation
def _is_character(value):
    """Whether a code point is a character of XML 1.0."""
    return (
        value == 0x09
        or value == 0x0A
        or value == 0x0D
        or 0x20 <= value <= 0xD7FF
        or 0xE000 <= value <= 0xFFFD
        or 0x10000 <= value <= 0x10FFFF
    )
