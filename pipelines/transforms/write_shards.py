"""Writes framed examples to shards of TFRecords, sorted by their order keys, and their indexes."""

import argparse
import dataclasses
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import apache_beam as beam
import numpy as np

from pipelines.files import filesystem
from pipelines.transforms.encode_blocks import RECORDS, SplitShards
from pipelines.transforms.read import Path, checked_output
from pipelines.transforms.stats import SummedFile, WrittenFile
from tokcore.errors import InputError
from tokcore.options import dataset_name
from tokcore.reading.other_records import list_shards
from tokcore.reading.record_index import (
    Addresses,
    IndexWriter,
    RecordIndex,
    index_name,
    parse_index,
)
from tokcore.reading.shards import ShardFile
from tokcore.records.manifest import shard_name
from tokcore.records.tfrecord import FramedRows, sort_rows

_FILES, _JOINED = 'files', 'joined'

_READ_BYTES = 8 << 20

_ROWS_AT_ONCE = 1 << 16
"""Rows whose entries of an index are made at once: until they are written they take 70 bytes each."""


class WriteShards(beam.PTransform):
    """Groups framed examples by bucket, sorts each bucket by order key, and writes the shards.

    Takes the dictionary of `EncodeBlocks`, or its `records`: ((split number, bucket), bytes of
    `FramedRows`). Returns a `WrittenFile` for each shard that has examples, or with `index` two.

    Examples:
        >>> with beam.Pipeline(runner='FnApiRunner') as pipeline:
        ...     blocks = pipeline | pipelines.ReadCorpus('train.en')
        ...     encoded = blocks | pipelines.EncodeBlocks(scheme='byte', shards=2)
        ...     _ = encoded | pipelines.WriteShards('mine', 'own', index=True)
        >>> tokcore.open_dataset('own')
        <Dataset own: examples of train 400; ids of targets>
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        layout: Sequence[SplitShards] | None = None,
        *,
        index: bool = False,
    ):
        """Takes names.

        Args:
            name: of the dataset; it begins the files' names.
            folder: the folder of the shards.
            layout: for each split number its shards and buckets; None: that of `EncodeBlocks`.
            index: whether the index of each shard's records is written too, into the folder `index`, and on this
                machine a list of the shards, so that `open_dataset` opens the folder.

        Raises:
            InputError: no file can have such a name, or no folder; or, where it is applied, another
                `WriteShards` of the pipeline writes the same shards.
        """
        super().__init__()
        try:
            self.name = dataset_name(name)
        except argparse.ArgumentTypeError as error:
            raise InputError(f'WriteShards: {error}') from None
        self.folder = checked_output(folder, str, 'WriteShards')
        self.layout = layout
        self.index = index

    def expand(self, encoded):  # Beam warns of a hint that has a dictionary
        records = encoded[RECORDS] if isinstance(encoded, Mapping) else encoded
        layout = self.layout or getattr(records, 'layout', None)
        if layout is None:
            raise TypeError(
                'WriteShards is not applied to the output of EncodeBlocks itself, which says how '
                'many shards there are; give layout='
            )
        splits = getattr(records, 'split_names', None) or {shards.split for shards in layout}
        self._claim(records.pipeline, splits)
        written = write_shards(records, self.name, self.folder, layout, self.index)
        if self.index and not filesystem.is_shared(self.folder):
            listed = written | 'CollectFiles' >> beam.combiners.ToList()  # [WrittenFile]
            seed = getattr(records, 'seed', None)
            _ = listed | 'ListShards' >> beam.Map(_list_shards, self.folder, seed)
        return written

    def _claim(self, pipeline: beam.Pipeline, splits: Iterable[str]) -> None:
        """Notes at a pipeline which shards are written; refuses those that another `WriteShards` writes."""
        claimed = vars(pipeline).setdefault('_tokbeam_shards', set())
        for split in sorted(splits):
            if (self.folder, self.name, split) in claimed:
                raise InputError(
                    f'another WriteShards of this pipeline writes the split {split} of {self.name} to '
                    f'{self.folder}, and each would replace the files of the other; give one of them '
                    'another name or folder, or one ReadCorpus all paths'
                )
            claimed.add((self.folder, self.name, split))


def write_shards(
    records: beam.PCollection, name: str, folder: str, layout: Sequence[SplitShards], index: bool
) -> beam.PCollection:
    """Returns what `WriteShards` does, with a name, a folder and a layout that are known to be sound."""
    shards = _Shards(name, folder, tuple(layout), index)
    joined = (
        records
        | 'GroupByBucket' >> beam.GroupByKey()  # ((split number, bucket), [bytes])
        | 'WriteBuckets' >> beam.Map(_write_bucket, shards)
        | 'GroupByShard' >> beam.GroupByKey()  # ((split number, shard), [_BucketFile])
        | 'JoinBuckets' >> beam.FlatMap(_join_buckets, shards).with_outputs(_JOINED, main=_FILES)
    )  # WrittenFile, and paths of buckets
    if any(split.buckets_per_shard > 1 for split in layout):
        # Behind a shuffle, since a bundle that joins buckets and is retried reads them again.
        paths = joined[_JOINED] | 'ReshufflePaths' >> beam.Reshuffle()
        _ = paths | 'DeleteBuckets' >> beam.Map(filesystem.delete_file)
    return joined[_FILES]


@dataclass(frozen=True)
class _Shards:
    """The names of shards and where they are written."""

    name: str
    folder: str
    layout: Sequence[SplitShards]
    has_index: bool

    def file_name(self, number: int, shard: int) -> str:
        """Returns the name of a shard of the split with a number."""
        layout = self.layout[number]
        return shard_name(self.name, layout.split, shard, layout.shards)


class _BucketFile(NamedTuple):
    """The file of one sorted bucket."""

    bucket: int
    file: WrittenFile
    rows: Addresses | None  # if the shard gets an index


def _write_bucket(
    bucket_to_parts: tuple[tuple[int, int], Iterable[bytes]], shards: _Shards
) -> tuple[tuple[int, int], _BucketFile]:
    (number, bucket), parts = bucket_to_parts
    layout = shards.layout[number]
    shard = bucket // layout.buckets_per_shard
    name = shards.file_name(number, shard)
    if layout.buckets_per_shard > 1:
        # Other datasets and splits may have buckets in the folder, also those of other pipelines.
        # None is longer than the names of shards, whose length was checked.
        name = f'bucket{bucket:08d}-{shards.name}-{layout.split}'
    rows = sort_rows([FramedRows.from_bytes(part) for part in parts])
    with SummedFile(shards.folder, name) as file:
        file.write(rows.records)
    addresses = Addresses(rows.lengths, rows.keys, rows.sizes) if shards.has_index else None
    return (number, shard), _BucketFile(bucket, file.written(len(rows)), addresses)


def _join_buckets(
    shard_to_buckets: tuple[tuple[int, int], Iterable[_BucketFile]], shards: _Shards
) -> Iterator:
    (number, shard), buckets = shard_to_buckets
    ordered = sorted(buckets, key=operator.attrgetter('bucket'))
    written = ordered[0].file
    paths: list[str] = []
    if shards.layout[number].buckets_per_shard > 1:
        paths = [os.path.join(shards.folder, bucket.file.name) for bucket in ordered]
        with SummedFile(shards.folder, shards.file_name(number, shard)) as file:
            for path in paths:
                with filesystem.open_binary(path) as stream:
                    while piece := stream.read(_READ_BYTES):
                        file.write(piece)
        written = file.written(sum(bucket.file.rows for bucket in ordered))
    yield written
    parts = [bucket.rows for bucket in ordered if bucket.rows is not None]
    if parts:
        with IndexFile(shards.folder, written.name, parts[0].sizes.shape[1] - 1) as index:
            for part in parts:
                index.add(part)
            written_index = index.end(written)
        yield written_index
    yield from (beam.pvalue.TaggedOutput(_JOINED, path) for path in paths)


class IndexFile(SummedFile):
    """The index of a shard, written as the shard is.

    Args:
        folder: that of the shard.
        shard: the name of its file.
        features: how many features of ids its rows have.
        has_offsets: whether each of them is a TFRecord.
    """

    def __init__(self, folder: str, shard: str, features: int, has_offsets: bool = True):
        super().__init__(folder, index_name(shard))
        self._writer = IndexWriter(features, has_offsets)

    def add(self, rows: Addresses) -> None:
        """Writes the entries of the rows that come next."""
        for first in range(0, max(1, len(rows.sizes)), _ROWS_AT_ONCE):
            some = slice(first, first + _ROWS_AT_ONCE)
            keys = None if rows.keys is None else rows.keys[some]
            part = Addresses(rows.lengths[some], keys, rows.sizes[some])
            self.write(self._writer.entries(part))

    def end(self, shard: WrittenFile) -> WrittenFile:
        """Writes what follows the entries of all rows of a shard; returns the file."""
        stated = ShardFile(shard.name, shard.examples, shard.bytes, f'{shard.crc32c:08x}')
        self.write(self._writer.footer(stated))
        return dataclasses.replace(self.written(shard.examples), sha256=None)


def write_converted_index(
    sources: Iterable[str], shard: WrittenFile, features: int, folder: str
) -> WrittenFile:
    """Writes the index of a shard that was made of TFRecords; returns the file.

    Args:
        sources: the paths of the indexes of these.
        shard: its first file.
        features: how many features of ids its rows have.
        folder: that of the shard.

    Raises:
        InputError: an index is missing or damaged.
    """
    indexes = [*map(_read_index, sources)]
    has_keys = all(index.has_keys for index in indexes)
    with IndexFile(folder, shard.name, features, False) as file:
        for index in indexes:
            keys = index.keys if has_keys else None
            file.add(Addresses(index.lengths, keys, index.sizes if has_keys else index.lengths))
        return file.end(shard)


def _read_index(path: str) -> RecordIndex:
    index = parse_index(np.frombuffer(filesystem.read_bytes(path), np.uint8))
    if index is None:
        raise InputError(f'{path} is damaged; run `tokbeam index` again')
    return index


def _list_shards(written: Iterable[WrittenFile], folder: str, seed: int | None) -> None:
    files = [file for file in written if '/' not in file.name]
    list_shards(
        folder,
        [ShardFile(file.name, file.rows, file.bytes, f'{file.crc32c:08x}') for file in files],
        seed,
    )
