"""Row groups of Parquet files to blocks of some rows of the wanted columns."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import google_crc32c
import pyarrow as pa
import pyarrow.parquet as pq

from tokcore.corpus.columnar.field_paths import FieldPath, field_path
from tokcore.corpus.columnar.parquet_rows import WantedColumns
from tokcore.corpus.dataset import (
    Block,
    BlockText,
    CorpusFile,
    OpenBinary,
    ReadRange,
    TextRange,
    WorkItem,
)
from tokcore.corpus.features.kept_fields import BYTES, FLOAT, INT
from tokcore.corpus.storage.gzip_text import PIECE_BYTES
from tokcore.corpus.storage.stored_file import open_stored, read_range
from tokcore.errors import InputError

_PAGE_BUFFER = 1 << 20
_MOST_ROWS = 1 << 16
"""Of a block: rows may be short, and Arrow has an array for each column of what it reads at once."""


@dataclass(frozen=True)
class Footer:
    """What a file says of its row groups.

    Attributes:
        rows: in each.
        starts: the first byte of each, ascending; one for all if they are not in order.
    """

    rows: tuple[int, ...]
    starts: tuple[int, ...]


def read_footer(file: CorpusFile, open_binary: OpenBinary, wanted: WantedColumns) -> Footer:
    """Reads what is known of a file before its rows.

    Raises:
        InputError: the file is no Parquet, or has no such columns of text.
    """
    with _opened(file, open_binary) as parquet:
        _check_columns(file, parquet.schema_arrow, wanted)
        return _footer_of(parquet.metadata)


def _footer_of(metadata: pq.FileMetaData) -> Footer:
    rows, starts = [], []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        rows.append(group.num_rows)
        columns = [group.column(each) for each in range(group.num_columns)]
        # Files without columns have row groups too.
        starts.append(min(map(_start, columns), default=0))
    if any(later <= earlier for earlier, later in zip(starts, starts[1:], strict=False)):
        return Footer((sum(rows),), (0,))
    return Footer(tuple(rows), tuple(starts))


def _start(column: pq.ColumnChunkMetaData) -> int:
    if column.has_dictionary_page:
        return min(column.dictionary_page_offset, column.data_page_offset)
    return column.data_page_offset


@contextlib.contextmanager
def _opened(file: CorpusFile, open_binary: OpenBinary) -> Iterator[pq.ParquetFile]:
    if file.compressed:
        raise InputError(
            f'{file.path} is compressed as a whole, and Parquet is compressed inside; unpack it'
        )
    with open_stored(file, open_binary) as stream, _named(file):
        with pq.ParquetFile(stream, pre_buffer=False, buffer_size=_PAGE_BUFFER) as parquet:
            yield parquet


@contextlib.contextmanager
def _named(file: CorpusFile) -> Iterator[None]:
    """Names the file where Arrow refuses something."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = ' '.join(str(error).split())[:200] or type(error).__name__
        raise InputError(f'{file.path} is no whole Parquet file ({reason}); get it again') from error


def _check_columns(file: CorpusFile, schema: pa.Schema, wanted: WantedColumns) -> None:
    for path in wanted.texts:
        _check_column(file, schema, path, 'text', '--fields')
    for each in wanted.kept:
        what = 'text' if each.labels or each.kind == BYTES else each.kind
        _check_column(file, schema, field_path(each.field), what, '--keep or --label')


def _check_column(
    file: CorpusFile, schema: pa.Schema, path: FieldPath, what: str, asked_by: str
) -> None:
    kind: pa.DataType | pa.Schema = schema
    for depth, name in enumerate(path):
        is_node = isinstance(kind, pa.Schema) or pa.types.is_struct(kind)
        names = [each.name for each in kind] if is_node else []
        if names.count(name) != 1:
            above = '.'.join(path[:depth])
            where = f'{above} of {file.path}' if above else file.path
            said = 'several columns' if name in names else 'no column'
            there = f'; there are {", ".join(names[:50])}' if names else ''
            raise InputError(f'{where} has {said} {name!r} ({asked_by}){there}')
        kind = kind.field(name).type
    said, fits = _FITTING[what]
    if not fits(kind):
        raise InputError(
            f'{file.path}: the column {".".join(path)} is {kind}, not {said}; choose another with '
            f'{asked_by}'
        )


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = ('string', 'large_string', 'string_view', 'binary', 'large_binary', 'binary_view')
    return any(getattr(pa.types, f'is_{name}')(kind) for name in tests)


