"""Unicode for kernels: UTF-8, and properties of all code points as arrays.

Properties come from this Python's `unicodedata`, and so differ between Python versions; whatever is
made with them records `UNICODE_VERSION`. `unicodedata` does not know scripts: those, and the letters
counted with them, come from the package `regex`.

Other tokenizers have older tables: `tokenizers` has Unicode 8 in BERT's rules, Unicode 9 in normal forms
and where it strips accents, and Unicode 16 in regular expressions, as tiktoken has. A character that a
table does not know yet has no properties there (`age_table`, `category_in`).
"""

from __future__ import annotations

import contextlib
import functools
import unicodedata
from collections.abc import Callable

import numpy as np

from tokcore.errors import InputError
from tokcore.kernels.cache_folder import CACHE_FOLDER, read_cached, write_cached
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
    scripts = '||'.join(rf'\p{{Script={script}}}' for script in _SEVERAL.get(code, code).split())
    none = '||'.join(rf'\p{{Script={script}}}' for script in _NOT_SCRIPTS[:2])
    for first, end in runs_of(rf'[\p{{L}}--[{none}]]+'):
        classes[first:end] = OTHER
    for first, end in runs_of(rf'[\p{{L}}&&[{scripts}]]+'):
        classes[first:end] = OWN
    return read_only(classes)


def runs_of(pattern: str) -> list[tuple[int, int]]:
    """Returns the runs of code points that a pattern matches, surrogates too, as (first, last + 1)."""
    import regex

    text = ''.join(map(chr, range(CODE_POINTS)))
    return [match.span() for match in regex.finditer(pattern, text, regex.V1)]


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
    letters = cached_table(
        'categories',
        lambda: ''.join(map(unicodedata.category, map(chr, range(CODE_POINTS)))).encode(),
    )
    return read_only(np.frombuffer(letters, np.uint8).reshape(CODE_POINTS, 2))


def cached_table(name: str, make: Callable[[], bytes]) -> bytes:
    """Returns a table of all code points, by this Python's Unicode: to make one takes tenths of a second.

    It is read from the cache of kernels if it is there; a table of another content needs another name.
    """
    path = None if CACHE_FOLDER is None else CACHE_FOLDER / f'{name}-{UNICODE_VERSION}'
    table = None if path is None else read_cached(path)
    if table is None:
        table = make()
        if path is not None:
            with contextlib.suppress(OSError):  # the disk is full
                write_cached(path, table)
    return table


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


NEWER = 255


@functools.cache
def age_table() -> np.ndarray:
    """Returns uint8[0x110000]: 8, 9 or 16, the first of them that knows a code point, or `NEWER`."""
    ages = np.full(CODE_POINTS, 8, np.uint8)
    for age, spelled in ((9, _SINCE_9), (16, _SINCE_16), (NEWER, _NOT_IN_16)):
        for run in spelled.split():
            first, _, last = run.partition('-')
            ages[int(first, 16) : int(last or first, 16) + 1] = age
    return read_only(ages)


def category_in(age: int, character: str) -> str:
    """Returns the general category of a character, which is Cn if it is newer than one of the versions."""
    return 'Cn' if age_table()[ord(character)] > age else unicodedata.category(character)


_SINCE_9 = """
8B6-8BD 8D4-8E2 C80 D4F D54-D56 D58-D5E D76-D78 1C80-1C88 1DFB 23FB-23FE 2E43-2E44 A7AE A8C5
1018D-1018E 104B0-104D3 104D8-104FB 1123E 11400-11459 1145B 1145D 11660-1166C 11C00-11C08
11C0A-11C36 11C38-11C45 11C50-11C6C 11C70-11C8F 11C92-11CA7 11CA9-11CB6 16FE0 17000-187EC
18800-18AF2 1E000-1E006 1E008-1E018 1E01B-1E021 1E023-1E024 1E026-1E02A 1E900-1E94A 1E950-1E959
1E95E-1E95F 1F19B-1F1AC 1F23B 1F57A 1F5A4 1F6D1-1F6D2 1F6F4-1F6F6 1F919-1F91E 1F920-1F927 1F930
1F933-1F93E 1F940-1F94B 1F950-1F95E 1F985-1F991
"""
"""Code points that Unicode 9 has and Unicode 8 has not."""

