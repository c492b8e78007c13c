"""Lines as they are, or brought into a normal form of Unicode and else as they are.

Blanks at their ends are text, and so is a '\\r': only a line of no bytes is empty.
"""

import itertools
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.text.byte_level.normal_forms import FORMS, Form, doubtful_bits, find_doubtful
from tokcore.text.normalizer import NormalizedRows
from tokcore.text.padded_text import readable_parts
from tokcore.text.sides import Side
from tokcore.text.utf8_checking import check_rows


@dataclass(frozen=True)
class RawLines:
    """The `Normalizer` of these rules; lines must be strict UTF-8.

    Attributes:
        form: 'NFC' or 'NFKC' by this Python's tables, or None, which changes nothing.
    """

    form: Form | None = None

    def __post_init__(self):
        if self.form is not None and self.form not in FORMS:
            raise ValueError(f'{self.form!r} is no form; there are {" and ".join(FORMS)}, and None')

    @property
    def name(self) -> str:
        return 'raw-lines'

    @property
    def options(self) -> Mapping[str, object]:
        return {} if self.form is None else {'form': self.form}

    def apply(self, rows: Side) -> NormalizedRows:
        """Returns the rows as they stand; those that are not normal are written anew."""
        text, starts, ends = map(read_only, (rows.text, rows.starts, rows.ends))
        damaged = np.zeros(len(rows), np.uint8)
        check_rows(text, starts, ends, damaged)
        damages = {}
        for row in np.flatnonzero(damaged).tolist():
            try:
                text[starts[row] : ends[row]].tobytes().decode()
            except UnicodeDecodeError as error:
                damages[row] = int(starts[row]) + error.start
        if damages:
            ends = ends.copy()
            ends[list(damages)] = starts[list(damages)]
        side = Side(text, starts, ends)
        if self.form is not None:
            side = _normalized(side, self.form)
        return NormalizedRows(side, damages)


RAW_LINES = RawLines()
"""That changes nothing."""


def _normalized(side: Side, form: Form) -> Side:
    """The rows in this form; the text is a new one if one of them was not."""
    doubtful = []
    bits = doubtful_bits(form)
    for rows in readable_parts(side.text, side.starts, side.ends):
        found = np.zeros(len(rows.starts), np.uint8)
        find_doubtful(rows, bits, found)
        doubtful.append(found)
    changed = {}
    for row in np.flatnonzero(np.concatenate(doubtful or [[]])).tolist():
        line = side.row(row)
        if not unicodedata.is_normalized(form, line):
            changed[row] = unicodedata.normalize(form, line).encode()
    return _replaced(side, changed) if changed else side


def _replaced(side: Side, changed: Mapping[int, bytes]) -> Side:
    """The rows with some of them, in ascending order, replaced; all stand in their order."""
    rows = np.fromiter(changed, np.int64, len(changed))
    lengths = np.fromiter(map(len, changed.values()), np.int64, len(changed))
    # Text between them stays as it is.
    cuts = np.stack([side.starts[rows], side.ends[rows]], axis=1).ravel().tolist()
    kept = itertools.pairwise([0, *cuts, len(side.text)])
    kept = [side.text[start:end] for start, end in itertools.islice(kept, 0, None, 2)]
    written = [np.frombuffer(line, np.uint8) for line in changed.values()]
    pieces = itertools.chain.from_iterable(itertools.zip_longest(kept, written))
    text = np.concatenate([piece for piece in pieces if piece is not None])
    longer = np.zeros(len(side) + 1, np.int64)
    longer[rows + 1] = lengths - (side.ends[rows] - side.starts[rows])
    shifts = longer.cumsum()
    return Side(read_only(text), side.starts + shifts[:-1], side.ends + shifts[1:])
