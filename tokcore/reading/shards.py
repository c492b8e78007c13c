"""The rows of one shard: TFRecords or Parquet, read at any row; and a writer of pieces.

Rows are stored by feature, the ids of all of them one after another in an array, so that reading,
shuffling and padding never touch a single row in Python. What a shard says is not trusted: every
record is checked, and every id is below the size of its vocabulary.
"""

from __future__ import annotations

import bisect
import functools
import math
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tokcore.errors import InputError
from tokcore.kernels.bytes import pick_ranges, row_offsets
from tokcore.kernels.jit import read_only
from tokcore.reading.record_kernels import (
    CUT_OFF,
    HEAD_CUT_OFF,
    HEAD_DAMAGED,
    HEADER_SIZE,
    LARGEST_ID,
    PARSED,
    UNPARSED,
    WHOLE,
    check_records,
    index_records,
    mark_rows,
    parse_records,
    read_row,
)
from tokcore.records.tfrecord import CRC32C_TABLE, parse_features
from tokcore.regular_files import open_regular
from tokcore.text.whitespace import escape_piece

_MOST_GROUP_ROWS = 1 << 20
"""Rows of a group that is read: as many as PyArrow writes by default."""

_WINDOW_BYTES = 1 << 28
"""Bytes of a shard that are read together: as rows of ids they take up to four times as many."""

_PARSED_BYTES = 1 << 30
"""Room for ids that is asked for at once, twice: each feature gets it for every byte of the records."""

_CHECKSUM_BYTES = 1 << 18
"""Bytes whose checksum is taken at once: other threads wait for no more than that."""

UNREADABLE = (OSError, ValueError, KeyError, MemoryError, OverflowError, pa.ArrowException)
"""What PyArrow raises for files of any bytes; `UnicodeDecodeError` for names is a `ValueError`."""

_STREAM_BYTES = 8 << 20
_STREAM_RECORDS = 1 << 16

_RECORD_ERRORS = {
    HEAD_CUT_OFF: 'the file ends within the head of a TFRecord',
    HEAD_DAMAGED: "the checksum of a TFRecord's length does not match",
    CUT_OFF: 'the file ends within a TFRecord',
}
_BAD_CONTENT = "the checksum of a TFRecord's content does not match"
REMEDY = 'write the shards again'


@dataclass(frozen=True)
class ShardFile:
    """A shard as the manifest has it: its path, rows, size in bytes, and CRC-32C in hexadecimal.

    Attributes:
        state: of the file when the dataset was opened; None: not known. In another one it is read only
            if it has the checksum.
        remedy: what to do if it is damaged.
    """

    path: str
    rows: int
    bytes: int
    crc32c: str
    state: tuple[int, ...] | None = None
    remedy: str = REMEDY

    @property
    def is_parquet(self) -> bool:
        """Whether it is a Parquet file, as its name says; otherwise it holds TFRecords."""
        return self.path.endswith('.parquet')


def found_shard(shard: ShardFile, stated_by: str, remedy: str) -> ShardFile:
    """Returns a shard with the state of its file; raises InputError if that has another size."""
    try:
        state = os.stat(shard.path)
    except (OSError, ValueError):  # the latter if no file can have this name
        state = None
    if state is None or state.st_size != shard.bytes or not stat.S_ISREG(state.st_mode):
        raise InputError(
            f'{shard.path} is missing, or is not a file of the {shard.bytes} bytes that {stated_by} states; '
            f'{remedy}'
        )
    return replace(shard, state=_file_state(state))


def _file_state(state: os.stat_result) -> tuple[int, ...]:
    """Returns what differs between files that had one path, or a file before and after a change."""
    return state.st_ino, state.st_mtime_ns, state.st_ctime_ns


def checksum(data: np.ndarray) -> str:
    """Returns the CRC-32C of bytes in hexadecimal."""
    crc32c = 0
    for start in range(0, len(data), _CHECKSUM_BYTES):
        crc32c = google_crc32c.extend(crc32c, data[start : start + _CHECKSUM_BYTES])
    return f'{crc32c:08x}'


