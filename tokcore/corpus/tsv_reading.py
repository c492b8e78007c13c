"""Reads tab-separated columns, with and without CSV's quotes.

Without quotes a kernel finds the columns of each line. With quotes a kernel finds where records end,
since a file is read in blocks, and Python's csv cuts each record into fields. Both follow one rule: a
quote is special only at the beginning of a field, and within a field that began with one. A file whose
columns something else than tabs separates is refused, with a command that converts it.
"""

from __future__ import annotations

import codecs
import csv
import dataclasses
import logging
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tokcore.corpus.archive_reading import text_beginning, text_pieces, with_whole_head
from tokcore.corpus.arrow_columns import extra_features, side_array
from tokcore.corpus.corpus import (
    INVALID_UTF8,
    MISSING_COLUMN,
    TOO_LONG,
    Block,
    CorpusFile,
    MemberFile,
    OpenBinary,
    Reject,
    Rows,
    Split,
    WorkItem,
)
from tokcore.corpus.declarations import Tsv
from tokcore.corpus.fields import INVALID_CSV
from tokcore.corpus.formats import FormatReader
from tokcore.corpus.line_reading import LineReader, byte_ranges, line_block
from tokcore.corpus.line_rows import (
    finish_rows,
    lines_of,
    long_rows,
    mark_bytes,
    reject_of,
    rows_of_lines,
    side_of_strings,
)
from tokcore.corpus.looks import converting_command
from tokcore.corpus.stretches import FileLines
from tokcore.errors import InputError
from tokcore.kernels.jit import kernel_without_allocation
from tokcore.kernels.simd import CHUNK, byte_range_mask, trailing_zeros
from tokcore.options import shown
from tokcore.text.normalizers import find_damage
from tokcore.text.rows import Normalizer, Side

_LOGGER = logging.getLogger(__name__)

_MOST_HEADER_BYTES = 1 << 20

_FIELD_START, _PLAIN, _QUOTED, _CLOSED = range(4)
_TAB, _NEWLINE, _QUOTE = 9, 10, 34

_CHUNK = np.uint64(CHUNK)
_0, _1 = np.uint64(0), np.uint64(1)

COVERED, WITH_OTHERS, MISSING_COLUMN_CODE = range(3)
"""What `_cut_columns` says of a line: it has the columns that are read, others too, or too few."""


class TsvReader(LineReader):
    """Reads the columns of one or two texts, and those of extra fields."""

    format: Tsv

    @property
    def rows_are_of_lines(self) -> bool:
        return not self.format.header and not self.format.is_quoted

    def check(
        self,
        files: tuple[CorpusFile, ...],
        open_binary: OpenBinary,
        stated: Collection[str] | None = None,
    ) -> None:
        if not isinstance(files[0], MemberFile):  # an archive would be unpacked for that
            states_quoting = stated is None or 'quoting' in stated
            check_beginning(self.format, files[0], open_binary, states_quoting)
        if self.format.header:
            _with_numbers(self.format, files[0], open_binary)

    def index_ranges(self, split: Split, item_bytes: int) -> Sequence[Any]:
        return () if self.format.is_quoted else super().index_ranges(split, item_bytes)

    def plan(
        self, split: Split, index: Sequence[tuple[Any, ...]], item_bytes: int
    ) -> list[WorkItem]:
        if self.format.is_quoted:
            return byte_ranges(split, max([1, *(file.size for (file,) in split.files)]))
        return super().plan(split, index, item_bytes)

    def items_at(self, whole: WorkItem, offsets: np.ndarray, lines: FileLines) -> list[WorkItem]:
        if self.format.is_quoted:  # all that is before a byte shows whether it is in quotes
            return FormatReader.items_at(self, whole, offsets, lines)
        return super().items_at(whole, offsets, lines)

    def bounds_of_units(self, block: Block) -> tuple[np.ndarray, np.ndarray] | None:
        if not self.format.is_quoted:
            return None
        bounds = block.offset + np.array(_record_bounds(block.texts[0].data, block.offset)[0])
        return bounds[:-1], bounds[1:]

    def beginning(self, item: WorkItem, size: int) -> WorkItem:
        return item if self.format.is_quoted else super().beginning(item, size)

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        if self.format.header:
            [text_range] = item.ranges
            numbered = _with_numbers(self.format, text_range.file, open_binary)
            item = dataclasses.replace(item, format=numbered)
        if self.format.is_quoted:
            return _read_records(item, open_binary, block_bytes, max_line_bytes)
        return super().read(item, open_binary, block_bytes, max_line_bytes)

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        declared = self.format
        [text] = block.texts
        data, offset = text.data, text.offset
        has_header = declared.header and not offset
        if block.long_lines and not has_header:
            return long_rows(block)
        if has_header:
            offset = data.find(b'\n') + 1 or len(data)
            data = data[offset:]
        rows_of = _quoted_rows if declared.is_quoted else _plain_rows
        rows = rows_of(data, offset, declared, normalizer, block.max_line_bytes)
        if not has_header:
            return rows
        # The rows' positions count from the beginning of the block, which has the header too.
        return dataclasses.replace(rows, offset=0, line_starts=rows.line_starts + offset)


