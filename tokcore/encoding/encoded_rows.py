"""Rows of ids, and rows of ids in the making."""

from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class EncodedSide:
    """The ids of rows, one after another."""

    ids: np.ndarray
    """int32[sum of the rows' lengths], or uint16 where a row is long"""

    offsets: np.ndarray
    """int64[rows + 1]: row r has `ids[offsets[r]:offsets[r + 1]]`."""


class GrowingSide:
    """An encoded side in the making."""

    def __init__(self, text_bytes: int, rows: int, dtype: type[np.integer] = np.int32):
        # Room that is not written to takes no memory, and text seldom has more ids than this.
        self.ids = np.empty(text_bytes // 2 + rows, dtype)
        self.offsets = np.zeros(rows + 1, np.int64)
        self.rows = self.used = 0

    def add(self, ids: np.ndarray) -> None:
        """Adds ids to the row that is open."""
        self._make_room(len(ids))
        self.ids[self.used : self.used + len(ids)] = ids
        self.used += len(ids)

    def add_rows(self, rows: GrowingSide) -> None:
        """Adds whole rows."""
        ends = slice(self.rows + 1, self.rows + 1 + rows.rows)
        self.offsets[ends] = self.used + rows.offsets[1 : rows.rows + 1]
        self.rows += rows.rows
        self.add(rows.ids[: rows.used])

    def end_row(self) -> None:
        self.rows += 1
        self.offsets[self.rows] = self.used

    def side(self) -> EncodedSide:
        return EncodedSide(self.ids[: self.used], self.offsets)

    def _make_room(self, size: int) -> None:
        if self.used + size <= len(self.ids):
            return
        wanted = self.used + size + len(self.ids) // 32
        if self.ids.flags.owndata:
            # In place: the system moves large memory without a copy.
            self.ids.resize(wanted, refcheck=False)
        else:
            larger = np.empty(wanted, self.ids.dtype)
            larger[: self.used] = self.ids[: self.used]
            self.ids = larger
