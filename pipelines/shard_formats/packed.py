"""Shards of packed rows: several rows one after another in each record, as Tensor2Tensor has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

import numpy as np

from pipelines.shard_formats.shard_format import Column, Shard, StoredDataset, SummedFile
from pipelines.transforms.stats import WrittenFile
from tokcore.encoding.encoder import EncodedSide
from tokcore.kernels.bytes import row_offsets
from tokcore.reading.checking import Advance, CheckedFile, check_records
from tokcore.reading.packing import PackedBatches
from tokcore.reading.shards import EncodedRows
from tokcore.records.manifest import Manifest, OutputFile
from tokcore.records.tfrecord import FramedRows, frame_examples

WINDOW_ROWS = 1 << 16
"""Rows that are packed together, as readers do: with half a little more is padding, twice is more memory."""

_CELLS = 1 << 22
"""Cells of packed rows that are written at once: three arrays of 16 MiB for each feature."""

_SUFFIXES = ('', '_segmentation', '_position')


class Packed:
    """A file a shard: TFRecords with three features for each of a row's, without padding.

    The rows of a window are placed the longest first, each where the least room is left. Longer rows of
    one feature are cut, longer pairs and empty rows left out.

    Args:
        length: ids of a feature in a packed row at most; None where none are written.
    """

    name = 'packed'
    hub_ending = None
    needs_pieces = False

    def __init__(self, length: int | None = None):
        self._length = length

    def file_names(self, shard: str, features: Sequence[str]) -> list[str]:
        return [f'{shard}.packed']

    def write(
        self,
        parts: Iterator[EncodedRows],
        shard: Shard,
        folder: str,
        columns: Sequence[Column],
    ) -> Iterator[WrittenFile]:
        assert self._length is not None  # the options say so
        features = tuple(column.name for column in columns)
        rule = PackedBatches(self._length, 1, 'best-fit', 0, features)
        dropped: list[int] = []
        first = count = 0
        [name] = self.file_names(shard.name, features)
        with SummedFile(folder, name) as file:
            for rows in _windows(parts):
                pieces = rule.pieces(rows)
                kept = np.zeros(len(rows), bool)
                kept[pieces.numbers] = True
                dropped += (first + np.flatnonzero(~kept)).tolist()
                first += len(rows)
                for records in _records(rule, pieces.rows):
                    file.write(records.records)
                    count += len(records.lengths)
        yield file.written(count, dropped=dropped, packed=first - len(dropped))

    def check(
        self, stream: BinaryIO, file: OutputFile, dataset: StoredDataset, advance: Advance
    ) -> CheckedFile:
        counts: dict[str, int | None] = {}
        for name, count in dataset.id_counts.items():
            counts |= dict.fromkeys(f'{name}{suffix}' for suffix in _SUFFIXES) | {name: count}
        return check_records(stream, file.name, counts, advance)

    def stored_rows(
        self,
        paths: Sequence[str],
        numbers: np.ndarray,
        columns: Sequence[Column],
        files: Mapping[str, OutputFile],
    ) -> Iterator[bytes | None]:
        raise NotImplementedError('a packed record has several rows')

    def row_bytes(self, rows: FramedRows, columns: Sequence[Column]) -> Iterator[bytes]:
        raise NotImplementedError('a packed record has several rows')

    def reading_code(self, manifest: Manifest) -> Iterator[str]:
        yield from (
            'import tensorflow as tf',
            '',
            f'records = tf.data.TFRecordDataset({manifest.files[0].name!r})',
            'ids = tf.io.RaggedFeature(tf.int64)',
            "names = ('targets', 'targets_segmentation', 'targets_position')",
            'rows = records.map(',
            '    lambda record: tf.io.parse_single_example(record, dict.fromkeys(names, ids))',
            ')',
        )


def _windows(parts: Iterator[EncodedRows]) -> Iterator[EncodedRows]:
    """Yields rows in windows of equal size, however they come."""
    waiting: list[EncodedRows] = []
    count = 0
    for part in parts:
        while len(part):
            own = part.part(0, min(len(part), WINDOW_ROWS - count))
            part = part.part(len(own), len(part))
            waiting.append(own)
            count += len(own)
            if count == WINDOW_ROWS:
                yield EncodedRows.joined(waiting)
                waiting, count = [], 0
    if waiting:
        yield EncodedRows.joined(waiting)


def _records(rule: PackedBatches, rows: EncodedRows) -> Iterator[FramedRows]:
    """Yields the packed rows of a window."""
    if not len(rows):
        return
    batched = rule.arrange(rows)
    numbers = np.concatenate([which for which, _ in batched.partial_batches()])
    at_once = max(1, _CELLS // rule.length)
    for first in range(0, len(numbers), at_once):
        which = numbers[first : first + at_once]
        arrays = batched.batch(which, 0)
        features = []
        for name in rule.features:
            is_id = arrays[f'{name}_segmentation'] > 0
            offsets = row_offsets(is_id.sum(axis=1))
            features += [
                (f'{name}{suffix}', EncodedSide(arrays[f'{name}{suffix}'][is_id], offsets))
                for suffix in _SUFFIXES
            ]
        yield frame_examples(features, np.zeros(len(which), np.uint64))
