"""The index of a shard, `index/SHARD`: where each row is, where it comes from, and how long it is.

    an entry for each row     uint32 offset | uint64 order key | uint32 ids of each feature | uint32 text
    uint64 for each 4 GiB     the first row whose record begins beyond it
    footer                    magic 8 | uint64 rows | uint64 bytes of the shard | uint32 its CRC-32C
                              | uint8 features | uint8 1 for offsets, 2 for keys, 3 for both
                              | uint32 CRC-32C of these

Numbers are little-endian. The offset is that of the record, modulo 2^32; the text is counted in bytes of
UTF-8, of all features. Files that are not TFRecords of a row each have no offsets, and no first rows. An
index that is made without the corpus has no order keys and no text. A file is mapped into memory, so
opening it reads its footer alone. Entries have no checksum: a record has one itself.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
import secrets
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import google_crc32c
import numpy as np

from tokcore.errors import InputError
from tokcore.format_numbers import INDEX
from tokcore.kernels.bytes import row_offsets
from tokcore.process_end import UndoneAtEnd
from tokcore.reading.shards import ShardFile, map_file, map_shard

INDEX_FOLDER = 'index'

_MAGIC = b'tbindex' + bytes([INDEX])
_FIELDS = struct.Struct('<8sQQIBB')
FOOTER_BYTES = _FIELDS.size + 4

_BASE_BITS = 32
_SHARD_FIELDS = struct.Struct('<QQI')


@dataclass(frozen=True)
class Addresses:
    """What the index of a shard has of some rows, in their order.

    Attributes:
        lengths: int64[rows], bytes of the TFRecords; of other files any array.
        keys: uint64[rows], the order keys; None: not known.
        sizes: uint32[rows, features], the ids of each feature; with keys there is one more column, the
            bytes of the text.
    """

    lengths: np.ndarray
    keys: np.ndarray | None
    sizes: np.ndarray


@dataclass(frozen=True, eq=False)
class RecordIndex:
    """The index of a shard, mapped into memory.

    Attributes:
        entries: structured[rows], as `entry_type` has them.
        bases: uint64[n], the first row beyond each 4 GiB; the number of rows if that is the shard's end.
        shard: the rows, the bytes and the CRC-32C of the shard.
    """

    entries: np.ndarray
    bases: np.ndarray
    shard: tuple[int, int, int]

    def __len__(self) -> int:
        return len(self.entries)

    @functools.cached_property
    def _offsets(self) -> np.ndarray:
        return self.entries['offset']

    def bounds(self, rows: np.ndarray) -> np.ndarray:
        """Returns where the TFRecords of rows, int64[n], begin and end: int64[2, n]; only of TFRecords."""
        is_last = rows + 1 == len(self)
        ends = self._starts(np.where(is_last, rows, rows + 1))
        ends[is_last] = self.shard[1]
        return np.stack([self._starts(rows), ends])

    def bounds_of(self, row: int) -> tuple[int, int]:
        """Returns where the TFRecord of one row begins and ends."""
        if len(self.bases) or row + 1 == len(self):
            start, end = self.bounds(np.array([row]))[:, 0].tolist()
            return start, end
        return self._offsets.item(row), self._offsets.item(row + 1)

    @property
    def has_offsets(self) -> bool:
        """Whether it says where records are."""
        return 'offset' in (self.entries.dtype.names or ())

    @property
    def has_keys(self) -> bool:
        """Whether it says where rows come from."""
        return 'key' in (self.entries.dtype.names or ())

    @property
    def keys(self) -> np.ndarray:
        """The order keys, uint64[rows], ascending; only if there are any."""
        return self.entries['key']

    @property
    def lengths(self) -> np.ndarray:
        """The number of ids of each feature, uint32[rows, features]."""
        return self.sizes[:, :-1] if self.has_keys else self.sizes

    @property
    def text_bytes(self) -> np.ndarray:
        """The bytes of the text of each row, uint32[rows]; only if there are keys."""
        return self.sizes[:, -1]

    @property
    def sizes(self) -> np.ndarray:
        """Those of `Addresses`."""
        return self.entries['sizes']

    def _starts(self, rows: np.ndarray) -> np.ndarray:
        starts = self._offsets[rows].astype(np.int64)
        if len(self.bases):
            starts += np.searchsorted(self.bases, rows.astype(np.uint64), 'right') << _BASE_BITS
        return starts


@functools.cache
def entry_type(features: int, has_offsets: bool, has_keys: bool) -> np.dtype:
    """Returns the type of an entry."""
    offset = [('offset', '<u4')] if has_offsets else []
    key = [('key', '<u8')] if has_keys else []
    return np.dtype([*offset, *key, ('sizes', '<u4', (features + has_keys,))])


def index_name(shard: str) -> str:
    """Returns the name that the index of a shard has in the folder of the shards."""
    return f'{INDEX_FOLDER}/{shard}'


def index_path(shard: ShardFile) -> str:
    """Returns the path of a shard's index."""
    folder, name = os.path.split(shard.path)
    return os.path.join(folder, INDEX_FOLDER, name)


