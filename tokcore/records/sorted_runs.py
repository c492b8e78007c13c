"""Sorted runs and their merge: a run is a part of the corpus as TFRecords in the order of keys.

    for each bucket that has rows:
        keys        uint64[rows], ascending
        lengths     uint32[rows], of whole TFRecords
        sizes       uint32[rows, n], those of `FramedRows`
        records     the TFRecords, one after another
    rejected        lines of JSON, by the reason for which they were left out
    stats           JSON: `RunStats`
    index           32 bytes for each bucket: `ENTRY`
    footer          96 bytes: magic 8 | fingerprint 16 | run, part, last, buckets, rows: 5 of
                    uint64 | stats: offset, size: 2 of uint64 | CRC32C of stats, of index, 4 bytes
                    of zeros, CRC32C of the footer up to here

Numbers are little-endian. A run is determined by the plan that its fingerprint names. The footer is
written last, so a file with a footer is whole. A shard is a range of buckets: its part of a run's
index is one small read, and the rows of some buckets of all runs, sorted, are a piece of it.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import google_crc32c
import numpy as np

from tokcore.corpus.corpus import OpenBinary
from tokcore.corpus.stats import (
    BlockStats,
    LineTally,
    RangeChecksum,
    RejectedLines,
    add_tallies,
    join_adjacent,
)
from tokcore.corpus.storage import open_path
from tokcore.errors import InputError
from tokcore.format_numbers import SHUFFLE
from tokcore.kernels.bytes import row_offsets
from tokcore.kernels.sorting import SortedRows
from tokcore.records.examples import EncodedBlock
from tokcore.records.tfrecord import FramedRows, joined_sizes

BUFFERED_ROW_BYTES = 48
"""Memory of a row besides its record and its sizes, at most: its key, length, start and place in the order,
and copies of three of these during the sort."""

ROW_BYTES = 12
"""Bytes of a row in a file besides its record and its sizes: its key and its length."""

SIZE_BYTES = 4
"""Bytes of one of a row's sizes. During the sort there is a copy."""

_MAGIC = b'tbrun\x00\x00' + bytes([SHUFFLE])
_FOOTER = struct.Struct('<8s16s7Q3I')
_CHECK = struct.Struct('<I')

_PIECE_BYTES = 1 << 20
"""Records are gathered, checksummed and written in pieces that stay in the processor's cache: with
pieces four times as large, writing takes a fifth longer."""

# offset | rows | bytes | CRC32C of the bucket | CRC32C of fingerprint and the entry up to here
ENTRY = np.dtype([
    ('offset', '<u8'), ('rows', '<u8'), ('bytes', '<u8'), ('crc32c', '<u4'), ('check', '<u4'),
])  # fmt: skip

FOOTER_BYTES = _FOOTER.size + _CHECK.size
"""Size of the footer, which the drawing above describes."""


