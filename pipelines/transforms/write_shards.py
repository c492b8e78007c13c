"""Framed examples to shards of TFRecords, text or Parquet, in the order of their keys."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam
import google_crc32c
from apache_beam.utils.shared import Shared

from pipelines.files import filesystem
from pipelines.options.job import PARQUET, TEXT, OutputFormat
from pipelines.transforms.encode_blocks import EncodedFeature, SplitShards
from pipelines.transforms.stats import WrittenFile
from tokcore.corpus.stats import combine_crc32c
from tokcore.encoding.scheme import Scheme
from tokcore.reading.shards import EncodedRows, PieceLineWriter, stream_rows, write_parquet
from tokcore.records.manifest import shard_name
from tokcore.records.tfrecord import FramedRows, sort_rows

_READ_BYTES = 8 << 20

_COPY_BYTES = 8 << 20


def converted_names(name: str, output_format: OutputFormat, features: Sequence[str]) -> list[str]:
    """Returns the names of the files that a shard's rows are in."""
    if output_format == TEXT:
        return [f'{name}.{feature}' for feature in features]
    return [f'{name}.parquet' if output_format == PARQUET else name]


@dataclass(eq=False)
class ConvertShards(beam.PTransform):
    """Takes names of shards of TFRecords in a folder, deletes them, and gives `WrittenFile`s.

    Attributes:
        folder: where they are.
        output_format: what they become.
        features: of the examples.
        scheme: whose pieces text shows.
    """

    folder: str
    output_format: OutputFormat
    features: Sequence[EncodedFeature]
    scheme: Scheme

    def expand(self, names: beam.PCollection) -> beam.PCollection:
        return (
            names
            | 'ShareOutConversions' >> beam.Reshuffle()
            | 'Convert' >> beam.ParDo(_ConvertFn(self))
        )


class _ConvertFn(beam.DoFn):
    def __init__(self, transform: ConvertShards):
        self._folder, self._format = transform.folder, transform.output_format
        self._names = tuple(each.feature.name for each in transform.features)
        self._vocabularies = tuple(each.vocabulary for each in transform.features)
        self._scheme = transform.scheme
        # One handle for each vocabulary file: with it, a process loads the file once.
        self._handles = {path: Shared() for path in self._vocabularies}

    def setup(self) -> None:
        if self._format == TEXT:
            loaded = {
                path: handle.acquire(lambda path=path: self._piece_lines(path), tag=path)
                for path, handle in self._handles.items()
            }
            self._lines = [loaded[path] for path in self._vocabularies]

    def _piece_lines(self, path: str) -> PieceLineWriter:
        if self._scheme.fixed is not None:
            return PieceLineWriter(self._scheme.fixed.pieces)
        data = filesystem.read_bytes(path)
        vocabulary = self._scheme.parse(data, path, filesystem.read_if_there)
        return PieceLineWriter(vocabulary.pieces, self._scheme.piece_writer(vocabulary) is None)

    def process(self, element: str) -> Iterator[WrittenFile]:
        source = filesystem.join(self._folder, element)
        yield from (
            self._text(source, element)
            if self._format == TEXT
            else (self._parquet(source, element))
        )
        filesystem.delete_file(source)

    def _rows(self, source: str) -> Iterator[EncodedRows]:
        with filesystem.open_binary(source) as stream:
            yield from stream_rows(stream, self._names, source)

    def _text(self, source: str, name: str) -> Iterator[WrittenFile]:
        names = converted_names(name, TEXT, self._names)
        sizes, checksums, count = [0] * len(names), [0] * len(names), 0
        with contextlib.ExitStack() as stack:
            files = [
                stack.enter_context(filesystem.create(filesystem.join(self._folder, each)))
                for each in names
            ]
            for rows in self._rows(source):
                for side, feature in enumerate(self._names):
                    text = self._lines[side].lines(rows.ids[feature], rows.offsets[feature])
                    files[side].write(text.data)
                    sizes[side] += len(text)
                    checksums[side] = google_crc32c.extend(checksums[side], text)
                count += len(rows)
        for each in zip(names, sizes, checksums, strict=True):
            yield WrittenFile(*each, count)

    def _parquet(self, source: str, name: str) -> Iterator[WrittenFile]:
        [own] = converted_names(name, PARQUET, self._names)
        path = filesystem.join(self._folder, own)
        with filesystem.create(path) as file:
            count = write_parquet(file, self._rows(source), self._names)
        size = crc32c = 0
        with filesystem.open_binary(path) as stream:
            while piece := stream.read(_READ_BYTES):
                size += len(piece)
                crc32c = google_crc32c.extend(crc32c, piece)
        yield WrittenFile(own, size, crc32c, count)


