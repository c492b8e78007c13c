"""Sorted runs and their merge: a part of the corpus as TFRecords by key, in one file.

    bucket, for each that has rows:
        keys        uint64[rows], ascending
        lengths     uint32[rows], of whole TFRecords
        records     the TFRecords, one after another
    rejected        lines of JSON, for each split's reason
    stats           JSON: what `RunStats` holds
    index           an entry of 32 bytes for each bucket, with a checksum that begins with the fingerprint
    footer          96 bytes: magic 8 | fingerprint 16 | run, part, last, buckets, rows: 5 of
                    uint64 | stats: offset, size: 2 of uint64 | CRC32C of stats, of index, 4 bytes
                    of zeros, CRC32C of the footer up to here

Numbers are little-endian. A run depends on the plan of the fingerprint alone, and is whole if its
footer is, which is written last. A shard is a contiguous range of buckets, so its slice of a run's
index is one small read, and the rows of some buckets of all runs, sorted, are a piece of the shard.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Iterable, Sequence
from typing import BinaryIO

import google_crc32c
import numpy as np

from tokcore.corpus.corpus import OpenBinary
from tokcore.corpus.stats import LineTally, RangeChecksum, RejectedLines, add_tallies, join_adjacent
from tokcore.corpus.storage import open_path
from tokcore.errors import InputError
from tokcore.format_numbers import SHUFFLE
from tokcore.kernels.bytes import row_offsets
from tokcore.kernels.sorting import SortedRows
from tokcore.records.examples import EncodedBlock
from tokcore.records.tfrecord import FramedRows

BUFFERED_ROW_BYTES = 48
"""What a row takes beside its record, at most: key, length, start, place in the order, and of three
of these a copy while they are sorted."""

ROW_BYTES = 12
"""What a row takes beside its record: its key and its length."""

_MAGIC = b'tbrun\x00\x00' + bytes([SHUFFLE])
_FOOTER = struct.Struct('<8s16s7Q3I')
_CHECK = struct.Struct('<I')

_PIECE_BYTES = 1 << 20
"""Records are gathered, summed up and written by pieces that stay in a processor's cache: with four
times as much, writing takes a fifth longer."""

# offset | rows | bytes | CRC32C of the bucket | CRC32C of fingerprint and the entry up to here
ENTRY = np.dtype([
    ('offset', '<u8'), ('rows', '<u8'), ('bytes', '<u8'), ('crc32c', '<u4'), ('check', '<u4'),
])  # fmt: skip

FOOTER_BYTES = 96
"""What follows the index, to the file's end: `runs` draws it."""


class RunBuffer:
    """Rows of one split in one array of a given size, and what was read for them.

    What fits depends on the rows alone, so a run is cut into the same parts wherever it is made.
    """

    def __init__(self, byte_limit: int):
        self._byte_limit = byte_limit
        # Memory that is not written to is not taken.
        self._records = np.empty(byte_limit, np.uint8)
        self.clear()

    def clear(self) -> None:
        """Forgets everything, and keeps the memory."""
        self._used = 0
        self._rows = 0
        self._rejected_bytes = 0
        self._keys: list[np.ndarray] = []
        self._lengths: list[np.ndarray] = []
        self._tallies: list[LineTally] = []
        self._checksums: list[RangeChecksum] = []
        self.rejected: list[RejectedLines] = []

    def fits(self, encoded: EncodedBlock) -> bool:
        """Tells whether a block may be added; the first one always may."""
        if not self._tallies:
            return True
        size = self._used + self._rejected_bytes + BUFFERED_ROW_BYTES * self._rows
        return size + _size(encoded) <= self._byte_limit

    def add(self, encoded: EncodedBlock) -> None:
        rows: FramedRows = encoded.rows
        end = self._used + len(rows.records)
        if end > len(self._records):
            # Only a first block larger than the limit comes here, and then nothing is copied.
            self._records = np.concatenate([self._records[: self._used], rows.records])
        self._records[self._used : end] = rows.records
        self._used = end
        self._rows += len(rows)
        self._rejected_bytes += sum(len(each.json_lines) for each in encoded.stats.rejected)
        self._keys.append(rows.keys)
        self._lengths.append(rows.lengths.astype(np.uint32))
        self._tallies.append(encoded.stats.tally)
        self._checksums = join_adjacent([*self._checksums, *encoded.stats.checksums])
        self.rejected += encoded.stats.rejected

    def sorted_rows(self) -> SortedRows:
        """Returns the rows by their keys; they are valid until the buffer is changed.

        Raises ValueError if two keys are equal.
        """
        keys = np.concatenate([np.empty(0, np.uint64), *self._keys])
        lengths = np.concatenate([np.empty(0, np.uint32), *self._lengths])
        self._keys, self._lengths = [], []
        starts = row_offsets(lengths)[:-1]
        return SortedRows.of(keys, self._records[: self._used], starts, lengths)

    def stats(self, split: str, blocks: int) -> RunStats:
        """Returns what was read for these rows; `blocks` is for `RunStats`."""
        return RunStats(blocks, add_tallies(split, self._tallies), tuple(self._checksums))


