"""Bitext: two aligned files; the n-th line of each is a side of the n-th row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tokcore.corpus.formats import CorpusFormat


@dataclass(frozen=True)
class Bitext(CorpusFormat):
    """Rows of two sides, each in a file of its own."""

    name = 'bitext'
    what = 'two aligned files'
    roles = ('source', 'target')
    help = (
        'source side of bitext, a sentence a line',
        'target side, the same number of files and of lines',
    )
    reader = 'tokcore.corpus.bitext_reading:BitextReader'
    sides: ClassVar[tuple[str, ...]] = ('inputs', 'targets')
    forbidden_characters = '\n'
    rows_are_lines = True
