"""Reads Parquet: row groups to blocks of the columns that are read, and these to rows.

A file is cut between row groups. It is read twice: all of its bytes, of which each row group has a
share, for the checksum of the file, and the pages of these columns. A block holds some rows of them
in Arrow's stream format. Batches stay small even if a dictionary has very long strings.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tokcore.corpus.arrow_columns import array_side, extra_features
from tokcore.corpus.corpus import (
    INVALID_UTF8,
    TOO_LONG,
    Block,
    BlockText,
    CorpusFile,
    OpenBinary,
    ReadRange,
    Reject,
    Rows,
    Split,
    TextRange,
    WorkItem,
)
from tokcore.corpus.declarations import Parquet
from tokcore.corpus.fields import BYTES, FLOAT, INT, NULL, FieldPath, FieldsToRead, field_path
from tokcore.corpus.formats import FormatReader
from tokcore.corpus.line_rows import finish_rows, reject_of
from tokcore.corpus.storage import open_stored, read_pieces
from tokcore.corpus.stretches import FileLines
from tokcore.errors import InputError
from tokcore.kernels.jit import read_only
from tokcore.text.rows import Normalizer, Side

_PAGE_BUFFER = 1 << 20
_BATCH_BYTES = 1 << 18
"""About the size of a batch. Some rows may be far longer than most, and the size of a batch is only
known after it was read. With smaller batches reading takes longer."""
_MOST_ROWS = 1 << 16


class ParquetReader(FormatReader):
    """Reads the columns of one or two texts, and those of extra fields."""

    format: Parquet

    def check(
        self,
        files: tuple[CorpusFile, ...],
        open_binary: OpenBinary,
        stated: Collection[str] | None = None,
    ) -> None:
        _read_shares(files[0], open_binary, self.format.fields_to_read)

    def index_ranges(self, split: Split, item_bytes: int) -> Sequence[Any]:
        return [_FooterRange(file) for (file,) in split.files]

    def index(self, part: _FooterRange, open_binary: OpenBinary) -> tuple[Any, ...]:
        """Returns where each row group's share of the file begins; the file is cut there."""
        return _read_shares(part.file, open_binary, self.format.fields_to_read)

    def plan(
        self, split: Split, index: Sequence[tuple[Any, ...]], item_bytes: int
    ) -> list[WorkItem]:
        items = []
        for file_index, (file,), starts in zip(split.file_indexes, split.files, index, strict=True):
            bounds = [0, *starts[1:], file.size]  # the first item has the file's first bytes too
            groups = len(starts)
            first = 0
            while first < max(groups, 1):
                end = min(first + 1, groups)
                while end < groups and bounds[end + 1] - bounds[first] <= item_bytes:
                    end += 1
                text_range = TextRange(
                    file, bounds[first], bounds[end] if groups else file.size, first, end - first
                )
                items.append(WorkItem(split.name, split.format, file_index, (text_range,)))
                first = max(end, 1)
        return items

    def items_at(self, whole: WorkItem, offsets: np.ndarray, lines: FileLines) -> list[WorkItem]:
        """Returns row groups, without the bytes between them for a checksum."""
        [file] = whole.files
        with _opened(file, lines[0].open_binary) as stream:
            metadata = open_parquet(stream).metadata
            sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        groups = np.unique(np.searchsorted(np.cumsum(sizes), offsets, 'right'))
        ranges = [TextRange(file, 0, 0, group, 1) for group in groups[groups < len(sizes)].tolist()]
        return [dataclasses.replace(whole, ranges=(each,)) for each in ranges]

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        """Yields the blocks of an item's row groups; without rows, one block with none.

        Raises:
            InputError: the file is damaged, or not what was planned.
        """
        [text_range] = item.ranges
        file, columns_read = text_range.file, self.format.fields_to_read
        read: tuple[ReadRange, ...] = (_checksum(text_range, open_binary),)
        with _opened(file, open_binary) as stream:
            parquet = open_parquet(stream)
            metadata = parquet.metadata
            _check_columns(file, parquet.schema_arrow, columns_read)
            first, count = text_range.skip_lines, text_range.counted_lines
            rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
            if len(rows) < first + count:
                raise InputError(
                    f'{file.path} no longer has the row groups that it had when the job was planned; '
                    'run again when nothing writes to it any more'
                )
            row = sum(rows[:first])
            last = row + sum(rows[first : first + count])
            groups = range(first, first + count)
            batches = _group_batches(stream, metadata, groups, columns_read.paths, block_bytes)
            for table in _joined(batches, block_bytes):
                yield _block(item, row, table, max_line_bytes, read)
                row, read = row + len(table), ()
            if read or row != last:
                if row != last:
                    raise InputError(f'{file.path} has {row} rows where its footer says {last}')
                none = pa.RecordBatch.from_pylist([], parquet.schema_arrow)
                empty = pa.Table.from_batches([_select_columns(none, columns_read.paths)])
                yield _block(item, row, empty, max_line_bytes, read)

    def first_block(
        self,
        split: Split,
        file_index: int,
        open_binary: OpenBinary,
        block_bytes: int,
        max_line_bytes: int,
    ) -> Block | None:
        [file] = split.files_at(file_index)
        starts = _read_shares(file, open_binary, self.format.fields_to_read)
        end = starts[1] if len(starts) > 1 else file.size
        text_range = TextRange(file, 0, end, 0, min(1, len(starts)))
        item = WorkItem(split.name, split.format, file_index, (text_range,))
        return next(self.read(item, open_binary, block_bytes, max_line_bytes), None)

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        """Returns the rows of a block; their numbers in the file identify them.

        A row with a blank string as a text is empty, whatever values the extra fields have. Strings may
        hold line feeds.
        """
        [text] = block.texts
        first_row, columns_read = text.offset, self.format.fields_to_read
        table = pa.ipc.open_stream(text.data).read_all()
        columns = [column.combine_chunks() for column in table.columns]
        arrays = [column.cast(pa.large_binary()) for column in columns[: len(columns_read.texts)]]
        extra_arrays = [
            column.cast(pa.large_binary()) if field.labels or field.kind == BYTES else column
            for field, column in zip(columns_read.extra, columns[len(arrays) :], strict=True)
        ]
        bad: dict[int, tuple[str, int]] = {}  # the reason and side of each rejected row
        # The first side with a problem is reported, so later ones come first here.
        sides: list[Side] = []
        for number, array in reversed([*enumerate(arrays)]):
            raw = array_side(array)
            too_long = np.flatnonzero(raw.ends - raw.starts > block.max_line_bytes)
            ends = raw.ends.copy()
            ends[too_long] = raw.starts[too_long]  # too long to be normalized
            normalized = normalizer.apply(Side(raw.text, raw.starts, read_only(ends)))
            sides.insert(0, normalized.side)
            bad |= dict.fromkeys(normalized.damages, (INVALID_UTF8, number))
            bad |= dict.fromkeys(too_long.tolist(), (TOO_LONG, number))
        for number, array in reversed([*enumerate(arrays)]):
            bad |= dict.fromkeys(_nulls(array), (NULL, number))
        features, reasons = extra_features(extra_arrays, columns_read.extra)
        for array in extra_arrays:
            reasons |= dict.fromkeys(_nulls(array), NULL)

        def reject(row: int, reason: str, side: int = 0) -> Reject:
            return reject_of(reason, first_row + row, arrays[side][row].as_py() or b'')

        rejects = {row: reject(row, *why) for row, why in bad.items()}
        unfit = {row: reject(row, reason) for row, reason in reasons.items()}
        rows = np.arange(table.num_rows)
        return finish_rows(first_row, rows, None, sides, rejects, features, unfit)


