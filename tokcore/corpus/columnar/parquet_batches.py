"""Row groups of a Parquet file in batches that stay small, whatever its dictionaries hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tokcore.corpus.features.field_paths import FieldPath

_PAGE_BUFFER = 1 << 20
_BATCH_BYTES = 1 << 18
"""About as many are in a batch: rows may be far longer than most others are, and what a batch holds
is known once it was read. With smaller ones reading takes longer."""
_MOST_ROWS = 1 << 16


def open_parquet(
    stream: BinaryIO, metadata: pq.FileMetaData | None = None, dictionaries: Sequence[str] = ()
) -> pq.ParquetFile:
    """Opens a file whose pages are held against their checksums, where they have some.

    Args:
        stream: of the file; who opened it closes it.
        metadata: its footer, if it is read already.
        dictionaries: the columns that are given as dictionaries and places in them.
    """
    return pq.ParquetFile(
        stream,
        metadata=metadata,
        read_dictionary=list(dictionaries),
        pre_buffer=False,
        buffer_size=_PAGE_BUFFER,
        page_checksum_verification=True,
    )


def group_batches(
    stream: BinaryIO,
    metadata: pq.FileMetaData,
    groups: Sequence[int],
    paths: Sequence[FieldPath],
    block_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of row groups: of each path a column, of values and not of dictionaries.

    A batch is of one row group: Arrow cannot read a dictionary within a struct from two.

    Raises:
        OSError: the file is damaged; or another of Arrow's exceptions.
    """
    # Names may have dots themselves: what is read besides is passed over below.
    names = sorted({'.'.join(path) for path in paths})
    schema = metadata.schema
    leaves = [
        number
        for number in range(len(schema))
        if any(f'{schema.column(number).path}.'.startswith(f'{name}.') for name in names)
    ]
    columns = [schema.column(number) for number in leaves]
    strings = [each.path for each in columns if each.physical_type == 'BYTE_ARRAY']
    parquet = open_parquet(stream, metadata)
    coded = open_parquet(stream, metadata, strings)
    for group in groups:
        rows = _rows_at_once(coded, group, names, leaves, block_bytes)
        for batch in parquet.iter_batches(rows, [group], names, use_threads=False):
            yield wanted_columns(batch, paths)


def _rows_at_once(
    coded: pq.ParquetFile,
    group: int,
    names: Sequence[str],
    leaves: Sequence[int],
    block_bytes: int,
) -> int:
    """Returns how many rows of a row group are in memory at once.

    Its size does not tell: a long string that is in a dictionary is there once for all of its rows.
    """
    metadata = coded.metadata.row_group(group)
    if 0 < metadata.num_rows * metadata.total_byte_size <= block_bytes:
        return min(metadata.num_rows, _MOST_ROWS)
    first = next(coded.iter_batches(1, [group], names, use_threads=False), None)
    if first is None:
        return 1
    longest = sum(map(_longest, first.columns))
    # That Arrow has read them is what makes these safe to ask: see `parquet_reading.read_shares`.
    size = sum(max(metadata.column(number).total_uncompressed_size, 0) for number in leaves)
    rows = min(_BATCH_BYTES * metadata.num_rows // max(size, 1), block_bytes // max(longest, 1))
    return max(1, min(rows, _MOST_ROWS))


def _longest(array: pa.Array) -> int:
    """Returns the bytes of the longest string in an array's dictionaries."""
    if pa.types.is_struct(array.type):
        return sum(_longest(array.field(place)) for place in range(array.type.num_fields))
    if not pa.types.is_dictionary(array.type):
        return 0
    values = array.dictionary
    is_strings = any(
        getattr(pa.types, f'is_{name}')(values.type)
        for name in ('string', 'large_string', 'binary', 'large_binary')
    )
    return is_strings and pc.max(pc.binary_length(values)).as_py() or 0


def wanted_columns(batch: pa.RecordBatch, paths: Sequence[FieldPath]) -> pa.RecordBatch:
    """Returns columns by their paths, in their order; null is what is null at any depth."""
    arrays = [_column_at(batch, path) for path in paths]
    return pa.RecordBatch.from_arrays(arrays, ['.'.join(path) for path in paths])


def _column_at(batch: pa.RecordBatch, path: FieldPath) -> pa.Array:
    column = batch.column(path[0])
    for name in path[1:]:
        column = pc.struct_field(column, [name])
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column
