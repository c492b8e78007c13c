r"""Lines without the white space at their ends, and nothing else changed: an inner '\r' stays."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.text.normalizer import NormalizedRows
from tokcore.text.sides import Side
from tokcore.text.t2t_lines import strip_rows
from tokcore.text.unicode_tables import whitespace_table
from tokcore.text.utf8_checking import check_rows


@dataclass(frozen=True)
class StrippedLines:
    """The `Normalizer` of this rule: strict UTF-8, then `str.strip`."""

    @property
    def name(self) -> str:
        return 'stripped-lines'

    @property
    def options(self) -> Mapping[str, object]:
        return {}

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
        strip_rows(text, (starts, ends), read_only(damaged), whitespace_table(), stripped)
        return NormalizedRows(Side(text, *stripped), damages)


STRIPPED_LINES = StrippedLines()
"""The only one there is: it has no options."""