@dataclass(frozen=True)
class _FooterRange:
    """A file whose footer is read before its rows."""

    file: CorpusFile
    stored_bytes = 0  # a footer is small


def _read_shares(
    file: CorpusFile, open_binary: OpenBinary, columns_read: FieldsToRead
) -> tuple[int, ...]:
    """Returns where each row group's share of a file's bytes begins, ascending from 0.

    The row groups share all bytes in proportion to their sizes. Their own offsets are only known from
    the metadata of their columns, and Arrow aborts the process if a column's statistics do not match
    the schema.

    Raises:
        InputError: the file is not Parquet, or has no such columns.
    """
    with _opened(file, open_binary) as stream:
        parquet = open_parquet(stream)
        _check_columns(file, parquet.schema_arrow, columns_read)
        metadata = parquet.metadata
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        ends = list(itertools.accumulate(max(group.total_byte_size, 0) for group in groups))
    spread = max(file.size - len(ends), 0)
    shares = [number + spread * end // max(ends[-1], 1) for number, end in enumerate(ends, 1)]
    return tuple([0, *shares][: len(ends)])


@contextlib.contextmanager
def _opened(file: CorpusFile, open_binary: OpenBinary) -> Iterator[BinaryIO]:
    if file.is_stream:
        # A member of an archive can only be read from its beginning too, but the footer, which says
        # where the columns are, is at the end.
        raise InputError(
            f'{file.path} is compressed as a whole, and Parquet is compressed inside; unpack it'
        )
    with open_stored(file, open_binary) as stream:
        try:
            yield stream
        except (pa.ArrowException, OSError, EOFError, ValueError) as error:
            reason = ' '.join(str(error).split())[:200] or type(error).__name__
            raise InputError(
                f'{file.path} is not a whole Parquet file ({reason}); get it again'
            ) from error


def _check_columns(file: CorpusFile, schema: pa.Schema, columns_read: FieldsToRead) -> None:
    for path in columns_read.texts:
        _check_column(file, schema, path, 'text', '--fields')
    for field in columns_read.extra:
        what = 'text' if field.labels or field.kind == BYTES else field.kind
        _check_column(file, schema, field_path(field.field), what, '--keep or --label')


def _check_column(
    file: CorpusFile, schema: pa.Schema, path: FieldPath, what: str, option: str
) -> None:
    kind: pa.DataType | pa.Schema = schema
    for depth, name in enumerate(path):
        is_node = isinstance(kind, pa.Schema) or pa.types.is_struct(kind)
        names = [column.name for column in kind] if is_node else []
        if names.count(name) != 1:
            above = '.'.join(path[:depth])
            where = f'{above} of {file.path}' if above else file.path
            problem = 'several columns' if name in names else 'no column'
            others = f'; there are {", ".join(names[:50])}' if names else ''
            raise InputError(f'{where} has {problem} {name!r} ({option}){others}')
        kind = kind.field(name).type
    types, fits = _TYPES[what]
    if not fits(kind):
        name, is_extra = '.'.join(path), option != '--fields'
        numbers = [each for each in (INT, FLOAT) if is_extra and _TYPES[each][1](kind)]
        hint = f', or give {name}:{numbers[0]}' if numbers else ''
        raise InputError(
            f'{file.path}: the column {name} is {kind}, not {types}; choose another with {option}{hint}'
        )


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = ('string', 'large_string', 'string_view', 'binary', 'large_binary', 'binary_view')
    return any(getattr(pa.types, f'is_{name}')(kind) for name in tests)


_TYPES: dict[str, tuple[str, Callable[[pa.DataType], bool]]] = {
    'text': ('text or bytes', _is_text),
    INT: ('whole numbers', pa.types.is_integer),
    FLOAT: ('numbers', lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind)),
}


