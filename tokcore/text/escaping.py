r"""Tokens as Tensor2Tensor's subword scheme spells them inside a vocabulary.

An escaped token ends with `_` and has no other one, so subtokens can be joined without separators
and taken apart again. Characters outside the alphabet become `\<decimal>;`, so nothing is unknown.
"""

import re
from collections.abc import Collection, Iterable

BACKSLASH, UNDERSCORE, LETTER_U, LINE_FEED = ord('\\'), ord('_'), ord('u'), ord('\n')
"""The code points, and the bytes, that escaping treats apart; `u` stands for an underscore."""

ESCAPED_LINE_FEED = tuple(b'\\10;')
"""What always stands for a line feed: a vocabulary file has one subtoken a line."""

ESCAPE_CHARACTERS: frozenset[str] = frozenset('\\_u;0123456789')
"""What escaping itself writes; part of every alphabet."""

_UNDEFINED = '\u3013'  # stands for a code beyond Unicode, as in Tensor2Tensor
_SPECIAL = str.maketrans({'\\': '\\\\', '_': '\\u'})
_ESCAPED = re.compile(r'\\(?:u|\\|([0-9]+);)')


def alphabet_of(pieces: Iterable[str]) -> frozenset[str]:
    """Returns the characters of these tokens or subtokens, and those that escaping needs."""
    return ESCAPE_CHARACTERS.union(*pieces)


def escape_token(token: str, alphabet: Collection[str]) -> str:
    r"""Returns a token's spelling in subtokens: `a_b` gives `a\ub_`.

    `\` becomes `\\`, `_` becomes `\u`, a character outside the alphabet `\<decimal>;`, and
    `_` ends it. A line feed is always written as a number (`ESCAPED_LINE_FEED`). As in Tensor2Tensor, `alphabet` must have `ESCAPE_CHARACTERS` for the result to be readable
    again.
    """
    spelled = (
        character if character in alphabet and character != '\n' else f'\\{ord(character)};'
        for character in token.translate(_SPECIAL)
    )
    return ''.join(spelled) + '_'


def unescape_token(escaped: str) -> str:
    r"""Returns the token: `a\ub_` gives `a_b`. One `_` at the end is dropped if there is one.

    A backslash that begins no escape stays as it is, and a code beyond Unicode becomes U+3013.
    """
    return _ESCAPED.sub(_unescaped, escaped.removesuffix('_'))


def _unescaped(match: re.Match) -> str:
    if match[1] is None:
        return '_' if match[0] == '\\u' else '\\'
    try:
        return chr(int(match[1]))
    except (ValueError, OverflowError):
        return _UNDEFINED
