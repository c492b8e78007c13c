"""The file of a shard: as the manifest has it, found, and mapped into memory."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, replace

import google_crc32c
import numpy as np

from tokcore.errors import InputError
from tokcore.kernels.jit import read_only
from tokcore.regular_files import open_regular

REMEDY = 'write the shards again'

_CHECKSUM_BYTES = 1 << 18
"""Bytes whose checksum is taken at once: other threads wait for no more than that."""


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
