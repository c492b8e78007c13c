"""Rows in the order of their keys: sorted by reference, and copied once, in the order wanted."""

from __future__ import annotations

import dataclasses

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.records import key_sorting_kernels

_MAX_BIN_BITS = 22
"""Four million bins take 16 MB, no more than a processor's cache; keys beyond share bins."""


def sort_keys(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns keys, uint64[n], in ascending order, and where each was: int32[n].

    >>> sort_keys(np.array([30, 10, 20], np.uint64))
    (array([10, 20, 30], dtype=uint64), array([1, 2, 0], dtype=int32))

    Raises ValueError if two keys are equal: keys come from a bijection, so a row came twice.
    """
    ordered, order = _sorted(np.ascontiguousarray(keys, np.uint64))
    equal = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(equal):
        raise ValueError(
            f'two rows have the order key {int(ordered[equal[0]]):#018x}; an input row came twice'
        )
    return ordered, order


def _sorted(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    ordered, order = np.empty_like(keys), np.empty(len(keys), np.int32)
    if len(keys):
        low, high = keys.min(), keys.max()
        bits = min(_MAX_BIN_BITS, len(keys).bit_length())
        shift = max(0, int(high - low).bit_length() - bits)
        bins = np.zeros((int(high - low) >> shift) + 2, np.int32)
        even = key_sorting_kernels.sort_even_keys(
            read_only(keys), low, np.uint64(shift), bins, ordered, order
        )
        if not even:
            order = np.argsort(keys).astype(np.int32)
            ordered = keys[order]
    return ordered, order


@dataclasses.dataclass(frozen=True, eq=False)
class SortedRows:
    """Rows in ascending order of their keys, whose records still lie where they came from."""

    keys: np.ndarray
    """uint64[n], ascending"""

    lengths: np.ndarray
    """uint32[n]: of the records, in the order of the keys"""

    order: np.ndarray
    """int32[n]: the number of each row in `starts` and `unsorted_lengths`"""

    source: np.ndarray
    """uint8: the records"""

    starts: np.ndarray
    """int64[n]: where each record begins in `source`"""

    unsorted_lengths: np.ndarray
    """uint32[n]"""

    @classmethod
    def of(
        cls, keys: np.ndarray, source: np.ndarray, starts: np.ndarray, lengths: np.ndarray
    ) -> SortedRows:
        """Sorts rows, none of which is moved. Raises ValueError if two keys are equal."""
        ordered, order = sort_keys(keys)
        return cls(ordered, lengths[order], order, source, starts, lengths)

    def __len__(self) -> int:
        return len(self.keys)

    def records(self, first: int = 0, end: int | None = None) -> np.ndarray:
        """Returns the records of sorted rows [first, end), one after another: uint8."""
        out = np.empty(int(self.lengths[first:end].sum(dtype=np.int64)), np.uint8)
        key_sorting_kernels.gather_rows(
            read_only(self.source),
            read_only(self.starts),
            read_only(self.unsorted_lengths),
            read_only(self.order[first:end]),
            out,
        )
        return out
