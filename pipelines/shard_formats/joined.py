"""Shards of joined rows: a text or a pair in one row of fixed length, as BERT's run_classifier has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np

from pipelines.shard_formats.shard_format import (
    Column,
    ConvertedFormat,
    Shard,
    StoredDataset,
    SummedFile,
    parse_rows,
)
from pipelines.shard_formats.tfrecord import TfRecord
from pipelines.transforms.stats import WrittenFile
from tokcore.encoding.encoder import EncodedSide
from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets
from tokcore.reading.checking import Advance, CheckedFile, check_records
from tokcore.reading.shards import EncodedRows
from tokcore.records.manifest import Manifest, OutputFile
from tokcore.records.tfrecord import FramedRows, frame_examples

_FEATURES = ('input_ids', 'input_mask', 'segment_ids')

_CELLS = 1 << 22
"""Ids that are written at once: three arrays of 16 MiB."""


class Joined(TfRecord, ConvertedFormat):
    """A file a shard, of TFRecords with three features of one length, a record for each row.

        input_ids     [CLS] A [SEP], of a pair [CLS] A [SEP] B [SEP], then padding
        input_mask    1 for these ids, 0 for padding
        segment_ids   1 for B and its [SEP], 0 for the rest

    Pairs that are too long lose ids from the end of the longer side, one at a time, of B where both
    are as long.

    Args:
        length: ids of a row; None where none are written.
    """

    name = 'joined'

    def __init__(self, length: int | None = None):
        self._length = length

    def file_names(self, shard: str, features: Sequence[str]) -> list[str]:
        return [f'{shard}.joined']

    def write(
        self,
        parts: Iterator[EncodedRows],
        shard: Shard,
        folder: str,
        columns: Sequence[Column],
    ) -> Iterator[WrittenFile]:
        count = cut = 0
        [name] = self.file_names(shard.name, ())
        assert self._length is not None  # the options say so
        at_once = max(1, _CELLS // self._length)
        with SummedFile(folder, name) as file:
            for rows in parts:
                for first in range(0, len(rows), at_once):
                    part = rows.part(first, min(first + at_once, len(rows)))
                    framed, cut_rows = self._framed(part, columns)
                    file.write(framed.records)
                    count += len(part)
                    cut += cut_rows
        yield file.written(count, cut=cut)

    def check(
        self, stream: BinaryIO, file: OutputFile, dataset: StoredDataset, advance: Advance
    ) -> CheckedFile:
        counts = [count for count in dataset.id_counts.values() if count is not None]
        most = (max(counts, default=None), 2, 2)
        return check_records(stream, file.name, dict(zip(_FEATURES, most, strict=True)), advance)

    def row_bytes(self, rows: FramedRows, columns: Sequence[Column]) -> Iterator[bytes]:
        encoded = parse_rows(rows, [column.name for column in columns])
        return super().row_bytes(self._framed(encoded, columns)[0], columns)

    def reading_code(self, manifest: Manifest) -> Iterator[str]:
        yield from (
            'import tensorflow as tf',
            '',
            f'records = tf.data.TFRecordDataset({manifest.files[0].name!r})',
            f'ids = tf.io.FixedLenFeature([{manifest.options.get("pack")}], tf.int64)',
            f'features = dict.fromkeys({_FEATURES}, ids)',
            'rows = records.map(lambda record: tf.io.parse_single_example(record, features))',
        )

    def _framed(self, rows: EncodedRows, columns: Sequence[Column]) -> tuple[FramedRows, int]:
        """Returns joined rows, and how many of them were cut."""
        assert self._length is not None
        begin, end, pad = ids_around(columns)
        sides = [rows.offsets[column.name] for column in columns]
        lengths = [np.diff(offsets) for offsets in sides]
        if len(sides) == 1:
            kept = [np.minimum(lengths[0], self._length - 2)]
        else:
            kept = [*_kept(lengths[0], lengths[1], self._length)]
        cut = np.any([most > own for most, own in zip(lengths, kept, strict=True)], axis=0)
        shape = len(rows), self._length
        ids = np.full(shape, pad, np.int32)
        segments = np.zeros(shape, np.int32)
        ids[:, 0] = begin
        size, numbers = np.ones(len(rows), np.int64), np.arange(len(rows))
        for segment, column in enumerate(columns):
            own, starts = kept[segment], rows.offsets[column.name][:-1]
            # A pair whose B is empty is a text.
            is_there = (own > 0) | (segment == 0)
            row = np.repeat(numbers, own)
            place = np.arange(len(row)) - row_offsets(own)[row]
            ids[row, size[row] + place] = rows.ids[column.name][starts[row] + place]
            segments[row, size[row] + place] = segment
            size += own
            ids[numbers[is_there], size[is_there]] = end
            segments[numbers[is_there], size[is_there]] = segment
            size += is_there
        mask = (np.arange(self._length) < size[:, None]).astype(np.int32)
        bounds = np.arange(len(rows) + 1) * self._length
        features = [
            (name, EncodedSide(array.ravel(), bounds))
            for name, array in zip(_FEATURES, (ids, mask, segments), strict=True)
        ]
        return frame_examples(features, np.zeros(len(rows), np.uint64)), int(cut.sum())


def ids_around(columns: Sequence[Column]) -> tuple[int, int, int]:
    """Returns the ids of begin, end and padding, those of both sides.

    Raises:
        InputError: the vocabulary lacks one, or the sides have different vocabularies.
    """
    if len({(column.vocabulary, column.vocab_size) for column in columns}) > 1:
        raise InputError(
            'joined rows have ids of one vocabulary, and the sides have one each; give both the same'
        )
    roles = columns[0].roles
    if roles.begin is None or roles.end is None or roles.pad is None:
        raise InputError(
            'joined rows have ids of begin, end and padding, as [CLS], [SEP] and [PAD], and the '
            'vocabulary lacks one of them; give a vocabulary that has all'
        )
    return roles.begin, roles.end, roles.pad


def _kept(first: np.ndarray, second: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns how many ids of each side a pair keeps, int64[n], from how many there are."""
    around = np.where(second > 0, 3, 2)
    excess = np.maximum(first + second - (length - around), 0)
    # The longer side is cut to the length of the other one, and then both in turn, B first.
    of_longer = np.minimum(excess, np.abs(first - second))
    rest = excess - of_longer
    is_longer = first > second
    return (
        first - np.where(is_longer, of_longer, 0) - rest // 2,
        second - np.where(is_longer, 0, of_longer) - (rest + 1) // 2,
    )
