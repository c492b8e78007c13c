"""Shards in Parquet: rows as columns of list<int32>, written in groups and read by them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tokcore.errors import InputError
from tokcore.reading.shards.rows import Rows

GROUP_ROWS = 1 << 14
"""Rows of a group: what is read at once for any of them."""


def write_parquet(stream: BinaryIO, parts: Iterable[Rows], features: Sequence[str]) -> int:
    """Writes rows as a Parquet file, whose bytes do not depend on their parts; returns how many."""
    kind = pa.list_(pa.int32())
    schema = pa.schema([pa.field(name, kind, nullable=False) for name in features])
    written = 0
    with pq.ParquetWriter(stream, schema) as writer:

        def write(rows: Rows) -> None:
            columns = [
                pa.ListArray.from_arrays(
                    pa.array((rows.offsets[name] - rows.offsets[name][0]).astype(np.int32)),
                    pa.array(rows.ids[name]),
                )
                for name in features
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema), GROUP_ROWS)

        waiting: Rows | None = None
        for part in parts:
            rows = part if waiting is None else Rows.joined([waiting, part])
            whole = len(rows) - len(rows) % GROUP_ROWS
            for first in range(0, whole, GROUP_ROWS):
                write(rows.take(np.arange(first, first + GROUP_ROWS)))
            waiting = rows.take(np.arange(whole, len(rows)))
            written += len(part)
        if waiting is not None and len(waiting):
            write(waiting)
    return written


class ParquetRows:
    """Reads a shard in Parquet, as `ShardRows` reads TFRecords; for one thread."""

    def __init__(self, path: str, rows: int, features: Sequence[str], skips: bool = False):
        """Takes a shard of so many rows by the manifest.

        Args:
            path: of the file.
            rows: that it has.
            features: the columns that are wanted.
            skips: whether groups of rows that cannot be read are passed over.
        """
        self.path, self.rows = path, rows
        self._features, self._skips = tuple(features), skips

    @functools.cached_property
    def _file(self) -> pq.ParquetFile:
        try:
            file = pq.ParquetFile(self.path)
        except (OSError, pa.ArrowException) as error:
            raise self._damage(f'it cannot be opened ({error})') from error
        if file.metadata.num_rows != self.rows:
            raise self._damage(
                f'it has {file.metadata.num_rows} rows, and the manifest tells of {self.rows}'
            )
        missing = [name for name in self._features if name not in file.schema_arrow.names]
        if missing:
            raise self._damage(f'it has no column {missing[0]!r}')
        return file

    @functools.cached_property
    def _bounds(self) -> np.ndarray:
        """int64[groups + 1]: where groups begin."""
        metadata = self._file.metadata
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        return np.cumsum([0, *sizes])

    def read(self, first: int, last: int) -> tuple[np.ndarray, Rows]:
        """Returns rows as `ShardRows.read` does; raises InputError naming the shard and group."""
        empty = Rows(
            {name: np.empty(0, np.int32) for name in self._features},
            {name: np.zeros(1, np.int64) for name in self._features},
        )
        numbers, parts = [np.empty(0, np.int64)], [empty]
        groups = range(
            int(np.searchsorted(self._bounds, first, side='right')) - 1,
            int(np.searchsorted(self._bounds, last, side='left')),
        )
        for group in groups if first < last else ():
            start = int(self._bounds[group])
            try:
                rows = self._group(group)
            except (OSError, pa.ArrowException) as error:
                if self._skips:
                    continue
                raise self._damage(f'its group {group}, from row {start} on: {error}') from error
            own = np.arange(max(first, start), min(last, int(self._bounds[group + 1])))
            numbers.append(own)
            parts.append(rows.take(own - start))
        return np.concatenate(numbers), Rows.joined(parts)

    @functools.lru_cache(maxsize=1)  # noqa: B019 - one group, the last, which the next rows are of too
    def _group(self, group: int) -> Rows:
        table = self._file.read_row_group(group, columns=[*self._features])
        ids, offsets = {}, {}
        for name in self._features:
            column = table.column(name).combine_chunks()
            column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
            offsets[name] = np.asarray(column.offsets).astype(np.int64)
            offsets[name] -= offsets[name][0]
            ids[name] = np.asarray(column.flatten()).astype(np.int32)
        return Rows(ids, offsets)

    def _damage(self, what: str) -> InputError:
        return InputError(
            f"{self.path}: {what}; write the shards again, or pass on_error='skip'"
        )