class RunBuffer:
    """Collects the rows of one split, up to a size, for a part of a run, and their statistics.

    What fits depends on the rows alone, so a run is cut into the same parts on every machine, except
    that its last part may be `split`.
    """

    def __init__(self, byte_limit: int):
        self._byte_limit = byte_limit
        # Memory that is not written to is not taken.
        self._records = np.empty(byte_limit, np.uint8)
        self.clear()

    def clear(self) -> None:
        """Removes all rows; the memory stays."""
        self._ends = [0]  # of the records of each batch
        self._rows = 0
        self._rejected_bytes = 0
        self._keys: list[np.ndarray] = []
        self._lengths: list[np.ndarray] = []
        self._sizes: list[np.ndarray] = []
        self._stats: list[BlockStats] = []
        self._blocks: list[int] = []

    @property
    def blocks(self) -> int:
        """The number of blocks in it."""
        return sum(self._blocks)

    @property
    def rejected(self) -> list[RejectedLines]:
        """The lines that were left out, in the order of the input."""
        return [lines for stats in self._stats for lines in stats.rejected]

    def fits(self, encoded: EncodedBlock) -> bool:
        """Whether a batch may be added; the first one always may."""
        if not self._stats:
            return True
        size = self._ends[-1] + len(encoded.rows.records)
        size += self._rejected_bytes + _rejected_bytes(encoded)
        rows = self._rows + len(encoded.rows)
        row_bytes = BUFFERED_ROW_BYTES + 2 * SIZE_BYTES * encoded.rows.sizes.shape[1]
        return size + row_bytes * rows <= self._byte_limit

    def add(self, encoded: EncodedBlock, blocks: int = 1) -> None:
        """Adds a batch of blocks."""
        rows: FramedRows = encoded.rows
        start = self._ends[-1]
        end = start + len(rows.records)
        if end > len(self._records):
            # Only if the first batch is larger than the limit: then nothing else is copied.
            self._records = np.concatenate([self._records[:start], rows.records])
        self._records[start:end] = rows.records
        self._ends.append(end)
        self._rows += len(rows)
        self._rejected_bytes += _rejected_bytes(encoded)
        self._keys.append(rows.keys)
        self._lengths.append(rows.lengths.astype(np.uint32))
        self._sizes.append(rows.sizes)
        self._stats.append(encoded.stats)
        self._blocks.append(blocks)

    def split(self, count: int) -> list[RunBuffer]:
        """Returns at most `count` buffers of about one size with its batches, in their order.

        They use the memory of this one, which must not be used again.
        """
        wanted = [self._ends[-1] * number / count for number in range(1, count)]
        cuts = {0, *np.searchsorted(self._ends, wanted).tolist(), len(self._stats)}
        parts = []
        for first, end in itertools.pairwise(sorted(cuts)):
            part, start = RunBuffer(0), self._ends[first]
            part._records = self._records[start : self._ends[end]]
            part._ends = [each - start for each in self._ends[first : end + 1]]
            part._keys, part._lengths = self._keys[first:end], self._lengths[first:end]
            part._sizes, part._stats = self._sizes[first:end], self._stats[first:end]
            part._blocks = self._blocks[first:end]
            parts.append(part)
        return parts or [self]

    def sorted_rows(self) -> SortedRows:
        """Returns the rows in the order of their keys; they are valid until the buffer changes.

        Raises ValueError if two keys are equal.
        """
        keys = np.concatenate([np.empty(0, np.uint64), *self._keys])
        lengths = np.concatenate([np.empty(0, np.uint32), *self._lengths])
        sizes = joined_sizes(self._sizes)
        self._keys, self._lengths, self._sizes = [], [], []
        starts = row_offsets(lengths)[:-1]
        return SortedRows.of(keys, self._records[: self._ends[-1]], starts, lengths, sizes)

    def stats(self, split: str, first: int, blocks: int) -> RunStats:
        """Returns the statistics of the rows; `first` and `blocks` as in `RunStats`."""
        checksums = [checksum for stats in self._stats for checksum in stats.checksums]
        tally = add_tallies(split, [stats.tally for stats in self._stats])
        return RunStats(first, blocks, tally, tuple(join_adjacent(checksums)))


def _rejected_bytes(encoded: EncodedBlock) -> int:
    return sum(len(lines.json_lines) for lines in encoded.stats.rejected)


@dataclasses.dataclass(frozen=True)
class RunHead:
    """Names a run file: its plan, run and part."""

    fingerprint: bytes  # 16
    run: int
    part: int
    last: bool  # the run's last part
    buckets: int


@dataclasses.dataclass(frozen=True)
class RejectedSection:
    """The lines in a run file that were left out for one reason, as JSON, in the order of the input."""

    reason: str
    offset: int
    bytes: int
    crc32c: int
    lines: int


@dataclasses.dataclass(frozen=True)
class RunStats:
    """Statistics of a part.

    Attributes:
        first: the blocks of the run before it.
        blocks: all blocks of the run up to its end.
        tally: of its lines.
        checksums: of the text that was read for it.
        rejected: where the lines are that were left out.
    """

    first: int
    blocks: int
    tally: LineTally
    checksums: tuple[RangeChecksum, ...]
    rejected: tuple[RejectedSection, ...] = ()

    def to_json(self) -> bytes:
        fields = {
            'first': self.first,
            'blocks': self.blocks,
            'tally': self.tally.record(),
            # Not `asdict`, which copies each value: there may be thousands of files.
            'checksums': [vars(checksum) for checksum in self.checksums],
            'rejected': [vars(section) for section in self.rejected],
        }
        return json.dumps(fields, sort_keys=True).encode()

    @classmethod
    def from_json(cls, data: bytes) -> RunStats:
        fields = json.loads(data)
        return cls(
            fields['first'],
            fields['blocks'],
            LineTally.of_record(fields['tally']),
            tuple(RangeChecksum(**values) for values in fields['checksums']),
            tuple(RejectedSection(**values) for values in fields['rejected']),
        )


