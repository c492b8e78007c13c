"""Where the records of a shard are: a file beside the shards, by which any row is read at once.

`index/NAME` of the shard `NAME` is, with numbers little-endian,

    magic 8 | uint64 rows | uint64 bytes of the shard | uint32 CRC-32C of the shard
            | uint32 CRC-32C of these 28 bytes | uint64[rows + 1] offsets

where offset i is the byte at which record i begins, and the last one is the shard's size. The file is
mapped into memory, so opening it reads its head alone. The offsets have no checksum: a record has one of
its own, and ends where the next one begins.
"""

from __future__ import annotations

import itertools
import os
import pathlib
import secrets
import struct
from collections.abc import Iterable, Iterator

import google_crc32c
import numpy as np

from tokcore.errors import InputError
from tokcore.process_end import UndoneAtEnd
from tokcore.reading.shards import ShardFile, map_shard
from tokcore.regular_files import open_regular

INDEX_FOLDER = 'index'

OFFSET_BYTES = 8
"""Of a record in an index."""

_MAGIC = b'tbindex\x01'
_FIELDS = struct.Struct('<8sQQI')
_CHECK = struct.Struct('<I')


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
    path, head = index_path(shard), index_head(shard)
    again = f'run `tokbeam index {os.path.dirname(shard.path)}` and open the dataset again'
    size = len(head) + OFFSET_BYTES * (shard.rows + 1)
    try:
        with open_regular(path) as file:
            if file.read(len(head)) != head or os.fstat(file.fileno()).st_size != size:
                map_shard(shard)  # raises if the shard is another one too
                raise InputError(
                    f'{path} is damaged, or is not the index of {shard.rows} rows in {shard.bytes} bytes '
                    f'with CRC-32C {shard.crc32c}; {again}'
                )
            return np.memmap(file, '<u8', 'r', len(head), (shard.rows + 1,))
    except FileNotFoundError as error:
        map_shard(shard)
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
    part = f'{path}.{secrets.token_hex(4)}.part'
    remove = pathlib.Path(part).unlink
    with UndoneAtEnd(lambda: open(part, 'wb'), lambda _: remove(missing_ok=True)) as file:
        with file:
            file.writelines(parts)
        os.replace(part, path)


def index_head(shard: ShardFile) -> bytes:
    """Returns the bytes before the offsets."""
    fields = _FIELDS.pack(_MAGIC, shard.rows, shard.bytes, int(shard.crc32c, 16))
    return fields + _CHECK.pack(google_crc32c.value(fields))
