r"""Pieces as words of a line: white space in them is written in Tensor2Tensor's escape.

    'a b' -> 'a\32;b'      'a\32;b' -> 'a\92;32;b'      'a\b' -> 'a\b'

A backslash that begins what looks like an escape, or stands right before one, is escaped too, so
that every piece comes back.
"""

import re

_TO_ESCAPE = re.compile(r'\s|\\(?=\d+;|\s|\\+(?:\d+;|\s))')
_ESCAPE = re.compile(r'\\(\d+);')


def escape_piece(piece: str) -> str:
    """Returns a piece without white space in it."""
    return _TO_ESCAPE.sub(lambda found: f'\\{ord(found[0])};', piece)


def unescape_piece(shown: str) -> str:
    """Returns the piece of what `escape_piece` gave."""
    return _ESCAPE.sub(_character, shown)


def _character(found: re.Match) -> str:
    number = int(found[1])
    return chr(number) if number <= 0x10FFFF else found[0]