_SINCE_16 = """
560 588 5EF 61D 7FD-7FF 860-86A 870-88E 890-891 897-89F 8B5 8BE-8D3 9FC-9FE A76 AFA-AFF B55 C04 C3C
C5D C77 C84 CDD CF3 D00 D04 D3B-D3C D81 E86 E89 E8C E8E-E93 E98 EA0 EA8-EA9 EAC EBA ECE 170D 1715
171F 180F 1878 1ABF-1ACE 1B4C 1B4E-1B4F 1B7D-1B7F 1C89-1C8A 1C90-1CBA 1CBD-1CBF 1CF7 1CFA 1DF6-1DFA
20BF-20C0 23FF 2427-2429 2B97 2BBA-2BBC 2BC9 2BD2-2BEB 2BF0-2BFF 2C2F 2C5F 2E45-2E5D 2FFC-2FFF
312E-312F 31BB-31BF 31E4-31E5 31EF 32FF 4DB6-4DBF 9FD6-9FFF A7AF A7B8-A7CD A7D0-A7D1 A7D3 A7D5-A7DC
A7F2-A7F6 A82C A8FE-A8FF AB66-AB6B FBC2 FD40-FD4F FDCF FDFE-FDFF 1019C 1032D-1032F 10570-1057A
1057C-1058A 1058C-10592 10594-10595 10597-105A1 105A3-105B1 105B3-105B9 105BB-105BC 105C0-105F3
10780-10785 10787-107B0 107B2-107BA 10A34-10A35 10A48 10D00-10D27 10D30-10D39 10D40-10D65
10D69-10D85 10D8E-10D8F 10E80-10EA9 10EAB-10EAD 10EB0-10EB1 10EC2-10EC4 10EFC-10F27 10F30-10F59
10F70-10F89 10FB0-10FCB 10FE0-10FF6 11070-11075 110C2 110CD 11144-11147 111CE-111CF 1123F-11241
1133B 11380-11389 1138B 1138E 11390-113B5 113B7-113C0 113C2 113C5 113C7-113CA 113CC-113D5
113D7-113D8 113E1-113E2 1145A 1145E-11461 116B8-116B9 116D0-116E3 1171A 11740-11746 11800-1183B
11900-11906 11909 1190C-11913 11915-11916 11918-11935 11937-11938 1193B-11946 11950-11959
119A0-119A7 119AA-119D7 119DA-119E4 11A00-11A47 11A50-11AA2 11AB0-11ABF 11B00-11B09 11BC0-11BE1
11BF0-11BF9 11D00-11D06 11D08-11D09 11D0B-11D36 11D3A 11D3C-11D3D 11D3F-11D47 11D50-11D59
11D60-11D65 11D67-11D68 11D6A-11D8E 11D90-11D91 11D93-11D98 11DA0-11DA9 11EE0-11EF8 11F00-11F10
11F12-11F3A 11F3E-11F5A 11FB0 11FC0-11FF1 11FFF 12F90-12FF2 1342F-13455 13460-143FA 16100-16139
16A70-16ABE 16AC0-16AC9 16D40-16D79 16E40-16E9A 16F45-16F4A 16F4F 16F7F-16F87 16FE1-16FE4
16FF0-16FF1 187ED-187F7 18AF3-18CD5 18CFF-18D08 1AFF0-1AFF3 1AFF5-1AFFB 1AFFD-1AFFE 1B002-1B122
1B132 1B150-1B152 1B155 1B164-1B167 1B170-1B2FB 1CC00-1CCF9 1CD00-1CEB3 1CF00-1CF2D 1CF30-1CF46
1CF50-1CFC3 1D1E9-1D1EA 1D2C0-1D2D3 1D2E0-1D2F3 1D372-1D378 1DF00-1DF1E 1DF25-1DF2A 1E030-1E06D
1E08F 1E100-1E12C 1E130-1E13D 1E140-1E149 1E14E-1E14F 1E290-1E2AE 1E2C0-1E2F9 1E2FF 1E4D0-1E4F9
1E5D0-1E5FA 1E5FF 1E7E0-1E7E6 1E7E8-1E7EB 1E7ED-1E7EE 1E7F0-1E7FE 1E94B 1EC71-1ECB4 1ED01-1ED3D
1F10D-1F10F 1F12F 1F16C-1F16F 1F1AD 1F260-1F265 1F6D3-1F6D7 1F6DC-1F6DF 1F6F7-1F6FC 1F774-1F776
1F77B-1F77F 1F7D5-1F7D9 1F7E0-1F7EB 1F7F0 1F8B0-1F8BB 1F8C0-1F8C1 1F900-1F90F 1F91F 1F928-1F92F
1F931-1F932 1F93F 1F94C-1F94F 1F95F-1F97F 1F992-1F9BF 1F9C1-1FA53 1FA60-1FA6D 1FA70-1FA7C
1FA80-1FA89 1FA8F-1FAC6 1FACE-1FADC 1FADF-1FAE9 1FAF0-1FAF8 1FB00-1FB92 1FB94-1FBF9 2A6D7-2A6DF
2B735-2B739 2CEB0-2EBE0 2EBF0-2EE5D 30000-3134A 31350-323AF
"""
"""Those that Unicode 10 to 16 added."""

