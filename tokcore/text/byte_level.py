r"""What the patterns of GPT-2 and of cl100k find in a text, in plain Python.

They are regular expressions over letters `\p{L}`, numbers `\p{N}` and white space `\s`:

    gpt2     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
    cl100k   '(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+
             | ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s

Python's `re` knows no `\p`. So each character is replaced by one that stands for its class, save
those that the patterns name, and the patterns are matched with these.
"""

import functools
import re
import unicodedata
from collections.abc import Mapping
from typing import Literal, get_args

from tokcore.errors import InputError

_THEMSELVES = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _THEMSELVES]

BYTE_TO_CHARACTER: Mapping[int, str] = {
    **{byte: chr(byte) for byte in _THEMSELVES},
    **{byte: chr(0x100 + number) for number, byte in enumerate(_OTHERS)},
}
"""The character of each of the 256 bytes."""

CHARACTER_TO_BYTE: Mapping[str, int] = {
    character: byte for byte, character in BYTE_TO_CHARACTER.items()
}

ALPHABET: tuple[str, ...] = tuple(sorted(CHARACTER_TO_BYTE))
"""All 256 characters by code point, the order in which they have ids: the space's is behind 'ÿ'."""

Pattern = Literal['gpt2', 'cl100k']
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)

WHITE_SPACE = ''.join(
    map(
        chr,
        [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)]
        + [0x2028, 0x2029, 0x202F, 0x205F, 0x3000],
    )
)
r"""Unicode's White_Space, which is `\s` in the engines that these patterns are written for.

Python's `str.isspace` has U+001C to U+001F too."""

# ſ (U+017F) is an s where case is ignored.
_NAMED = "'\r\n stremldvSTREMLDVſ"

_REGULAR: dict[Pattern, re.Pattern[str]] = {
    'gpt2': re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-zſ]+| ?0+| ?['.]+|\s+(?!\S)|\s+"),
    'cl100k': re.compile(
        r"'(?:[sdmtSDMTſ]|[lL][lL]|[vV][eE]|[rR][eE])|[\t '.]?[A-Za-zſ]+|0{1,3}"
        r"| ?['.]+[\r\n]*|\s+\Z|\s*[\r\n]|\s+(?!\S)|\s"
    ),
}


def spelled(token: bytes) -> str:
    """Returns how files spell a token.

    >>> spelled(' é'.encode())
    'ĠÃ©'
    """
    # Latin-1 gives each byte the character of its number, and those are the keys.
    return token.decode('latin-1').translate(BYTE_TO_CHARACTER)


def token_bytes(spelling: str) -> bytes:
    """Returns the token that is spelled so in a file.

    >>> token_bytes('ĠÃ©').decode()
    ' é'

    Raises:
        InputError: a character stands for no byte.
    """
    try:
        return bytes(map(CHARACTER_TO_BYTE.__getitem__, spelling))
    except KeyError as error:
        raise InputError(
            f'{spelling!r:.200} spells no bytes: {error.args[0]!r} is not in the byte-level '
            'alphabet; give a vocabulary that is byte-level throughout'
        ) from None


def split(text: str, pattern: Pattern = 'gpt2') -> list[str]:
    r"""Returns the tokens of a text, which joined are the text.

    >>> split("don't  stop,\tok")
    ['don', "'t", ' ', ' stop', ',', '\t', 'ok']

    >>> split("12345 DON'T\tok", 'cl100k')
    ['123', '45', ' DON', "'T", '\tok']
    """
    found = _REGULAR[pattern].finditer(text.translate(_Standing()))
    return [text[match.start() : match.end()] for match in found]


@functools.lru_cache(1 << 14)
def _standing(code: int) -> str:
    character = chr(code)
    if character in _NAMED:
        return character
    if character in WHITE_SPACE:
        return '\t'
    return {'L': 'x', 'N': '0'}.get(unicodedata.category(character)[0], '.')


class _Standing:
    """By code point the character that stands for it."""

    def __getitem__(self, code: int) -> str:
        return _standing(code)
