"""The classes of 64 bytes as bits, one bit a byte."""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.byte_masks import byte_range_mask, trailing_zeros
from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.compiled.wide_loads import load_word
from tokcore.text.byte_level.character_classes import class_of
from tokcore.text.utf8 import decode_word, ideograph_mask

_0, _1, _2 = np.uint64(0), np.uint64(1), np.uint64(2)


class ClassMasks(NamedTuple):
    """Bit i is about byte i; all bytes of a character are of its class. Each is a uint64."""

    letters: np.uint64
    numbers: np.uint64
    spaces: np.uint64  # white space
    others: np.uint64
    blanks: np.uint64  # U+0020
    breaks: np.uint64  # CR and LF
    apostrophes: np.uint64
    continued: np.uint64  # bytes of a character behind its first


@kernel_without_allocation
def _known_others(text, place):
    """Where U+3001 to U+3003 and U+FF00 to U+FF0F begin: the commas and full stops of Chinese."""
    after, last = place + _1, place + _2
    return (
        byte_range_mask(text, place, 0xE3, 0xE3)
        & byte_range_mask(text, after, 0x80, 0x80)
        & byte_range_mask(text, last, 0x81, 0x83)
    ) | (
        byte_range_mask(text, place, 0xEF, 0xEF)
        & byte_range_mask(text, after, 0xBC, 0xBC)
        & byte_range_mask(text, last, 0x80, 0x8F)
    )


@kernel_without_allocation
def _spread(found, before, continued):
    """Gives all bytes of characters the bit of the first; `before` is that of the byte before."""
    found |= (found << _1 | before) & continued
    found |= (found << _1 | before) & continued
    return found | (found << _1 | before) & continued


@kernel_without_allocation
def class_masks(text, place, inside, before, classes):
    """Returns the `ClassMasks` of the 64 bytes at text[place:], of those that are `inside`.

    `before` has the bits `letter`, `number` and `space` of the byte before, in its lowest place.
    """
    letters = byte_range_mask(text, place, 0x61, 0x7A) | byte_range_mask(text, place, 0x41, 0x5A)
    numbers = byte_range_mask(text, place, 0x30, 0x39)
    blanks = byte_range_mask(text, place, 0x20, 0x20)
    spaces = blanks | byte_range_mask(text, place, 0x09, 0x0D)
    breaks = byte_range_mask(text, place, 0x0A, 0x0A) | byte_range_mask(text, place, 0x0D, 0x0D)
    continued = _0
    wide = byte_range_mask(text, place, 0x80, 0xFF) & inside
    if wide != _0:
        continued = byte_range_mask(text, place, 0x80, 0xBF) & inside
        letters |= ideograph_mask(text, place)
        leads = wide & ~continued & ~letters & ~_known_others(text, place)
        while leads != _0:
            byte = trailing_zeros(leads)
            leads &= leads - _1
            found = class_of(classes, decode_word(load_word(text, place + byte)))
            letters |= (found & _1) << byte
            numbers |= (found >> _1 & _1) << byte
            spaces |= (found >> _2) << byte
        letters = _spread(letters, before.letter, continued)
        numbers = _spread(numbers, before.number, continued)
        spaces = _spread(spaces, before.space, continued)
    return ClassMasks(
        letters & inside,
        numbers & inside,
        spaces & inside,
        inside & ~(letters | numbers | spaces),
        blanks & inside,
        breaks & inside,
        byte_range_mask(text, place, 0x27, 0x27) & inside,
        continued,
    )
