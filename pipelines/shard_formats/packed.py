"""Shards of packed rows: several rows one after another in each record, as Tensor2Tensor has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

import numpy as np

from pipelines.shard_formats.shard_format import (
    Column,
    ConvertedFormat,
    Shard,
    StoredDataset,
    SummedFile,
)
from pipelines.shard_formats.tfrecord import TfRecord
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


class Packed(TfRecord, ConvertedFormat):
    """A file a shard: TFRecords with three features for each of a row's, without padding.

    The rows of a window are placed the longest first, each where the least room is left. Longer rows of
    one feature are cut, longer pairs and empty rows left out.

    Args:
        length: ids of a feature in a packed row at most; None where none are written.
    """

    name = 'packed'

    def __init__(self, length: int | None = None):
        self.length = length

    def file_names(self, shard: str, features: Sequence[str]) -> list[str]:
        return [f'{shard}.packed']

    def write(
        self,
        parts: Iterator[EncodedRows],
        shard: Shard,
        folder: str,
        columns: Sequence[Column],
    ) -> Iterator[WrittenFile]:
        dropped: list[int] = []
        count = packed = 0
        [name] = self.file_names(shard.name, ())
        with SummedFile(folder, name) as file:
            for window in self.windows(parts, [column.name for column in columns]):
                dropped += window.dropped.tolist()
                packed += window.count - len(window.dropped)
                for records in window.records():
                    file.write(records.records)
                    count += len(records.lengths)
        yield file.written(count, dropped=dropped, packed=packed)

    def windows(
        self, parts: Iterable[EncodedRows], features: Sequence[str]
    ) -> Iterator[PackedWindow]:
        """Yields all rows of a shard, however they come, in windows that are packed by themselves."""
        assert self.length is not None  # the options say so
        rule = PackedBatches(self.length, 1, 'best-fit', 0, tuple(features))
        first = 0
        for rows in _windows(parts):
            yield PackedWindow(rule, rows, first)
            first += len(rows)

    def check(
        self, stream: BinaryIO, file: OutputFile, dataset: StoredDataset, advance: Advance
    ) -> CheckedFile:
        counts: dict[str, int | None] = {}
        for name, count in dataset.id_counts.items():
            counts |= dict.fromkeys(f'{name}{suffix}' for suffix in _SUFFIXES) | {name: count}
        return check_records(stream, file.name, counts, advance)

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


class PackedWindow:
    """Rows that are packed together.

    Attributes:
        first: the number of the first in the shard.
        count: of rows.
        dropped: int64, the numbers in the shard of rows that are left out: empty, or too long.
    """

    def __init__(self, rule: PackedBatches, rows: EncodedRows, first: int):
        self.first, self.count = first, len(rows)
        self._rule, self._pieces = rule, rule.pieces(rows)
        is_dropped = np.ones(len(rows), bool)
        is_dropped[self._pieces.numbers] = False
        self.dropped = first + np.flatnonzero(is_dropped)
        self._numbers = np.empty(0, np.int64)  # the packed rows, in the order of records
        if len(self._pieces.rows):
            self._batched = rule.arrange(self._pieces.rows)
            parts = [which for which, _ in self._batched.partial_batches()]
            self._numbers = np.concatenate(parts)

    def __len__(self) -> int:
        """The number of records."""
        return len(self._numbers)

    def segments(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields what the segments of each record are of: int64[n] the numbers of rows in the shard, and
        int64[n] the id of each at which its segment begins."""
        for number in self._numbers:
            own = self._batched.pieces_of(np.array([number]))
            yield self.first + self._pieces.numbers[own], self._pieces.starts[own]

    def records(self) -> Iterator[FramedRows]:
        """Yields the records, in parts."""
        at_once = max(1, _CELLS // self._rule.length)
        for first in range(0, len(self._numbers), at_once):
            which = self._numbers[first : first + at_once]
            arrays = self._batched.batch(which, 0)
            features = []
            for name in self._rule.features:
                is_id = arrays[f'{name}_segmentation'] > 0
                offsets = row_offsets(is_id.sum(axis=1))
                features += [
                    (f'{name}{suffix}', EncodedSide(arrays[f'{name}{suffix}'][is_id], offsets))
                    for suffix in _SUFFIXES
                ]
            yield frame_examples(features, np.zeros(len(which), np.uint64))


def _windows(parts: Iterable[EncodedRows]) -> Iterator[EncodedRows]:
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
