"""Unicode's normal forms with places: of which characters of a text each of the result is made."""

import unicodedata
from collections.abc import Sequence
from typing import Literal

Span = tuple[int, int]
"""Where something is in a text: its first character, and the one after its last."""


def normalized_units(
    form: Literal['NFC', 'NFD', 'NFKC', 'NFKD'], characters: Sequence[str], spans: Sequence[Span]
) -> tuple[list[str], list[Span]]:
    """Returns the characters of a text in a normal form, and for each the span it is made of.

    Args:
        form: of Unicode.
        characters: of the text.
        spans: of each.
    """
    normalize = unicodedata.normalize
    result: list[str] = []
    result_spans: list[Span] = []
    group, first = '', 0
    for place, character in enumerate([*characters, '']):
        if (
            group
            and character
            and (
                unicodedata.combining(character)
                or normalize(form, group + character)
                != normalize(form, group) + normalize(form, character)
            )
        ):
            group += character
            continue
        normalized = normalize(form, group)
        result += normalized
        if group:
            result_spans += [(spans[first][0], spans[place - 1][1])] * len(normalized)
        group, first = character, place
    return result, result_spans
