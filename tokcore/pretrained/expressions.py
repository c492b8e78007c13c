r"""Regular expressions of a tokenizer.json, for the package `regex`.

They are written for Oniguruma. What the two engines read differently is refused by name; `\w` is
spelled out.
"""

from __future__ import annotations

import regex

from tokcore.bpe.vocabulary import refuse

_WORD = r'\p{L}\p{M}\p{Nd}\p{Pc}'

_PARTS = regex.compile(
    r'(?P<escape>\\(?:p\{\^?\w+\}|P\{\w+\}|x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|.))'
    r'|(?P<class>\[\^?\]?)|(?P<posix>\[:)|(?P<both>&&)|(?P<line>[\^$])|.',
    regex.DOTALL,
)
_LETTERS = 'pPsSdDwWrntfvxu'


def checked_expression(expression: str, path: str, place: str) -> str:
    """Returns an expression of Oniguruma as `regex` has to be given it.

    Raises:
        InputError: the two engines may read a part of it differently, or it is none.
    """
    parts = []
    depth = 0
    for match in _PARTS.finditer(expression):
        part = match[0]
        if match['escape']:
            parts.append(_escape(part, depth > 0, path, place))
            continue
        if match['posix'] or match['both'] or (match['line'] and not depth):
            refuse(path, place, f'{part!r} in the regular expression {expression!r:.200}')
        if match['class'] and depth:
            refuse(path, place, f'a class within a class in {expression!r:.200}')
        if match['class']:
            depth = 1
        elif part == ']':
            depth = 0
        parts.append(part)
    try:
        regex.compile(''.join(parts))
    except regex.error as error:
        refuse(path, place, f'the regular expression {expression!r:.200} ({error})')
    return ''.join(parts)


def _escape(part: str, in_class: bool, path: str, place: str) -> str:
    letter = part[1]
    if letter == 'w':
        return _WORD if in_class else f'[{_WORD}]'
    if letter == 'W' and not in_class:
        return f'[^{_WORD}]'
    if letter.isalnum() and (letter not in _LETTERS or letter == 'W'):
        refuse(path, place, f'{part} in a regular expression')
    if part.startswith('\\x{'):
        return regex.escape(chr(int(part[3:-1], 16)))
    return part
