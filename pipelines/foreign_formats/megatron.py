"""Shards as Megatron reads them: `PREFIX_KEY_document.bin` of ids, `.idx` beside it.

The `.bin` is the ids of all rows, little-endian, without a head. The `.idx` is, little-endian,

    b'MMIDIDX\\0\\0' | uint64 1 | uint8 code of the dtype | uint64 rows n | uint64 n + 1
    int32[n]      lengths of the rows, in ids
    int64[n]      bytes of the `.bin` before each row
    int64[n + 1]  the row at which each document begins, and n: a row is a document

as `megatron.core.datasets.indexed_dataset` of Megatron-LM has it, version 1.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from pipelines.foreign_formats.id_streams import IdStreams
from pipelines.shard_formats.shard_format import Shard
from tokcore.kernels.bytes import row_offsets
from tokcore.records.manifest import Manifest


class Megatron(IdStreams):
    """A prefix for each shard, and of pairs for each side."""

    name = 'megatron'
    endings = ('bin', 'idx')

    def base_name(self, shard: str, feature: str) -> str:
        return f'{shard}_{feature or "text"}_document'  # Megatron's own key of plain text is `text`

    def dtype(self, vocab_size: int) -> str:
        return megatron_dtype(vocab_size)

    def list_bytes(
        self, lengths: np.ndarray, dtype: str, records: np.ndarray, shard: Shard
    ) -> bytes:
        return index_bytes(lengths, dtype)

    def lengths(self, data: bytes, dtype: str) -> np.ndarray:
        return index_lengths(data, dtype)

    def reading_code(self, manifest: Manifest) -> Iterator[str]:
        first = next(file for file in manifest.files if file.is_stored)
        yield from (
            'from megatron.core.datasets.indexed_dataset import IndexedDataset',
            '',
            f'rows = IndexedDataset({first.name.removesuffix(".bin")!r})',
        )


_MAGIC = b'MMIDIDX\x00\x00'
_VERSION = 1
_HEAD = struct.Struct('<9sQBQQ')

_CODES = {
    1: 'uint8', 2: 'int8', 3: 'int16', 4: 'int32', 5: 'int64', 6: 'float64', 7: 'float32', 8: 'uint16',
}  # fmt: skip

_MOST_UINT16 = 65_500
"""Megatron's own bound: vocabularies of so many ids have int32."""


def megatron_dtype(vocab_size: int) -> str:
    """Returns the dtype that Megatron chooses for the ids of a vocabulary: `uint16` or `int32`."""
    return 'uint16' if vocab_size < _MOST_UINT16 else 'int32'


def index_bytes(lengths: np.ndarray, dtype: str) -> bytes:
    """Returns an `.idx`.

    Args:
        lengths: int[n], the ids of each row.
        dtype: of the ids in the `.bin`.
    """
    [code] = [code for code, name in _CODES.items() if name == dtype]
    count, size = len(lengths), np.dtype(dtype).itemsize
    head = _HEAD.pack(_MAGIC, _VERSION, code, count, count + 1)
    starts = row_offsets(lengths)[:-1] * size
    return b''.join(
        [
            head,
            lengths.astype('<i4').tobytes(),
            starts.astype('<i8').tobytes(),
            np.arange(count + 1, dtype='<i8').tobytes(),
        ]
    )


def index_lengths(data: bytes, dtype: str) -> np.ndarray:
    """Returns the lengths of the rows of an `.idx`, int32[n].

    Raises:
        ValueError: saying, as a clause, why the bytes are not an index of rows that lie one after another
            as ids of this dtype.
    """
    if len(data) < _HEAD.size:
        raise ValueError(f'it ends within its head, after {len(data)} bytes')
    magic, version, code, count, documents = _HEAD.unpack_from(data)
    if magic != _MAGIC or version != _VERSION:
        raise ValueError('it does not begin as an index of Megatron, version 1')
    if _CODES.get(code) != dtype:
        raise ValueError(
            f'it says that ids are {_CODES.get(code, f"of an unknown dtype, {code}")}, and the manifest '
            f'states {dtype}'
        )
    if documents != count + 1 or len(data) != _HEAD.size + 12 * count + 8 * documents:
        raise ValueError(
            f'it has {len(data)} bytes, which are not those of {count} rows as {documents - 1} documents'
        )
    lengths = np.frombuffer(data, '<i4', count, _HEAD.size)
    if len(lengths) and lengths.min() < 0 or data != index_bytes(lengths, dtype):
        raise ValueError('its rows do not lie one after another, each a document')
    return lengths