def _size(encoded: EncodedBlock) -> int:
    rejected = sum(len(each.json_lines) for each in encoded.stats.rejected)
    return len(encoded.rows.records) + BUFFERED_ROW_BYTES * len(encoded.rows) + rejected


@dataclasses.dataclass(frozen=True)
class RunHead:
    """Which file of which plan."""

    fingerprint: bytes  # 16
    run: int
    part: int
    last: bool  # the run's last part
    buckets: int


@dataclasses.dataclass(frozen=True)
class RejectedSection:
    """Lines of JSON in a run file: those that one reason left out, in identity order."""

    reason: str
    offset: int
    bytes: int
    crc32c: int
    lines: int


@dataclasses.dataclass(frozen=True)
class RunStats:
    """What was read for a part: `blocks` counts from the run's beginning."""

    blocks: int
    tally: LineTally
    checksums: tuple[RangeChecksum, ...]
    rejected: tuple[RejectedSection, ...] = ()

    def to_json(self) -> bytes:
        fields = {**dataclasses.asdict(self), 'tally': self.tally.record()}
        return json.dumps(fields, sort_keys=True).encode()

    @classmethod
    def from_json(cls, data: bytes) -> RunStats:
        fields = json.loads(data)
        return cls(
            fields['blocks'],
            LineTally.of_record(fields['tally']),
            tuple(RangeChecksum(**each) for each in fields['checksums']),
            tuple(RejectedSection(**each) for each in fields['rejected']),
        )


def write_run(
    stream: BinaryIO,
    head: RunHead,
    rows: SortedRows,
    stats: RunStats,
    rejected: Sequence[RejectedLines] = (),
) -> tuple[int, RunStats]:
    """Writes a part's file from its beginning to its end; returns its size and its stats.

    Args:
        stream: at the beginning of a new file.
        head: which part it is.
        rows: the part's rows.
        stats: what was read for it, its `rejected` still empty.
        rejected: the lines left out, in identity order.
    """
    entries = np.zeros(head.buckets, ENTRY)
    at = 0
    bounds = bucket_bounds(rows.keys, head.buckets)
    for bucket in np.flatnonzero(bounds[1:] > bounds[:-1]).tolist():
        first, end = int(bounds[bucket]), int(bounds[bucket + 1])
        size, crc32c = _write_bucket(stream, rows, first, end)
        entries[bucket] = (at, end - first, size, crc32c, 0)
        at += size
    sections = []
    for reason in sorted({lines.reason for lines in rejected}):
        data = b''.join(lines.json_lines for lines in rejected if lines.reason == reason)
        crc32c = google_crc32c.value(data)
        sections.append(RejectedSection(reason, at, len(data), crc32c, data.count(b'\n')))
        stream.write(data)
        at += len(data)
    stats = dataclasses.replace(stats, rejected=tuple(sections))
    told = stats.to_json()
    stream.write(told)
    set_entry_checksums(entries, head.fingerprint)
    index = entries.tobytes()
    stream.write(index)
    footer = _FOOTER.pack(
        _MAGIC, head.fingerprint, head.run, head.part, head.last, head.buckets, len(rows),
        at, len(told), google_crc32c.value(told), google_crc32c.value(index), 0,
    )  # fmt: skip
    stream.write(footer + _CHECK.pack(google_crc32c.value(footer)))
    return at + len(told) + len(index) + FOOTER_BYTES, stats


