"""Kernels that tell whether rows of bytes are strict UTF-8, 64 bytes at a time."""

import numpy as np

from tokcore.compiled.byte_masks import CHUNK, byte_range_mask, popcount, trailing_zeros
from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.text.utf8 import utf8_length

_CHUNK = np.uint64(CHUNK)
_0, _1, _2, _3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
# In the last place of a chunk, the last two, the last three.
_CUT_TWO, _CUT_THREE, _CUT_FOUR = np.uint64(1 << 63), np.uint64(3 << 62), np.uint64(7 << 61)


@kernel_without_allocation
def valid_utf8_prefix(data, position):
    """How many of the 64 bytes at `position` are whole characters of strict UTF-8.

    That is 61 to 64, the fewer if the last character goes on behind; 0 says that a byte is wrong.
    The bytes behind leads must be the continuation bytes, all of them.
    """
    high = byte_range_mask(data, position, 0x80, 0xFF)
    if high == _0:
        return _CHUNK
    continued = byte_range_mask(data, position, 0x80, 0xBF)
    two = byte_range_mask(data, position, 0xC2, 0xDF)
    three = byte_range_mask(data, position, 0xE0, 0xEF)
    four = byte_range_mask(data, position, 0xF0, 0xF4)
    seconds = (two | three | four) << _1
    wrong = continued ^ (seconds | (three | four) << _2 | four << _3)
    wrong |= high & ~(continued | two | three | four)
    # E0 and F0 begin overlong forms, ED surrogates, F4 what is beyond U+10FFFF.
    e0, ed = (
        byte_range_mask(data, position, 0xE0, 0xE0),
        byte_range_mask(data, position, 0xED, 0xED),
    )
    if e0 | ed | four != _0:
        f0, f4 = (
            byte_range_mask(data, position, 0xF0, 0xF0),
            byte_range_mask(data, position, 0xF4, 0xF4),
        )
        wrong |= e0 << _1 & ~byte_range_mask(data, position, 0xA0, 0xBF)
        wrong |= ed << _1 & ~byte_range_mask(data, position, 0x80, 0x9F)
        wrong |= f0 << _1 & ~byte_range_mask(data, position, 0x90, 0xBF)
        wrong |= f4 << _1 & ~byte_range_mask(data, position, 0x80, 0x8F)
    if wrong != _0:
        return _0
    # 64 where no bit is set.
    return trailing_zeros(two & _CUT_TWO | three & _CUT_THREE | four & _CUT_FOUR)


@kernel_without_allocation
def check_rows(text, starts, ends, damaged):
    """Marks rows that may not be UTF-8; returns the number of '\\r' in and between all rows.

    `damaged` uint8[rows]: 0, and set to 1 where a character is not whole in a row or between it and
    the next. The rows are in the order of the text, and the bytes next to them are below 0x80.
    """
    rows = len(starts)
    returns = _0
    if rows == 0:
        return np.int64(0)
    row = 0
    # Unsigned, since numba looks at every signed index whether it is negative.
    position = np.uint64(starts[0])
    end = np.uint64(ends[rows - 1])
    while position < end:
        if position + _CHUNK <= end:
            sound = valid_utf8_prefix(text, position)
            if sound:
                # No character that is cut begins with it.
                returns += popcount(byte_range_mask(text, position, 0x0D, 0x0D))
                position += sound
                continue
        limit = min(end, position + _CHUNK)
        while position < limit:
            length = 1
            if text[position] >= 0x80:
                length = utf8_length(text, np.int64(position), np.int64(end))
                if length == 0:
                    while row + 1 < rows and starts[row + 1] <= np.int64(position):
                        row += 1
                    damaged[row] = 1
                    length = 1
            elif text[position] == 0x0D:
                returns += _1
            position += np.uint64(length)
    return np.int64(returns)
