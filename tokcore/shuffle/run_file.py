"""A sorted run: a part of the corpus as TFRecords in the order of their keys, in one file.

    bucket, for each that has rows:
        keys        uint64[rows], ascending
        lengths     uint32[rows], of whole TFRecords
        records     the TFRecords, one after another
    rejected        lines of JSON, for each split's reason
    facts           JSON: what `RunStats` holds
    index           an entry of 32 bytes for each bucket, as `run_index` draws it
    footer          96 bytes: magic 8 | fingerprint 16 | run, part, last, buckets, rows: 5 of
                    uint64 | facts: offset, size: 2 of uint64 | CRC32C of facts, of index, 4 bytes
                    of zeros, CRC32C of the footer up to here

Numbers are little-endian. A run is a pure function of the plan that the fingerprint stands for: it
tells no time, host or attempt. It is whole if its footer is, since that is written last.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Iterable, Sequence
from typing import BinaryIO

import google_crc32c
import numpy as np

from tokcore.corpus.block_stats import LineTally, RejectedLines
from tokcore.corpus.range_checksums import RangeChecksum
from tokcore.records.key_sorting import SortedRows
from tokcore.shuffle.run_index import ENTRY, FOOTER_BYTES, index_offset, set_entry_checksums

FORMAT = 1
"""Goes up with every change of the bytes that a plan leads to."""

ROW_BYTES = 12
"""What a row takes beside its record: its key and its length."""

_MAGIC = b'tbrun\x00\x00' + bytes([FORMAT])
_FOOTER = struct.Struct('<8s16s7Q3I')
_CHECK = struct.Struct('<I')
assert _FOOTER.size + _CHECK.size == FOOTER_BYTES

_PIECE_BYTES = 1 << 20
"""Records are gathered, summed up and written by pieces that stay in a processor's cache: with four
times as much, writing takes a fifth longer."""


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
    receipts: tuple[RangeChecksum, ...]
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
            tuple(RangeChecksum(**each) for each in fields['receipts']),
            tuple(RejectedSection(**each) for each in fields['rejected']),
        )


def write_run(
    stream: BinaryIO,
    head: RunHead,
    rows: SortedRows,
    facts: RunStats,
    rejected: Sequence[RejectedLines] = (),
) -> tuple[int, RunStats]:
    """Writes a part's file from its beginning to its end; returns its size and its facts.

    Args:
        stream: at the beginning of a new file.
        head: which part it is.
        rows: the part's rows.
        facts: what was read for it, its `rejected` still empty.
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
    facts = dataclasses.replace(facts, rejected=tuple(sections))
    told = facts.to_json()
    stream.write(told)
    set_entry_checksums(entries, head.fingerprint)
    index = entries.tobytes()
    stream.write(index)
    footer = _FOOTER.pack(
        _MAGIC, head.fingerprint, head.run, head.part, head.last, head.buckets, len(rows),
        at, len(told), google_crc32c.value(told), google_crc32c.value(index), 0,
    )  # fmt: skip
    stream.write(footer + _CHECK.pack(google_crc32c.value(footer)))
    return at + len(told) + len(index) + FOOTER_BYTES, facts


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


def read_run_stats(stream: BinaryIO, size: int, head: RunHead) -> tuple[RunStats, bool] | None:
    """Returns the facts of a file, and whether it is its run's last part, if the file is whole.

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
    (_, fingerprint, run, part, last, buckets, _, at, told, facts_crc32c, index_crc32c, _) = (
        _FOOTER.unpack(footer[: _FOOTER.size])
    )
    found = RunHead(fingerprint, run, part, head.last, buckets)
    if found != head or at + told != tail or google_crc32c.value(index) != index_crc32c:
        return None
    stream.seek(at)
    facts = stream.read(told)
    if google_crc32c.value(facts) != facts_crc32c:
        return None
    return RunStats.from_json(facts), bool(last)


def recorded_fingerprint(stream: BinaryIO, size: int) -> bytes | None:
    """Returns the fingerprint of the plan that a whole file belongs to; None if it is no run."""
    stream.seek(max(0, size - FOOTER_BYTES))
    footer = stream.read(FOOTER_BYTES)
    return _FOOTER.unpack(footer[: _FOOTER.size])[1] if _is_footer(footer) else None


def _is_footer(data: bytes) -> bool:
    if len(data) != FOOTER_BYTES or data[: len(_MAGIC)] != _MAGIC:
        return False
    return google_crc32c.value(data[: _FOOTER.size]) == _CHECK.unpack(data[_FOOTER.size :])[0]
