"""The files in the folder `index` next to the shards, with numbers little-endian.

`index/SHARD` has where the records of a shard are, so that any row is read at once:

    magic 8 | uint64 rows | uint64 bytes of the shard | uint32 CRC-32C of the shard
            | uint32 CRC-32C of these 28 bytes | uint64[rows + 1] offsets

where offset i is the byte at which record i begins, and the last one is the shard's size. The file is
mapped into memory, so opening it reads its head alone. The offsets have no checksum: a record has one of
its own, and ends where the next one begins.

`index/SPLIT.corpus` has the order of the corpus, by which rows are read as the corpus had them. Shards are
a shuffle and hold no keys of it: `tokbeam index --corpus-order` computes the keys again from the corpus.

    magic 8 | uint64 rows | 32 bytes, the SHA-256 of the shards | uint32 CRC-32C of the numbers
            | uint32 CRC-32C of these 52 bytes | uint64[rows] numbers

where the first number is that of the row, in all shards of the split, that comes first in the corpus. The
shards' SHA-256 is that of their rows (uint64), bytes (uint64) and CRC-32C (uint32), one after another.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import pathlib
import secrets
import struct
from collections.abc import Iterable, Iterator, Sequence

import google_crc32c
import numpy as np

from tokcore.errors import InputError
from tokcore.process_end import UndoneAtEnd
from tokcore.reading.shards import ShardFile, map_shard
from tokcore.regular_files import open_regular

INDEX_FOLDER = 'index'

OFFSET_BYTES = 8
"""Bytes of an offset."""

_MAGIC = b'tbindex\x01'
_FIELDS = struct.Struct('<8sQQI')

CORPUS_ENDING = '.corpus'
_ORDER_MAGIC = b'tborder\x01'
_ORDER_FIELDS = struct.Struct('<8sQ32sI')
_SHARD_FIELDS = struct.Struct('<QQI')


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
    """Writes a shard's index, under its name when it is whole; raises OSError.

    Args:
        shard: the file.
        starts: int64, the offsets of its records, in parts.
    """
    write_whole(index_path(shard), index_bytes(shard, starts))


def index_bytes(shard: ShardFile, starts: Iterable[np.ndarray]) -> Iterator[bytes]:
    """Yields the bytes of a shard's index, in parts; the arguments are those of `write_index`."""
    yield index_head(shard)
    for part in itertools.chain(starts, [np.array([shard.bytes])]):
        yield part.astype('<u8').tobytes()


def write_whole(path: str, parts: Iterable[bytes]) -> None:
    """Writes a file next to the shards; it is under its name when it is whole. Raises OSError."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = f'{path}.{secrets.token_hex(4)}.part'
    remove = pathlib.Path(part).unlink
    with UndoneAtEnd(lambda: open(part, 'wb'), lambda _: remove(missing_ok=True)) as file:
        with file:
            file.writelines(parts)
        os.replace(part, path)


def index_head(shard: ShardFile) -> bytes:
    """Returns the bytes before the offsets."""
    return _checked_head(_FIELDS.pack(_MAGIC, shard.rows, shard.bytes, int(shard.crc32c, 16)))


def _checked_head(fields: bytes) -> bytes:
    return fields + google_crc32c.value(fields).to_bytes(4, 'little')


def corpus_order_path(folder: str, split: str) -> str:
    """Returns the path of a split's order."""
    return os.path.join(folder, INDEX_FOLDER, f'{split}{CORPUS_ENDING}')


def read_corpus_order(folder: str, split: str, shards: Sequence[ShardFile]) -> np.ndarray:
    """Returns the numbers of a split's rows in the order of the corpus, int64[rows].

    Raises:
        InputError: there is no such file, it is damaged, or it is of other shards.
    """
    path = corpus_order_path(folder, split)
    again = f'run `tokbeam index {folder} --corpus-order` and open the dataset again'
    rows = sum(shard.rows for shard in shards)
    try:
        with open_regular(path) as file:
            head = file.read(_ORDER_FIELDS.size + 4)
            data = file.read()
    except FileNotFoundError as error:
        raise InputError(f'{folder} has no order of the corpus for {split}; {again}') from error
    except OSError as error:
        raise InputError(f'{path} cannot be read ({error.strerror}); {again}') from error
    if len(data) != 8 * rows or head != _order_head(shards, data):
        raise InputError(f'{path} is damaged, or is not the order of these {rows} rows; {again}')
    numbers = np.frombuffer(data, '<u8')
    if rows and int(numbers.max()) >= rows:
        raise InputError(f'{path} has the row {numbers.max()} of {rows}; {again}')
    return numbers.astype(np.int64)


def write_corpus_order(
    folder: str, split: str, shards: Sequence[ShardFile], numbers: np.ndarray
) -> None:
    """Writes int64[rows], the rows of a split in the order of the corpus; raises OSError."""
    data = numbers.astype('<u8').tobytes()
    write_whole(corpus_order_path(folder, split), (_order_head(shards, data), data))


def _order_head(shards: Sequence[ShardFile], data: bytes) -> bytes:
    crc32c = google_crc32c.value(data)
    return _checked_head(
        _ORDER_FIELDS.pack(_ORDER_MAGIC, len(data) // 8, shards_digest(shards), crc32c)
    )


def shards_digest(shards: Sequence[ShardFile]) -> bytes:
    """Returns the SHA-256 of what identifies the shards of a split."""
    fields = [
        _SHARD_FIELDS.pack(shard.rows, shard.bytes, int(shard.crc32c, 16)) for shard in shards
    ]
    return hashlib.sha256(b''.join(fields)).digest()
