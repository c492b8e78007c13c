r"""Lines without the white space at their ends, and nothing else changed: an inner '\r' stays."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.text.normalizer import NormalizedRows
from tokcore.text.sides import Side
from tokcore.text.t2t_lines import strip_rows
from tokcore.text.unicode_tables import CODE_POINTS, whitespace_table
from tokcore.text.utf8_checking import check_rows


@dataclass(frozen=True)
class StrippedLines:
    """The `Normalizer` of this rule: strict UTF-8, then `str.strip`.

    Attributes:
        characters: what is stripped, as of `str.strip`; None: all white space.
    """

    characters: str | None = None

    @property
    def name(self) -> str:
        return 'stripped-lines'

    @property
    def options(self) -> Mapping[str, object]:
        return {} if self.characters is None else {'characters': self.characters}

    def apply(self, rows: Side) -> NormalizedRows:
        text = read_only(rows.text)
        starts, ends = read_only(rows.starts), read_only(rows.ends)
        damaged = np.zeros(len(rows), np.uint8)
        check_rows(text, starts, ends, damaged)
        damages = {}
        for row in np.flatnonzero(damaged).tolist():
            try:
                text[starts[row] : ends[row]].tobytes().decode()
            except UnicodeDecodeError as error:
                damages[row] = int(starts[row]) + error.start
            else:
                damaged[row] = 0
        stripped = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        strip_rows(text, (starts, ends), read_only(damaged), _table(self.characters), stripped)
        return NormalizedRows(Side(text, *stripped), damages)


STRIPPED_LINES = StrippedLines()
"""That strips all white space."""


@functools.cache
def _table(characters: str | None) -> np.ndarray:
    if characters is None:
        return whitespace_table()
    table = np.zeros(CODE_POINTS, np.uint8)
    table[[ord(each) for each in characters]] = 1
    return read_only(table)