def read_index(shard: ShardFile) -> RecordIndex:
    """Returns the index of a shard.

    Raises:
        InputError: there is no index, it is damaged, or it is of another shard.
    """
    path = index_path(shard)
    again = f'run `tokbeam index {os.path.dirname(shard.path)}` and open the dataset again'
    try:
        data, _ = map_file(path)
    except FileNotFoundError as error:
        map_shard(shard)  # raises if the shard is another one too
        raise InputError(
            f'{shard.path} has no index, by which rows are read in any order; {again}'
        ) from error
    except OSError as error:
        raise InputError(f'{path} cannot be read ({error.strerror}); {again}') from error
    index = parse_index(data)
    if index is None or index.shard != (shard.rows, shard.bytes, int(shard.crc32c, 16)):
        map_shard(shard)
        raise InputError(
            f'{path} is damaged, or is not the index of {shard.rows} rows in {shard.bytes} bytes '
            f'with CRC-32C {shard.crc32c}; {again}'
        )
    return index


def parse_index(data: np.ndarray) -> RecordIndex | None:
    """Returns the index that a file holds, uint8; None if it is not one, or not whole."""
    footer = data[-FOOTER_BYTES:].tobytes()
    if len(footer) != FOOTER_BYTES or footer[-4:] != _crc32c(footer[:-4]):
        return None
    magic, rows, size, crc32c, features, flags = _FIELDS.unpack(footer[:-4])
    if magic != _MAGIC or flags > 3:
        return None
    dtype = entry_type(features, bool(flags & 1), bool(flags & 2))
    bases = size >> _BASE_BITS if flags & 1 else 0
    ends = rows * dtype.itemsize, rows * dtype.itemsize + 8 * bases
    if len(data) != ends[1] + FOOTER_BYTES:
        return None
    entries = np.asarray(data[: ends[0]]).view(dtype)
    shard = rows, size, crc32c
    return RecordIndex(entries, np.asarray(data[ends[0] : ends[1]]).view('<u8'), shard)


class IndexWriter:
    """Makes the bytes of an index, while the shard is written.

    Args:
        features: how many features of ids the rows have.
        has_offsets: whether each row is a TFRecord.
    """

    def __init__(self, features: int, has_offsets: bool):
        self._features, self._has_offsets, self._has_keys = features, has_offsets, True
        self._rows = self._bytes = 0
        self._bases: list[np.ndarray] = []

    def entries(self, rows: Addresses) -> bytes:
        """Returns the entries of the rows that come next; the keys of all rows are known, or of none."""
        self._has_keys = rows.keys is not None
        dtype = entry_type(self._features, self._has_offsets, self._has_keys)
        entries = np.empty(len(rows.sizes), dtype)
        if self._has_offsets:
            starts = row_offsets(rows.lengths) + self._bytes
            entries['offset'] = starts[:-1] & 0xFFFFFFFF
            # No record has 2 GiB, so none passes two of these bounds.
            high = starts >> _BASE_BITS
            self._bases.append(self._rows + 1 + np.flatnonzero(high[1:] > high[:-1]))
            self._bytes = int(starts[-1])
        entries['sizes'] = rows.sizes
        if self._has_keys:
            entries['key'] = rows.keys
        self._rows += len(entries)
        return entries.tobytes()

    def footer(self, shard: ShardFile) -> bytes:
        """Returns what follows the entries of all rows of a shard."""
        bases = np.concatenate([np.empty(0, np.int64), *self._bases]).astype('<u8')
        flags = self._has_offsets + 2 * self._has_keys
        stated = shard.rows, shard.bytes, int(shard.crc32c, 16)
        fields = _FIELDS.pack(_MAGIC, *stated, self._features, flags)
        return bases.tobytes() + fields + _crc32c(fields)


def write_index(
    shard: ShardFile, features: int, rows: Iterable[Addresses], has_offsets: bool = True
) -> None:
    """Writes a shard's index, under its name when it is whole; raises OSError.

    Args:
        shard: the file.
        features: how many features of ids the rows have.
        rows: all of them, in parts.
        has_offsets: whether each row is a TFRecord.
    """

    def parts() -> Iterator[bytes]:
        writer = IndexWriter(features, has_offsets)
        yield from map(writer.entries, rows)
        yield writer.footer(shard)

    write_whole(index_path(shard), parts())


def write_whole(path: str, parts: Iterable[bytes]) -> None:
    """Writes a file next to the shards; it is under its name when it is whole. Raises OSError."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = f'{path}.{secrets.token_hex(4)}.part'
    remove = pathlib.Path(part).unlink
    with UndoneAtEnd(lambda: open(part, 'wb'), lambda _: remove(missing_ok=True)) as file:
        with file:
            file.writelines(parts)
        os.replace(part, path)


def shards_digest(shards: Sequence[ShardFile]) -> bytes:
    """Returns the SHA-256 of what identifies the shards of a split."""
    fields = [
        _SHARD_FIELDS.pack(shard.rows, shard.bytes, int(shard.crc32c, 16)) for shard in shards
    ]
    return hashlib.sha256(b''.join(fields)).digest()


def _crc32c(data: bytes) -> bytes:
    return google_crc32c.value(data).to_bytes(4, 'little')
