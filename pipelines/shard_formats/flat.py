"""Shards as flat streams of ids, `.npy`, with lists of their rows, `.csv.gz`, as OLMo has them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipelines.shard_formats.id_streams import IdStreams
from pipelines.shard_formats.shard_format import Shard
from tokcore.records.flat import document_lengths, flat_dtype, list_bytes
from tokcore.records.manifest import Manifest


class Flat(IdStreams):
    """One stream for each shard, and of pairs for each side; `tokcore.records.flat` has the layout."""

    name = 'flat'
    endings = ('npy', 'csv.gz')

    def base_name(self, shard: str, feature: str) -> str:
        return f'{shard}.{feature}' if feature else shard

    def dtype(self, vocab_size: int) -> str:
        return flat_dtype(vocab_size)

    def list_bytes(
        self, lengths: np.ndarray, dtype: str, records: np.ndarray, shard: Shard
    ) -> bytes:
        return list_bytes(lengths, records, shard.first_row, shard.name)

    def lengths(self, data: bytes, dtype: str) -> np.ndarray:
        return document_lengths(data)

    def reading_code(self, manifest: Manifest) -> Iterator[str]:
        first = next(file for file in manifest.files if file.is_stored)
        yield from (
            'import numpy',
            '',
            f'ids = numpy.memmap({first.name!r}, dtype={first.dtype!r}, mode="r")',
        )
