"""Shards of TFRecords of `tf.train.Example`: a row in each, several packed ones, or a text or pair as BERT has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO

import numpy as np

from pipelines.shard_formats.shard_format import (
    Column,
    ConvertedFormat,
    Shard,
    ShardFormat,
    StoredDataset,
    mapped_bytes,
    parse_rows,
)
from pipelines.transforms.stats import SummedFile, WrittenFile
from tokcore.encoding.encoder import EncodedSide
from tokcore.errors import InputError
from tokcore.kernels.bytes import CRC32C, crc_table, row_offsets
from tokcore.options import NO_END
from tokcore.reading.checking import Advance, CheckedFile, check_records
from tokcore.reading.manifest import recorded_features
from tokcore.reading.packing import PackedBatches
from tokcore.reading.record_kernels import FOOTER_SIZE, HEADER_SIZE, index_records
from tokcore.reading.shards import EncodedRows
from tokcore.records.manifest import Manifest, OutputFile
from tokcore.records.tfrecord import FramedRows, frame_examples

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
        return check_records(stream, file.name, dataset.id_counts, advance)

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
    sides = recorded_features({text.role for text in manifest.inputs}, manifest.options)
    if len(manifest.end_of_document) == len(sides):  # else a model needs to be given the ends
        arguments += f', for_model={"lm" if len(sides) == 1 else "seq2seq"!r}'
    yield from (
        'import tokcore',
        '',
        "dataset = tokcore.open_dataset('.')",
        f'for batch in dataset.batches({arguments}):',
        '    ...',
    )


WINDOW_ROWS = 1 << 16
"""Rows that are packed together, as readers do: with half a little more is padding, twice is more memory."""

_CELLS = 1 << 22
"""Cells of packed rows that are written at once: three arrays of 16 MiB for each feature."""

_SUFFIXES = ('', '_segmentation', '_position')


class Packed(ConvertedFormat, TfRecord):
    """A file a shard: TFRecords with three features for each of a row's, without padding.

    The rows of a window are placed the longest first, each where the least room is left. Longer rows of
    one feature are cut, longer pairs and empty rows left out.

    Args:
        length: ids of a feature in a packed row at most; None where none are written.
    """

    name = 'packed'

    def __init__(self, length: int | None = None):
        self.length = length

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
        yield file.written(count, dropped=tuple(dropped), packed=packed)

    def windows(
        self, parts: Iterable[EncodedRows], features: Sequence[str]
    ) -> Iterator[PackedWindow]:
        """Yields all rows of a shard, however they come, in windows that are packed by themselves."""
        assert self.length is not None  # the options say so
        pads = dict.fromkeys(features, 0)
        rule = PackedBatches(self.length, 1, 'best-fit', pads, tuple(features))
        first = 0
        for rows in windows(parts, WINDOW_ROWS):
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

    def notes(self, manifest: Manifest) -> Iterator[str]:
        ends, options = manifest.end_of_document, manifest.options
        if options.get('template') is not None or options.get('end') == NO_END:
            return  # as asked for
        if not ends or not all(end.in_template for end in ends):
            token = ends[0].token or ends[0].id if ends else 'TOKEN'
            yield (
                'no end token follows a row: a model that is to learn where texts end needs '
                f"--template '$A {token}' of build or encode"
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
        self._rule, self._rows, lengths = rule, rows, rows.lengths
        self._row_of, self._starts = rule.pieces(lengths)  # of each piece
        is_dropped = np.ones(len(rows), bool)
        is_dropped[self._row_of] = False
        self.dropped = first + np.flatnonzero(is_dropped)
        self._numbers = np.empty(0, np.int64)  # the packed rows, in the order of records
        if len(self._row_of):
            of_pieces = rule.lengths_at(lengths[:, self._row_of], self._starts)
            assert of_pieces is not None
            self._batched = rule.arrange(of_pieces)
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
            yield self.first + self._row_of[own], self._starts[own]

    def records(self) -> Iterator[FramedRows]:
        """Yields the records, in parts."""
        at_once = max(1, _CELLS // self._rule.length)
        for first in range(0, len(self._numbers), at_once):
            which = self._numbers[first : first + at_once]
            own = self._batched.pieces_of(which)
            starts = self._rows.starts(self._row_of[own], self._starts[own])
            arrays = self._batched.batch(which, 0, self._rows.ids, starts)
            features = []
            for name in self._rule.features:
                is_id = arrays[f'{name}_segmentation'] > 0
                offsets = row_offsets(is_id.sum(axis=1))
                features += [
                    (f'{name}{suffix}', EncodedSide(arrays[f'{name}{suffix}'][is_id], offsets))
                    for suffix in _SUFFIXES
                ]
            yield frame_examples(features, np.zeros(len(which), np.uint64))


def windows(
    parts: Iterable[EncodedRows], most_rows: int, most_ids: int = 1 << 62
) -> Iterator[EncodedRows]:
    """Yields rows in windows as large as they may be, however they come; a row with more ids is one by itself."""
    waiting: list[EncodedRows] = []
    count = ids = 0
    for part in parts:
        while len(part):
            sums = ids + np.cumsum(part.lengths.sum(axis=0))
            fitting = min(most_rows - count, int(np.searchsorted(sums, most_ids, 'right')))
            if not count:
                fitting = max(1, fitting)
            if fitting:
                waiting.append(part.part(0, fitting))
                count, ids = count + fitting, int(sums[fitting - 1])
                part = part.part(fitting, len(part))
            if len(part):
                yield EncodedRows.joined(waiting)
                waiting, count, ids = [], 0, 0
    if waiting:
        yield EncodedRows.joined(waiting)


_FEATURES = ('input_ids', 'input_mask', 'segment_ids')


class Joined(ConvertedFormat, TfRecord):
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