def read_run_stats(stream: BinaryIO, size: int, head: RunHead) -> tuple[RunStats, bool] | None:
    """Returns the stats of a file, and whether it is its run's last part, if the file is whole.

    None if it is not the whole file of this fingerprint, run, part and number of buckets; of `head`
    all but `last` is asked for. The buckets' own checksums are for those that read the buckets.
    """
    if size < FOOTER_BYTES + head.buckets * ENTRY.itemsize:
        return None
    tail = index_offset(size, head.buckets)
    stream.seek(tail)
    data = stream.read(size - tail)
    index, footer = data[:-FOOTER_BYTES], data[-FOOTER_BYTES:]
    if len(data) != size - tail or not _is_footer(footer):
        return None
    (_, fingerprint, run, part, last, buckets, _, at, told, stats_crc32c, index_crc32c, _) = (
        _FOOTER.unpack(footer[: _FOOTER.size])
    )
    found = RunHead(fingerprint, run, part, head.last, buckets)
    if found != head or at + told != tail or google_crc32c.value(index) != index_crc32c:
        return None
    stream.seek(at)
    stats = stream.read(told)
    if google_crc32c.value(stats) != stats_crc32c:
        return None
    return RunStats.from_json(stats), bool(last)


def recorded_fingerprint(stream: BinaryIO, size: int) -> bytes | None:
    """Returns the fingerprint of the plan that a whole file belongs to; None if it is no run."""
    stream.seek(max(0, size - FOOTER_BYTES))
    footer = stream.read(FOOTER_BYTES)
    return _FOOTER.unpack(footer[: _FOOTER.size])[1] if _is_footer(footer) else None


assert _FOOTER.size + _CHECK.size == FOOTER_BYTES