def _plain_rows(
    data: bytes, offset: int, declared: Tsv, normalizer: Normalizer, max_line_bytes: int
) -> Rows:
    """Returns the rows of a block of TAB-separated lines, whose columns have numbers.

    A blank line, or one with a blank column among those of the texts, is empty, whatever values extra
    fields have. A line with too few columns is rejected, and so is one where the column of an extra
    field has a value of another kind.
    """
    extra_fields, keep_tabs = declared.extra_fields, declared.keep_tabs
    numbers = [int(column) for column in declared.columns]
    lines = lines_of(data, offset, max_line_bytes)
    column_numbers = sorted({*numbers, *(int(field.field) for field in extra_fields)})
    text = lines.side()
    starts = np.empty((len(lines), len(column_numbers)), np.int64)
    ends = np.empty((len(lines), len(column_numbers)), np.int64)
    coverage = np.empty(len(lines), np.uint8)
    columns_read = np.array(column_numbers, np.int64)
    _cut_columns(text.text, text.starts, text.ends, columns_read, keep_tabs, starts, ends, coverage)
    cells = normalizer.apply(Side(text.text, starts.reshape(-1), ends.reshape(-1)))
    damages = {}
    for cell in sorted(cells.damages, reverse=True):  # the first one of a line remains
        damages[cell // len(column_numbers)] = cells.damages[cell]
    missing = _check_whole_lines(text, coverage, damages, normalizer)
    reasons = dict.fromkeys(missing, (MISSING_COLUMN, 0))

    def column(side: Side, number: int) -> Side:
        bounds = (side.starts, side.ends)
        index = column_numbers.index(number)
        columns = (each.reshape(starts.shape)[:, index] for each in bounds)
        return Side(side.text, *map(np.ascontiguousarray, columns))

    sides = [column(cells.side, number) for number in numbers]
    raw = Side(text.text, starts, ends)
    extra = [side_array(column(raw, int(field.field))) for field in extra_fields]
    features, unfit = extra_features(extra, extra_fields)
    return rows_of_lines([lines], [damages], sides, reasons, features, unfit)


def _check_whole_lines(
    text: Side, coverage: np.ndarray, damages: dict[int, int], normalizer: Normalizer
) -> set[int]:
    """Checks lines with other columns than those that are read, or with too few.

    Adds invalid UTF-8 in other columns to `damages`. Returns the lines that lack a column and are
    neither damaged nor blank.
    """
    unchecked = np.union1d(np.flatnonzero(coverage), np.array(list(damages), np.int64))
    if not len(unchecked):
        return set()
    whole = normalizer.apply(text.take(unchecked))
    damages.update((int(unchecked[row]), position) for row, position in whole.damages.items())
    has_text = whole.side.ends > whole.side.starts
    lacking = unchecked[has_text & (coverage[unchecked] == MISSING_COLUMN_CODE)]
    return set(lacking.tolist()) - damages.keys()


def _with_numbers(declared: Tsv, file: CorpusFile, open_binary: OpenBinary) -> Tsv:
    """Returns the format of one file, with numbers for the columns that were chosen by name.

    Raises:
        InputError: the file cannot be read, or its header lacks a name or has it twice.
    """
    names = _header(file, open_binary, declared.is_quoted)
    numbers = []
    for column in declared.all_columns:
        if isinstance(column, str) and names.count(column) != 1:
            problem = 'no column' if column not in names else 'several columns'
            raise InputError(
                f'{file.path} has {problem} {column!r} in its header, which is '
                f'{", ".join(names[:50])}; choose others with --columns'
            )
        numbers.append(names.index(column) if isinstance(column, str) else column)
    texts, label = len(declared.columns), declared.label
    extra = [
        f'{number}={field.name}:{field.kind}'
        for number, field in zip(numbers[texts:], declared.extra_fields, strict=True)
    ]
    if label is not None:
        label = f'{numbers[texts]}:{declared.extra_fields[0].kind}'
        del extra[0]
    return dataclasses.replace(
        declared, columns=tuple(numbers[:texts]), keep=tuple(extra), label=label
    )


def _header(file: CorpusFile, open_binary: OpenBinary, is_quoted: bool) -> list[str]:
    line = b''
    for piece in text_pieces(file, open_binary):
        line += piece
        if b'\n' in piece or len(line) > _MOST_HEADER_BYTES:
            break
    line = line.partition(b'\n')[0].removesuffix(b'\r').removeprefix(codecs.BOM_UTF8)
    try:
        text = line[:_MOST_HEADER_BYTES].decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f'{file.path}: the header is not UTF-8 at byte {error.start}; mend it'
        ) from error
    return _quoted_names(file, text) if is_quoted else text.split('\t')


