"""The rows of a shard: TFRecords, Parquet or lines of pieces, at any place or from end to end.

Rows are ids by feature, one after another in arrays. In lines of text pieces stand between blanks
(U+0020); white space in a piece is escaped, see `text.whitespace`.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tokcore.errors import InputError
from tokcore.kernels.bytes import CRC32C, crc_table, pick_ranges, row_offsets
from tokcore.kernels.jit import read_only
from tokcore.reading.record_kernels import (
    CUT_OFF,
    HEAD_CUT_OFF,
    HEAD_DAMAGED,
    LARGEST_ID,
    ODD,
    SMALLEST_RECORD,
    WHOLE,
    index_records,
    parse_records,
)
from tokcore.records.tfrecord import parse_example
from tokcore.regular_files import open_regular
from tokcore.text.whitespace import escape_piece

GROUP_ROWS = 1 << 14
"""Rows of a group: what is read at once for any of them."""

_MOST_GROUP_ROWS = 1 << 20
"""Of a group that is read, as PyArrow writes them at most if nothing else is asked for."""

_PIECE = 1 << 18  # bytes; a part of a file that stays in the cache

_UNREADABLE = (OSError, ValueError, KeyError, MemoryError, OverflowError, pa.ArrowException)
"""What PyArrow raises for files of any bytes; `UnicodeDecodeError` for names is a `ValueError`."""

_STREAM_PIECE = 8 << 20
_MOST_RECORDS = 1 << 16

_WRONG = {
    HEAD_CUT_OFF: 'the file ends within the head of a TFRecord',
    HEAD_DAMAGED: "the checksum of a TFRecord's length does not match",
    CUT_OFF: 'the file ends within a TFRecord',
}
_REMEDY = 'write the shards again'


@dataclass(frozen=True)
class ShardFile:
    """A shard as the manifest has it: its path, examples, size in bytes, and CRC-32C in hexadecimal."""

    path: str
    rows: int
    bytes: int
    crc32c: str


def open_shard(
    shard: ShardFile, features: Sequence[str], id_counts: Mapping[str, int], skips: bool = False
) -> RowReader:
    """Returns the reader of a shard, by its name.

    Args:
        shard: the file.
        features: those that are wanted.
        id_counts: by feature, how many ids its vocabulary has; others are damage.
        skips: whether damaged records are passed over; otherwise they are errors.

    Raises:
        InputError: it is to be empty, and is not.
    """
    reader: RowReader
    if shard.path.endswith('.parquet'):
        reader = ParquetRows(shard.path, shard.rows, features, skips, id_counts, shard.crc32c)
    else:
        reader = ShardRows(shard.path, shard.rows, features, skips, id_counts)
    if not shard.rows:
        reader.read(0, 0)  # nobody reads what has no rows, and rows in it would be lost
    return reader


class RowReader(Protocol):
    """Gives the rows of a shard, at any place."""

    def read(self, first: int, last: int) -> tuple[np.ndarray, EncodedRows]:
        """Returns the numbers of rows `first` to `last` that are sound, and these rows."""


def write_parquet(stream: BinaryIO, parts: Iterable[EncodedRows], features: Sequence[str]) -> int:
    """Writes rows as a Parquet file, whose bytes do not depend on their parts; returns how many."""
    kind = pa.list_(pa.int32())
    schema = pa.schema([pa.field(name, kind, nullable=False) for name in features])
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
            writer.write_table(pa.Table.from_arrays(columns, schema=schema), GROUP_ROWS)

        waiting: EncodedRows | None = None
        for part in parts:
            rows = part if waiting is None else EncodedRows.joined([waiting, part])
            whole = len(rows) - len(rows) % GROUP_ROWS
            for first in range(0, whole, GROUP_ROWS):
                write(rows.take(np.arange(first, first + GROUP_ROWS)))
            waiting = rows.take(np.arange(whole, len(rows)))
            written += len(part)
        if waiting is not None and len(waiting):
            write(waiting)
    return written


class ParquetRows:
    """Reads a shard in Parquet, as `ShardRows` reads TFRecords; for one thread."""

    def __init__(
        self,
        path: str,
        rows: int,
        features: Sequence[str],
        skips: bool = False,
        id_counts: Mapping[str, int] | None = None,
        crc32c: str | None = None,
    ):
        """Takes a shard of so many rows by the manifest.

        Args:
            path: of the file.
            rows: that it has.
            features: the columns that are wanted.
            skips: whether groups of rows that cannot be read, or hold what is no id, are passed
                over; and all rows of a file with another checksum, which may be any.
            id_counts: how many ids features have, by name; None: as many as int32 holds.
            crc32c: of the file, eight hexadecimal digits: Parquet's pages have no checksums, so it
                is read once to compare this; None: it is not.
        """
        self.path, self.rows = path, rows
        self._features, self._skips = tuple(features), skips
        counts = id_counts or {}
        self._largest = {name: counts.get(name, LARGEST_ID + 1) - 1 for name in features}
        self._crc32c = crc32c

    @functools.cached_property
    def _is_whole(self) -> bool:
        if self._crc32c is None:
            return True
        found = 0
        with open_regular(self.path) as file:
            while piece := file.read(_PIECE):
                found = google_crc32c.extend(found, piece)
        return f'{found:08x}' == self._crc32c

    @functools.cached_property
    def _file(self) -> pq.ParquetFile:
        try:
            if not self._is_whole and not self._skips:
                raise self._damage(f'its CRC-32C is not the {self._crc32c} of the manifest')
            file = pq.ParquetFile(self.path)
            metadata, schema = file.metadata, file.schema_arrow
        except _UNREADABLE as error:
            raise self._damage(f'it cannot be opened ({error})') from error
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        if metadata.num_rows != self.rows or sum(sizes) != self.rows:
            raise self._damage(f'it has {sum(sizes)} rows, and the manifest tells of {self.rows}')
        if not all(0 <= size <= _MOST_GROUP_ROWS for size in sizes):
            raise self._damage(
                f'it has a group of {max(sizes, key=abs)} rows, and {_MOST_GROUP_ROWS} can be read'
            )
        for name in self._features:
            if (times := schema.names.count(name)) != 1:
                raise self._damage(
                    f'it has {times} columns {name!r} in place of one' if times else
                    f'it has no column {name!r}'
                )  # fmt: skip
            kind = schema.field(name).type
            is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
            if not (is_list and pa.types.is_integer(kind.value_type)):
                raise self._damage(f'its column {name!r} is {kind} and no list of whole numbers')
        return file

    @functools.cached_property
    def _bounds(self) -> np.ndarray:
        """int64[groups + 1]: where groups begin."""
        metadata = self._file.metadata
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        return np.cumsum([0, *sizes])

    def read(self, first: int, last: int) -> tuple[np.ndarray, EncodedRows]:
        """Returns rows as `ShardRows.read` does; raises InputError naming the shard and group."""
        empty = EncodedRows(
            {name: np.empty(0, np.int32) for name in self._features},
            {name: np.zeros(1, np.int64) for name in self._features},
        )
        numbers, parts = [np.empty(0, np.int64)], [empty]
        # The bounds first: they refuse a number of rows that is only a claim.
        groups = range(
            int(np.searchsorted(self._bounds, first, side='right')) - 1,
            int(np.searchsorted(self._bounds, last, side='left')),
        )
        if not self._is_whole:
            return numbers[0], empty
        for group in groups if first < last else ():
            start = int(self._bounds[group])
            try:
                rows = self._group(group)
            except (*_UNREADABLE, _NoIds) as error:
                if self._skips:
                    continue
                raise self._damage(f'its group {group}, from row {start} on: {error}') from error
            own = np.arange(max(first, start), min(last, int(self._bounds[group + 1])))
            numbers.append(own)
            parts.append(rows.take(own - start))
        return np.concatenate(numbers), EncodedRows.joined(parts)

    @functools.lru_cache(maxsize=1)  # noqa: B019 - one group, the last, which the next rows are of too
    def _group(self, group: int) -> EncodedRows:
        table = self._file.read_row_group(group, columns=[*self._features])
        first, last = self._bounds[group : group + 2].tolist()
        if table.num_rows != last - first:
            raise _NoIds(f'it has {table.num_rows} rows in place of {last - first}')
        ids, offsets = {}, {}
        for name in self._features:
            column = table.column(name).combine_chunks()
            column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
            ids[name], offsets[name] = _ids_of(column, name, first, self._largest[name])
        return EncodedRows(ids, offsets)

    def _damage(self, what: str) -> InputError:
        return InputError(f"{self.path}: {what}; write the shards again, or pass on_error='skip'")


class _NoIds(Exception):
    """Rows of a group are none of ids; which, and why."""


def _ids_of(
    column: pa.ListArray, name: str, first: int, largest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ids of a column, int32, and where each row begins; its first row is `first`."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null())[0])
        raise _NoIds(f'column {name!r} of row {first + row} is null')
    offsets = np.asarray(column.offsets).astype(np.int64)
    offsets -= offsets[0]
    found = column.flatten()

    def no_id(place: int) -> _NoIds:
        row = int(np.searchsorted(offsets, place, side='right')) - 1
        return _NoIds(
            f'column {name!r} of row {first + row} holds {found[place].as_py()}, which is no id from '
            f'0 to {largest}'
        )

    if found.null_count:
        raise no_id(int(np.flatnonzero(found.is_null())[0]))
    numbers = np.asarray(found)
    if numbers.itemsize < np.dtype(np.int32).itemsize:
        numbers = numbers.astype(np.int32)
    # Read without their signs, negative numbers are larger than any id.
    unsigned = numbers.view(f'u{numbers.itemsize}')
    if len(unsigned) and unsigned.max() > largest:
        raise no_id(int(np.argmax(unsigned > largest)))
    return numbers.astype(np.int32, copy=False), offsets


def stream_rows(stream: BinaryIO, features: Sequence[str], name: str) -> Iterator[EncodedRows]:
    """Yields all rows of a stream of whole records that this program wrote.

    Raises:
        RuntimeError: naming `name`, if it is damaged or cut off.
    """
    table = crc_table(CRC32C)
    names = [each.encode() for each in features]
    packed = read_only(np.frombuffer(b''.join(names), np.uint8))
    bounds = read_only(row_offsets([len(each) for each in names]))
    records = np.empty((2, _MOST_RECORDS), np.int64)
    damaged = np.empty(_MOST_RECORDS, np.uint8)
    waiting = b''
    while piece := stream.read(_STREAM_PIECE):
        data = read_only(np.frombuffer(waiting + piece, np.uint8))
        place, ended = 0, False
        while not ended:
            place, count, wrong = index_records(
                data, place, table, True, records[0], records[1], damaged
            )
            if wrong == HEAD_DAMAGED or damaged[:count].any():
                raise RuntimeError(f'{name} is damaged')
            ended = wrong in (HEAD_CUT_OFF, CUT_OFF) or place == len(data)
            if count:
                yield _parsed(data, records[:, :count], packed, bounds, features, name)
        waiting = data[place:].tobytes()
    if waiting:
        raise RuntimeError(f'{name} is cut off')


def _parsed(
    data: np.ndarray,
    records: np.ndarray,
    names: np.ndarray,
    bounds: np.ndarray,
    features: Sequence[str],
    name: str,
) -> EncodedRows:
    count = records.shape[1]
    ids = np.empty((len(features), int(records[1].sum())), np.int32)
    offsets = np.empty((len(features), count + 1), np.int64)
    marks = np.empty(count, np.uint8)
    largest = read_only(np.full(len(features), LARGEST_ID, np.int64))
    parse_records(
        data, read_only(np.ascontiguousarray(records)), names, bounds, largest, ids, offsets, marks
    )
    if (marks == ODD).any():
        raise RuntimeError(f'{name} holds what is no example of {", ".join(features)}')
    return EncodedRows(
        {each: ids[k, : offsets[k, -1]] for k, each in enumerate(features)},
        {each: offsets[k] for k, each in enumerate(features)},
    )


class ShardRows:
    """Reads a shard of uncompressed TFRecords; for one thread."""

    def __init__(
        self,
        path: str,
        rows: int,
        features: Sequence[str],
        skips: bool = False,
        id_counts: Mapping[str, int] | None = None,
    ):
        """Takes a shard; it is mapped, and read where rows are asked for.

        Args:
            path: of the file.
            rows: that it has, by the manifest.
            features: the names of those that are wanted, all of int64.
            skips: whether damaged records are passed over; otherwise they are errors.
            id_counts: how many ids features have, by name; None: as many as int32 holds.
        """
        self.path, self.rows = path, rows
        self._features = tuple(features)
        self._skips = skips
        self._known = [(0, 0)]  # (row, its byte), ascending
        coded = [name.encode() for name in features]
        self._names = read_only(np.frombuffer(b''.join(coded), np.uint8))
        self._bounds = read_only(row_offsets([len(name) for name in coded]))
        counts = id_counts or {}
        self._largest = {name: counts.get(name, LARGEST_ID + 1) - 1 for name in features}
        self._largest_ids = read_only(np.array([*self._largest.values()], np.int64))

    @functools.cached_property
    def _data(self) -> np.ndarray:
        try:
            with open_regular(self.path) as file:
                return read_only(np.asarray(np.memmap(file, np.uint8, 'r')))
        except ValueError:
            return read_only(np.empty(0, np.uint8))  # an empty file cannot be mapped
        except OSError as error:
            raise InputError(
                f'{self.path} cannot be read ({error.strerror}); give a folder with all its shards'
            ) from error

    def read(self, first: int, last: int) -> tuple[np.ndarray, EncodedRows]:
        """Returns rows `first` to `last`, that not among them: their numbers, and their ids.

        Numbers lack where records are damaged and these are passed over.

        Raises:
            InputError: naming shard, record and byte offset, if a record is damaged or cut off, is
                no example with these features, has what is no id, or is not there at all.
        """
        row, place = self._known[bisect.bisect(self._known, (first, 1 << 62)) - 1]
        if row < first:
            place, row = self._index(row, place, first, checks=False)[:2]
            if row < first:  # what is wrong was passed over
                return np.empty(0, np.int64), self._parsed(np.empty((2, 0), np.int64))[1]
        behind, end, records, damaged = self._index(row, place, last, checks=True)
        if end == last and self._known[-1][0] < last:
            self._known.append((last, behind))
        if end == last == self.rows and behind < len(self._data):
            raise InputError(
                f'{self.path} goes on at byte {behind}, behind the {self.rows} records that the '
                f'manifest tells of; {_REMEDY}'
            )
        sound = np.flatnonzero(damaged == 0)
        if len(sound) < len(damaged) and not self._skips:
            bad = int(np.flatnonzero(damaged)[0])
            raise self._damage(
                first + bad,
                int(records[0, bad]) - 12,
                "the checksum of a TFRecord's content does not match",
            )
        kept, found = self._parsed(np.ascontiguousarray(records[:, sound]), first + sound)
        return kept, found

    def _index(
        self, row: int, place: int, last: int, checks: bool
    ) -> tuple[int, int, np.ndarray, np.ndarray]:
        """Returns the place and the number behind the records found, these, and which are damaged."""
        # No more records than these can be found, whatever the manifest tells.
        count = min(last - row, (len(self._data) - place) // SMALLEST_RECORD + 1)
        records, damaged = np.empty((2, count), np.int64), np.empty(count, np.uint8)
        place, found, wrong = index_records(
            self._data, place, _crc32c(), checks, records[0], records[1], damaged
        )
        if row + found < last and not self._skips:
            if wrong == WHOLE:
                raise InputError(
                    f'{self.path} ends after {row + found} records, and the manifest tells of '
                    f'{self.rows}; {_REMEDY}'
                )
            raise self._damage(row + found, place, _WRONG[wrong])
        return place, row + found, records[:, :found], damaged[:found]

    def _damage(self, record: int, place: int, what: str) -> InputError:
        return InputError(
            f'{self.path}, record {record}, byte {place}: {what}; {_REMEDY}, or pass '
            "on_error='skip'"
        )

    def _parsed(
        self, records: np.ndarray, numbers: np.ndarray | None = None
    ) -> tuple[np.ndarray, EncodedRows]:
        count, features = records.shape[1], len(self._features)
        numbers = np.arange(count) if numbers is None else numbers
        ids = np.empty((features, int(records[1].sum())), np.int32)
        offsets = np.empty((features, count + 1), np.int64)
        marks = np.empty(count, np.uint8)
        parse_records(
            self._data, read_only(records), self._names, self._bounds, self._largest_ids, ids,
            offsets, marks,
        )  # fmt: skip
        rows = EncodedRows(
            {name: ids[k, : offsets[k, -1]] for k, name in enumerate(self._features)},
            {name: offsets[k] for k, name in enumerate(self._features)},
        )
        odd = np.flatnonzero(marks == ODD)
        return (numbers, rows) if not len(odd) else self._with_odd(records, numbers, rows, odd)

    def _with_odd(
        self, records: np.ndarray, numbers: np.ndarray, rows: EncodedRows, odd: np.ndarray
    ) -> tuple[np.ndarray, EncodedRows]:
        """Puts the records that the kernel left in their places, parsed by the plain parser."""
        parts, kept, done = [], np.ones(len(numbers), bool), 0
        for number in odd.tolist():
            parts.append(rows.take(np.arange(done, number)))
            try:
                parts.append(self._plain(records[:, number]))
            except (ValueError, UnicodeDecodeError) as error:
                if not self._skips:
                    place = int(records[0, number]) - 12
                    raise self._damage(int(numbers[number]), place, str(error)) from error
                kept[number] = False
            done = number + 1
        parts.append(rows.take(np.arange(done, len(numbers))))
        return numbers[kept], EncodedRows.joined(parts)

    def _plain(self, record: np.ndarray) -> EncodedRows:
        start, length = record.tolist()
        parsed = parse_example(self._data[start : start + length].tobytes())
        for name in self._features:
            if name not in parsed:
                raise ValueError(f'this example has no feature {name!r}')
            largest = self._largest[name]
            wrong = next((id_ for id_ in parsed[name] if not 0 <= id_ <= largest), None)
            if wrong is not None:
                raise ValueError(
                    f'feature {name!r} holds {wrong}, which is no id from 0 to {largest}'
                )
        ids = {name: np.array(parsed[name], np.int32) for name in self._features}
        return EncodedRows(ids, {name: np.array([0, len(each)]) for name, each in ids.items()})


@functools.cache
def _crc32c() -> np.ndarray:
    return crc_table(CRC32C)


@dataclass(frozen=True)
class EncodedRows:
    """Rows of ids by feature.

    Attributes:
        ids: int32 by feature, those of all rows one after another.
        offsets: int64[rows + 1] by feature: row i is ids[offsets[i]:offsets[i + 1]].
    """

    ids: dict[str, np.ndarray]
    offsets: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(next(iter(self.offsets.values()))) - 1

    def take(self, which: np.ndarray) -> EncodedRows:
        """Returns the rows of these numbers, in this order."""
        ids, offsets = {}, {}
        for name, own in self.offsets.items():
            starts, lengths = own[which], own[which + 1] - own[which]
            offsets[name] = row_offsets(lengths)
            shifts = np.repeat(starts - offsets[name][:-1], lengths)
            ids[name] = self.ids[name][np.arange(offsets[name][-1]) + shifts]
        return EncodedRows(ids, offsets)

    @classmethod
    def joined(cls, parts: Sequence[EncodedRows]) -> EncodedRows:
        """Returns the rows of one or more parts, one after another."""
        if len(parts) == 1:
            return parts[0]
        ids = {name: np.concatenate([each.ids[name] for each in parts]) for name in parts[0].ids}
        lengths = {
            name: np.concatenate([np.diff(each.offsets[name]) for each in parts]) for name in ids
        }
        return cls(ids, {name: row_offsets(each) for name, each in lengths.items()})


class PieceLines:
    """Writes rows of ids as lines of pieces; threads can share it."""

    def __init__(self, pieces: Sequence[str], escapes: bool = True):
        """Takes the pieces by id.

        Args:
            pieces: none has a U+0020 or a line feed in it unless it is escaped.
            escapes: whether white space in pieces is escaped: not in subword-nmt's lines.
        """
        shown = map(escape_piece, pieces) if escapes else pieces
        coded = [piece.encode('utf-8', 'surrogatepass') for piece in shown]
        # A piece is followed by a blank, or the last of a line by its end; one more is an empty line.
        ended = [*(piece + b' ' for piece in coded), *(piece + b'\n' for piece in coded), b'\n']
        self._size = len(coded)
        self._text = read_only(np.frombuffer(b''.join(ended), np.uint8))
        offsets = row_offsets([len(each) for each in ended])
        self._starts, self._ends = offsets[:-1].copy(), offsets[1:].copy()

    def lines(self, ids: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Returns the lines of rows, UTF-8, with line feeds.

        Args:
            ids: int32, of all rows.
            offsets: int64[rows + 1].
        """
        has_ids = np.diff(offsets) > 0
        sizes = np.maximum(np.diff(offsets), 1)
        marked = np.full(int(sizes.sum()), 2 * self._size, np.int64)
        marked[np.repeat(has_ids, sizes)] = ids[offsets[0] : offsets[-1]]
        marked[row_offsets(sizes)[1:][has_ids] - 1] += self._size
        starts, ends = read_only(self._starts[marked]), read_only(self._ends[marked])
        return pick_ranges(self._text, starts, ends)[0]
