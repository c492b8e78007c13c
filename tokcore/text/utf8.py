"""UTF-8 in kernels: a character's code point and its end, and whether it is one."""

import numpy as np

from tokcore.compiled.byte_masks import byte_range_mask
from tokcore.compiled.compilation import kernel_without_allocation

_LOW_SIX = np.uint64(0x3F)
_ONE = np.uint64(1)


@kernel_without_allocation
def next_character(text, position):
    """The code point at `position` of valid UTF-8, where a character begins, and where it ends."""
    lead = np.int64(text[np.uint64(position)])
    if lead < 0x80:
        return lead, position + 1
    second = np.int64(text[np.uint64(position + 1)]) & 0x3F
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | second, position + 2
    third = np.int64(text[np.uint64(position + 2)]) & 0x3F
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | second << 6 | third, position + 3
    fourth = np.int64(text[np.uint64(position + 3)]) & 0x3F
    return (lead & 0x07) << 18 | second << 12 | third << 6 | fourth, position + 4


@kernel_without_allocation
def decode_word(word):
    """The code point that begins a little-endian word of valid UTF-8, as a uint64."""
    second = word >> np.uint64(8) & _LOW_SIX
    third = word >> np.uint64(16) & _LOW_SIX
    lead = word & np.uint64(0xFF)
    if lead >= np.uint64(0xE0):
        if lead >= np.uint64(0xF0):
            fourth = word >> np.uint64(24) & _LOW_SIX
            high = (lead & np.uint64(7)) << np.uint64(18) | second << np.uint64(12)
            return high | third << np.uint64(6) | fourth
        return (lead & np.uint64(15)) << np.uint64(12) | second << np.uint64(6) | third
    if lead >= np.uint64(0x80):
        return (lead & np.uint64(31)) << np.uint64(6) | second
    return lead


@kernel_without_allocation
def ideograph_mask(text, place):
    """Where in 64 bytes U+4E00 to U+9FBF begin: nearly all the ideographs in use."""
    after = place + _ONE
    return (
        byte_range_mask(text, place, 0xE5, 0xE8)
        | byte_range_mask(text, place, 0xE4, 0xE4) & byte_range_mask(text, after, 0xB8, 0xBF)
        | byte_range_mask(text, place, 0xE9, 0xE9) & byte_range_mask(text, after, 0x80, 0xBE)
    )


@kernel_without_allocation
def utf8_length(data, position, end):
    """The bytes of the character at `position`, at least 0x80, or 0 if it is not strict UTF-8.

    `end` is where the text ends.
    """
    lead = data[position]
    if lead < 0xC2 or lead > 0xF4 or position + 1 >= end:
        return 0
    second = data[position + 1]
    if second & 0xC0 != 0x80:
        return 0
    if lead < 0xE0:
        return 2
    if lead < 0xF0:
        # E0 begins overlong forms, ED surrogates.
        if (lead == 0xE0 and second < 0xA0) or (lead == 0xED and second > 0x9F):
            return 0
        if position + 2 >= end or data[position + 2] & 0xC0 != 0x80:
            return 0
        return 3
    # F0 begins overlong forms, F4 what is beyond U+10FFFF.
    if (lead == 0xF0 and second < 0x90) or (lead == 0xF4 and second > 0x8F):
        return 0
    if position + 3 >= end or data[position + 2] & 0xC0 != 0x80:
        return 0
    if data[position + 3] & 0xC0 != 0x80:
        return 0
    return 4
