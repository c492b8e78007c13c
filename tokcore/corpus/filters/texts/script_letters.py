"""Which letters are of a script, by its code of ISO 15924.

Python's `unicodedata` knows no scripts; the module `regex` does, and is renewed with each version
of Unicode. Letters are taken from it too, so that one version says both.
"""

from __future__ import annotations

import functools
import typing

if typing.TYPE_CHECKING:
    import numpy as np

OWN, OTHER = 1, 2

_SEVERAL = {
    'Hans': 'Hani', 'Hant': 'Hani', 'Hrkt': 'Hira Kana', 'Jpan': 'Hani Hira Kana',
    'Kore': 'Hang Hani',
}  # fmt: skip
"""Codes of how a language is written, for which Unicode has several scripts, or one for both."""

_NONE = ('Zyyy', 'Zinh', 'Zzzz', 'Qaai')
"""No scripts: what several have, what takes that of the letter before it, what is not known."""


def is_script(code: str) -> bool:
    """Tells whether there are letters that a code stands for."""
    import regex

    if code in _NONE:
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
    """Returns uint8[0x110000]: `OWN` for letters of a script, `OTHER` for those of others, else 0.

    Letters (categories L*) that belong to no script in particular, as U+30FC and the letters of
    mathematics, are 0 too.
    """
    import numpy as np

    from tokcore.compiled.compilation import read_only
    from tokcore.text.unicode_tables import CODE_POINTS

    classes = np.zeros(CODE_POINTS, np.uint8)
    own = '||'.join(rf'\p{{Script={each}}}' for each in _SEVERAL.get(code, code).split())
    none = '||'.join(rf'\p{{Script={each}}}' for each in _NONE[:2])
    for first, end in _runs(rf'[\p{{L}}--[{none}]]+'):
        classes[first:end] = OTHER
    for first, end in _runs(rf'[\p{{L}}&&[{own}]]+'):
        classes[first:end] = OWN
    return read_only(classes)


def _runs(pattern: str) -> list[tuple[int, int]]:
    """Returns runs of code points that a pattern matches, each as its first and the one behind."""
    import regex

    # A text of all code points in their order but the surrogates, which are no letters.
    gap, width = 0xD800, 0x800
    text = ''.join(map(chr, (*range(gap), *range(gap + width, 0x110000))))
    runs = []
    for found in regex.finditer(pattern, text, regex.V1):
        first, end = found.span()
        if first < gap < end:
            runs.append((first, gap))
            first = gap
        behind = width if first >= gap else 0
        runs.append((first + behind, end + behind))
    return runs
