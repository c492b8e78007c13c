"""Unicode's normal forms with spans: of which characters of a text each of the result is made."""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal

Span = tuple[int, int]
"""Where something is in a text: its first character, and the one after its last."""

Form = Literal['NFC', 'NFD', 'NFKC', 'NFKD']


def normalized_units(
    form: Form, characters: Sequence[str], spans: Sequence[Span]
) -> tuple[list[str], list[Span]]:
    r"""Returns the characters of a text in a normal form, and for each the span it is made of.

    >>> normalized_units('NFC', 'e\u0301a', [(0, 1), (1, 2), (2, 3)])
    (['é', 'a'], [(0, 2), (2, 3)])

    Args:
        form: the normal form of Unicode.
        characters: the characters of the text.
        spans: for each of these the span that it stands for.
    """
    result: list[str] = []
    result_spans: list[Span] = []
    for first, last in _groups(form, characters):
        normalized = unicodedata.normalize(form, ''.join(characters[first:last]))
        result += normalized
        result_spans += [(spans[first][0], spans[last - 1][1])] * len(normalized)
    return result, result_spans


def _groups(form: Form, characters: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yields the bounds of the shortest groups of characters that are normalized one by one."""
    first, group = 0, ''
    for index, character in enumerate(characters):
        if group and not _is_joined(form, group, character):
            yield first, index
            first, group = index, ''
        group += character
    if group:
        yield first, len(characters)


def _is_joined(form: Form, group: str, character: str) -> bool:
    """Whether a character must be normalized together with those before it."""
    if unicodedata.combining(character):
        return True
    apart = unicodedata.normalize(form, group) + unicodedata.normalize(form, character)
    return unicodedata.normalize(form, group + character) != apart
