"""Batches by a budget of tokens in plain Python: what loaders without that rule are given beside them."""

import bisect
from collections.abc import Iterable, Iterator

import numpy as np

from tokcore.reading.batching import batch_sizes, growing_boundaries

from ..stages.reading import TOKENS

Row = dict[str, np.ndarray]

BOUNDS = growing_boundaries(TOKENS)
SIZES = batch_sizes(TOKENS, (*BOUNDS, TOKENS))


def batches(rows: Iterable[Row]) -> Iterator[Row]:
    """Yields padded batches of rows of similar length, as `Dataset.batches` forms them."""
    waiting: list[list[Row]] = [[] for _ in SIZES]
    for row in rows:
        bucket = bisect.bisect_right(BOUNDS, max(map(len, row.values())))
        waiting[bucket].append(row)
        if len(waiting[bucket]) == SIZES[bucket]:
            yield _padded(waiting[bucket])
            waiting[bucket] = []
    yield from (_padded(rest) for rest in waiting if rest)


def rows_of(folder: str) -> Iterator[Row]:
    """Yields the rows of a dataset, for a peer's own files; no clock runs."""
    from tokcore import open_dataset

    yield from open_dataset(folder).examples('train')


def record_of(row: Row) -> bytes:
    """Returns a pair as bare int32s, for files whose records are bytes: they cost no parsing."""
    head = np.array([len(row['inputs'])], np.int32)
    return np.concatenate([head, row['inputs'], row['targets']]).tobytes()


def row_of(record: bytes) -> Row:
    """Returns the pair of such a record."""
    ids = np.frombuffer(record, np.int32)
    return {'inputs': ids[1 : 1 + ids[0]], 'targets': ids[1 + ids[0] :]}


def _padded(rows: list[Row]) -> Row:
    batch = {}
    for name in rows[0]:
        batch[name] = np.zeros((len(rows), max(len(row[name]) for row in rows)), np.int32)
        for padded, row in zip(batch[name], rows, strict=True):
            padded[: len(row[name])] = row[name]
    return batch
