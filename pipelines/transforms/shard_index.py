"""Writes the index of a shard's records beside it, from the lengths that its writer knows."""

from collections.abc import Iterable

import google_crc32c
import numpy as np

from pipelines.files import filesystem
from pipelines.transforms.stats import WrittenFile
from tokcore.kernels.bytes import row_offsets
from tokcore.reading.record_index import index_bytes, index_name
from tokcore.reading.shards import ShardFile


def write_shard_index(
    shard: WrittenFile, lengths: Iterable[np.ndarray], folder: str
) -> WrittenFile:
    """Writes a shard's index, the bytes that `tokbeam index` writes; returns its file.

    Args:
        shard: of TFRecords.
        lengths: of its records in bytes, any integers, in parts.
        folder: that of the shard.
    """
    stated = ShardFile(shard.name, shard.rows, shard.bytes, f'{shard.crc32c:08x}')
    name, size, crc32c = index_name(shard.name), 0, 0
    with filesystem.create(filesystem.join(folder, *name.split('/'))) as file:
        for data in index_bytes(stated, _starts(lengths)):
            file.write(data)
            size += len(data)
            crc32c = google_crc32c.extend(crc32c, data)
    return WrittenFile(name, size, crc32c, shard.rows)


def _starts(lengths: Iterable[np.ndarray]) -> Iterable[np.ndarray]:
    start = 0
    for part in lengths:
        offsets = start + row_offsets(part)
        start = offsets[-1]
        yield offsets[:-1]
