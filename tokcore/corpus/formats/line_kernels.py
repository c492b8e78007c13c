"""Kernels over the lines of a block: borders, strict UTF-8, stripping, TAB-separated columns.

One pass finds where lines begin and checks their UTF-8, 64 bytes at a time. Stripping looks at a
line's ends only, so it costs by the line and not by the byte.
"""

import numpy as np

from tokcore.compiled.byte_masks import CHUNK, byte_range_mask, popcount, trailing_zeros
from tokcore.compiled.compilation import kernel, kernel_without_allocation
from tokcore.text.utf8 import next_character, utf8_length

# What a byte is to `scan_lines`, by a table of 256.
_ORDINARY = 0
_NEWLINE = 1
_RETURN = 2
_NOT_ASCII = 3

TAB = 0x09
_CHUNK = np.uint64(CHUNK)
_0, _1, _2, _3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
# In the last place of a chunk, the last two, the last three.
_CUT_TWO, _CUT_THREE, _CUT_FOUR = np.uint64(1 << 63), np.uint64(3 << 62), np.uint64(7 << 61)

# What `cut_columns` says of a line.
KEPT = 0
EMPTY = 1
MISSING_COLUMN = 2
INVALID = 3


def byte_classes() -> np.ndarray:
    """Returns uint8[256], the table that `scan_lines` takes."""
    kinds = np.full(256, _ORDINARY, np.uint8)
    kinds[ord('\n')] = _NEWLINE
    kinds[ord('\r')] = _RETURN
    kinds[0x80:] = _NOT_ASCII
    return kinds


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
def count_lines(data):
    """The number of lines; the last may lack its '\n'."""
    total = _0
    position, end = _0, np.uint64(len(data))
    while position + _CHUNK <= end:
        total += popcount(byte_range_mask(data, position, 0x0A, 0x0A))
        position += _CHUNK
    while position < end:
        total += np.uint64(data[position] == 0x0A)
        position += _1
    if end > _0 and data[end - _1] != 0x0A:
        total += _1
    return np.int64(total)


@kernel_without_allocation
def scan_lines(data, kinds, borders, damaged):
    """Fills in where lines begin and whether they are not UTF-8; returns the number of '\r'.

    `borders` int64[lines + 1]: line i is data[borders[i]:borders[i + 1]], with its '\n' if any.
    `damaged` uint8[lines]: 0, and set to 1 where a character is not whole.
    """
    lines = len(damaged)
    borders[0] = 0
    borders[lines] = len(data)
    line = _0
    returns = _0
    # Unsigned, since numba looks at every signed index whether it is negative.
    position = _0
    end = np.uint64(len(data))
    while position < end:
        if position + _CHUNK <= end:
            sound = valid_utf8_prefix(data, position)
            if sound:
                # No character that is cut begins with either.
                returns += popcount(byte_range_mask(data, position, 0x0D, 0x0D))
                newlines = byte_range_mask(data, position, 0x0A, 0x0A)
                while newlines != _0:
                    line += _1
                    borders[line] = np.int64(position + trailing_zeros(newlines) + _1)
                    newlines &= newlines - _1
                position += sound
                continue
        limit = min(end, position + _CHUNK)
        while position < limit:
            kind = kinds[data[position]]
            length = 1
            if kind == _NEWLINE:
                line += _1
                borders[line] = np.int64(position + _1)
            elif kind == _RETURN:
                returns += _1
            elif kind == _NOT_ASCII:
                length = utf8_length(data, np.int64(position), len(data))
                if length == 0:
                    damaged[line] = 1
                    length = 1
            position += np.uint64(length)
    return np.int64(returns)


@kernel
def drop_returns(data, borders, returns):
    """Returns the bytes without their '\\r' and the lines' borders in them."""
    text = np.empty(len(data) - returns, np.uint8)
    text_borders = np.empty(len(borders), np.int64)
    size = 0
    for line in range(len(borders) - 1):
        text_borders[line] = size
        for position in range(borders[line], borders[line + 1]):
            if data[position] != 0x0D:
                text[size] = data[position]
                size += 1
    text_borders[len(borders) - 1] = size
    return text, text_borders


@kernel_without_allocation
def strip_start(text, start, end, whitespace):
    """Where text[start:end] begins without the whitespace in front, at most `end`."""
    while start < end:
        character, behind = next_character(text, start)
        if not whitespace[character]:
            break
        start = behind
    return start


@kernel_without_allocation
def strip_end(text, start, end, whitespace):
    """Where text[start:end] ends without the whitespace behind, at least `start`."""
    while start < end:
        last = end - 1
        while text[last] & 0xC0 == 0x80:
            last -= 1
        if not whitespace[next_character(text, last)[0]]:
            break
        end = last
    return end


@kernel_without_allocation
def strip_lines(text, borders, damaged, whitespace, verdicts, starts, ends):
    """Fills in each line's stripped text and its verdict (uint8): kept, empty or invalid."""
    for line in range(len(damaged)):
        if damaged[line]:
            verdicts[line] = INVALID
            continue
        start = strip_start(text, borders[line], borders[line + 1], whitespace)
        end = strip_end(text, start, borders[line + 1], whitespace)
        starts[line] = start
        ends[line] = end
        verdicts[line] = EMPTY if start == end else KEPT


@kernel_without_allocation
def cut_columns(text, borders, damaged, whitespace, columns, verdicts, starts, ends):
    """Fills in each line's wanted columns, stripped, and its verdict.

    `columns` int64[c], in any order; `starts`, `ends` int64[c, lines]. A blank line is empty
    whatever columns it has; another with too few is a missing column.
    """
    last_wanted = columns[0]
    for wanted in columns[1:]:
        last_wanted = max(last_wanted, wanted)
    for line in range(len(damaged)):
        if damaged[line]:
            verdicts[line] = INVALID
            continue
        line_end = borders[line + 1]
        start = borders[line]
        if strip_start(text, start, line_end, whitespace) == line_end:
            verdicts[line] = EMPTY
            continue
        verdicts[line] = KEPT
        column = 0
        position = start
        while position <= line_end and column <= last_wanted:
            if position == line_end or text[position] == TAB:
                for wanted in range(len(columns)):
                    if columns[wanted] == column:
                        stripped = strip_start(text, start, position, whitespace)
                        starts[wanted, line] = stripped
                        ends[wanted, line] = strip_end(text, stripped, position, whitespace)
                        if stripped == position:
                            verdicts[line] = EMPTY
                start = position + 1
                column += 1
            position += 1
        if column <= last_wanted:
            verdicts[line] = MISSING_COLUMN
