"""The rows of a shard: found, checked and parsed by the window, at any place of it."""

from __future__ import annotations

import bisect
import functools
from collections.abc import Mapping, Sequence

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.compiled.crc import CRC32C, crc_table
from tokcore.compiled.ragged_bytes import row_offsets
from tokcore.errors import InputError
from tokcore.reading.shards.record_kernels import (
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
from tokcore.reading.shards.rows import Rows
from tokcore.records.tfrecord_reader import parse_example
from tokcore.regular_files import open_regular

_WRONG = {
    HEAD_CUT_OFF: 'the file ends within the head of a TFRecord',
    HEAD_DAMAGED: "the checksum of a TFRecord's length does not match",
    CUT_OFF: 'the file ends within a TFRecord',
}
_REMEDY = 'write the shards again'


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

    def read(self, first: int, last: int) -> tuple[np.ndarray, Rows]:
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
            f"{self.path}, record {record}, byte {place}: {what}; {_REMEDY}, or pass "
            "on_error='skip'"
        )

    def _parsed(
        self, records: np.ndarray, numbers: np.ndarray | None = None
    ) -> tuple[np.ndarray, Rows]:
        count, features = records.shape[1], len(self._features)
        numbers = np.arange(count) if numbers is None else numbers
        ids = np.empty((features, int(records[1].sum())), np.int32)
        offsets = np.empty((features, count + 1), np.int64)
        marks = np.empty(count, np.uint8)
        parse_records(
            self._data, read_only(records), self._names, self._bounds, self._largest_ids, ids,
            offsets, marks,
        )  # fmt: skip
        rows = Rows(
            {name: ids[k, : offsets[k, -1]] for k, name in enumerate(self._features)},
            {name: offsets[k] for k, name in enumerate(self._features)},
        )
        odd = np.flatnonzero(marks == ODD)
        return (numbers, rows) if not len(odd) else self._with_odd(records, numbers, rows, odd)

    def _with_odd(
        self, records: np.ndarray, numbers: np.ndarray, rows: Rows, odd: np.ndarray
    ) -> tuple[np.ndarray, Rows]:
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
        return numbers[kept], Rows.joined(parts)

    def _plain(self, record: np.ndarray) -> Rows:
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
        return Rows(ids, {name: np.array([0, len(each)]) for name, each in ids.items()})


@functools.cache
def _crc32c() -> np.ndarray:
    return crc_table(CRC32C)
