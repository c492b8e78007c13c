"""Checks the files of a dataset from the first byte to the last, and names all that is wrong.

Where a reader stops at the first damage, a check goes on. One pass over a file, in pieces that stay in
the processor's cache, compares the checksums of every record, parses it, looks at its ids, and takes
the checksums of the whole.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import google_crc32c
import numpy as np
import pyarrow.parquet as pq

from tokcore.kernels.jit import read_only
from tokcore.reading.record_kernels import (
    HEAD_DAMAGED,
    HEADER_SIZE,
    LARGEST_ID,
    WHOLE,
    index_records,
)
from tokcore.reading.shards import UNREADABLE, BadColumn, ExampleParser, column_ids, column_problem
from tokcore.records.tfrecord import CRC32C_TABLE

_PIECE_BYTES = 1 << 20
"""Bytes that are read at once: with 8 MiB, which leave the second cache, a check takes a fifth longer."""

_PIECE_RECORDS = 1 << 14

_MOST_PIECE = 1 << 31
"""protobuf parses no message of 2 GiB or more."""

MOST_FINDINGS = 100
"""Findings of a file that are named; what is wrong with more of its records is only counted."""


@dataclass(frozen=True)
class Finding:
    """Something that is not as the manifest states, or as the format of the file is.

    Attributes:
        file: its name in the folder.
        problem: what is wrong, as a clause.
        record: the number of the record in the file, from 0; of text the line, of Parquet the row.
        byte: where in the file the record begins.
        input: the path of the file of the corpus that the record is of.
        line: its line there, from 1; or the number of the row, from 0, where rows are not lines.
    """

    file: str
    problem: str
    record: int | None = None
    byte: int | None = None
    input: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        places = [self.file]
        if self.record is not None:
            places.append(f'record {self.record}')
        if self.byte is not None:
            places.append(f'byte {self.byte}')
        return f'{", ".join(places)}: {self.problem}'


@dataclass(frozen=True)
class CheckedFile:
    """What a file holds: its bytes, their checksums, its rows, and what is wrong with them.

    Attributes:
        rows: that could be read, sound or not.
        bytes: of the file.
        crc32c: in hexadecimal.
        sha256: in hexadecimal.
        findings: in the order of the file.
        records_sha256: of TFRecords, that of their `record_fields`.
    """

    rows: int
    bytes: int
    crc32c: str
    sha256: str
    findings: tuple[Finding, ...]
    records_sha256: str = ''


Advance = Callable[[int], None]
"""Called with numbers of bytes that were checked."""


def check_records(
    stream: BinaryIO,
    name: str,
    id_counts: Mapping[str, int | None],
    advance: Advance = lambda size: None,
) -> CheckedFile:
    """Checks a shard of TFRecords.

    Args:
        stream: at its beginning.
        name: of the file, for findings.
        id_counts: the features that every row has, and how many ids the vocabulary of each has;
            None: not known.
        advance: see `Advance`.
    """
    examples, index = ExampleParser(largest_ids(id_counts)), hashlib.sha256()
    records = np.empty((2, _PIECE_RECORDS), np.int64)
    damaged = np.empty(_PIECE_RECORDS, np.uint8)
    sums, findings = Sums(), Findings(name)
    buffer, filled, start, row, is_lost = np.empty(2 * _PIECE_BYTES, np.uint8), 0, 0, 0, False
    while True:
        if filled + _PIECE_BYTES > len(buffer):  # within a long record
            buffer = np.concatenate([buffer, np.empty_like(buffer)])
        size = _read_into(stream, buffer[filled : filled + _PIECE_BYTES].data)
        if not size:
            break
        sums.add(buffer[filled : filled + size])
        advance(size)
        if is_lost:
            continue  # only the checksums of the whole file are still taken
        data = read_only(buffer[: filled + size])
        place = 0
        while True:
            begin = place
            place, count, status = index_records(
                data, place, CRC32C_TABLE, True, records[0], records[1], damaged
            )
            counts, no_rows = examples.count(data, np.ascontiguousarray(records[:, :count]))
            is_damaged = damaged[:count]
            for number in np.flatnonzero(is_damaged).tolist():
                findings.add(
                    "the checksum of the record's content does not match",
                    row + number,
                    start + int(records[0, number]) - HEADER_SIZE,
                )
            for number in no_rows[is_damaged[no_rows] == 0].tolist():
                first, size = records[:, number].tolist()
                try:
                    example = examples.parse_in_python(data[first : first + size].tobytes())
                    counts[number] = [len(ids) for ids in example.ids.values()]
                except ValueError as error:
                    findings.add(str(error), row + number, start + first - HEADER_SIZE)
            index.update(record_fields(start + records[0, :count] - HEADER_SIZE, counts))
            row += count
            if status == HEAD_DAMAGED:
                findings.add(
                    "the checksum of the record's length does not match, so that no record from here "
                    'on can be found',
                    row,
                    start + place,
                )
                is_lost = True
            if status != WHOLE or place == len(data) or begin == place:
                break
        start += place
        filled = 0 if is_lost else len(data) - place
        if place:
            buffer[:filled] = data[place : place + filled]
        if filled > _MOST_PIECE:
            findings.add('the record is longer than 2 GiB, which no reader takes', row, start)
            filled, is_lost = 0, True
    if filled:
        findings.add('the file ends within the record', row, start)
    return dataclasses.replace(sums.checked(row, findings), records_sha256=index.hexdigest())


def record_fields(starts: np.ndarray, ids: np.ndarray) -> bytes:
    """Returns what an index says of records: where they begin, int64[n], and their ids, uint32[n, features]."""
    return np.column_stack([starts.astype('<u8').view('<u4').reshape(-1, 2), ids]).tobytes()


def _read_into(stream: BinaryIO, room: memoryview) -> int:
    """Reads up to as many bytes as there is room for; returns how many, 0 at the end."""
    if isinstance(stream, io.BufferedIOBase):
        return stream.readinto(room)
    read = stream.read(len(room))
    room[: len(read)] = read
    return len(read)


def check_parquet(
    stream: BinaryIO,
    name: str,
    id_counts: Mapping[str, int | None],
    advance: Advance = lambda size: None,
) -> CheckedFile:
    """Checks a shard in Parquet; arguments as of `check_records`, and the stream can be read twice.

    Its pages have no checksums, so that damage within one is only known of the whole file.
    """
    sums, findings, row = Sums(), Findings(name), 0
    for _ in _pieces(stream, sums, advance):
        pass
    stream.seek(0)
    try:
        file = pq.ParquetFile(stream)
        largest = largest_ids(id_counts)
        for feature in id_counts:
            if problem := column_problem(file.schema_arrow, feature):
                findings.add(problem)
                del largest[feature]
        for group in range(file.metadata.num_row_groups):
            table = file.read_row_group(group, columns=[*largest])
            for feature, most in largest.items():
                try:
                    column_ids(table.column(feature), feature, row, most)
                except BadColumn as error:
                    findings.add(str(error), error.row)
            row += table.num_rows
    except UNREADABLE as error:
        text = ' '.join(str(error).split())
        findings.add(f'it cannot be read from its row {row} on ({text:.200})', row)
    return sums.checked(row, findings)


def check_lines(
    stream: BinaryIO,
    name: str,
    pieces: frozenset[bytes] | None,
    advance: Advance = lambda size: None,
) -> CheckedFile:
    """Checks a shard of text, whose lines are rows.

    Args:
        stream: at its beginning.
        name: of the file, for findings.
        pieces: the words that a line may have, as bytes; None: any that are UTF-8.
        advance: see `Advance`.
    """
    sums, findings = Sums(), Findings(name)
    row = place = 0
    for line in _lines(_pieces(stream, sums, advance)):
        problem = None
        if not line.endswith(b'\n'):
            problem = 'the file ends within the line'
        elif pieces is None:
            try:
                line.decode()
            except UnicodeDecodeError as error:
                problem = f'it is not UTF-8 at byte {error.start} of the line'
        elif not pieces.issuperset(words := line[:-1].split(b' ')) and line != b'\n':
            word = next(word for word in words if word not in pieces)
            problem = (
                f'{word.decode("utf-8", "backslashreplace")!r:.60} is not a piece of the vocabulary'
            )
        if problem is not None:
            findings.add(problem, row, place)
        row += 1
        place += len(line)
    return sums.checked(row, findings)


def check_bytes(stream: BinaryIO, name: str, advance: Advance = lambda size: None) -> CheckedFile:
    """Checks a file of which only the bytes are known; its rows are its lines."""
    sums = Sums()
    lines = sum(piece.count(b'\n') for piece in _pieces(stream, sums, advance))
    return sums.checked(lines, Findings(name))


def largest_ids(id_counts: Mapping[str, int | None]) -> dict[str, int]:
    """Returns the largest id that each feature may have, of how many there are; None: any number."""
    return {name: (count or LARGEST_ID + 1) - 1 for name, count in id_counts.items()}


def _pieces(stream: BinaryIO, sums: Sums, advance: Advance) -> Iterator[bytes]:
    """Yields what is left of a stream, and adds it to the sums."""
    while piece := stream.read(_PIECE_BYTES):
        sums.add(piece)
        advance(len(piece))
        yield piece


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    parts: list[bytes] = []
    for piece in pieces:
        first, *others = piece.split(b'\n')
        for other in others:
            yield b''.join([*parts, first, b'\n'])
            parts, first = [], other
        parts.append(first)
    if any(parts):
        yield b''.join(parts)


class Sums:
    """The checksums and the size of what was read or written."""

    def __init__(self) -> None:
        self.bytes = self.crc32c = 0
        self._sha256 = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    def add(self, data: Any) -> None:
        """Adds bytes, or an array of uint8."""
        self.bytes += len(data)
        self.crc32c = google_crc32c.extend(self.crc32c, data)
        self._sha256.update(data)

    def checked(self, rows: int, findings: Findings) -> CheckedFile:
        return CheckedFile(rows, self.bytes, f'{self.crc32c:08x}', self.sha256, findings.all)


class Findings:
    """Collects the findings of one file."""

    def __init__(self, name: str):
        self._name = name
        self._named: list[Finding] = []
        self._others = 0

    def add(self, problem: str, record: int | None = None, byte: int | None = None) -> None:
        if len(self._named) < MOST_FINDINGS:
            self._named.append(Finding(self._name, problem, record, byte))
        else:
            self._others += 1

    @property
    def all(self) -> tuple[Finding, ...]:
        others = f'{self._others:,} more of its records are damaged'
        return (*self._named, *([Finding(self._name, others)] if self._others else []))
