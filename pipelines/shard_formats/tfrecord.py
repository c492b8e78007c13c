"""Shards of TFRecords of `tf.train.Example`, which hold every feature of a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

import numpy as np

from pipelines.shard_formats.shard_format import Column, ShardFormat, StoredDataset, mapped_bytes
from tokcore.kernels.bytes import CRC32C, crc_table, row_offsets
from tokcore.reading.checking import Advance, CheckedFile, check_records
from tokcore.reading.record_index import index_head
from tokcore.reading.record_kernels import FOOTER_SIZE, HEADER_SIZE, index_records
from tokcore.reading.shards import ShardFile
from tokcore.records.manifest import Manifest, OutputFile
from tokcore.records.tfrecord import FramedRows

_MOST_RECORDS = 1 << 16
"""Records that are looked up at once."""


class TfRecord(ShardFormat):
    """A file a shard; a row is a record, with the lengths and checksums that frame it."""

    name = 'tfrecord'

    def file_names(self, shard: str, features: Sequence[str]) -> list[str]:
        return [shard]

    def check(
        self, stream: BinaryIO, file: OutputFile, dataset: StoredDataset, advance: Advance
    ) -> CheckedFile:
        shard = ShardFile(file.name, file.rows, file.bytes, file.crc32c)
        return check_records(stream, file.name, dataset.id_counts, advance, index_head(shard))

    def stored_rows(
        self,
        paths: Sequence[str],
        numbers: np.ndarray,
        columns: Sequence[Column],
        files: Mapping[str, OutputFile],
    ) -> Iterator[bytes | None]:
        data = mapped_bytes(paths[0])
        records = np.empty((2, _MOST_RECORDS), np.int64)
        damaged, table = np.empty(_MOST_RECORDS, np.uint8), crc_table(CRC32C)
        wanted = numbers.tolist()
        place = first = at = 0
        while at < len(wanted):
            place, count, _ = index_records(
                data, place, table, False, records[0], records[1], damaged
            )
            if not count:
                break
            while at < len(wanted) and wanted[at] < first + count:
                start, size = records[:, wanted[at] - first].tolist()
                yield data[start - HEADER_SIZE : start + size + FOOTER_SIZE].tobytes()
                at += 1
            first += count
        yield from [None] * (len(wanted) - at)

    def row_bytes(self, rows: FramedRows, columns: Sequence[Column]) -> Iterator[bytes]:
        bounds = row_offsets(rows.lengths)
        for start, end in zip(bounds, bounds[1:]):
            yield rows.records[start:end].tobytes()

    def reading_code(self, manifest: Manifest) -> Iterator[str]:
        yield from tokcore_code(manifest)


def tokcore_code(manifest: Manifest) -> Iterator[str]:
    """Yields the lines that read a dataset by `tokcore.open_dataset`."""
    arguments = f'{manifest.lines[0].split!r}, tokens_per_batch=4096'
    if ends := len(manifest.end_of_document):  # of each side
        arguments += f', for_model={"lm" if ends == 1 else "seq2seq"!r}'
    yield from (
        'import tokcore',
        '',
        "dataset = tokcore.open_dataset('.')",
        f'for batch in dataset.batches({arguments}):',
        '    ...',
    )
