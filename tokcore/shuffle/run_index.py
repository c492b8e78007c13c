"""The index of a run file: where each bucket lies, in entries of one size at a known place.

A shard is a contiguous range of buckets, so its slice of a run's index is one small read, whose
place follows from the file's size and the number of buckets alone. Each entry proves itself by a
checksum of its own, which begins with the plan's fingerprint.
"""

from __future__ import annotations

import dataclasses
from typing import BinaryIO

import google_crc32c
import numpy as np

from tokcore.errors import InputError

# offset | rows | bytes | CRC32C of the bucket | CRC32C of fingerprint and the entry up to here
ENTRY = np.dtype([
    ('offset', '<u8'), ('rows', '<u8'), ('bytes', '<u8'), ('crc32c', '<u4'), ('check', '<u4'),
])  # fmt: skip

FOOTER_BYTES = 96
"""What follows the index, to the file's end: `runs` draws it."""


def damaged(path: str, what: str) -> InputError:
    """Returns the error of a run file that is not what was written."""
    return InputError(f'{path} is damaged: {what}; run again, and it is made anew')


def set_entry_checksums(entries: np.ndarray, fingerprint: bytes) -> None:
    """Sets the check of each entry."""
    for number in range(len(entries)):
        entries[number]['check'] = _check(entries[number], fingerprint)


def index_offset(size: int, buckets: int) -> int:
    """Returns where the index begins in a run file of this size."""
    return size - FOOTER_BYTES - buckets * ENTRY.itemsize


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


def _check(entry: np.void, fingerprint: bytes) -> int:
    return google_crc32c.value(fingerprint + entry.tobytes()[: -ENTRY['check'].itemsize])
