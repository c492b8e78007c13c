"""Shards of Parquet: a column of lists of ids for each feature."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.files import filesystem
from pipelines.shard_formats.shard_format import (
    Column,
    ConvertedFormat,
    Shard,
    StoredDataset,
    bytes_of_ids,
    parse_rows,
    rows_of_ids,
)
from pipelines.shard_formats.tfrecord import tokcore_code, windows
from pipelines.transforms.stats import WrittenFile
from tokcore.errors import InputError
from tokcore.reading.checking import Advance, CheckedFile, Sums, check_parquet
from tokcore.reading.shards import UNREADABLE, EncodedRows
from tokcore.records.manifest import Manifest, OutputFile
from tokcore.records.tfrecord import FramedRows

_READ_BYTES = 8 << 20

_GROUP_ROWS = 1 << 14
"""Rows of a Parquet row group that is written; whoever reads one row reads its group."""

_GROUP_IDS = 1 << 26
"""Ids of a group, of all features: 256 MiB. Offsets of a list have 31 bits."""


class Parquet(ConvertedFormat):
    """A file a shard, whose rows are compared by their ids: other writers pack these otherwise."""

    name = 'parquet'
    hub_ending = '.parquet'

    def write(
        self,
        parts: Iterator[EncodedRows],
        shard: Shard,
        folder: str,
        columns: Sequence[Column],
    ) -> Iterator[WrittenFile]:
        features = [column.name for column in columns]
        [name] = self.file_names(shard.name, features)
        path = os.path.join(folder, name)
        with filesystem.create(path) as file:
            count = write_parquet(file, parts, features)
        sums = Sums()
        with filesystem.open_binary(path) as stream:
            while piece := stream.read(_READ_BYTES):
                sums.add(piece)
        yield WrittenFile(name, sums.bytes, sums.crc32c, count, sums.sha256)

    def check(
        self, stream: BinaryIO, file: OutputFile, dataset: StoredDataset, advance: Advance
    ) -> CheckedFile:
        return check_parquet(stream, file.name, dataset.id_counts, advance)

    def stored_rows(
        self,
        paths: Sequence[str],
        numbers: np.ndarray,
        columns: Sequence[Column],
        files: Mapping[str, OutputFile],
    ) -> Iterator[bytes | None]:
        [path], features = paths, [column.name for column in columns]
        first = 0
        with filesystem.open_binary(path) as stream:
            try:
                file = pq.ParquetFile(stream)
                for group in range(file.metadata.num_row_groups):
                    end = first + file.metadata.row_group(group).num_rows
                    own = numbers[np.searchsorted(numbers, first) : np.searchsorted(numbers, end)]
                    if len(own):
                        table = file.read_row_group(group, columns=features).take(own - first)
                        lists = [table.column(name).to_pylist() for name in features]
                        for row in zip(*lists, strict=True):
                            yield bytes_of_ids(np.array(ids, np.int64) for ids in row)
                    first = end
            except (*UNREADABLE, TypeError) as error:  # the latter for a null
                raise InputError(
                    f'{path} cannot be read ({error!s:.200}); see the findings'
                ) from error
        for _ in numbers[np.searchsorted(numbers, first) :]:
            yield None

    def row_bytes(self, rows: FramedRows, columns: Sequence[Column]) -> Iterator[bytes]:
        names = [column.name for column in columns]
        return rows_of_ids(parse_rows(rows, names), names)

    def reading_code(self, manifest: Manifest) -> Iterator[str]:
        yield from tokcore_code(manifest)


def write_parquet(stream: BinaryIO, parts: Iterable[EncodedRows], features: Sequence[str]) -> int:
    """Writes rows as a Parquet file and returns how many; how they are cut into parts changes nothing.

    Each feature is a column of lists of int32.
    """
    type_ = pa.list_(pa.int32())
    schema = pa.schema([pa.field(name, type_, nullable=False) for name in features])
    written = 0
    with pq.ParquetWriter(stream, schema) as writer:

        def write(rows: EncodedRows) -> None:
            columns = [
                pa.ListArray.from_arrays(
                    pa.array((rows.offsets[name] - rows.offsets[name][0]).astype(np.int32)),
                    pa.array(rows.ids[name]),
                )
                for name in features
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema), _GROUP_ROWS)

        for rows in windows(parts, _GROUP_ROWS, _GROUP_IDS):
            write(rows)
            written += len(rows)
    return written