def write_run(
    stream: BinaryIO,
    head: RunHead,
    rows: SortedRows,
    stats: RunStats,
    rejected: Sequence[RejectedLines] = (),
) -> tuple[int, RunStats]:
    """Writes the file of a part, from the start of a stream; returns its size and its statistics.

    `stats` are without `rejected`; the lines left out are in the order of the input.
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
    stats_json = stats.to_json()
    stream.write(stats_json)
    for entry in entries:
        entry['check'] = _check(entry, head.fingerprint)
    index = entries.tobytes()
    stream.write(index)
    footer = _FOOTER.pack(
        _MAGIC, head.fingerprint, head.run, head.part, head.last, head.buckets, len(rows),
        at, len(stats_json), google_crc32c.value(stats_json), google_crc32c.value(index), 0,
    )  # fmt: skip
    stream.write(footer + _CHECK.pack(google_crc32c.value(footer)))
    return at + len(stats_json) + len(index) + FOOTER_BYTES, stats


def read_run_stats(stream: BinaryIO, size: int, head: RunHead) -> tuple[RunStats, bool] | None:
    """Returns the statistics of a run file, and whether it is the run's last part.

    Returns None if it is not whole, or not the file that `head` names; `last` of it is ignored. The
    checksums of buckets are compared when these are read.
    """
    if size < FOOTER_BYTES + head.buckets * ENTRY.itemsize:
        return None
    tail = _index_offset(size, head.buckets)
    stream.seek(tail)
    data = stream.read(size - tail)
    index, footer = data[:-FOOTER_BYTES], data[-FOOTER_BYTES:]
    if len(data) != size - tail or footer[: len(_MAGIC)] != _MAGIC:
        return None
    if google_crc32c.value(footer[: _FOOTER.size]) != _CHECK.unpack(footer[_FOOTER.size :])[0]:
        return None
    (_, fingerprint, run, part, last, buckets, _, at, stats_size, stats_crc32c, index_crc32c, _) = (
        _FOOTER.unpack(footer[: _FOOTER.size])
    )
    own_head = RunHead(fingerprint, run, part, head.last, buckets)
    if own_head != head or at + stats_size != tail or google_crc32c.value(index) != index_crc32c:
        return None
    stream.seek(at)
    stats = stream.read(stats_size)
    if google_crc32c.value(stats) != stats_crc32c:
        return None
    return RunStats.from_json(stats), bool(last)


def bucket_bounds(keys: np.ndarray, buckets: int) -> np.ndarray:
    """Returns the first row of each bucket, `(key * buckets) >> 64`, among ascending keys.

    Bucket b has rows bounds[b] up to bounds[b + 1]: int64[buckets + 1].
    """
    least = np.array([-(-(bucket << 64) // buckets) for bucket in range(buckets)], np.uint64)
    return np.append(np.searchsorted(keys, least), len(keys))


def _write_bucket(stream: BinaryIO, rows: SortedRows, first: int, end: int) -> tuple[int, int]:
    """Writes sorted rows `first` up to `end` as a bucket; returns its size and its CRC32C."""
    size = crc32c = 0
    keys = rows.keys[first:end].astype('<u8', copy=False).view(np.uint8)
    lengths = rows.lengths[first:end].astype('<u4', copy=False).view(np.uint8)
    sizes = rows.sizes[first:end].astype('<u4', copy=False).ravel().view(np.uint8)
    for piece in itertools.chain((keys, lengths, sizes), record_pieces(rows, first, end)):
        stream.write(piece.data)
        crc32c = google_crc32c.extend(crc32c, piece)
        size += len(piece)
    return size, crc32c


def record_pieces(rows: SortedRows, first: int, end: int) -> Iterator[np.ndarray]:
    """Yields the records of sorted rows `first` up to `end`, some in each uint8 array.

    An array has about a megabyte, which stays in the processor's cache.
    """
    ends = np.cumsum(rows.lengths[first:end], dtype=np.int64)
    done = 0
    while done < end - first:
        before = ends[done - 1] if done else 0
        until = max(done + 1, int(np.searchsorted(ends, before + _PIECE_BYTES, 'right')))
        yield rows.records(first + done, first + until)
        done = until


@dataclasses.dataclass(frozen=True)
class RunSlice:
    """Where some consecutive buckets of a run are."""

    run: RunFile
    first: int
    entries: np.ndarray  # of `ENTRY`, from bucket `first` on

    def part(self, first: int, end: int) -> RunSlice:
        """Returns buckets `first` up to `end` of these."""
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
    """Returns where each run has buckets `first` up to `end`; one small read for each.

    Raises:
        InputError: a run cannot be read, is damaged, or is of another fingerprint.
    """
    slices = []
    for run in runs:
        with open_path(run.path, open_binary) as stream:
            stream.seek(_index_offset(run.size, buckets) + first * ENTRY.itemsize)
            data = stream.read((end - first) * ENTRY.itemsize)
        if len(data) != (end - first) * ENTRY.itemsize:
            raise damaged(run.path, 'it ends within its index')
        entries = np.frombuffer(data, ENTRY)
        for number, entry in enumerate(entries, first):
            if entry['check'] != _check(entry, fingerprint):
                raise damaged(run.path, f'the index entry of bucket {number}')
        slices.append(RunSlice(run, first, entries))
    return slices


def bucket_groups(
    slices: Sequence[RunSlice], first: int, end: int, group_bytes: int
) -> list[tuple[int, int]]:
    """Cuts buckets `first` up to `end` into the fewest groups of at most `group_bytes`.

    A larger bucket is a group of its own; empty buckets at the ends of groups are left out.
    """
    sizes = np.zeros(end - first, np.int64)
    for slice_ in slices:
        sizes += slice_.entries['bytes'].astype(np.int64)
    groups: list[tuple[int, int]] = []
    group_size = 0
    for bucket, size in enumerate(sizes.tolist(), first):
        if not size:
            continue
        if groups and group_size + size <= group_bytes:
            groups[-1] = (groups[-1][0], bucket + 1)
            group_size += size
        else:
            groups.append((bucket, bucket + 1))
            group_size = size
    return groups


def merge_buckets(slices: Sequence[RunSlice], open_binary: OpenBinary) -> SortedRows:
    """Merges a group of buckets of all runs, by the keys of their rows.

    `record_pieces` gives their records.

    Raises:
        InputError: a run cannot be read or is damaged.
        ValueError: two rows have the same key.
    """
    slices = [slice_ for slice_ in slices if slice_.bytes]
    data = np.empty(sum(slice_.bytes for slice_ in slices), np.uint8)
    keys, lengths, sizes, starts = [], [], [], []
    begin = 0
    for slice_ in slices:
        _read_range(slice_, data[begin : begin + slice_.bytes], open_binary)
        for entry in slice_.entries[slice_.entries['rows'] > 0]:
            rows, size = int(entry['rows']), int(entry['bytes'])
            bucket = data[begin : begin + size]
            if google_crc32c.value(bucket) != entry['crc32c']:
                raise damaged(slice_.run.path, f'{size} bytes from {entry["offset"]} on')
            keys.append(bucket[: 8 * rows].view('<u8'))
            lengths.append(bucket[8 * rows : ROW_BYTES * rows].view('<u4'))
            offsets = row_offsets(lengths[-1])
            records = size - int(offsets[-1])  # what is between lengths and records are the sizes
            sizes.append(bucket[ROW_BYTES * rows : records].view('<u4').reshape(rows, -1))
            starts.append(offsets[:-1] + (begin + records))
            begin += size
    return SortedRows.of(
        np.concatenate([np.empty(0, np.uint64), *keys]),
        data,
        np.concatenate([np.empty(0, np.int64), *starts]),
        np.concatenate([np.empty(0, np.uint32), *lengths]),
        joined_sizes(sizes),
    )


def _read_range(slice_: RunSlice, out: np.ndarray, open_binary: OpenBinary) -> None:
    """Reads the buckets of a slice, which are adjacent, into `out`."""
    offsets = slice_.entries['offset'][slice_.entries['rows'] > 0]
    with open_path(slice_.run.path, open_binary) as stream:
        stream.seek(int(offsets[0]))
        filled = 0
        while filled < len(out):
            read = stream.readinto(out[filled:].data)  # type: ignore[attr-defined]  # as io.RawIOBase
            if not read:
                raise damaged(slice_.run.path, f'it ends at byte {int(offsets[0]) + filled}')
            filled += read


def damaged(path: str, what: str) -> InputError:
    """Returns the error about a damaged run file."""
    return InputError(f'{path} is damaged: {what}; run again, and it is written again')


@dataclasses.dataclass(frozen=True)
class RunFile:
    """A whole run file."""

    path: str
    size: int


def _index_offset(size: int, buckets: int) -> int:
    """Returns where the index begins in a run file of this size."""
    return size - FOOTER_BYTES - buckets * ENTRY.itemsize


def _check(entry: np.void, fingerprint: bytes) -> int:
    return google_crc32c.value(fingerprint + entry.tobytes()[: -ENTRY['check'].itemsize])