def rows_at_once(shards: Iterable[ShardFile], most: int) -> int:
    """Returns how many rows are read together: fewer where the manifest's rows are long."""
    longest = max((shard.bytes // shard.rows for shard in shards if shard.rows), default=0)
    return max(1, min(most, _WINDOW_BYTES // max(1, longest)))


@dataclass(frozen=True)
class EncodedRows:
    """The ids of some examples, by feature.

    Attributes:
        ids: int32 by feature, those of all rows one after another.
        offsets: int64[rows + 1] by feature: row i is ids[offsets[i]:offsets[i + 1]].
    """

    ids: dict[str, np.ndarray]
    offsets: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(next(iter(self.offsets.values()))) - 1

    @property
    def lengths(self) -> np.ndarray:
        """The number of ids of each feature, int64[features, rows]."""
        return np.array([np.diff(offsets) for offsets in self.offsets.values()], np.int64)

    def starts(self, rows: np.ndarray, firsts: np.ndarray) -> dict[str, np.ndarray]:
        """Returns by feature where in `ids` these ids of rows are, the first of each row being 0: int64[n] all."""
        return {name: bounds[rows] + firsts for name, bounds in self.offsets.items()}

    @classmethod
    def empty(cls, features: Iterable[str]) -> EncodedRows:
        """Returns no rows of these features."""
        names = tuple(features)
        return cls(
            {name: np.empty(0, np.int32) for name in names},
            {name: np.zeros(1, np.int64) for name in names},
        )

    def part(self, first: int, last: int) -> EncodedRows:
        """Returns rows `first` up to `last`; their ids are views of these."""
        ids, offsets = {}, {}
        for name, bounds in self.offsets.items():
            bounds = bounds[first : last + 1]
            ids[name] = self.ids[name][bounds[0] : bounds[-1]]
            offsets[name] = bounds - bounds[0]
        return EncodedRows(ids, offsets)

    def take(self, numbers: np.ndarray) -> EncodedRows:
        """Returns the rows of these numbers, int64[n], in this order."""
        ids, offsets = {}, {}
        size = np.dtype(np.int32).itemsize
        for name, bounds in self.offsets.items():
            data = np.ascontiguousarray(self.ids[name]).view(np.uint8)
            starts, ends = bounds[numbers] * size, bounds[numbers + 1] * size
            picked, bounds = pick_ranges(read_only(data), read_only(starts), read_only(ends))
            ids[name], offsets[name] = picked.view(np.int32), bounds // size
        return EncodedRows(ids, offsets)

    def with_ends(self, ends: Mapping[str, int]) -> EncodedRows:
        """Returns the rows with an id after each, by feature; features without an id stay as they are."""
        ids, offsets = dict(self.ids), dict(self.offsets)
        for name, end in ends.items():
            bounds = self.offsets[name]
            ids[name] = np.insert(self.ids[name][: bounds[-1]], bounds[1:], end)
            offsets[name] = bounds + np.arange(len(bounds))
        return EncodedRows(ids, offsets)

    @classmethod
    def joined(cls, parts: Sequence[EncodedRows]) -> EncodedRows:
        """Returns the rows of one or more parts, one after another."""
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        ids = {name: np.concatenate([part.ids[name] for part in parts]) for name in parts[0].ids}
        lengths = {
            name: np.concatenate([np.diff(part.offsets[name]) for part in parts]) for name in ids
        }
        return cls(ids, {name: row_offsets(lengths[name]) for name in ids})


class ShardReader(Protocol):
    """Reads the rows of a shard, for one thread."""

    def read(self, first: int, last: int) -> tuple[np.ndarray, EncodedRows]:
        """Returns rows `first` up to `last`: their numbers, int64, and their ids.

        If damage is skipped, the numbers of damaged rows are missing.

        Raises:
            InputError: naming the shard, and the record and byte or the row group, if a row is
                damaged, is missing, or holds a number that is not an id.
        """

    def pick(self, numbers: np.ndarray, bounds: np.ndarray | None) -> EncodedRows:
        """Returns the rows of these numbers, int64[n], in their order.

        Args:
            numbers: any rows of the shard, ascending.
            bounds: where their records begin and end, int64[2, n]; None of Parquet.

        Raises:
            InputError: as `read`; or no record is there.
        """

    def row(self, number: int, bounds: tuple[int, int] | None) -> dict[str, np.ndarray]:
        """Returns one row by feature, int32[length]; takes and raises what `pick` does."""


def open_shard(
    shard: ShardFile, features: Sequence[str], id_counts: Mapping[str, int], skips: bool = False
) -> ShardReader:
    """Returns the reader of a shard: of Parquet or TFRecords, as its name says.

    Args:
        shard: the file.
        features: those that are read.
        id_counts: by feature, how many ids its vocabulary has (default: all of int32); a row with
            another id is damaged.
        skips: whether damaged rows are skipped; otherwise they are errors.

    Raises:
        InputError: the manifest says that it has no rows, and it has some; or no feature is read.
    """
    check_features(features, shard.path)
    largest = {name: id_counts.get(name, LARGEST_ID + 1) - 1 for name in features}
    reader: ShardReader
    if shard.is_parquet:
        reader = _ParquetReader(shard, largest, skips)
    else:
        reader = _TFRecordReader(shard, largest, skips)
    if not shard.rows:
        reader.read(0, 0)  # no window will ever be read, and rows in the file would be lost
    return reader


def check_features(features: Sequence[str], path: str) -> None:
    """Raises InputError if rows have no lists of ids, as those of other programs may have none."""
    if not features:
        raise InputError(
            f'{path}: its records are not tf.train.Examples with lists of int64 that all of them have, '
            'which are what rows are; take their bytes, dataset[split].record(i)'
        )


def row_sizes(shard: ShardFile, features: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields the bytes of all TFRecords of a shard, int64[n], and their ids, uint32[n, features], in parts.

    Raises:
        InputError: it is damaged, or has not the number of records that the manifest states.
    """
    reader = _TFRecordReader(shard, dict.fromkeys(features, LARGEST_ID), skips=False)
    row = start = 0
    while row < shard.rows:
        last = min(row + _STREAM_RECORDS, shard.rows)
        end, _, records, _ = reader.index(row, start, last, checks=False)
        _, rows = reader.read(row, last)
        lengths = np.diff(records[0] - HEADER_SIZE, append=end)
        yield lengths, rows.lengths.astype(np.uint32).reshape(-1, last - row).T
        row, start = last, end
    reader.read(shard.rows, shard.rows)  # raises if there are more records


def all_record_starts(data: np.ndarray, path: str) -> Iterator[np.ndarray]:
    """Yields the offsets of the TFRecords of a file's bytes, int64, in parts, however many there are.

    Raises:
        InputError: a record is damaged.
    """
    records, damaged = np.empty((2, _STREAM_RECORDS), np.int64), np.empty(_STREAM_RECORDS, np.uint8)
    row = place = 0
    while place < len(data):
        place, count, status = index_records(
            data, place, CRC32C_TABLE, True, records[0], records[1], damaged
        )
        problem, bad = _RECORD_ERRORS.get(status), count
        if damaged[:count].any():
            bad = int(np.flatnonzero(damaged[:count])[0])
            problem, place = _BAD_CONTENT, int(records[0, bad]) - HEADER_SIZE
        if problem is not None:
            raise InputError(f'{path}, record {row + bad}, byte {place}: {problem}; {REMEDY}')
        yield records[0, :count] - HEADER_SIZE
        row += count


def map_shard(shard: ShardFile) -> np.ndarray:
    """Returns a shard's bytes, uint8, mapped into memory.

    Raises:
        InputError: it cannot be read, or it is not the file of the dataset that was opened.
    """
    try:
        data, state = map_file(shard.path)
        is_same = len(data) == shard.bytes and (
            shard.state in (None, _file_state(state)) or shard.crc32c == checksum(data)
        )
    except (FileNotFoundError, InputError):  # the latter if it is a folder now
        is_same = False
    except OSError as error:
        raise InputError(
            f'{shard.path} cannot be read ({error.strerror}); open the dataset again when it can be'
        ) from error
    if not is_same:
        raise InputError(
            f'{shard.path} was replaced, changed or deleted after the dataset was opened; open it again'
        )
    return data


def map_file(path: str) -> tuple[np.ndarray, os.stat_result]:
    """Returns a file's bytes, uint8, mapped into memory, and its state; raises OSError."""
    with open_regular(path) as file:
        state = os.fstat(file.fileno())
        try:
            return read_only(np.asarray(np.memmap(file, np.uint8, 'r'))), state
        except ValueError:
            return read_only(np.empty(0, np.uint8)), state  # an empty file cannot be mapped


class _TFRecordReader:
    """Reads a shard of uncompressed TFRecords, which is mapped into memory."""

    def __init__(self, shard: ShardFile, largest: Mapping[str, int], skips: bool):
        self._shard, self._path, self._rows, self._skips = shard, shard.path, shard.rows, skips
        self._examples = ExampleParser(largest)
        self._known_starts = [(0, 0)]  # (row, its byte), ascending
        self._one_row = np.empty((len(largest), 0), np.int32)  # room for the ids of `row`
        self._one_end = np.empty((len(largest), 2), np.int64)

    @functools.cached_property
    def _data(self) -> np.ndarray:
        return map_shard(self._shard)

    def read(self, first: int, last: int) -> tuple[np.ndarray, EncodedRows]:
        known = bisect.bisect(self._known_starts, (first, 1 << 62)) - 1
        row, start = self._known_starts[known]
        if row < first:
            start, row = self.index(row, start, first, checks=False)[:2]
            if row < first:  # the file is damaged before the first row, and that is skipped
                return np.empty(0, np.int64), EncodedRows.empty(self._examples.features)
        end, end_row, records, damaged = self.index(row, start, last, checks=True)
        if end_row == last and self._known_starts[-1][0] < last:
            self._known_starts.append((last, end))
        if end_row == last == self._rows and end < len(self._data):
            raise InputError(
                f'{self._path} goes on at byte {end}, after the {self._rows} records that the '
                f'manifest states; {self._shard.remedy}'
            )
        sound = np.flatnonzero(damaged == 0)
        if len(sound) < len(damaged) and not self._skips:
            bad = int(np.flatnonzero(damaged)[0])
            raise self._error(first + bad, records[0, bad], _BAD_CONTENT)
        return self._parse(np.ascontiguousarray(records[:, sound]), first + sound)

    def pick(self, numbers: np.ndarray, bounds: np.ndarray | None) -> EncodedRows:
        assert bounds is not None
        records, places = np.empty((2, len(numbers)), np.int64), bounds.astype(np.uint64)
        wrong, status = check_records(self._data, read_only(places), CRC32C_TABLE, records)
        if status != WHOLE:
            raise self._misplaced(int(numbers[wrong]), int(places[0, wrong]))
        return self._parse(records, numbers)[1]

    def row(self, number: int, bounds: tuple[int, int] | None) -> dict[str, np.ndarray]:
        assert bounds is not None
        (start, end), data, examples = bounds, self._data, self._examples
        if not start <= end <= len(data):
            raise self._misplaced(number, start)
        if end - start > self._one_row.shape[1]:
            self._one_row = np.empty((len(examples.features), 2 * (end - start)), np.int32)
        status = read_row(
            data, start, end, CRC32C_TABLE, *examples.for_kernels, self._one_row, self._one_end
        )
        if status == CUT_OFF:
            raise self._misplaced(number, start)
        if status == PARSED:
            ends = self._one_end
            return {
                name: self._one_row[k, : ends.item(k, 1)].copy()
                for k, name in enumerate(examples.features)
            }
        return self.pick(np.array([number]), np.array([[start], [end]])).ids

    def index(
        self, row: int, start: int, last: int, checks: bool
    ) -> tuple[int, int, np.ndarray, np.ndarray]:
        """Indexes the records from `row`, at byte `start`, up to `last`.

        Returns the byte and the row after them, (start, size) of each content as int64[2, n], and
        which are damaged, uint8[n].
        """
        records, damaged = np.empty((2, last - row), np.int64), np.empty(last - row, np.uint8)
        end, count, status = index_records(
            self._data, start, CRC32C_TABLE, checks, records[0], records[1], damaged
        )
        if row + count < last and not self._skips:
            if status == WHOLE:
                raise InputError(
                    f'{self._path} ends after {row + count} records, and the manifest states '
                    f'{self._rows}; {self._shard.remedy}'
                )
            raise self._error(row + count, end + HEADER_SIZE, _RECORD_ERRORS[status])
        return end, row + count, records[:, :count], damaged[:count]

    def _parse(self, records: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, EncodedRows]:
        rows, errors = self._examples.parse_all(self._data, records)
        for number, error in errors.items():
            if not self._skips:
                start = int(records[0, number])
                raise self._error(int(numbers[number]), start, str(error)) from error
        return np.delete(numbers, [*errors]), rows

    def _misplaced(self, record: int, start: int) -> InputError:
        return InputError(
            f'{self._path}, record {record}, byte {start}: it is damaged, or its index is; '
            f'{self._shard.remedy}'
        )

    def _error(self, record: int, content_start: int, problem: str) -> InputError:
        return InputError(
            f'{self._path}, record {record}, byte {content_start - HEADER_SIZE}: {problem}; '
            f"{self._shard.remedy}, or pass on_error='skip'"
        )


class ExampleParser:
    """Parses tf.train.Examples: the ids of some features, of which the largest is known.

    `for_kernels` are the arguments `names`, `bounds` and `largest` of kernels.
    """

    def __init__(self, largest: Mapping[str, int]):
        self.features = tuple(largest)
        self._largest = largest
        encoded = [name.encode() for name in largest]
        self.for_kernels = (
            read_only(np.frombuffer(b''.join(encoded), np.uint8)),
            read_only(row_offsets([len(name) for name in encoded])),
            read_only(np.array([*largest.values()], np.int64)),
        )

    def parse(self, data: np.ndarray, records: np.ndarray) -> tuple[EncodedRows, np.ndarray]:
        """Parses the contents of records, (start, size) in `data` as int64[2, n].

        Returns n rows, and the numbers of those that the kernel does not parse, which are empty.
        """
        count, features = records.shape[1], len(self.features)
        room = features, int(records[1].sum())
        if count > 1 and math.prod(room) * np.dtype(np.int32).itemsize > _PARSED_BYTES:
            half = count // 2
            first, wrong = self.parse(data, np.ascontiguousarray(records[:, :half]))
            second, also_wrong = self.parse(data, np.ascontiguousarray(records[:, half:]))
            return EncodedRows.joined([first, second]), np.append(wrong, half + also_wrong)
        ids = np.empty(room, np.int32)
        offsets = np.empty((features, count + 1), np.int64)
        marks = np.empty(count, np.uint8)
        parse_records(data, read_only(records), *self.for_kernels, ids, offsets, marks)
        rows = EncodedRows(
            {name: ids[k, : offsets[k, -1]] for k, name in enumerate(self.features)},
            {name: offsets[k] for k, name in enumerate(self.features)},
        )
        return rows, np.flatnonzero(marks == UNPARSED)

    def parse_all(
        self, data: np.ndarray, records: np.ndarray
    ) -> tuple[EncodedRows, dict[int, ValueError]]:
        """Parses what `parse` takes, in Python where the kernel does not.

        Returns the rows that are Examples, and by the numbers of the others their errors.
        """
        rows, unparsed = self.parse(data, records)
        if not len(unparsed):
            return rows, {}
        # Each goes between the rows before it and those after.
        parts, errors, done = [], dict[int, ValueError](), 0
        for number in unparsed.tolist():
            parts.append(rows.part(done, number))
            start, size = records[:, number].tolist()
            try:
                parts.append(self.parse_in_python(data[start : start + size].tobytes()))
            except ValueError as error:
                errors[number] = error
            done = number + 1
        parts.append(rows.part(done, records.shape[1]))
        return EncodedRows.joined(parts), errors

    def count(self, data: np.ndarray, records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the numbers of ids, uint32[n, features], and the numbers of records that `parse` does not parse.

        These have any numbers of ids.
        """
        marks = np.empty(records.shape[1], np.uint8)
        counts = np.zeros((len(marks), len(self.features)), np.uint32)
        mark_rows(data, read_only(records), *self.for_kernels, marks, counts)
        return counts, np.flatnonzero(marks == UNPARSED)

    def parse_in_python(self, content: bytes) -> EncodedRows:
        """Parses one Example, however it is laid out.

        Raises ValueError if it is not an Example, lacks a feature, or has a number that is not an id.
        """
        example = parse_features(content)
        rows = {}
        for name, largest in self._largest.items():
            if name not in example:
                raise ValueError(f'this example has no feature {name!r}')
            ids = [id_ for id_ in example[name] if isinstance(id_, int)]
            if len(ids) < len(example[name]):
                raise ValueError(f'feature {name!r} is not a list of int64')
            wrong = next((id_ for id_ in ids if not 0 <= id_ <= largest), None)
            if wrong is not None:
                raise ValueError(
                    f'feature {name!r} holds {wrong}, which is not an id from 0 to {largest}'
                )
            rows[name] = np.array(ids, np.int32)
        return EncodedRows(rows, {name: np.array([0, len(ids)]) for name, ids in rows.items()})


class _ParquetReader:
    """Reads a shard in Parquet by row groups.

    Pages of Parquet have no checksums, so the file is read once to compare its own. If it differs
    and damage is skipped, all rows are damaged, since any may be. Otherwise a damaged group is.
    """

    def __init__(self, shard: ShardFile, largest: Mapping[str, int], skips: bool):
        self._shard, self._path, self._rows = shard, shard.path, shard.rows
        self._largest, self._skips = dict(largest), skips

    @functools.cached_property
    def _data(self) -> np.ndarray:
        return map_shard(self._shard)

    @functools.cached_property
    def _is_sound(self) -> bool:
        return checksum(self._data) == self._shard.crc32c

    @functools.cached_property
    def _file(self) -> pq.ParquetFile:
        try:
            if not self._is_sound and not self._skips:
                raise self._error(f'its CRC-32C is not the {self._shard.crc32c} of the manifest')
            file = pq.ParquetFile(pa.BufferReader(self._data))
            metadata, schema = file.metadata, file.schema_arrow
        except UNREADABLE as error:
            raise self._error(f'it cannot be opened ({error})') from error
        sizes = _group_sizes(metadata)
        if metadata.num_rows != self._rows or sum(sizes) != self._rows:
            raise self._error(f'it has {sum(sizes)} rows, and the manifest states {self._rows}')
        if not all(0 <= size <= _MOST_GROUP_ROWS for size in sizes):
            raise self._error(
                f'it has a group of {max(sizes, key=abs)} rows, and {_MOST_GROUP_ROWS} can be read'
            )
        for name in self._largest:
            if problem := column_problem(schema, name):
                raise self._error(problem)
        return file

    @functools.cached_property
    def _bounds(self) -> list[int]:
        """The first row of each group, and the number of rows."""
        return row_offsets(_group_sizes(self._file.metadata)).tolist()

    def read(self, first: int, last: int) -> tuple[np.ndarray, EncodedRows]:
        # The bounds first: they refuse a number of rows that is only a claim.
        bounds = self._bounds
        numbers, parts = [np.empty(0, np.int64)], [EncodedRows.empty(self._largest)]
        if self._is_sound and first < last:
            for group in range(
                bisect.bisect_right(bounds, first) - 1, bisect.bisect_left(bounds, last)
            ):
                start = bounds[group]
                try:
                    rows = self._group(group)
                except (*UNREADABLE, BadColumn) as error:
                    if self._skips:
                        continue
                    raise self._error(f'its group {group}, from row {start} on: {error}') from error
                begin, end = max(first, start), min(last, bounds[group + 1])
                numbers.append(np.arange(begin, end))
                parts.append(rows.part(begin - start, end - start))
        return np.concatenate(numbers), EncodedRows.joined(parts)

    def pick(self, numbers: np.ndarray, bounds: np.ndarray | None) -> EncodedRows:
        parts = [EncodedRows.empty(self._largest)]
        parts += [self.read(number, number + 1)[1] for number in numbers.tolist()]
        return EncodedRows.joined(parts)

    def row(self, number: int, bounds: tuple[int, int] | None) -> dict[str, np.ndarray]:
        return self.read(number, number + 1)[1].ids

    @functools.lru_cache(maxsize=1)  # noqa: B019 - the last group, where the next window begins
    def _group(self, group: int) -> EncodedRows:
        table = self._file.read_row_group(group, columns=[*self._largest])
        first, last = self._bounds[group : group + 2]
        if table.num_rows != last - first:
            raise BadColumn(f'it has {table.num_rows} rows instead of {last - first}')
        ids, offsets = {}, {}
        for name, largest in self._largest.items():
            ids[name], offsets[name] = column_ids(table.column(name), name, first, largest)
        return EncodedRows(ids, offsets)

    def _error(self, problem: str) -> InputError:
        return InputError(f"{self._path}: {problem}; {self._shard.remedy}, or pass on_error='skip'")


def _group_sizes(metadata: pq.FileMetaData) -> list[int]:
    return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]


class BadColumn(Exception):
    """A column of a row group does not hold ids.

    Attributes:
        row: that has something else; None: the whole group.
    """

    def __init__(self, problem: str, row: int | None = None):
        super().__init__(problem)
        self.row = row


def column_problem(schema: pa.Schema, name: str) -> str | None:
    """Returns why a file with this schema has no column of ids with a name; None if it has one."""
    count = schema.names.count(name)
    if not count:
        return f'it has no column {name!r}'
    if count > 1:
        return f'it has {count} columns {name!r} instead of one'
    type_ = schema.field(name).type
    is_list = pa.types.is_list(type_) or pa.types.is_large_list(type_)
    if not (is_list and pa.types.is_integer(type_.value_type)):
        return f'its column {name!r} is {type_}, not a list of whole numbers'
    return None


def column_ids(
    column: pa.ChunkedArray, name: str, first: int, largest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ids of a column whose first row has the number `first`, and their offsets.

    Raises:
        BadColumn: a row has no ids, or numbers that are not ids.
    """
    column = column.combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    if column.null_count:
        row = int(np.flatnonzero(column.is_null())[0])
        raise BadColumn(f'column {name!r} of row {first + row} is null', first + row)
    offsets = np.asarray(column.offsets).astype(np.int64)
    offsets -= offsets[0]
    values = column.flatten()

    def not_an_id(index: int) -> BadColumn:
        row = int(np.searchsorted(offsets, index, side='right')) - 1
        return BadColumn(
            f'column {name!r} of row {first + row} holds {values[index].as_py()}, which is not an '
            f'id from 0 to {largest}',
            first + row,
        )

    if values.null_count:
        raise not_an_id(int(np.flatnonzero(values.is_null())[0]))
    numbers = np.asarray(values)
    if numbers.itemsize < np.dtype(np.int32).itemsize:
        numbers = numbers.astype(np.int32)
    # Read without their signs, negative numbers are larger than any id.
    unsigned = numbers.view(f'u{numbers.itemsize}')
    if len(unsigned) and unsigned.max() > largest:
        raise not_an_id(int(np.argmax(unsigned > largest)))
    return numbers.astype(np.int32, copy=False), offsets


class Readable(Protocol):
    """What is read from its beginning to its end."""

    def read(self, size: int, /) -> bytes: ...


def stream_rows(stream: Readable, features: Sequence[str], name: str) -> Iterator[EncodedRows]:
    """Yields all rows of a stream of TFRecords that this program wrote.

    Raises:
        RuntimeError: naming `name`, if it is damaged or cut off.
    """
    examples = ExampleParser(dict.fromkeys(features, LARGEST_ID))
    records = np.empty((2, _STREAM_RECORDS), np.int64)
    damaged = np.empty(_STREAM_RECORDS, np.uint8)
    rest = b''
    while read := stream.read(_STREAM_BYTES):
        data = read_only(np.frombuffer(rest + read, np.uint8))
        place, is_done = 0, False
        while not is_done:
            place, count, status = index_records(
                data, place, CRC32C_TABLE, True, records[0], records[1], damaged
            )
            if status == HEAD_DAMAGED or damaged[:count].any():
                raise RuntimeError(f'{name} is damaged')
            is_done = status in (HEAD_CUT_OFF, CUT_OFF) or place == len(data)
            if count:
                rows, unparsed = examples.parse(data, np.ascontiguousarray(records[:, :count]))
                if len(unparsed):
                    raise RuntimeError(
                        f'{name} holds a record that is not an example of {", ".join(features)}'
                    )
                yield rows
        rest = data[place:].tobytes()
    if rest:
        raise RuntimeError(f'{name} is cut off')


class PieceLineWriter:
    """Writes rows of ids as lines of pieces with a U+0020 between them; threads can share it."""

    def __init__(self, pieces: Sequence[str], escapes: bool = True):
        """Takes the pieces by id.

        Args:
            pieces: none has a U+0020 or a line feed in it unless it is escaped.
            escapes: whether white space in pieces is escaped, as `text.whitespace` does; it is not
                in lines of subword-nmt.
        """
        texts = map(escape_piece, pieces) if escapes else pieces
        encoded = [piece.encode('utf-8', 'surrogatepass') for piece in texts]
        # Every piece twice, before a blank and at a line's end; the last entry is an empty line.
        entries = [
            *(piece + b' ' for piece in encoded),
            *(piece + b'\n' for piece in encoded),
            b'\n',
        ]
        self._count = len(encoded)
        self._text = read_only(np.frombuffer(b''.join(entries), np.uint8))
        offsets = row_offsets([len(entry) for entry in entries])
        self._starts, self._ends = offsets[:-1].copy(), offsets[1:].copy()

    def lines(self, ids: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Returns the lines of rows as UTF-8, uint8, each with its line feed.

        Args:
            ids: int32, of all rows.
            offsets: int64[rows + 1].
        """
        has_ids = np.diff(offsets) > 0
        sizes = np.maximum(np.diff(offsets), 1)
        entries = np.full(int(sizes.sum()), 2 * self._count, np.int64)
        entries[np.repeat(has_ids, sizes)] = ids[offsets[0] : offsets[-1]]
        entries[row_offsets(sizes)[1:][has_ids] - 1] += self._count
        starts, ends = read_only(self._starts[entries]), read_only(self._ends[entries])
        return pick_ranges(self._text, starts, ends)[0]