def _joined(batches: Iterator[pa.RecordBatch], block_bytes: int) -> Iterator[pa.Table]:
    """Yields the rows of batches in tables of at most `block_bytes`, or of one row."""
    parts: list[pa.RecordBatch] = []
    size = rows = 0
    for batch in batches:
        for part in _halves(batch, block_bytes):
            if parts and (size + part.nbytes > block_bytes or rows + len(part) > _MOST_ROWS):
                yield pa.Table.from_batches(parts)
                parts, size, rows = [], 0, 0
            parts.append(part)
            size, rows = size + part.nbytes, rows + len(part)
    if parts:
        yield pa.Table.from_batches(parts)


def _halves(batch: pa.RecordBatch, most_bytes: int) -> Iterator[pa.RecordBatch]:
    if batch.nbytes <= most_bytes or len(batch) == 1:
        yield batch
        return
    middle = len(batch) // 2
    yield from _halves(batch.slice(0, middle), most_bytes)
    yield from _halves(batch.slice(middle), most_bytes)


def _block(
    item: WorkItem,
    first_row: int,
    rows: pa.Table,
    max_line_bytes: int,
    read: tuple[ReadRange, ...],
) -> Block:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    text = BlockText(first_row, sink.getvalue().to_pybytes())
    return Block(
        item.split, item.format, item.file_index, (text,), max_line_bytes, read_ranges=read
    )


