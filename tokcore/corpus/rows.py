"""What every format gives: rows of text, and what did not become any.

Here a line is what a format takes for a row, be it a line of a file or not.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass

from tokcore.text.sides import Side

if typing.TYPE_CHECKING:
    import numpy as np

INVALID_UTF8, TOO_LONG = 'invalid_utf8', 'too_long'
"""Why a row of any format may be left out. A format may have reasons of its own."""

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
class Rows:
    """What a block's lines (or pairs of lines) became.

    `lines == rows + empty + len(rejects) + beyond`
    """

    sides: tuple[Side, ...]
    offset: int  # of the block in the (source) file
    line_starts: np.ndarray  # int64[rows], ascending: where the row's line begins in that block
    lines: int
    empty: int
    rejects: tuple[Reject, ...]  # in the order of the lines
    beyond: int = 0  # rows and rejects behind the last that is taken of a dataset
    kept: tuple[KeptColumn, ...] = ()  # of the same rows

    def __len__(self) -> int:
        return len(self.line_starts)

    @property
    def offsets(self) -> np.ndarray:
        """Where the row's line begins in the (source) file: int64[rows], ascending."""
        return self.line_starts + self.offset
