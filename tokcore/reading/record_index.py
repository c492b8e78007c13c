"""Where the records of a shard are: a file beside the shards, by which any row is read at once.

`index/NAME` of the shard `NAME` is, with numbers little-endian,

    magic 8 | uint64 rows | uint64 bytes of the shard | uint32 CRC-32C of the shard
            | uint32 CRC-32C of these 28 bytes | uint64[rows + 1] offsets

where offset i is the byte at which record i begins, and the last one is the shard's size. The file is
mapped into memory, so opening it reads its head alone. The offsets have no checksum: a record has one of
its own, and ends where the next one begins.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
from collections.abc import Iterable, Iterator

import google_crc32c
import numpy as np

from tokcore.errors import InputError
from tokcore.process_end import UndoneAtEnd
from tokcore.reading.shards import ShardFile
from tokcore.regular_files import open_regular

INDEX_FOLDER = 'index'

OFFSET_BYTES = 8
"""Of a record in an index."""

_MAGIC = b'tbindex\x01'
_FIELDS = struct.Struct('<8sQQI')
_CHECK = struct.Struct('<I')
_HEAD_BYTES = _FIELDS.size + _CHECK.size


def index_name(shard: str) -> str:
    """Returns the name that the index of a shard has in the folder of the shards."""
    return f'{INDEX_FOLDER}/{shard}'


def index_path(shard: ShardFile) -> str:
    """Returns the path of a shard's index."""
    folder, name = os.path.split(shard.path)
    return os.path.join(folder, INDEX_FOLDER, name)


def read_index(shard: ShardFile) -> np.ndarray:
    """Returns the offsets of a shard's records, uint64[rows + 1], mapped into memory.

    Raises:
        InputError: there is no index, it is damaged, or it is of another shard.
    """
    path = index_path(shard)
    again = f'run `tokbeam index {os.path.dirname(shard.path)}` and open the dataset again'
    size = OFFSET_BYTES * (shard.rows + 1)
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD_BYTES)
            if len(head) < _HEAD_BYTES or head[: len(_MAGIC)] != _MAGIC:
                raise InputError(f'{path} is not an index of records; {again}')
            if _CHECK.unpack(head[_FIELDS.size :])[0] != google_crc32c.value(head[: _FIELDS.size]):
                raise InputError(f'the head of {path} is damaged; {again}')
            if head != index_head(shard):
                _, rows, nbytes, crc32c = _FIELDS.unpack(head[: _FIELDS.size])
                raise InputError(
                    f'{path} is of another shard, of {rows} rows and {nbytes} bytes with CRC-32C '
                    f'{crc32c:08x}; {again}'
                )
            if file.seek(0, os.SEEK_END) != _HEAD_BYTES + size:
                raise InputError(
                    f'{path} has {file.tell()} bytes in place of {_HEAD_BYTES + size}; {again}'
                )
            return np.memmap(file, '<u8', 'r', _HEAD_BYTES, (shard.rows + 1,))
    except FileNotFoundError as error:
        raise InputError(
            f'{shard.path} has no index, by which rows are read in any order; {again}'
        ) from error
    except OSError as error:
        raise InputError(f'{path} cannot be read ({error.strerror}); {again}') from error


def write_index(shard: ShardFile, starts: Iterable[np.ndarray]) -> None:
    """Writes a shard's index; it is under its name when it is whole.

    Args:
        shard: the file.
        starts: int64, the offsets of its records, in parts.

    Raises:
        OSError: it cannot be written.
    """
    write_whole(index_path(shard), index_bytes(shard, starts))


def index_bytes(shard: ShardFile, starts: Iterable[np.ndarray]) -> Iterator[bytes]:
    """Yields the bytes of a shard's index, in parts; the arguments are those of `write_index`."""
    yield index_head(shard)
    for part in itertools.chain(starts, [np.array([shard.bytes])]):
        yield part.astype('<u8').tobytes()


def write_whole(path: str, parts: Iterable[bytes]) -> None:
    """Writes a file beside the shards; it is under its name when it is whole. Raises OSError."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = f'{path}.{os.getpid()}.part'
    with UndoneAtEnd(lambda: open(part, 'wb'), lambda _: _remove_if_there(part)) as file:
        with file:
            file.writelines(parts)
        os.replace(part, path)


def _remove_if_there(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


def index_head(shard: ShardFile) -> bytes:
    """Returns the bytes before the offsets."""
    fields = _FIELDS.pack(_MAGIC, shard.rows, shard.bytes, int(shard.crc32c, 16))
    return fields + _CHECK.pack(google_crc32c.value(fields))