def _checksum(text_range: TextRange, open_binary: OpenBinary) -> ReadRange:
    file, crc32c = text_range.file, 0
    with open_stored(file, open_binary) as stream:
        for piece in read_pieces(stream, file, text_range.start, text_range.end):
            crc32c = google_crc32c.extend(crc32c, piece)
    return ReadRange(0, text_range.start, text_range.end - text_range.start, crc32c)


def open_parquet(
    stream: BinaryIO, metadata: pq.FileMetaData | None = None, dictionaries: Sequence[str] = ()
) -> pq.ParquetFile:
    """Opens a Parquet file; the checksums of its pages, if it has some, are verified.

    Args:
        stream: of the file; whoever opened it closes it.
        metadata: its footer, if it was read before.
        dictionaries: the columns to be returned as dictionary arrays.
    """
    return pq.ParquetFile(
        stream,
        metadata=metadata,
        read_dictionary=list(dictionaries),
        pre_buffer=False,
        buffer_size=_PAGE_BUFFER,
        page_checksum_verification=True,
    )


def _group_batches(
    stream: BinaryIO,
    metadata: pq.FileMetaData,
    groups: Sequence[int],
    paths: Sequence[FieldPath],
    block_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of row groups, with a column of plain values for each path.

    A batch has rows of one row group: Arrow cannot read a dictionary within a struct from two.

    Raises:
        OSError: the file is damaged; or another of Arrow's exceptions.
    """
    # Names may have dots themselves, so other columns may be read too; `_select_columns` drops them.
    names = sorted({'.'.join(path) for path in paths})
    schema = metadata.schema
    leaves = [
        number
        for number in range(len(schema))
        if any(f'{schema.column(number).path}.'.startswith(f'{name}.') for name in names)
    ]
    columns = [schema.column(number) for number in leaves]
    strings = [column.path for column in columns if column.physical_type == 'BYTE_ARRAY']
    parquet = open_parquet(stream, metadata)
    coded = open_parquet(stream, metadata, strings)
    for group in groups:
        rows = _rows_at_once(coded, group, names, leaves, block_bytes)
        for batch in parquet.iter_batches(rows, [group], names, use_threads=False):
            yield _select_columns(batch, paths)


def _rows_at_once(
    coded: pq.ParquetFile,
    group: int,
    names: Sequence[str],
    leaves: Sequence[int],
    block_bytes: int,
) -> int:
    """Returns how many rows of a row group are read at once.

    Its size is not enough to know: a long string in a dictionary is stored once for all of its rows.
    """
    metadata = coded.metadata.row_group(group)
    if 0 < metadata.num_rows * metadata.total_byte_size <= block_bytes:
        return min(metadata.num_rows, _MOST_ROWS)
    first = next(coded.iter_batches(1, [group], names, use_threads=False), None)
    if first is None:
        return 1
    longest = sum(map(_longest, first.columns))
    # These metadata are safe, see `_read_shares`, after Arrow has read the columns.
    size = sum(max(metadata.column(number).total_uncompressed_size, 0) for number in leaves)
    rows = min(_BATCH_BYTES * metadata.num_rows // max(size, 1), block_bytes // max(longest, 1))
    return max(1, min(rows, _MOST_ROWS))


def _longest(array: pa.Array) -> int:
    """Returns the bytes of the longest string in an array's dictionaries."""
    if pa.types.is_struct(array.type):
        return sum(_longest(array.field(number)) for number in range(array.type.num_fields))
    if not pa.types.is_dictionary(array.type):
        return 0
    values = array.dictionary
    is_strings = any(
        getattr(pa.types, f'is_{name}')(values.type)
        for name in ('string', 'large_string', 'binary', 'large_binary')
    )
    return is_strings and pc.max(pc.binary_length(values)).as_py() or 0


def _select_columns(batch: pa.RecordBatch, paths: Sequence[FieldPath]) -> pa.RecordBatch:
    """Returns the columns of paths, in this order; a value is null if it is at any depth."""
    arrays = []
    for path in paths:
        column = batch.column(path[0])
        for name in path[1:]:
            column = pc.struct_field(column, [name])
        arrays.append(column.dictionary_decode() if pa.types.is_dictionary(column.type) else column)
    return pa.RecordBatch.from_arrays(arrays, ['.'.join(path) for path in paths])


def _nulls(array: pa.Array) -> list[int]:
    if not array.null_count:
        return []
    return np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist()
