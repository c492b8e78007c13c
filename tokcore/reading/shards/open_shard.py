"""A shard of a dataset, whichever format it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tokcore.reading.shards.rows import Rows


class RowReader(Protocol):
    """Gives the rows of a shard, at any place."""

    def read(self, first: int, last: int) -> tuple[np.ndarray, Rows]:
        """Returns the numbers of rows `first` to `last` that are sound, and these rows."""


@dataclass(frozen=True)
class ShardFile:
    """A shard as the manifest has it: its path, examples, size in bytes, and CRC-32C in hexadecimal."""

    path: str
    rows: int
    bytes: int
    crc32c: str


def open_shard(
    shard: ShardFile, features: Sequence[str], id_counts: Mapping[str, int], skips: bool = False
) -> RowReader:
    """Returns the reader of a shard, by its name.

    Args:
        shard: the file.
        features: those that are wanted.
        id_counts: by feature, how many ids its vocabulary has; others are damage.
        skips: whether damaged records are passed over; otherwise they are errors.

    Raises:
        InputError: it is to be empty, and is not.
    """
    reader: RowReader
    if shard.path.endswith('.parquet'):
        from tokcore.reading.shards.parquet_rows import ParquetRows

        reader = ParquetRows(shard.path, shard.rows, features, skips, id_counts, shard.crc32c)
    else:
        from tokcore.reading.shards.shard_rows import ShardRows

        reader = ShardRows(shard.path, shard.rows, features, skips, id_counts)
    if not shard.rows:
        reader.read(0, 0)  # nobody reads what has no rows, and rows in it would be lost
    return reader
