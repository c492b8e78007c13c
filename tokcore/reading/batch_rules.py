"""What the two ways to make batches have in common: rows go to buckets, full buckets are batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from tokcore.reading.shards.record_kernels import fill_rows
from tokcore.reading.shards.rows import Rows

LEFT_OUT = -1
"""The bucket of rows that no batch has."""

Batch = dict[str, np.ndarray]


class BatchedRows(Protocol):
    """Rows that are to become batches, looked at once."""

    buckets: np.ndarray
    """int64[rows]: the bucket of each row, or `LEFT_OUT`."""

    def batch(self, which: np.ndarray, bucket: int) -> Batch:
        """Returns the rows of these numbers as padded arrays."""


class BatchRule(Protocol):
    """How rows become batches."""

    @property
    def features(self) -> tuple[str, ...]:
        """The features that are read."""

    @property
    def sizes(self) -> np.ndarray:
        """int64[buckets]: the rows of a whole batch."""

    def look_at(self, rows: Rows) -> BatchedRows:
        """Returns rows with their buckets."""

    def signature(self) -> dict[str, tuple[tuple[int | None, ...], type]]:
        """Returns the shape and dtype of each array of a batch; None is what differs."""


def whole_batches(buckets: np.ndarray, sizes: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """Yields (rows, bucket) of the batches that fill, in the order in which they do."""
    order = np.argsort(buckets, kind='stable')
    starts = np.searchsorted(buckets[order], np.arange(len(sizes) + 1))
    found = []
    for bucket, size in enumerate(sizes.tolist()):
        own = order[starts[bucket] : starts[bucket + 1]]
        for end in range(size, len(own) + 1, size):
            found.append((int(own[end - 1]), bucket, own[end - size : end]))
    for _, bucket, rows in sorted(found, key=lambda each: each[0]):
        yield rows, bucket


def waiting_rows(buckets: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Returns the rows that fill no batch, in their order."""
    order = np.argsort(buckets, kind='stable')
    starts = np.searchsorted(buckets[order], np.arange(len(sizes) + 1))
    rest = [
        order[end - (end - start) % size : end]
        for start, end, size in zip(starts[:-1], starts[1:], sizes.tolist(), strict=True)
    ]
    return np.sort(np.concatenate([*rest, np.empty(0, np.int64)]).astype(np.int64))


def part_batches(buckets: np.ndarray, sizes: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """Yields (rows, bucket) of what waits at the end of an epoch, by ascending bucket."""
    for bucket in range(len(sizes)):
        rows = np.flatnonzero(buckets == bucket)
        if len(rows):
            yield rows, bucket


def padded(
    ids: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    which: np.ndarray,
    pad: int,
    width: int | None = None,
    column: int = 0,
) -> np.ndarray:
    """Returns rows as int32[len(which), width]; None: as wide as the longest needs."""
    if width is None:
        width = column + int(lengths[which].max(initial=0))
    out = np.full((len(which), width), pad, np.int32)
    fill_rows(ids, starts, lengths, which, out, column)
    return out
