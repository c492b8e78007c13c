"""Shards in Parquet: rows as columns of list<int32>, written in groups and read by them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import BinaryIO

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tokcore.errors import InputError
from tokcore.reading.shards.record_kernels import LARGEST_ID
from tokcore.reading.shards.rows import Rows
from tokcore.regular_files import open_regular

GROUP_ROWS = 1 << 14
"""Rows of a group: what is read at once for any of them."""

_MOST_GROUP_ROWS = 1 << 20
"""Of a group that is read, as PyArrow writes them at most if nothing else is asked for."""

_PIECE = 1 << 18  # bytes; a part of a file that stays in the cache

_UNREADABLE = (OSError, ValueError, KeyError, MemoryError, OverflowError, pa.ArrowException)
"""What PyArrow raises for files of any bytes; `UnicodeDecodeError` for names is a `ValueError`."""


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

    def __init__(
        self,
        path: str,
        rows: int,
        features: Sequence[str],
        skips: bool = False,
        id_counts: Mapping[str, int] | None = None,
        crc32c: str | None = None,
    ):
        """Takes a shard of so many rows by the manifest.

        Args:
            path: of the file.
            rows: that it has.
            features: the columns that are wanted.
            skips: whether groups of rows that cannot be read, or hold what is no id, are passed
                over; and all rows of a file with another checksum, which may be any.
            id_counts: how many ids features have, by name; None: as many as int32 holds.
            crc32c: of the file, eight hexadecimal digits: Parquet's pages have no checksums, so it
                is read once to compare this; None: it is not.
        """
        self.path, self.rows = path, rows
        self._features, self._skips = tuple(features), skips
        counts = id_counts or {}
        self._largest = {name: counts.get(name, LARGEST_ID + 1) - 1 for name in features}
        self._crc32c = crc32c

    @functools.cached_property
    def _is_whole(self) -> bool:
        if self._crc32c is None:
            return True
        found = 0
        with open_regular(self.path) as file:
            while piece := file.read(_PIECE):
                found = google_crc32c.extend(found, piece)
        return f'{found:08x}' == self._crc32c

    @functools.cached_property
    def _file(self) -> pq.ParquetFile:
        try:
            if not self._is_whole and not self._skips:
                raise self._damage(f'its CRC-32C is not the {self._crc32c} of the manifest')
            file = pq.ParquetFile(self.path)
            metadata, schema = file.metadata, file.schema_arrow
        except _UNREADABLE as error:
            raise self._damage(f'it cannot be opened ({error})') from error
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        if metadata.num_rows != self.rows or sum(sizes) != self.rows:
            raise self._damage(f'it has {sum(sizes)} rows, and the manifest tells of {self.rows}')
        if not all(0 <= size <= _MOST_GROUP_ROWS for size in sizes):
            raise self._damage(
                f'it has a group of {max(sizes, key=abs)} rows, and {_MOST_GROUP_ROWS} can be read'
            )
        for name in self._features:
            if (times := schema.names.count(name)) != 1:
                raise self._damage(
                    f'it has {times} columns {name!r} in place of one' if times else
                    f'it has no column {name!r}'
                )  # fmt: skip
            kind = schema.field(name).type
            is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
            if not (is_list and pa.types.is_integer(kind.value_type)):
                raise self._damage(f'its column {name!r} is {kind} and no list of whole numbers')
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
        # The bounds first: they refuse a number of rows that is only a claim.
        groups = range(
            int(np.searchsorted(self._bounds, first, side='right')) - 1,
            int(np.searchsorted(self._bounds, last, side='left')),
        )
        if not self._is_whole:
            return numbers[0], empty
        for group in groups if first < last else ():
            start = int(self._bounds[group])
            try:
                rows = self._group(group)
            except (*_UNREADABLE, _NoIds) as error:
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
        first, last = self._bounds[group : group + 2].tolist()
        if table.num_rows != last - first:
            raise _NoIds(f'it has {table.num_rows} rows in place of {last - first}')
        ids, offsets = {}, {}
        for name in self._features:
            column = table.column(name).combine_chunks()
            column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
            ids[name], offsets[name] = _ids_of(column, name, first, self._largest[name])
        return Rows(ids, offsets)

    def _damage(self, what: str) -> InputError:
        return InputError(
            f"{self.path}: {what}; write the shards again, or pass on_error='skip'"
        )


class _NoIds(Exception):
    """Rows of a group are none of ids; which, and why."""


def _ids_of(
    column: pa.ListArray, name: str, first: int, largest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ids of a column, int32, and where each row begins; its first row is `first`."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null())[0])
        raise _NoIds(f'column {name!r} of row {first + row} is null')
    offsets = np.asarray(column.offsets).astype(np.int64)
    offsets -= offsets[0]
    found = column.flatten()

    def no_id(place: int) -> _NoIds:
        row = int(np.searchsorted(offsets, place, side='right')) - 1
        return _NoIds(
            f'column {name!r} of row {first + row} holds {found[place].as_py()}, which is no id from '
            f'0 to {largest}'
        )

    if found.null_count:
        raise no_id(int(np.flatnonzero(found.is_null())[0]))
    numbers = np.asarray(found)
    if numbers.itemsize < np.dtype(np.int32).itemsize:
        numbers = numbers.astype(np.int32)
    # Read without their signs, negative numbers are larger than any id.
    unsigned = numbers.view(f'u{numbers.itemsize}')
    if len(unsigned) and unsigned.max() > largest:
        raise no_id(int(np.argmax(unsigned > largest)))
    return numbers.astype(np.int32, copy=False), offsets
