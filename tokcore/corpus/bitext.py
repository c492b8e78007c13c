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
        'source side, a sentence a line, or <seg>s in documents where the names end in .sgm',
        'target side, the same number of files, with the same lines or ids',
    )
    reader = 'tokcore.corpus.bitext_reading:BitextReader'
    sides: ClassVar[tuple[str, ...]] = ('inputs', 'targets')
    forbidden_characters = '\n'
    rows_are_lines = True
