r"""Rows of text, and the protocol of a normalizer, the first part of a scheme: from bytes to text.

A format passes on a row as the file holds it, for instance a line without its line end. The normalizer
decides what text that is, and so which rows are empty and which are not text at all.
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
    """The result of a normalizer: as many rows as it got, in the same order.

    Attributes:
        side: the rows. Rows without characters are empty, and so are those in `damages`.
        damages: row number to the place of the first wrong byte in the text that it got, for
            rows that are not valid UTF-8.
    """

    side: Side
    damages: Mapping[int, int]


class Normalizer(Protocol):
    """Maps rows of bytes to rows of text: a pure function of each row, wherever the row is.

    Attributes:
        name: the name in manifests.
        options: the values that the result depends on besides the name; also for manifests.
    """

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> Mapping[str, object]: ...

    def apply(self, rows: Side) -> NormalizedRows:
        """Returns the text of rows, which may hold any bytes, '\\n' among them.

        The rows must be in the order of their text and must not overlap. A row must not begin or end
        within a character: the byte after a row, and one between two rows, is below 0x80.
        """
        ...


@dataclass(frozen=True)
class Side:
    """One column of a block's rows: row i is `text[starts[i]:ends[i]]`. Nothing is copied.

    `text` is uint8[...], `starts` and `ends` are int64[rows]. The bytes between rows have no
    meaning. Rows from a normalizer are valid UTF-8; rows from a format are bytes as they were read.
    """

    text: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)

    def row(self, index: int) -> str:
        """Returns the text of one row."""
        return self.text[self.starts[index] : self.ends[index]].tobytes().decode()

    def take(self, rows: np.ndarray | slice) -> Side:
        """Returns some rows: by number (int64[...]), by a mask (bool[rows]), or a slice."""
        return Side(self.text, self.starts[rows], self.ends[rows])

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns `text`, `starts` and `ends` read-only, as kernels are compiled for them."""
        from tokcore.kernels.jit import read_only

        return read_only(self.text), read_only(self.starts), read_only(self.ends)

    def joined(self) -> Side:
        """Returns a copy whose rows follow one another in the order of their numbers."""
        from tokcore.kernels.bytes import join_lines
        from tokcore.kernels.jit import read_only

        return Side(*map(read_only, join_lines(*self.arrays())))

    def with_prefix(self, prefix: str) -> Side:
        """Returns a copy with a prefix before the text of each row; itself if that is empty."""
        if not prefix:
            return self
        import numpy as np

        from tokcore.kernels.bytes import prepend_rows
        from tokcore.kernels.jit import read_only

        encoded = np.frombuffer(prefix.encode(), np.uint8)
        text, starts, ends = prepend_rows(*self.arrays(), encoded)
        return Side(read_only(text), starts, ends)
