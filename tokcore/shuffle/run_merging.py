"""Sorted runs to one shard: their buckets read by range, checked, and merged group by group.

A shard is a contiguous range of buckets, and a bucket one of keys; so the rows of some buckets out
of all runs, sorted, are a contiguous piece of the shard, and no more of it is held in memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import google_crc32c
import numpy as np

from tokcore.compiled.ragged_bytes import row_offsets
from tokcore.corpus.dataset import OpenBinary
from tokcore.corpus.storage.stored_file import open_path
from tokcore.records.key_sorting import SortedRows
from tokcore.shuffle.run_index import RunFile, damaged


@dataclasses.dataclass(frozen=True)
class RunSlice:
    """The buckets [first, end) of one run: where they lie."""

    run: RunFile
    first: int
    entries: np.ndarray  # of `run_index.ENTRY`

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
