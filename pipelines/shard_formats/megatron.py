"""Shards as Megatron reads them: `PREFIX_KEY_document.bin` of ids, `.idx` beside it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipelines.shard_formats.id_streams import IdStreams
from pipelines.shard_formats.shard_format import Shard
from tokcore.records.manifest import Manifest
from tokcore.records.megatron import index_bytes, index_lengths, megatron_dtype


class Megatron(IdStreams):
    """A prefix a shard, and for pairs one a side; `tokcore.records.megatron` has the bytes."""

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
