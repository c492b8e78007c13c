"""Which rows may not be in a normal form of Unicode, told by their characters alone.

A text is in a form if each character is in it by itself, none is a combining mark that is to stand
behind others, and none is the second half of one that the two are put together to, which only forms
C and KC do.
"""

import functools
import sys
import unicodedata
from typing import Literal, get_args

import numpy as np

from tokcore.compiled.byte_masks import byte_range_mask, trailing_zeros
from tokcore.compiled.compilation import kernel_without_allocation, read_only
from tokcore.compiled.wide_loads import load_word
from tokcore.text.utf8 import decode_word, ideograph_mask

Form = Literal['NFC', 'NFKC']
FORMS: tuple[Form, ...] = get_args(Form)

_0, _1 = np.uint64(0), np.uint64(1)
_CHUNK = np.uint64(64)
_LOW_SIX = np.uint64(0x3F)

# Vowels and final consonants of Korean, which syllables are composed of.
_JAMO = [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]


@functools.cache
def doubtful_bits(form: str) -> np.ndarray:
    """Returns uint64[0x110000 / 64]: bit c % 64 of word c // 64 is set where c needs a look.

    A text without such code points is in the form, one of Unicode's four.
    """
    table = np.zeros(sys.maxunicode + 1, np.uint8)
    table[_JAMO] = 1
    for code in range(0x80, sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.combining(character) or unicodedata.normalize(form, character) != character:
            table[code] = 1
        parts = unicodedata.decomposition(character)
        # The second of two that are put together to this one. ('<…> ' is of compatibility alone.)
        if parts and parts[0] != '<' and ' ' in parts:
            table[int(parts.split()[1], 16)] = 1
    return read_only(np.packbits(table, bitorder='little').view(np.uint64))


@kernel_without_allocation
def _doubtful_chunk(text, place, left, bits):
    """Whether a character is doubtful that begins among 64 bytes, of which so many are a row's."""
    wide = byte_range_mask(text, place, 0xC2, 0xFF)
    if left < _CHUNK:
        wide &= (_1 << left) - _1
    if wide == _0:
        return False
    wide &= ~ideograph_mask(text, place)
    found = _0
    while wide != _0:
        code = decode_word(load_word(text, place + trailing_zeros(wide)))
        wide &= wide - _1
        found |= bits[code >> np.uint64(6)] >> (code & _LOW_SIX)
    return found & _1 != _0


@kernel_without_allocation
def find_doubtful(rows, bits, found):
    """Marks those of `TextRows`, valid UTF-8, that hold code points of `doubtful_bits`.

    `found` uint8[rows] is 0, and set to 1.
    """
    for row in range(len(rows.starts)):
        place, end = np.uint64(rows.starts[row]), np.uint64(rows.ends[row])
        while place < end:
            if _doubtful_chunk(rows.text, place, end - place, bits):
                found[row] = 1
                break
            place += _CHUNK