@dataclass(eq=False)
class WriteShards(beam.PTransform):
    """Groups framed examples by bucket, sorts each by its order keys and writes the shards.

    Takes ((split number, bucket), bytes of `FramedRows`) and gives a `WrittenFile` for each shard
    that has examples.

    Attributes:
        name: of the dataset, in the files' names.
        folder: where the shards go.
        layout: for each split number its shards and buckets.
    """

    name: str
    folder: str
    layout: Sequence[SplitShards]

    def expand(self, bucket_to_rows: beam.PCollection) -> beam.PCollection:
        return (
            bucket_to_rows
            | 'GroupByBucket' >> beam.GroupByKey()  # ((split number, bucket), [bytes])
            | 'WriteBuckets' >> beam.Map(_write_bucket, self)
            | 'GroupByShard' >> beam.GroupByKey()  # ((split number, shard), [_BucketFile])
            | 'JoinBuckets' >> beam.Map(_join_buckets, self)
        )

    def path(self, number: int, shard: int) -> str:
        """Returns where a shard goes."""
        layout = self.layout[number]
        name = shard_name(self.name, layout.split, shard, layout.shards)
        return filesystem.join(self.folder, name)


@dataclass(frozen=True)
class _BucketFile:
    """One sorted bucket in a file of its own."""

    bucket: int
    path: str
    bytes: int
    crc32c: int
    examples: int


def _write_bucket(
    bucket_to_parts: tuple[tuple[int, int], Iterable[bytes]], shards: WriteShards
) -> tuple[tuple[int, int], _BucketFile]:
    (number, bucket), parts = bucket_to_parts
    shard = bucket // shards.layout[number].buckets_per_shard
    path = shards.path(number, shard)
    if shards.layout[number].buckets_per_shard > 1:
        path = filesystem.join(shards.folder, f'bucket-{number}-{bucket:08d}')
    rows = sort_rows([FramedRows.from_bytes(part) for part in parts])
    data = memoryview(rows.records)
    filesystem.write_bytes(path, data)
    written = _BucketFile(bucket, path, len(data), google_crc32c.value(bytes(data)), len(rows.keys))
    return (number, shard), written


def _join_buckets(
    shard_to_buckets: tuple[tuple[int, int], Iterable[_BucketFile]], shards: WriteShards
) -> WrittenFile:
    (number, shard), buckets = shard_to_buckets
    path = shards.path(number, shard)
    buckets = sorted(buckets, key=lambda each: each.bucket)
    if shards.layout[number].buckets_per_shard > 1:
        _join(buckets, path)
    crc32c = 0
    for each in buckets:
        crc32c = combine_crc32c(crc32c, each.crc32c, each.bytes)
    return WrittenFile(
        filesystem.split_path(path)[1],
        sum(each.bytes for each in buckets),
        crc32c,
        sum(each.examples for each in buckets),
    )


def _join(buckets: Sequence[_BucketFile], path: str) -> None:
    with filesystem.create(path) as shard:
        for each in buckets:
            with filesystem.open_binary(each.path) as stream:
                while piece := stream.read(_COPY_BYTES):
                    shard.write(piece)
