"""Columns with CSV's quotes: fields may hold separators, line feeds, and quotes as two of them.

Where records end is told by a kernel, since a file must be read in blocks; their fields are cut by
Python's csv, record by record. Both go by the same rule: a quote is one where a field begins.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.corpus import (
    INVALID_UTF8,
    MAX_LINE_BYTES,
    MISSING_COLUMN,
    TOO_LONG,
    Block,
    BlockText,
    OpenBinary,
    Reject,
    Rows,
    WorkItem,
)
from tokcore.corpus.field_columns import extra_features
from tokcore.corpus.fields import INVALID_CSV, ExtraField
from tokcore.corpus.line_reading import BEGINNING_BYTES
from tokcore.errors import InputError
from tokcore.kernels.bytes import prepend_rows, row_offsets
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.text.rows import Normalizer, Side

_BEGINS, _PLAIN, _QUOTED, _CLOSED = range(4)
_TAB, _FEED, _QUOTE = 9, 10, 34
_LINE_FEED = read_only(np.frombuffer(b'\n', np.uint8))


@kernel_without_allocation
def end_records(data, state, ends):
    """Writes behind which bytes a record ends; returns how many do, and the state behind `data`.

    `state` is that before it, 0 at a record's begin; `ends` is int64[len(data)].
    """
    count = 0
    for place in range(len(data)):
        byte = data[place]
        if state == _QUOTED:
            if byte == _QUOTE:
                state = _CLOSED
        elif byte == _FEED:
            ends[count] = place + 1
            count += 1
            state = _BEGINS
        elif byte == _TAB:
            state = _BEGINS
        elif byte == _QUOTE and state != _PLAIN:
            state = _QUOTED  # a field's first, or the second of two
        else:
            state = _PLAIN
    return count, state


def read_quoted(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[Block]:
    """Yields the blocks of whole records of a whole file.

    Raises:
        InputError: the file cannot be read, or a record does not end within what a line may have.
    """
    [text_range] = item.ranges
    file, state, offset, held = text_range.file, 0, 0, bytearray()
    for piece in text_pieces(file, open_binary):
        ends = np.empty(len(piece), np.int64)
        count, state = end_records(np.frombuffer(piece, np.uint8), state, ends)
        before = len(held)
        held += piece
        if count:
            whole = before + int(ends[count - 1])
            if whole >= block_bytes:
                yield _block(item, offset, bytes(held[:whole]), max_line_bytes)
                offset += whole
                del held[:whole]
        open_bytes = len(held) - (before + int(ends[count - 1]) if count and held else 0)
        if not count and open_bytes > block_bytes + max_line_bytes:
            raise InputError(
                f'{file.path}: what begins at or behind byte {offset} has no end within '
                f'{open_bytes} bytes; is a quote not closed? give --quoting=none if quotes are text'
            )
    if held:
        yield _block(item, offset, bytes(held), max_line_bytes)


def _block(item: WorkItem, offset: int, data: bytes, max_line_bytes: int) -> Block:
    return Block(
        item.split, item.format, item.file_index, (BlockText(offset, data),), max_line_bytes
    )


def quoted_rows(
    data: bytes,
    offset: int,
    columns: Sequence[int],
    normalizer: Normalizer,
    max_line_bytes: int = MAX_LINE_BYTES,
    kept: Sequence[ExtraField] = (),
) -> Rows:
    """Returns the rows of a block of whole records, one side for each 0-based column.

    A blank record, or one with a blank wanted column, is empty; one with too few columns is a
    reject, and so is one that Python's csv refuses, whose last quote the file does not close, or
    where a column that goes along does not fit.
    """
    ends = np.empty(len(data), np.int64)
    count, state = end_records(np.frombuffer(data, np.uint8), 0, ends)
    bounds = [0, *ends[:count].tolist()]
    if bounds[-1] < len(data):
        bounds.append(len(data))
    unclosed = len(bounds) - 2 if state == _QUOTED else None
    bad: dict[int, str] = {}
    numbers: list[int] = []
    wanted = [*columns, *(int(each.field) for each in kept)]
    cells: list[list[bytes]] = [[] for _ in wanted]
    for number, (start, end) in enumerate(zip(bounds, bounds[1:], strict=False)):
        record = data[start:end].removesuffix(b'\n')
        if len(record) > max_line_bytes:
            bad[number] = TOO_LONG
            continue
        fields = _fields(record) if number != unclosed else None
        if fields is None:
            bad[number] = INVALID_CSV
        elif (text := _decoded(record)) is None:
            bad[number] = INVALID_UTF8
        elif not text.strip():
            continue
        elif len(fields) <= max(wanted):
            bad[number] = MISSING_COLUMN
        else:
            numbers.append(number)
            for cell, column in zip(cells, wanted, strict=True):
                cell.append(fields[column])
    is_kept = np.ones(len(numbers), bool)
    sides = []
    further = [pa.array(cell, pa.large_binary()) for cell in cells[len(columns) :]]
    going_along, unfit = extra_features(further, kept)
    for row, reason in unfit.items():
        bad[numbers[row]] = reason
        is_kept[row] = False
    for cell in cells[: len(columns)]:
        side = normalizer.apply(_side(cell)).side
        sides.append(side)
        is_kept &= side.ends > side.starts
    kept_rows = np.flatnonzero(is_kept)
    starts = np.array(bounds[:-1], np.int64)[np.array(numbers, np.int64)[kept_rows]]
    lines = len(bounds) - 1
    return Rows(
        tuple(side.take(kept_rows) for side in sides),
        offset,
        starts,
        lines,
        lines - len(kept_rows) - len(bad),
        tuple(
            _reject(reason, offset + bounds[number], data[bounds[number] : bounds[number + 1]])
            for number, reason in sorted(bad.items())
        ),
        extra_features=tuple(each.select(kept_rows) for each in going_along),
    )


def _fields(record: bytes) -> list[bytes] | None:
    # As Latin-1 each byte is a character, and none but the separators means anything here.
    text = record.removesuffix(b'\r').decode('latin-1')
    csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    try:
        # As one line: from several, csv would take a lone carriage return for the record's end.
        found = next(csv.reader([text], delimiter='\t'), [])
    except csv.Error:
        return None
    return [field.encode('latin-1') for field in found]


def _decoded(record: bytes) -> str | None:
    try:
        return record.decode()
    except UnicodeDecodeError:
        return None


def _side(strings: Sequence[bytes]) -> Side:
    """Returns strings as rows, a line feed between them."""
    offsets = row_offsets(np.array([len(each) for each in strings], np.int64))
    text = read_only(np.frombuffer(b''.join(strings), np.uint8))
    joined, starts, ends = prepend_rows(
        text, read_only(offsets[:-1].copy()), read_only(offsets[1:].copy()), _LINE_FEED
    )
    return Side(joined, starts + 1, ends)


def _reject(reason: str, at: int, record: bytes) -> Reject:
    line = record.removesuffix(b'\n')
    if reason == TOO_LONG:
        return Reject(reason, 0, at, at, line[:BEGINNING_BYTES], len(line))
    place = 0
    if reason == INVALID_UTF8:
        try:
            line.decode()
        except UnicodeDecodeError as error:
            place = error.start
    return Reject(reason, 0, at, at + place, line)
