r"""Byte-level text: the 256 characters that stand for bytes, and the patterns of models.

The patterns are regular expressions over letters `\p{L}`, numbers `\p{N}` and white space `\s`:

    gpt2     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
    cl100k   '(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+
             | ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s
    llama3   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}
             | ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+

Llama 3 spells cl100k's so, and they differ in one case: white space at the end of a text is one token
by cl100k's, and by Llama 3's two, if it has a line break and does not end with it.

Python's `re` does not have `\p`. So the text is translated first: each character that the patterns
do not name is replaced by one that represents its class.
"""

import functools
import re
import unicodedata
from collections.abc import Mapping
from typing import Literal, get_args

from tokcore.errors import InputError

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]

BYTE_TO_CHARACTER: Mapping[int, str] = {
    **{byte: chr(byte) for byte in _PRINTABLE},
    **{byte: chr(0x100 + number) for number, byte in enumerate(_OTHERS)},
}
"""The character that stands for each of the 256 bytes."""

CHARACTER_TO_BYTE: Mapping[str, int] = {
    character: byte for byte, character in BYTE_TO_CHARACTER.items()
}

ALPHABET: tuple[str, ...] = tuple(sorted(CHARACTER_TO_BYTE))
"""All 256 characters by code point, the order of their ids: the one for a space is after 'ÿ'."""

Pattern = Literal['gpt2', 'cl100k', 'llama3']
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)

WHITE_SPACE = ''.join(
    map(
        chr,
        [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)]
        + [0x2028, 0x2029, 0x202F, 0x205F, 0x3000],
    )
)
r"""Unicode's White_Space, which is `\s` in the engines that these patterns are written for.

Python's `str.isspace` includes U+001C to U+001F too."""

# ſ (U+017F) is an s where case is ignored.
_NAMED_CHARACTERS = "'\r\n stremldvSTREMLDVſ"

_CLASS_PATTERNS: dict[Pattern, re.Pattern[str]] = {
    'gpt2': re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-zſ]+| ?0+| ?['.]+|\s+(?!\S)|\s+"),
    'cl100k': re.compile(
        r"'(?:[sdmtSDMTſ]|[lL][lL]|[vV][eE]|[rR][eE])|[\t '.]?[A-Za-zſ]+|0{1,3}"
        r"| ?['.]+[\r\n]*|\s+\Z|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    'llama3': re.compile(
        r"'(?:[sdmtSDMTſ]|[lL][lL]|[vV][eE]|[rR][eE])|[\t '.]?[A-Za-zſ]+|0{1,3}"
        r"| ?['.]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}


def spelled(token: bytes) -> str:
    """Returns the spelling of a token in files.

    >>> spelled(' é'.encode())
    'ĠÃ©'
    """
    # Latin-1 gives each byte the character of its number, and the keys are those numbers.
    return token.decode('latin-1').translate(BYTE_TO_CHARACTER)


def token_bytes(spelling: str) -> bytes:
    """Returns the token that a file spells so.

    >>> token_bytes('ĠÃ©').decode()
    ' é'

    Raises:
        InputError: a character does not stand for a byte.
    """
    try:
        return bytes(map(CHARACTER_TO_BYTE.__getitem__, spelling))
    except KeyError as error:
        raise InputError(
            f'{spelling!r:.200} does not spell bytes: {error.args[0]!r} is not in the byte-level '
            'alphabet; give a vocabulary that is byte-level throughout'
        ) from None


def split(text: str, pattern: Pattern = 'gpt2') -> list[str]:
    r"""Returns the tokens of a text; joined, they are the text.

    >>> split("don't  stop,\tok")
    ['don', "'t", ' ', ' stop', ',', '\t', 'ok']

    >>> split("12345 DON'T\tok", 'cl100k')
    ['123', '45', ' DON', "'T", '\tok']
    """
    matches = _CLASS_PATTERNS[pattern].finditer(text.translate(_Representatives()))
    return [text[match.start() : match.end()] for match in matches]


@functools.lru_cache(1 << 14)
def _representative(code: int) -> str:
    character = chr(code)
    if character in _NAMED_CHARACTERS:
        return character
    if character in WHITE_SPACE:
        return '\t'
    return {'L': 'x', 'N': '0'}.get(unicodedata.category(character)[0], '.')


class _Representatives:
    """The table for `str.translate`: a code point to the character that represents its class."""

    def __getitem__(self, code: int) -> str:
        return _representative(code)
