"""What every format gives: rows of text, and what did not become any.

Here a line is what a format takes for a row, be it a line of a file or not.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field

from tokcore.text.sides import Side

if typing.TYPE_CHECKING:
    import numpy as np

INVALID_UTF8, TOO_LONG = 'invalid_utf8', 'too_long'
"""Why a row of any format may be left out. A format may have reasons of its own."""

UNSTORABLE_TOKEN = 'unstorable_token'
"""A token of it cannot be an entry of the vocabulary that is to be learned."""

FILTER_TOO_LONG, FILTER_NO_ROW = 'filter_too_long', 'filter_no_row'
"""A filter made more of it than a row may have, or what cannot be a row."""

OF_ALL_FORMATS = (INVALID_UTF8, TOO_LONG, UNSTORABLE_TOKEN, FILTER_TOO_LONG, FILTER_NO_ROW)

MISSING_COLUMN = 'missing_column'
"""That of formats with columns."""


@dataclass(frozen=True)
class Reject:
    """A line that cannot be used: why, and where it stands in its decompressed file."""

    reason: str
    side: int  # which file of a pair, 0 for one file
    offset: int  # byte offset of the line's start in that file
    position: int  # byte offset of the first byte there that is not UTF-8; else `offset`
    line: bytes  # the line as it was read, without its '\n'; of one too long, its beginning
    size: int | None = None  # bytes of the line, without its '\n', if it is too long
    why: str = ''  # what an error says of it behind its place; '' where format and reason tell it


@dataclass(frozen=True)
class KeptColumn:
    """What goes along with each of some rows.

    Attributes:
        name: of the feature.
        values: int64[rows], float32[rows], or a side of bytes.
    """

    name: str
    values: np.ndarray | Side

    def taken(self, rows: np.ndarray | slice) -> KeptColumn:
        """Returns it for some of the rows."""
        if isinstance(self.values, Side):
            side = self.values
            return KeptColumn(self.name, Side(side.text, side.starts[rows], side.ends[rows]))
        return KeptColumn(self.name, self.values[rows])


@dataclass(frozen=True)
class DroppedRow:
    """A row that a filter dropped.

    Attributes:
        filter: its name.
        offset: of the row's line in the (source) file.
        texts: of each side, as the filter was given them; of an empty piece, as it made them.
    """

    filter: str
    offset: int
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Rows:
    """What a block's lines (or pairs of lines) became.

    `lines + added == rows + empty + len(rejects) + beyond + not_sampled + those filtered`
    """

    sides: tuple[Side, ...]
    offset: int  # of the block in the (source) file
    line_starts: np.ndarray  # int64[rows], ascending: where the row's line begins in that block
    lines: int
    empty: int
    rejects: tuple[Reject, ...]  # in the order of the lines
    beyond: int = 0  # rows and rejects behind the last that is taken of a dataset
    kept: tuple[KeptColumn, ...] = ()  # of the same rows
    not_sampled: int = 0  # rows outside a sample for the vocabulary
    filtered: Mapping[str, int] = field(default_factory=dict)  # by filter, rows that it dropped
    added: int = 0  # rows that came of others, beside the first of each
    dropped: tuple[DroppedRow, ...] = ()  # of those filtered, if they are kept; in their order
    pieces: np.ndarray | None = None  # int64[rows], ascending: identities where pieces have any

    def __len__(self) -> int:
        return len(self.line_starts)

    def at(self, chosen: np.ndarray | slice) -> Rows:
        """Returns those of the rows that are chosen, with all else that is told of the block."""
        return dataclasses.replace(
            self,
            sides=tuple(
                Side(each.text, each.starts[chosen], each.ends[chosen]) for each in self.sides
            ),
            line_starts=self.line_starts[chosen],
            kept=tuple(each.taken(chosen) for each in self.kept),
            pieces=None if self.pieces is None else self.pieces[chosen],
        )

    @property
    def offsets(self) -> np.ndarray:
        """Where the row's line begins in the (source) file: int64[rows], ascending.

        Those that came of one line are at one place.
        """
        return self.line_starts + self.offset

    @property
    def identities(self) -> np.ndarray:
        """What no other row of the file has: int64[rows], ascending. Order keys are made of it."""
        return self.offsets if self.pieces is None else self.pieces
