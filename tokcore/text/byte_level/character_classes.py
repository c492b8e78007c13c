"""The class of each character, for kernels: letter, number, white space, or another."""

import functools
import unicodedata
from typing import NamedTuple

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation, read_only
from tokcore.text.byte_level.plain_patterns import WHITE_SPACE
from tokcore.text.unicode_tables import CODE_POINTS

LETTER, NUMBER, SPACE = 1, 2, 4
"""One bit each; 0 are the others."""

_BLOCK = 256
_BLOCK_BITS, _IN_BLOCK = np.uint64(8), np.uint64(0xFF)


class CharacterClasses(NamedTuple):
    """Code point c is of class blocks[index[c // 256] * 256 + c % 256]: most blocks are alike."""

    index: np.ndarray  # uint8[0x110000 / 256]
    blocks: np.ndarray  # uint8[blocks * 256]


@functools.cache
def character_classes() -> CharacterClasses:
    """Returns the classes by this Python's tables: categories L* and N*, and `WHITE_SPACE`."""
    majors = ''.join(unicodedata.category(chr(code))[0] for code in range(CODE_POINTS))
    letters = np.frombuffer(majors.encode('ascii'), np.uint8)
    table = LETTER * (letters == ord('L')) + NUMBER * (letters == ord('N'))
    table[[ord(each) for each in WHITE_SPACE]] = SPACE
    blocks, index = np.unique(table.reshape(-1, _BLOCK), axis=0, return_inverse=True)
    return CharacterClasses(
        read_only(index.ravel().astype(np.uint8)), read_only(blocks.astype(np.uint8).ravel())
    )


@kernel_without_allocation
def class_of(classes, code):
    """The class of a code point, uint64 both."""
    block = np.uint64(classes.index[code >> _BLOCK_BITS])
    return np.uint64(classes.blocks[(block << _BLOCK_BITS) + (code & _IN_BLOCK)])
