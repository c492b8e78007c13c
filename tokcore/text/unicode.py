"""Unicode for kernels: UTF-8, and properties of all code points as arrays.

Properties come from this Python's `unicodedata`, and so differ between Python versions; whatever is
made with them records `UNICODE_VERSION`. `unicodedata` does not know scripts: those, and the letters
counted with them, come from the package `regex`.
"""

from __future__ import annotations

import contextlib
import functools
import unicodedata

import numpy as np

from tokcore.cached_files import read_cached, write_cached
from tokcore.errors import InputError
from tokcore.kernels.cache_folder import CACHE_FOLDER
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import byte_range_mask, popcount, trailing_zeros

OWN, OTHER = 1, 2

_SEVERAL = {
    'Hans': 'Hani', 'Hant': 'Hani', 'Hrkt': 'Hira Kana', 'Jpan': 'Hani Hira Kana',
    'Kore': 'Hang Hani',
}  # fmt: skip
"""ISO 15924 codes that stand for several of Unicode's scripts, or for a variant of one."""

_NOT_SCRIPTS = ('Zyyy', 'Zinh', 'Zzzz', 'Qaai')
"""Common to several scripts, inherited from the letter before, unknown."""

_0, _1 = np.uint64(0), np.uint64(1)
_CHUNK = np.uint64(64)
_LOW_SIX = np.uint64(0x3F)

_NAMES = {'\n': 'a line feed', '\r': 'a carriage return', '\0': 'a NUL'}

UNICODE_VERSION: str = unicodedata.unidata_version

CODE_POINTS = 0x110000

_2, _3 = np.uint64(2), np.uint64(3)
# Lead bytes whose character is cut: of two bytes in the last place of a chunk, of three in the
# last two, of four in the last three.
_CUT_TWO, _CUT_THREE, _CUT_FOUR = np.uint64(1 << 63), np.uint64(3 << 62), np.uint64(7 << 61)


def is_script(code: str) -> bool:
    """Returns whether an ISO 15924 code stands for a script with letters."""
    import regex

    if code in _NOT_SCRIPTS:
        return False
    if code in _SEVERAL:
        return True
    try:
        regex.compile(rf'\p{{Script={code}}}')
    except regex.error:
        return False
    return True


@functools.lru_cache(maxsize=8)
def letter_classes(code: str) -> np.ndarray:
    """Returns uint8[0x110000]: `OWN` for letters of a script, `OTHER` for letters of others, else 0.

    Letters (categories L*) of no script in particular, such as U+30FC and mathematical letters, are
    0 too.
    """
    classes = np.zeros(CODE_POINTS, np.uint8)
    own = '||'.join(rf'\p{{Script={script}}}' for script in _SEVERAL.get(code, code).split())
    none = '||'.join(rf'\p{{Script={script}}}' for script in _NOT_SCRIPTS[:2])
    for first, end in runs_of(rf'[\p{{L}}--[{none}]]+'):
        classes[first:end] = OTHER
    for first, end in runs_of(rf'[\p{{L}}&&[{own}]]+'):
        classes[first:end] = OWN
    return read_only(classes)


def runs_of(pattern: str) -> list[tuple[int, int]]:
    """Returns the runs of code points that a pattern matches, as (first, last + 1)."""
    import regex

    # A text of all code points in order, without the surrogates, which are not letters.
    gap, width = 0xD800, 0x800
    text = ''.join(map(chr, (*range(gap), *range(gap + width, 0x110000))))
    runs = []
    for match in regex.finditer(pattern, text, regex.V1):
        first, end = match.span()
        if first < gap < end:
            runs.append((first, gap))
            first = gap
        shift = width if first >= gap else 0
        runs.append((first + shift, end + shift))
    return runs


def character_name(character: str) -> str:
    r"""Returns a character's name in a message: 'a line feed' for `\n`, U+0041 for `A`."""
    return _NAMES.get(character, f'U+{ord(character):04X}')


def check_unicode(version: str | None, what: str, here: str = 'this Python') -> None:
    """Refuses what was made with the Unicode tables of another Python.

    Python versions differ in which characters are letters, so tokens would be cut differently. None
    (no version was recorded) passes.

    Raises:
        InputError: the versions differ.
    """
    if version is not None and version != UNICODE_VERSION:
        raise InputError(
            f'{what} has Unicode {version} but {here} has {UNICODE_VERSION}; use the Python '
            'version that it was made with, or make it again'
        )


