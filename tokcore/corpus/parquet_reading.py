"""Row groups of Parquet files to blocks, in batches that stay small whatever the dictionaries hold."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tokcore.corpus.corpus import (
    INVALID_UTF8,
    MAX_LINE_BYTES,
    TOO_LONG,
    Block,
    BlockText,
    CorpusFile,
    OpenBinary,
    ReadRange,
    Reject,
    Rows,
    TextRange,
    WorkItem,
)
from tokcore.corpus.field_columns import array_side, extra_features
from tokcore.corpus.fields import BYTES, FLOAT, INT, NULL, ExtraField, FieldPath, field_path
from tokcore.corpus.line_reading import BEGINNING_BYTES
from tokcore.corpus.storage import PIECE_BYTES, open_stored, read_range
from tokcore.errors import InputError
from tokcore.kernels.jit import read_only
from tokcore.text.rows import Normalizer, Side

_PAGE_BUFFER = 1 << 20
_BATCH_BYTES = 1 << 18
"""About as many are in a batch: rows may be far longer than most others are, and what a batch holds
is known once it was read. With smaller ones reading takes longer."""
_MOST_ROWS = 1 << 16


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
        rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
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
            none = pa.RecordBatch.from_arrays(
                [pa.array([], each.type) for each in schema], schema=schema
            )
            empty = pa.Table.from_batches([wanted_columns(none, wanted.paths)])
            yield _block(item, row, empty, max_line_bytes, read)


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
        raise InputError(
            f'{file.path} is no whole Parquet file ({reason}); get it again'
        ) from error


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
    return Block(
        item.split, item.format, item.file_index, (text,), max_line_bytes, read_ranges=read
    )


def _checksum(text_range: TextRange, open_binary: OpenBinary) -> ReadRange:
    file, crc32c = text_range.file, 0
    with open_stored(file, open_binary) as stream:
        for piece in _pieces(stream, text_range):
            crc32c = google_crc32c.extend(crc32c, piece)
    return ReadRange(0, text_range.start, text_range.end - text_range.start, crc32c)


def _pieces(stream: BinaryIO, text_range: TextRange) -> Iterator[bytes]:
    for place in range(text_range.start, text_range.end, PIECE_BYTES):
        yield read_range(stream, text_range.file, place, min(place + PIECE_BYTES, text_range.end))


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
    # That Arrow has read them is what makes these safe to ask: see `read_shares`.
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


@dataclass(frozen=True)
class WantedColumns:
    """The columns that are read: those of text, and those that go along."""

    texts: tuple[FieldPath, ...]
    kept: tuple[ExtraField, ...]

    @property
    def paths(self) -> list[FieldPath]:
        """Where they are, in this order: a block's columns are these."""
        return [*self.texts, *(field_path(each.field) for each in self.kept)]


def column_rows(
    data: bytes,
    first_row: int,
    wanted: WantedColumns,
    normalizer: Normalizer,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Rows:
    """Returns the rows of a block; they are known by their numbers in the file.

    A row with an empty string in a column is empty. Strings may hold line feeds.

    Args:
        data: record batches in Arrow's stream format, a column for each of the wanted ones.
        first_row: the number of the block's first row.
        wanted: the columns.
        normalizer: what makes text of strings.
        max_line_bytes: a row with a longer string is a reject.
    """
    table = pa.ipc.open_stream(data).read_all()
    columns = [_whole(column) for column in table.columns]
    arrays = [column.cast(pa.large_binary()) for column in columns[: len(wanted.texts)]]
    further = [
        column.cast(pa.large_binary()) if each.labels or each.kind == BYTES else column
        for each, column in zip(wanted.kept, columns[len(arrays) :], strict=True)
    ]
    features, unfit = extra_features(further, wanted.kept)
    count = table.num_rows
    bad: dict[int, tuple[str, int]] = {}  # by row its reason and side
    given = [array_side(array) for array in arrays]
    sides = []
    for number, side in reversed([*enumerate(given)]):
        too_long = np.flatnonzero(side.ends - side.starts > max_line_bytes)
        ends = side.ends.copy()
        ends[too_long] = side.starts[too_long]  # nobody looks at what is too long
        normalized = normalizer.apply(Side(side.text, side.starts, read_only(ends)))
        sides.insert(0, normalized.side)
        bad |= dict.fromkeys(normalized.damages, (INVALID_UTF8, number))
        bad |= dict.fromkeys(too_long.tolist(), (TOO_LONG, number))
    for number, array in reversed([*enumerate(arrays)]):
        bad |= dict.fromkeys(_nulls(array), (NULL, number))
    # What goes along is looked at where the text can be used.
    for array in further:
        bad = dict.fromkeys(_nulls(array), (NULL, 0)) | bad
    bad = {row: (reason, 0) for row, reason in unfit.items()} | bad
    is_kept = np.ones(count, bool)
    for side in sides:
        is_kept &= side.ends > side.starts
    is_kept[list(bad)] = False
    kept = np.flatnonzero(is_kept)
    return Rows(
        tuple(side.take(kept) for side in sides),
        first_row,
        kept.astype(np.int64),
        count,
        count - len(kept) - len(bad),
        tuple(
            _reject(reason, first_row + row, arrays[side][row].as_py() or b'')
            for row, (reason, side) in sorted(bad.items())
        ),
        extra_features=tuple(each.select(kept) for each in features),
    )


def _nulls(array: pa.Array) -> list[int]:
    if not array.null_count:
        return []
    return np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist()


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)


def _reject(reason: str, row: int, value: bytes) -> Reject:
    if reason == TOO_LONG:
        return Reject(reason, 0, row, row, value[:BEGINNING_BYTES], len(value))
    return Reject(reason, 0, row, row, value)
