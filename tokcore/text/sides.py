"""Rows of text: what formats hand to a normalizer, and what it hands on to a scheme."""

from __future__ import annotations

import typing
from dataclasses import dataclass

if typing.TYPE_CHECKING:
    import numpy as np


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

    def row(self, index: int) -> str:
        """Returns the text of one row."""
        return self.text[self.starts[index] : self.ends[index]].tobytes().decode()
