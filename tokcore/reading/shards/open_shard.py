"""A shard of a dataset, whichever format it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tokcore.reading.shards.rows import Rows


class RowReader(Protocol):
    """Gives the rows of a shard, at any place."""

    def read(self, first: int, last: int) -> tuple[np.ndarray, Rows]:
        """Returns the numbers of rows `first` to `last` that are sound, and these rows."""


def open_shard(path: str, rows: int, features: Sequence[str], skips: bool = False) -> RowReader:
    """Returns the reader of a shard by its name; arguments are those of `ShardRows`."""
    if path.endswith('.parquet'):
        from tokcore.reading.shards.parquet_rows import ParquetRows

        return ParquetRows(path, rows, features, skips)
    from tokcore.reading.shards.shard_rows import ShardRows

    return ShardRows(path, rows, features, skips)
