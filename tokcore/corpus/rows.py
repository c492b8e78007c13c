"""Rows of stripped text, and the lines that did not become any: what every format gives.

Rows are places in a block's text; nothing is copied.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.compiled.ragged_bytes import prepend_rows

Reason = Literal['invalid_utf8', 'missing_column', 'too_long']
REASONS: tuple[Reason, ...] = get_args(Reason)
INVALID_UTF8, MISSING_COLUMN, TOO_LONG = REASONS


@dataclass(frozen=True)
class Side:
    """One column of a block's kept rows: row i is `text[starts[i]:ends[i]]`.

    `text` uint8[...], `starts` and `ends` int64[rows]. A row is valid UTF-8 without '\\r'; what
    stands between rows in `text` has no meaning and may be anything.
    """

    text: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)

    def row(self, index: int) -> str:
        """Returns the text of one row."""
        return self.text[self.starts[index] : self.ends[index]].tobytes().decode()


@dataclass(frozen=True)
class Reject:
    """A line that cannot be used: why, and where it stands in its decompressed file."""

    reason: Reason
    side: int  # which file of a pair, 0 for one file
    offset: int  # byte offset of the line's start in that file
    position: int  # byte offset of the first byte there that is not UTF-8; else `offset`
    line: bytes  # the line as it was read, without its '\n'; of one too long, its beginning
    size: int | None = None  # bytes of the line, without its '\n', if it is too long


@dataclass(frozen=True)
class Rows:
    """What a block's lines (or pairs of lines) became: `lines == rows + empty + len(rejects)`."""

    sides: tuple[Side, ...]
    offset: int  # of the block in the (source) file
    line_starts: np.ndarray  # int64[rows], ascending: where the row's line begins in that block
    lines: int
    empty: int
    rejects: tuple[Reject, ...]  # in the order of the lines

    def __len__(self) -> int:
        return len(self.line_starts)

    @property
    def offsets(self) -> np.ndarray:
        """Where the row's line begins in the (source) file: int64[rows], ascending."""
        return self.line_starts + self.offset


def prepend(side: Side, prefix: str) -> Side:
    """Returns the rows with a prefix before each row's text."""
    if not prefix:
        return side
    text, starts, ends = prepend_rows(
        read_only(side.text),
        read_only(side.starts),
        read_only(side.ends),
        np.frombuffer(prefix.encode(), np.uint8),
    )
    return Side(read_only(text), starts, ends)