def _is_whole(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


_FITTING = {
    'text': ('text or bytes', _is_text),
    INT: ('whole numbers', _is_whole),
    FLOAT: ('numbers', _is_number),
}


def _holds_dictionary(kind: pa.DataType) -> bool:
    inner = [kind.field(place).type for place in range(kind.num_fields)]
    return pa.types.is_dictionary(kind) or any(map(_holds_dictionary, inner))


def read_row_groups(
    item: WorkItem,
    wanted: WantedColumns,
    open_binary: OpenBinary,
    block_bytes: int,
    max_line_bytes: int,
) -> Iterator[Block]:
    """Yields the blocks of an item's row groups; a file without rows gives one without any.

    Raises:
        InputError: the file is damaged, or not what was planned.
    """
    [text_range] = item.ranges
    file = text_range.file
    read = (_checksum(text_range, open_binary),)
    with _opened(file, open_binary) as parquet:
        _check_columns(file, parquet.schema_arrow, wanted)
        footer = _footer_of(parquet.metadata)
        first, count = text_range.skip_lines, text_range.lines
        if len(footer.rows) < first + count:
            raise InputError(
                f'{file.path} no longer has the row groups that it had when the job was planned; '
                'run again when nothing writes to it any more'
            )
        row = sum(footer.rows[:first])
        last = row + sum(footer.rows[first : first + count])
        # Where row groups are not in the order of their bytes all of them are one.
        groups = range(parquet.metadata.num_row_groups)
        if len(footer.rows) == len(groups):
            groups = groups[first : first + count]
        names = wanted.names
        rows = _rows_of(parquet.metadata, groups, names, block_bytes)
        # Arrow cannot read a dictionary within a struct from two row groups at once.
        kinds = [each.type for each in parquet.schema_arrow]
        is_apart = any(each.num_fields and _holds_dictionary(each) for each in kinds)
        batches = (
            batch
            for part in ([[each] for each in groups] if is_apart else [list(groups)])
            for batch in parquet.iter_batches(rows, part, names, use_threads=False)
        )
        for batch in batches:
            yield _block(item, row, batch, max_line_bytes, read)
            row, read = row + len(batch), ()
        if read or row != last:
            if row != last:
                raise InputError(f'{file.path} has {row} rows where its footer tells {last}')
            empty = pa.RecordBatch.from_pylist([], parquet.schema_arrow)
            yield _block(item, row, empty.select(names), max_line_bytes, read)


def _rows_of(
    metadata: pq.FileMetaData, groups: Sequence[int], names: Sequence[str], block_bytes: int
) -> int:
    """How many rows about fill a block."""
    size = rows = 0
    for number in groups:
        group = metadata.row_group(number)
        rows += group.num_rows
        for each in (group.column(place) for place in range(group.num_columns)):
            # A name may have dots itself, as may the path from it to what is inside it.
            if any(f'{each.path_in_schema}.'.startswith(f'{name}.') for name in names):
                size += each.total_uncompressed_size
    return max(1, min(_MOST_ROWS, block_bytes * rows // max(size, 1)))


def _block(
    item: WorkItem,
    row: int,
    batch: pa.RecordBatch,
    max_line_bytes: int,
    read: tuple[ReadRange, ...],
) -> Block:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    text = BlockText(row, sink.getvalue().to_pybytes())
    return Block(item.split, item.format, item.place, (text,), max_line_bytes, read=read)


def _checksum(text_range: TextRange, open_binary: OpenBinary) -> ReadRange:
    file, crc32c = text_range.file, 0
    with open_stored(file, open_binary) as stream:
        for piece in _pieces(stream, text_range):
            crc32c = google_crc32c.extend(crc32c, piece)
    return ReadRange(0, text_range.start, text_range.end - text_range.start, crc32c)


def _pieces(stream: BinaryIO, text_range: TextRange) -> Iterator[bytes]:
    for place in range(text_range.start, text_range.end, PIECE_BYTES):
        yield read_range(
            stream, text_range.file, place, min(place + PIECE_BYTES, text_range.end)
        )
