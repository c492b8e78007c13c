"""Rows of ids by feature, one after another in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.compiled.ragged_bytes import row_offsets


@dataclass(frozen=True)
class Rows:
    """Rows of ids by feature.

    Attributes:
        ids: int32 by feature, those of all rows one after another.
        offsets: int64[rows + 1] by feature: row i is ids[offsets[i]:offsets[i + 1]].
    """

    ids: dict[str, np.ndarray]
    offsets: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(next(iter(self.offsets.values()))) - 1

    def take(self, which: np.ndarray) -> Rows:
        """Returns the rows of these numbers, in this order."""
        ids, offsets = {}, {}
        for name, own in self.offsets.items():
            starts, lengths = own[which], own[which + 1] - own[which]
            offsets[name] = row_offsets(lengths)
            shifts = np.repeat(starts - offsets[name][:-1], lengths)
            ids[name] = self.ids[name][np.arange(offsets[name][-1]) + shifts]
        return Rows(ids, offsets)

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Returns the rows of one or more parts, one after another."""
        if len(parts) == 1:
            return parts[0]
        ids = {name: np.concatenate([each.ids[name] for each in parts]) for name in parts[0].ids}
        lengths = {
            name: np.concatenate([np.diff(each.offsets[name]) for each in parts]) for name in ids
        }
        return cls(ids, {name: row_offsets(each) for name, each in lengths.items()})
