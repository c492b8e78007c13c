r"""Rows of text, and what a normalizer is: the first part of a scheme, from bytes to text.

A format hands over a row as it stands in the file, a line without its '\n' for instance. The
normalizer says what text it is, and with that which rows are empty and which are not text at all.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

if typing.TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class NormalizedRows:
    """What became of rows: as many as were given, in their order.

    Attributes:
        side: the rows. Those of no characters are empty, and so are those in `damages`.
        damages: of rows that are not UTF-8, where in the text given the first wrong byte is.
    """

    side: Side
    damages: Mapping[int, int]


class Normalizer(Protocol):
    """Rows of bytes to rows of text: a pure function of each row, wherever the row stands.

    Attributes:
        name: by which records know it.
        options: plain values that the result depends on, beside the name; for records too.
    """

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> Mapping[str, object]: ...

    def apply(self, rows: Side) -> NormalizedRows:
        """Returns the text of rows, which may hold any bytes, '\\n' among them.

        The rows given are in the order of their text and do not overlap. None of them ends within a
        character that goes on behind it: the bytes next to a row, if there are any, are below 0x80.
        """
        ...


@dataclass(frozen=True)
class Side:
    """One column of a block's rows: row i is `text[starts[i]:ends[i]]`. Nothing is copied.

    `text` uint8[...], `starts` and `ends` int64[rows]. What stands between rows in `text` has no
    meaning. Of a normalizer's rows each is valid UTF-8, and what stands between them may be
    anything; what a format hands to it is bytes as they were read.
    """

    text: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, rows: np.ndarray | slice) -> Side:
        """Returns some of the rows: int64 numbers, a bool mask or a slice. The text is shared."""
        return Side(self.text, self.starts[rows], self.ends[rows])

    def row(self, index: int) -> str:
        """Returns the text of one row."""
        return self.text[self.starts[index] : self.ends[index]].tobytes().decode()
