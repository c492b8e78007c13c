"""The characters of Unicode, and a sample that has all but most of the long runs of one kind."""

import itertools
import sys
import unicodedata

EVERY_CHARACTER = [
    chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000
]  # fmt: skip

_LONG = 24
_STEP = 61


def _kind(character: str) -> str:
    return unicodedata.decomposition(character) or unicodedata.category(character)


def _sample() -> list[str]:
    sample = []
    for _, run in itertools.groupby(EVERY_CHARACTER, _kind):
        characters = [*run]
        if len(characters) <= _LONG:
            sample += characters
        else:
            sample += [*characters[:4], *characters[4:-4:_STEP], *characters[-4:]]
    return sample


SAMPLE = _sample()
"""Ideographs, syllables of Hangul, and what is private or not assigned: the borders, every 61st."""