def _quoted_names(file: CorpusFile, text: str) -> list[str]:
    # The empty line is read as part of a field whose quote is not closed.
    reader = csv.reader([text + '\n', ''], delimiter='\t')
    try:
        csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
        names = next(reader)
    except csv.Error as error:
        raise InputError(f'{file.path}: the header is not CSV ({error}); mend it') from error
    if reader.line_num > 1:
        raise InputError(f'{file.path}: a quote in the header is not closed in its line; mend it')
    return names


def _read_records(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[Block]:
    """Yields the blocks of a whole file, of whole records.

    Raises:
        InputError: the file cannot be read, or a record is longer than a line may be.
    """
    [text_range] = item.ranges
    file, state, offset, data = text_range.file, 0, 0, bytearray()
    for piece in with_whole_head(text_pieces(file, open_binary), len(codecs.BOM_UTF8)):
        if not data and (mark := mark_bytes(piece, offset)):
            data += piece[:mark]
            piece = piece[mark:]
        ends = np.empty(len(piece), np.int64)
        count, state = _end_records(np.frombuffer(piece, np.uint8), state, ends)
        before = len(data)
        data += piece
        if count:
            complete = before + int(ends[count - 1])
            if complete >= block_bytes:
                yield line_block(item, max_line_bytes, ((offset, bytes(data[:complete])),))
                offset += complete
                del data[:complete]
        elif len(data) > block_bytes + max_line_bytes:
            raise InputError(
                f'{file.path}: what begins at or after byte {offset} has no end within '
                f'{len(data)} bytes; is a quote not closed? give --quoting=none if quotes are text'
            )
    if data:
        yield line_block(item, max_line_bytes, ((offset, bytes(data)),))


def _quoted_rows(
    data: bytes, offset: int, declared: Tsv, normalizer: Normalizer, max_line_bytes: int
) -> Rows:
    """Returns the rows of a block of whole records as `_plain_rows` does for lines.

    A record is rejected also if Python's csv refuses it, or if its last quote is not closed.
    """
    mark = mark_bytes(data, offset)
    bounds, state = _record_bounds(data, offset)
    unclosed = len(bounds) - 2 if state == _QUOTED else None
    reasons: dict[int, str] = {}
    records: list[int] = []
    column_numbers = [int(column) for column in declared.all_columns]
    cells: list[list[bytes]] = [[] for _ in column_numbers]
    for number, (start, end) in enumerate(zip(bounds, bounds[1:], strict=False)):
        record = data[start:end].removesuffix(b'\n')
        if len(record) > max_line_bytes:
            reasons[number] = TOO_LONG
            continue
        record = record[mark:] if not start else record
        fields = _fields(record) if number != unclosed else None
        if fields is None:
            reasons[number] = INVALID_CSV
        elif (text := _decoded(record)) is None:
            reasons[number] = INVALID_UTF8
        elif not text.strip():
            continue
        elif len(fields) <= max(column_numbers):
            reasons[number] = MISSING_COLUMN
        else:
            records.append(number)
            for cell, column in zip(cells, column_numbers, strict=True):
                cell.append(fields[column])

    def reject(number: int, reason: str) -> Reject:
        line = data[bounds[number] : bounds[number + 1]].removesuffix(b'\n')
        damage = find_damage(line) if reason == INVALID_UTF8 else None
        return reject_of(reason, offset + bounds[number], line, damage=damage or 0)

    texts = len(declared.columns)
    sides = [normalizer.apply(side_of_strings(cell)).side for cell in cells[:texts]]
    arrays = [pa.array(cell, pa.large_binary()) for cell in cells[texts:]]
    features, bad_values = extra_features(arrays, declared.extra_fields)
    rejects = {number: reject(number, reason) for number, reason in reasons.items()}
    unfit = {row: reject(records[row], reason) for row, reason in bad_values.items()}
    starts, numbers = np.array(bounds[:-1], np.int64), np.array(records, np.int64)
    return finish_rows(offset, starts, numbers, sides, rejects, features, unfit)


def _record_bounds(data: bytes, offset: int) -> tuple[list[int], int]:
    """Returns where the records of a block begin, and the last ends, and the state after them."""
    mark = mark_bytes(data, offset)
    ends = np.empty(len(data), np.int64)
    count, state = _end_records(np.frombuffer(data, np.uint8, offset=mark), 0, ends)
    bounds = [0, *(ends[:count] + mark).tolist()]
    if bounds[-1] < len(data):
        bounds.append(len(data))
    return bounds, state


def _fields(record: bytes) -> list[bytes] | None:
    # As Latin-1 each byte is a character, and csv gives a meaning to its separators only.
    text = record.removesuffix(b'\r').decode('latin-1')
    csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    try:
        # As one line: of several, csv would take a lone carriage return for the record's end.
        fields = next(csv.reader([text], delimiter='\t'), [])
    except csv.Error:
        return None
    return [field.encode('latin-1') for field in fields]


def _decoded(record: bytes) -> str | None:
    try:
        return record.decode()
    except UnicodeDecodeError:
        return None


@kernel_without_allocation
def _end_records(data, state, ends):
    """Writes the position after each record to `ends`; returns their number and the new state.

    `state` is that before `data`, 0 at the beginning of a record; `ends` is int64[len(data)].
    """
    count = 0
    for position in range(len(data)):
        byte = data[position]
        if state == _QUOTED:
            if byte == _QUOTE:
                state = _CLOSED
        elif byte == _NEWLINE:
            ends[count] = position + 1
            count += 1
            state = _FIELD_START
        elif byte == _TAB:
            state = _FIELD_START
        elif byte == _QUOTE and state != _PLAIN:
            state = _QUOTED  # a field's first, or the second of two
        else:
            state = _PLAIN
    return count, state


@kernel_without_allocation
def _cut_columns(data, starts, ends, columns, keeps_tabs, cell_starts, cell_ends, coverage):
    """Finds the columns of each line that are read, and whether the line has others.

    `columns` int64[c], ascending; with `keeps_tabs` the last of them ends at the line's end.
    Written are `cell_starts` and `cell_ends`, int64[lines, c], where a missing column is empty, at the
    line's end; and `coverage`, uint8[lines]: `COVERED`, `WITH_OTHERS` or `MISSING_COLUMN_CODE`.
    """
    for line in range(len(starts)):
        end = ends[line]
        start = starts[line]
        column = 0
        count = 0
        coverage[line] = COVERED
        while count < len(columns) and start <= end:
            tab = _find_tab(data, start, end)
            if columns[count] == column:
                if keeps_tabs and count + 1 == len(columns):
                    tab = end
                cell_starts[line, count] = start
                cell_ends[line, count] = tab
                count += 1
            else:
                coverage[line] = WITH_OTHERS
            start = tab + 1
            column += 1
        if start <= end:
            coverage[line] = WITH_OTHERS
        if count < len(columns):
            coverage[line] = MISSING_COLUMN_CODE
        for missing in range(count, len(columns)):
            cell_starts[line, missing] = end
            cell_ends[line, missing] = end


@kernel_without_allocation
def _find_tab(data, start, end):
    """Returns the position of the first TAB in data[start:end], or `end`."""
    position, last = np.uint64(start), np.uint64(end)
    while position < last and position + _CHUNK <= np.uint64(len(data)):
        tabs = byte_range_mask(data, position, 0x09, 0x09)
        if tabs != _0:
            return np.int64(min(position + trailing_zeros(tabs), last))
        position += _CHUNK
    while position < last:
        if data[position] == 0x09:
            return np.int64(position)
        position += _1
    return np.int64(last)


_BEGINNING_BYTES = 64 << 10
"""Some hundred lines of a file, in all of which a sentence does not have the same number of commas."""

_SEPARATORS = {',': 'commas', ';': 'semicolons'}

_CONVERTING = (
    "import csv, sys; csv.writer(sys.stdout, 'excel-tab', lineterminator='\\n')"
    ".writerows(csv.reader(sys.stdin, delimiter='{}'))"
)
"""Writes quoted fields, where a text has quotes, tabs or line feeds."""


_QUOTED_FIELD = re.compile(r'(?:^|\t)("(?:[^"\t\n]|"")+")(?=\t|\r?$)', re.MULTILINE)


def check_beginning(
    declared: Tsv, file: CorpusFile, open_binary: OpenBinary, states_quoting: bool = True
) -> None:
    """Looks at the beginning of a file, before any work.

    A file with a field that is quoted as CSV's are is refused, unless `--quoting` is stated.

    A file is refused if a column that is read needs a tab, its first line has none, and commas or
    semicolons separate its records into the same number of fields, or its header into the names. If
    only column 0 is read, lines without a tab may be texts with commas, so that this gives a warning.

    Raises:
        InputError: it is refused; the message has a command that makes tabs of its separators.
    """
    beginning = text_beginning(file, open_binary, _BEGINNING_BYTES + 1)
    is_whole = len(beginning) <= _BEGINNING_BYTES
    beginning = beginning[:_BEGINNING_BYTES]
    text = beginning.decode('utf-8', 'replace').removeprefix('\ufeff')
    if not states_quoting:
        for field in _QUOTED_FIELD.findall(text):
            if '""' in field[1:-1]:
                raise InputError(
                    f'{file.path} has {shown(field)}, which looks like a field of CSV; give --quoting csv '
                    'if it is, or --quoting none if its quotes are text'
                )
    first = text.partition('\n')[0].rstrip('\r')
    if not text.strip() or '\t' in first or declared.all_columns == [first]:
        return
    separator = next(
        (each for each in _SEPARATORS if _separates(each, text, is_whole, declared)), ''
    )
    if declared.all_columns != [0]:
        if separator:
            command, made = converting_command(file, _CONVERTING.format(separator))
            raise InputError(
                f'{file.path} has columns separated by {_SEPARATORS[separator]}, and --tsv takes tabs; '
                f'give --tsv {made} --quoting csv, made first: {command}'
            )
    elif '\t' not in text:
        question = f'; do {_SEPARATORS[separator]} separate its columns?' if separator else ''
        _LOGGER.warning(
            '%s has no tab in its first %d bytes, so that a row is a whole line%s',
            file.path, len(beginning), question,
        )  # fmt: skip


def _separates(separator: str, text: str, is_whole: bool, declared: Tsv) -> bool:
    try:
        records = [record for record in csv.reader(text.split('\n'), delimiter=separator) if record]
    except csv.Error:
        return False
    names = {column for column in declared.all_columns if isinstance(column, str)}
    if declared.header and names and len(records[0]) > 1 and names <= {*records[0]}:
        return True
    # The last record may be cut off.
    numbers = {len(record) for record in (records if is_whole else records[:-1])}
    return len(numbers) == 1 and numbers != {1}