@functools.cache
def category_table() -> np.ndarray:
    """Returns uint8[0x110000, 2]: the two letters of each code point's general category."""
    path = None if CACHE_FOLDER is None else CACHE_FOLDER / f'categories-{UNICODE_VERSION}'
    letters = None if path is None else read_cached(path)
    if letters is None:  # to ask for each code point takes a seventh of a second
        letters = ''.join(map(unicodedata.category, map(chr, range(CODE_POINTS)))).encode()
        if path is not None:
            with contextlib.suppress(OSError):  # the disk is full
                write_cached(path, letters)
    return read_only(np.frombuffer(letters, np.uint8).reshape(CODE_POINTS, 2))


@functools.cache
def alphanumeric_table() -> np.ndarray:
    """Returns uint8[0x110000], 1 for letters and numbers (categories L* and N*), 0 for the rest.

    This is Tensor2Tensor's `_ALPHANUMERIC_CHAR_SET`: combining marks (M*) are not in it.
    """
    major = category_table()[:, 0]
    return read_only(((major == ord('L')) | (major == ord('N'))).astype(np.uint8))


@functools.cache
def whitespace_table() -> np.ndarray:
    """Returns uint8[0x110000], 1 for the characters that `str.strip` strips, 0 for the rest."""
    letters = category_table()
    # All whitespace is a separator or a control character, and those are few.
    control = (letters[:, 0] == ord('C')) & (letters[:, 1] == ord('c'))
    table = np.zeros(CODE_POINTS, np.uint8)
    for code_point in np.flatnonzero((letters[:, 0] == ord('Z')) | control).tolist():
        table[code_point] = chr(code_point).isspace()
    return read_only(table)


@kernel_without_allocation
def check_rows(text, starts, ends, damaged):
    """Marks rows that may be invalid UTF-8; returns the number of '\\r' in and between all rows.

    `damaged`, uint8[rows] and 0 before, is set to 1 if UTF-8 breaks in a row or between it and the
    next one. Rows are in the order of the text, and the bytes next to them are below 0x80.
    """
    rows = len(starts)
    returns = _0
    if rows == 0:
        return np.int64(0)
    row = 0
    # Unsigned, since numba checks signed indices for being negative.
    position = np.uint64(starts[0])
    end = np.uint64(ends[rows - 1])
    while position < end:
        if position + _CHUNK <= end:
            valid = valid_utf8_prefix(text, position)
            if valid:
                returns += popcount(byte_range_mask(text, position, 0x0D, 0x0D))
                position += valid
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


@kernel_without_allocation
def valid_utf8_prefix(data, position):
    """Returns how many of the 64 bytes at `position` are whole characters of strict UTF-8.

    That is 61 to 64, fewer than 64 if the last character continues after them, or 0 if a byte is
    wrong. The test: continuation bytes are exactly the bytes that must follow a lead byte.
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
    # E0 and F0 begin overlong forms, ED surrogates, F4 code points beyond U+10FFFF.
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
    # 64 if no bit is set.
    return trailing_zeros(two & _CUT_TWO | three & _CUT_THREE | four & _CUT_FOUR)


@kernel_without_allocation
def next_character(text, position):
    """Returns the code point of the character at `position` of valid UTF-8, and where it ends."""
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
    """Returns the code point, uint64, at the start of a little-endian word of valid UTF-8."""
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
    """Returns bits: where in 64 bytes U+4E00 to U+9FBF begin, nearly all ideographs in use."""
    after = place + _1
    return (
        byte_range_mask(text, place, 0xE5, 0xE8)
        | byte_range_mask(text, place, 0xE4, 0xE4) & byte_range_mask(text, after, 0xB8, 0xBF)
        | byte_range_mask(text, place, 0xE9, 0xE9) & byte_range_mask(text, after, 0x80, 0xBE)
    )


@kernel_without_allocation
def one_ends_inside_character(text, starts, ends):
    """Whether the last character of one of the rows text[starts[i]:ends[i]] is not whole."""
    for row in range(len(starts)):
        start, end = starts[row], ends[row]
        if start == end or text[end - 1] < 0x80:
            continue
        last = end - 1
        while last > start and text[last] & 0xC0 == 0x80:
            last -= 1
        if utf8_length(text, last, end) != end - last:
            return True
    return False


@kernel_without_allocation
def utf8_length(data, position, end):
    """Returns the length of the non-ASCII character at `position`, or 0 if it is not strict UTF-8.

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
    # F0 begins overlong forms, F4 code points beyond U+10FFFF.
    if (lead == 0xF0 and second < 0x90) or (lead == 0xF4 and second > 0x8F):
        return 0
    if position + 3 >= end or data[position + 2] & 0xC0 != 0x80:
        return 0
    if data[position + 3] & 0xC0 != 0x80:
        return 0
    return 4
