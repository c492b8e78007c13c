r"""Names of fields as they are typed: `text`, `translation.en`, with `\.` for a dot in a name."""

from __future__ import annotations

import argparse
import re

from tokcore.options.values import shown

FieldPath = tuple[str, ...]
"""The names from the outermost to the innermost."""

_DOT = re.compile(r'(?<!\\)\.')


def field_path(text: str) -> FieldPath:
    r"""Returns the names of a path; raises ValueError if one is empty.

    >>> field_path('translation.en'), field_path(r'a\.b')
    (('translation', 'en'), ('a.b',))
    """
    names = tuple(name.replace('\\.', '.') for name in _DOT.split(text))
    if not all(names):
        raise ValueError(f'{text!r} has an empty name in it')
    return names


def fields(text: str) -> tuple[str, ...]:
    """One field, or source and target with a comma between them; a kind of option."""
    found = tuple(text.split(','))
    try:
        paths = [field_path(each) for each in found]
    except ValueError:
        paths = []
    if not 1 <= len(paths) <= 2 or len(set(paths)) < len(paths):
        raise argparse.ArgumentTypeError(
            f'{shown(text)} is neither a field, as text, nor two, as translation.en,translation.zh'
        )
    return found
