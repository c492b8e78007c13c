"""The order of the corpus: a file beside the shards, by which rows are read as the corpus had them.

Shards are a shuffle, and hold no keys of it. `tokbeam index --corpus-order` computes the keys again from
the corpus, and writes for each split `index/SPLIT.corpus`, with numbers little-endian,

    magic 8 | uint64 rows | 32 bytes, the SHA-256 of the shards | uint32 CRC-32C of the numbers
            | uint32 CRC-32C of these 52 bytes | uint64[rows] numbers

where the first number is that of the row, in all shards of the split, that comes first in the corpus. The
shards' SHA-256 is that of their rows (uint64), bytes (uint64) and CRC-32C (uint32), one after another.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Sequence

import google_crc32c
import numpy as np

from tokcore.errors import InputError
from tokcore.reading.record_index import INDEX_FOLDER, write_whole
from tokcore.reading.shards import ShardFile
from tokcore.regular_files import open_regular

CORPUS_ENDING = '.corpus'
_MAGIC = b'tborder\x01'
_FIELDS = struct.Struct('<8sQ32sI')
_CHECK = struct.Struct('<I')
_SHARD = struct.Struct('<QQI')


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
            head = file.read(_FIELDS.size + _CHECK.size)
            data = file.read()
    except FileNotFoundError as error:
        raise InputError(f'{folder} has no order of the corpus for {split}; {again}') from error
    except OSError as error:
        raise InputError(f'{path} cannot be read ({error.strerror}); {again}') from error
    if len(data) != 8 * rows or head != _head(shards, data):
        raise InputError(f'{path} is damaged, or is not the order of these {rows} rows; {again}')
    numbers = np.frombuffer(data, '<u8')
    if rows and int(numbers.max()) >= rows:
        raise InputError(f'{path} has the row {numbers.max()} of {rows}; {again}')
    return numbers.astype(np.int64)


def write_corpus_order(
    folder: str, split: str, shards: Sequence[ShardFile], numbers: np.ndarray
) -> None:
    """Writes the order of a split; it is under its name when it is whole.

    Args:
        folder: of the dataset.
        split: its name.
        shards: of it.
        numbers: int64[rows], the rows of the split in the order of the corpus.

    Raises:
        OSError: it cannot be written.
    """
    data = numbers.astype('<u8').tobytes()
    write_whole(corpus_order_path(folder, split), (_head(shards, data), data))


def _head(shards: Sequence[ShardFile], data: bytes) -> bytes:
    crc32c = google_crc32c.value(data)
    head = _FIELDS.pack(_MAGIC, len(data) // 8, shards_digest(shards), crc32c)
    return head + _CHECK.pack(google_crc32c.value(head))


def shards_digest(shards: Sequence[ShardFile]) -> bytes:
    """Returns the SHA-256 of what identifies the shards of a split."""
    fields = [_SHARD.pack(shard.rows, shard.bytes, int(shard.crc32c, 16)) for shard in shards]
    return hashlib.sha256(b''.join(fields)).digest()