def bucket_bounds(keys: np.ndarray, buckets: int) -> np.ndarray:
    """Returns the first row of each bucket, `(key * buckets) >> 64`, among ascending keys.

    int64[buckets + 1]: bucket b has rows [bounds[b], bounds[b + 1]).
    """
    least = np.array([-(-(bucket << 64) // buckets) for bucket in range(buckets)], np.uint64)
    return np.append(np.searchsorted(keys, least), len(keys))


def _write_bucket(stream: BinaryIO, rows: SortedRows, first: int, end: int) -> tuple[int, int]:
    """Writes sorted rows [first, end) as a bucket; returns its size and its CRC32C."""
    size = crc32c = 0
    for piece in _bucket_pieces(rows, first, end):
        stream.write(piece.data)
        crc32c = google_crc32c.extend(crc32c, piece)
        size += len(piece)
    return size, crc32c


def _bucket_pieces(rows: SortedRows, first: int, end: int) -> Iterable[np.ndarray]:
    yield rows.keys[first:end].astype('<u8', copy=False).view(np.uint8)
    yield rows.lengths[first:end].astype('<u4', copy=False).view(np.uint8)
    ends = np.cumsum(rows.lengths[first:end], dtype=np.int64)
    done = 0
    while done < end - first:
        before = ends[done - 1] if done else 0
        until = max(done + 1, int(np.searchsorted(ends, before + _PIECE_BYTES, 'right')))
        yield rows.records(first + done, first + until)
        done = until


def _is_footer(data: bytes) -> bool:
    if len(data) != FOOTER_BYTES or data[: len(_MAGIC)] != _MAGIC:
        return False
    return google_crc32c.value(data[: _FOOTER.size]) == _CHECK.unpack(data[_FOOTER.size :])[0]


@dataclasses.dataclass(frozen=True)
class RunSlice:
    """The buckets [first, end) of one run: where they lie."""

    run: RunFile
    first: int
    entries: np.ndarray  # of `ENTRY`

    def part(self, first: int, end: int) -> RunSlice:
        """Returns the buckets [first, end) of these."""
        entries = self.entries[first - self.first : end - self.first]
        return RunSlice(self.run, first, entries)

    @property
    def bytes(self) -> int:
        return int(self.entries['bytes'].sum())


def read_slices(
    runs: Sequence[RunFile],
    fingerprint: bytes,
    buckets: int,
    first: int,
    end: int,
    open_binary: OpenBinary,
) -> list[RunSlice]:
    """Returns where each run has the buckets [first, end) of `buckets`; one small read for each.

    Raises:
        InputError: a run cannot be read or is not what was written.
    """
    slices = []
    for run in runs:
        with open_path(run.path, open_binary) as stream:
            entries = run.read_index(stream, fingerprint, buckets, first, end)
        slices.append(RunSlice(run, first, entries))
    return slices


def bucket_groups(
    slices: Sequence[RunSlice], first: int, end: int, group_bytes: int
) -> list[tuple[int, int]]:
    """Cuts the buckets [first, end) into as few groups as have at most `group_bytes` each.

    A larger bucket is a group of its own; buckets without rows at the ends are left out.
    """
    sizes = np.zeros(end - first, np.int64)
    for each in slices:
        sizes += each.entries['bytes'].astype(np.int64)
    groups: list[tuple[int, int]] = []
    held = 0
    for bucket, size in enumerate(sizes.tolist(), first):
        if not size:
            continue
        if groups and held + size <= group_bytes:
            groups[-1] = (groups[-1][0], bucket + 1)
            held += size
        else:
            groups.append((bucket, bucket + 1))
            held = size
    return groups


@dataclasses.dataclass(frozen=True)
class MergedRows:
    records: np.ndarray
    """uint8: TFRecords in the order of their keys"""

    rows: int


def merge_buckets(slices: Sequence[RunSlice], open_binary: OpenBinary) -> MergedRows:
    """Returns the rows of a group of buckets out of all runs, in the order of their keys.

    Raises:
        InputError: a run cannot be read or is not what was written.
        ValueError: two rows have one key.
    """
    slices = [each for each in slices if each.bytes]
    data = np.empty(sum(each.bytes for each in slices), np.uint8)
    keys, lengths, starts = [], [], []
    begin = 0
    for each in slices:
        _read_range(each, data[begin : begin + each.bytes], open_binary)
        for entry in each.entries[each.entries['rows'] > 0]:
            rows, size = int(entry['rows']), int(entry['bytes'])
            bucket = data[begin : begin + size]
            if google_crc32c.value(bucket) != entry['crc32c']:
                raise damaged(each.run.path, f'{size} bytes from {entry["offset"]} on')
            keys.append(bucket[: 8 * rows].view('<u8'))
            lengths.append(bucket[8 * rows : 12 * rows].view('<u4'))
            starts.append(row_offsets(lengths[-1])[:-1] + (begin + 12 * rows))
            begin += size
    ordered = SortedRows.of(
        np.concatenate([np.empty(0, np.uint64), *keys]),
        data,
        np.concatenate([np.empty(0, np.int64), *starts]),
        np.concatenate([np.empty(0, np.uint32), *lengths]),
    )
    return MergedRows(ordered.records(), len(ordered))


def _read_range(each: RunSlice, out: np.ndarray, open_binary: OpenBinary) -> None:
    """Fills `out` with a slice's buckets, which lie one after another."""
    offsets = each.entries['offset'][each.entries['rows'] > 0]
    with open_path(each.run.path, open_binary) as stream:
        stream.seek(int(offsets[0]))
        filled = 0
        while filled < len(out):
            read = stream.readinto(out[filled:].data)
            if not read:
                raise damaged(each.run.path, f'it ends at byte {int(offsets[0]) + filled}')
            filled += read


def damaged(path: str, what: str) -> InputError:
    """Returns the error of a run file that is not what was written."""
    return InputError(f'{path} is damaged: {what}; run again, and it is made anew')


@dataclasses.dataclass(frozen=True)
class RunFile:
    """A whole run file as its readers are told of it."""

    path: str
    size: int

    def read_index(
        self, stream: BinaryIO, fingerprint: bytes, buckets: int, first: int, end: int
    ) -> np.ndarray:
        """Returns the entries of buckets [first, end), an array of `ENTRY`.

        Raises InputError if an entry is not what was written under this fingerprint.
        """
        stream.seek(index_offset(self.size, buckets) + first * ENTRY.itemsize)
        data = stream.read((end - first) * ENTRY.itemsize)
        if len(data) != (end - first) * ENTRY.itemsize:
            raise damaged(self.path, 'it ends within its index')
        entries = np.frombuffer(data, ENTRY)
        for number, entry in enumerate(entries, first):
            if entry['check'] != _check(entry, fingerprint):
                raise damaged(self.path, f'the index entry of bucket {number}')
        return entries


def set_entry_checksums(entries: np.ndarray, fingerprint: bytes) -> None:
    """Sets the check of each entry."""
    for number in range(len(entries)):
        entries[number]['check'] = _check(entries[number], fingerprint)


def index_offset(size: int, buckets: int) -> int:
    """Returns where the index begins in a run file of this size."""
    return size - FOOTER_BYTES - buckets * ENTRY.itemsize


def _check(entry: np.void, fingerprint: bytes) -> int:
    return google_crc32c.value(fingerprint + entry.tobytes()[: -ENTRY['check'].itemsize])