_NOT_IN_16 = """
378-379 380-383 38B 38D 3A2 530 557-558 58B-58C 590 5C8-5CF 5EB-5EE 5F5-5FF 70E 74B-74C 7B2-7BF
7FB-7FC 82E-82F 83F 85C-85D 85F 86B-86F 88F 892-896 984 98D-98E 991-992 9A9 9B1 9B3-9B5 9BA-9BB
9C5-9C6 9C9-9CA 9CF-9D6 9D8-9DB 9DE 9E4-9E5 9FF-A00 A04 A0B-A0E A11-A12 A29 A31 A34 A37 A3A-A3B A3D
A43-A46 A49-A4A A4E-A50 A52-A58 A5D A5F-A65 A77-A80 A84 A8E A92 AA9 AB1 AB4 ABA-ABB AC6 ACA ACE-ACF
AD1-ADF AE4-AE5 AF2-AF8 B00 B04 B0D-B0E B11-B12 B29 B31 B34 B3A-B3B B45-B46 B49-B4A B4E-B54 B58-B5B
B5E B64-B65 B78-B81 B84 B8B-B8D B91 B96-B98 B9B B9D BA0-BA2 BA5-BA7 BAB-BAD BBA-BBD BC3-BC5 BC9 BCE-
BCF BD1-BD6 BD8-BE5 BFB-BFF C0D C11 C29 C3A-C3B C45 C49 C4E-C54 C57 C5B-C5C C5E-C5F C64-C65 C70-C76
C8D C91 CA9 CB4 CBA-CBB CC5 CC9 CCE-CD4 CD7-CDC CDF CE4-CE5 CF0 CF4-CFF D0D D11 D45 D49 D50-D53
D64-D65 D80 D84 D97-D99 DB2 DBC DBE-DBF DC7-DC9 DCB-DCE DD5 DD7 DE0-DE5 DF0-DF1 DF5-E00 E3B-E3E
E5C-E80 E83 E85 E8B EA4 EA6 EBE-EBF EC5 EC7 ECF EDA-EDB EE0-EFF F48 F6D-F70 F98 FBD FCD FDB-FFF 10C6
10C8-10CC 10CE-10CF 1249 124E-124F 1257 1259 125E-125F 1289 128E-128F 12B1 12B6-12B7 12BF 12C1
12C6-12C7 12D7 1311 1316-1317 135B-135C 137D-137F 139A-139F 13F6-13F7 13FE-13FF 169D-169F 16F9-16FF
1716-171E 1737-173F 1754-175F 176D 1771 1774-177F 17DE-17DF 17EA-17EF 17FA-17FF 181A-181F 1879-187F
18AB-18AF 18F6-18FF 191F 192C-192F 193C-193F 1941-1943 196E-196F 1975-197F 19AC-19AF 19CA-19CF
19DB-19DD 1A1C-1A1D 1A5F 1A7D-1A7E 1A8A-1A8F 1A9A-1A9F 1AAE-1AAF 1ACF-1AFF 1B4D 1BF4-1BFB 1C38-1C3A
1C4A-1C4C 1C8B-1C8F 1CBB-1CBC 1CC8-1CCF 1CFB-1CFF 1F16-1F17 1F1E-1F1F 1F46-1F47 1F4E-1F4F 1F58 1F5A
1F5C 1F5E 1F7E-1F7F 1FB5 1FC5 1FD4-1FD5 1FDC 1FF0-1FF1 1FF5 1FFF 2065 2072-2073 208F 209D-209F
20C1-20CF 20F1-20FF 218C-218F 242A-243F 244B-245F 2B74-2B75 2B96 2CF4-2CF8 2D26 2D28-2D2C 2D2E-2D2F
2D68-2D6E 2D71-2D7E 2D97-2D9F 2DA7 2DAF 2DB7 2DBF 2DC7 2DCF 2DD7 2DDF 2E5E-2E7F 2E9A 2EF4-2EFF
2FD6-2FEF 3040 3097-3098 3100-3104 3130 318F 31E6-31EE 321F A48D-A48F A4C7-A4CF A62C-A63F A6F8-A6FF
A7CE-A7CF A7D2 A7D4 A7DD-A7F1 A82D-A82F A83A-A83F A878-A87F A8C6-A8CD A8DA-A8DF A954-A95E A97D-A97F
A9CE A9DA-A9DD A9FF AA37-AA3F AA4E-AA4F AA5A-AA5B AAC3-AADA AAF7-AB00 AB07-AB08 AB0F-AB10 AB17-AB1F
AB27 AB2F AB6C-AB6F ABEE-ABEF ABFA-ABFF D7A4-D7AF D7C7-D7CA D7FC-D7FF FA6E-FA6F FADA-FAFF FB07-FB12
FB18-FB1C FB37 FB3D FB3F FB42 FB45 FBC3-FBD2 FD90-FD91 FDC8-FDCE FDD0-FDEF FE1A-FE1F FE53 FE67
FE6C-FE6F FE75 FEFD-FEFE FF00 FFBF-FFC1 FFC8-FFC9 FFD0-FFD1 FFD8-FFD9 FFDD-FFDF FFE7 FFEF-FFF8 FFFE-
FFFF 1000C 10027 1003B 1003E 1004E-1004F 1005E-1007F 100FB-100FF 10103-10106 10134-10136 1018F
1019D-1019F 101A1-101CF 101FE-1027F 1029D-1029F 102D1-102DF 102FC-102FF 10324-1032C 1034B-1034F
1037B-1037F 1039E 103C4-103C7 103D6-103FF 1049E-1049F 104AA-104AF 104D4-104D7 104FC-104FF
10528-1052F 10564-1056E 1057B 1058B 10593 10596 105A2 105B2 105BA 105BD-105BF 105F4-105FF
10737-1073F 10756-1075F 10768-1077F 10786 107B1 107BB-107FF 10806-10807 10809 10836 10839-1083B
1083D-1083E 10856 1089F-108A6 108B0-108DF 108F3 108F6-108FA 1091C-1091E 1093A-1093E 10940-1097F
109B8-109BB 109D0-109D1 10A04 10A07-10A0B 10A14 10A18 10A36-10A37 10A3B-10A3E 10A49-10A4F
10A59-10A5F 10AA0-10ABF 10AE7-10AEA 10AF7-10AFF 10B36-10B38 10B56-10B57 10B73-10B77 10B92-10B98
10B9D-10BA8 10BB0-10BFF 10C49-10C7F 10CB3-10CBF 10CF3-10CF9 10D28-10D2F 10D3A-10D3F 10D66-10D68
10D86-10D8D 10D90-10E5F 10E7F 10EAA 10EAE-10EAF 10EB2-10EC1 10EC5-10EFB 10F28-10F2F 10F5A-10F6F
10F8A-10FAF 10FCC-10FDF 10FF7-10FFF 1104E-11051 11076-1107E 110C3-110CC 110CE-110CF 110E9-110EF
110FA-110FF 11135 11148-1114F 11177-1117F 111E0 111F5-111FF 11212 11242-1127F 11287 11289 1128E
1129E 112AA-112AF 112EB-112EF 112FA-112FF 11304 1130D-1130E 11311-11312 11329 11331 11334 1133A
11345-11346 11349-1134A 1134E-1134F 11351-11356 11358-1135C 11364-11365 1136D-1136F 11375-1137F
1138A 1138C-1138D 1138F 113B6 113C1 113C3-113C4 113C6 113CB 113D6 113D9-113E0 113E3-113FF 1145C
11462-1147F 114C8-114CF 114DA-1157F 115B6-115B7 115DE-115FF 11645-1164F 1165A-1165F 1166D-1167F
116BA-116BF 116CA-116CF 116E4-116FF 1171B-1171C 1172C-1172F 11747-117FF 1183C-1189F 118F3-118FE
11907-11908 1190A-1190B 11914 11917 11936 11939-1193A 11947-1194F 1195A-1199F 119A8-119A9
119D8-119D9 119E5-119FF 11A48-11A4F 11AA3-11AAF 11AF9-11AFF 11B0A-11BBF 11BE2-11BEF 11BFA-11BFF
11C09 11C37 11C46-11C4F 11C6D-11C6F 11C90-11C91 11CA8 11CB7-11CFF 11D07 11D0A 11D37-11D39 11D3B
11D3E 11D48-11D4F 11D5A-11D5F 11D66 11D69 11D8F 11D92 11D99-11D9F 11DAA-11EDF 11EF9-11EFF 11F11
11F3B-11F3D 11F5B-11FAF 11FB1-11FBF 11FF2-11FFE 1239A-123FF 1246F 12475-1247F 12544-12F8F
12FF3-12FFF 13456-1345F 143FB-143FF 14647-160FF 1613A-167FF 16A39-16A3F 16A5F 16A6A-16A6D 16ABF
16ACA-16ACF 16AEE-16AEF 16AF6-16AFF 16B46-16B4F 16B5A 16B62 16B78-16B7C 16B90-16D3F 16D7A-16E3F
16E9B-16EFF 16F4B-16F4E 16F88-16F8E 16FA0-16FDF 16FE5-16FEF 16FF2-16FFF 187F8-187FF 18CD6-18CFE
18D09-1AFEF 1AFF4 1AFFC 1AFFF 1B123-1B131 1B133-1B14F 1B153-1B154 1B156-1B163 1B168-1B16F
1B2FC-1BBFF 1BC6B-1BC6F 1BC7D-1BC7F 1BC89-1BC8F 1BC9A-1BC9B 1BCA4-1CBFF 1CCFA-1CCFF 1CEB4-1CEFF
1CF2E-1CF2F 1CF47-1CF4F 1CFC4-1CFFF 1D0F6-1D0FF 1D127-1D128 1D1EB-1D1FF 1D246-1D2BF 1D2D4-1D2DF
1D2F4-1D2FF 1D357-1D35F 1D379-1D3FF 1D455 1D49D 1D4A0-1D4A1 1D4A3-1D4A4 1D4A7-1D4A8 1D4AD 1D4BA
1D4BC 1D4C4 1D506 1D50B-1D50C 1D515 1D51D 1D53A 1D53F 1D545 1D547-1D549 1D551 1D6A6-1D6A7
1D7CC-1D7CD 1DA8C-1DA9A 1DAA0 1DAB0-1DEFF 1DF1F-1DF24 1DF2B-1DFFF 1E007 1E019-1E01A 1E022 1E025
1E02B-1E02F 1E06E-1E08E 1E090-1E0FF 1E12D-1E12F 1E13E-1E13F 1E14A-1E14D 1E150-1E28F 1E2AF-1E2BF
1E2FA-1E2FE 1E300-1E4CF 1E4FA-1E5CF 1E5FB-1E5FE 1E600-1E7DF 1E7E7 1E7EC 1E7EF 1E7FF 1E8C5-1E8C6
1E8D7-1E8FF 1E94C-1E94F 1E95A-1E95D 1E960-1EC70 1ECB5-1ED00 1ED3E-1EDFF 1EE04 1EE20 1EE23
1EE25-1EE26 1EE28 1EE33 1EE38 1EE3A 1EE3C-1EE41 1EE43-1EE46 1EE48 1EE4A 1EE4C 1EE50 1EE53
1EE55-1EE56 1EE58 1EE5A 1EE5C 1EE5E 1EE60 1EE63 1EE65-1EE66 1EE6B 1EE73 1EE78 1EE7D 1EE7F 1EE8A
1EE9C-1EEA0 1EEA4 1EEAA 1EEBC-1EEEF 1EEF2-1EFFF 1F02C-1F02F 1F094-1F09F 1F0AF-1F0B0 1F0C0 1F0D0
1F0F6-1F0FF 1F1AE-1F1E5 1F203-1F20F 1F23C-1F23F 1F249-1F24F 1F252-1F25F 1F266-1F2FF 1F6D8-1F6DB
1F6ED-1F6EF 1F6FD-1F6FF 1F777-1F77A 1F7DA-1F7DF 1F7EC-1F7EF 1F7F1-1F7FF 1F80C-1F80F 1F848-1F84F
1F85A-1F85F 1F888-1F88F 1F8AE-1F8AF 1F8BC-1F8BF 1F8C2-1F8FF 1FA54-1FA5F 1FA6E-1FA6F 1FA7D-1FA7F
1FA8A-1FA8E 1FAC7-1FACD 1FADD-1FADE 1FAEA-1FAEF 1FAF9-1FAFF 1FB93 1FBFA-1FFFF 2A6E0-2A6FF
2B73A-2B73F 2B81E-2B81F 2CEA2-2CEAF 2EBE1-2EBEF 2EE5E-2F7FF 2FA1E-2FFFF 3134B-3134F 323B0-E0000
E0002-E001F E0080-E00FF E01F0-EFFFF FFFFE-FFFFF 10FFFE-10FFFF
"""
"""Those that Unicode 16 leaves unassigned, also what is never to be assigned."""
