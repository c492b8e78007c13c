"""Row groups of Parquet files to blocks of some rows of the wanted columns."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import BinaryIO

import google_crc32c
import pyarrow as pa

from tokcore.corpus.columnar.parquet_batches import group_batches, open_parquet, wanted_columns
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
from tokcore.corpus.features.field_paths import FieldPath, field_path
from tokcore.corpus.features.kept_fields import BYTES, FLOAT, INT
from tokcore.corpus.storage.gzip_text import PIECE_BYTES
from tokcore.corpus.storage.stored_file import open_stored, read_range
from tokcore.errors import InputError

_MOST_ROWS = 1 << 16
"""Of a block: rows may be short, and have more beside their text."""


def read_shares(
    file: CorpusFile, open_binary: OpenBinary, wanted: WantedColumns
) -> tuple[int, ...]:
    """Returns where each row group's share of a file's bytes begins, ascending from 0.

    The row groups share all of them by their sizes. Where they are themselves only their columns
    tell, and Arrow ends the process where a column's statistics do not go with the schema.

    Raises:
        InputError: the file is no Parquet, or has no such columns.
    """
    with _opened(file, open_binary) as stream:
        parquet = open_parquet(stream)
        _check_columns(file, parquet.schema_arrow, wanted)
        metadata = parquet.metadata
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        ends = list(itertools.accumulate(max(each.total_byte_size, 0) for each in groups))
    spread = max(file.size - len(ends), 0)
    shares = [place + spread * end // max(ends[-1], 1) for place, end in enumerate(ends, 1)]
    return tuple([0, *shares][: len(ends)])


@contextlib.contextmanager
def _opened(file: CorpusFile, open_binary: OpenBinary) -> Iterator[BinaryIO]:
    if file.is_stream:
        # Of a member of an archive too only the text from its beginning on can be had, and the footer,
        # by which columns are found, is at the end.
        raise InputError(
            f'{file.path} is compressed as a whole, and Parquet is compressed inside; unpack it'
        )
    with open_stored(file, open_binary) as stream, _named(file):
        yield stream


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
    with _opened(file, open_binary) as stream:
        parquet = open_parquet(stream)
        metadata = parquet.metadata
        _check_columns(file, parquet.schema_arrow, wanted)
        first, count = text_range.skip_lines, text_range.lines
        rows = [
            metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)
        ]
        if len(rows) < first + count:
            raise InputError(
                f'{file.path} no longer has the row groups that it had when the job was planned; '
                'run again when nothing writes to it any more'
            )
        row = sum(rows[:first])
        last = row + sum(rows[first : first + count])
        groups = range(first, first + count)
        batches = group_batches(stream, metadata, groups, wanted.paths, block_bytes)
        for block in _joined(batches, block_bytes):
            yield _block(item, row, block, max_line_bytes, read)
            row, read = row + len(block), ()
        if read or row != last:
            if row != last:
                raise InputError(f'{file.path} has {row} rows where its footer tells {last}')
            schema = parquet.schema_arrow
            none = pa.RecordBatch.from_arrays([pa.array([], each.type) for each in schema], schema=schema)
            empty = pa.Table.from_batches([wanted_columns(none, wanted.paths)])
            yield _block(item, row, empty, max_line_bytes, read)


def _joined(batches: Iterator[pa.RecordBatch], block_bytes: int) -> Iterator[pa.Table]:
    """Yields the rows of batches in blocks of the size asked for, or of one row."""
    held, size, rows = [], 0, 0
    for batch in batches:
        for part in _halves(batch, block_bytes):
            if held and (size + part.nbytes > block_bytes or rows + len(part) > _MOST_ROWS):
                yield pa.Table.from_batches(held)
                held, size, rows = [], 0, 0
            held.append(part)
            size, rows = size + part.nbytes, rows + len(part)
    if held:
        yield pa.Table.from_batches(held)


def _halves(batch: pa.RecordBatch, most_bytes: int) -> Iterator[pa.RecordBatch]:
    if batch.nbytes <= most_bytes or len(batch) == 1:
        yield batch
        return
    middle = len(batch) // 2
    yield from _halves(batch.slice(0, middle), most_bytes)
    yield from _halves(batch.slice(middle), most_bytes)


def _block(
    item: WorkItem,
    row: int,
    rows: pa.Table,
    max_line_bytes: int,
    read: tuple[ReadRange, ...],
) -> Block:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
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
