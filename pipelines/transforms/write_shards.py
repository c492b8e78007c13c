"""Writes framed examples to shards of TFRecords, sorted by their order keys, and converts shards."""

import argparse
import contextlib
import functools
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam
import google_crc32c
from apache_beam.utils.shared import Shared

from pipelines.files import filesystem
from pipelines.options.job import PARQUET, TEXT, OutputFormat
from pipelines.transforms.encode_blocks import RECORDS, EncodedFeature, SplitShards
from pipelines.transforms.read import Path, checked_output
from pipelines.transforms.stats import WrittenFile
from tokcore.corpus.stats import combine_crc32c
from tokcore.encoding.scheme import Scheme
from tokcore.errors import InputError
from tokcore.options import dataset_name
from tokcore.reading.shards import EncodedRows, PieceLineWriter, stream_rows, write_parquet
from tokcore.records.manifest import shard_name
from tokcore.records.tfrecord import FramedRows, sort_rows

_READ_BYTES = 8 << 20


class WriteShards(beam.PTransform):
    """Groups framed examples by bucket, sorts each bucket by order key, and writes the shards.

    Takes the dictionary of `EncodeBlocks`, or its `records`: ((split number, bucket), bytes of
    `FramedRows`). Returns a `WrittenFile` for each shard that has examples.
    """

    def __init__(self, name: str, folder: Path, layout: Sequence[SplitShards] | None = None):
        """Takes names.

        Args:
            name: of the dataset; it begins the files' names.
            folder: the folder of the shards.
            layout: for each split number its shards and buckets; None: that of `EncodeBlocks`.

        Raises:
            InputError: no file can have such a name, or no folder.
        """
        super().__init__()
        try:
            self.name = dataset_name(name)
        except argparse.ArgumentTypeError as error:
            raise InputError(f'WriteShards: {error}') from None
        self.folder = checked_output(folder, str, 'WriteShards')
        self.layout = layout

    def expand(self, encoded):  # Beam warns of a hint that has a dictionary
        records = encoded[RECORDS] if isinstance(encoded, Mapping) else encoded
        layout = self.layout or getattr(records, 'layout', None)
        if layout is None:
            raise TypeError(
                'WriteShards is not applied to the output of EncodeBlocks itself, which says how '
                'many shards there are; give layout='
            )
        shards = _Shards(self.name, self.folder, tuple(layout))
        return (
            records
            | 'GroupByBucket' >> beam.GroupByKey()  # ((split number, bucket), [bytes])
            | 'WriteBuckets' >> beam.Map(_write_bucket, shards)
            | 'GroupByShard' >> beam.GroupByKey()  # ((split number, shard), [_BucketFile])
            | 'JoinBuckets' >> beam.Map(_join_buckets, shards)  # WrittenFile
        )


@dataclass(frozen=True)
class _Shards:
    """The names of shards and where they are written."""

    name: str
    folder: str
    layout: Sequence[SplitShards]

    def path(self, number: int, shard: int) -> str:
        """Returns the path of a shard of the split with a number."""
        layout = self.layout[number]
        name = shard_name(self.name, layout.split, shard, layout.shards)
        return filesystem.join(self.folder, name)


@dataclass(frozen=True)
class _BucketFile:
    """The file of one sorted bucket."""

    bucket: int
    path: str
    bytes: int
    crc32c: int
    examples: int
    sha256: str


def _write_bucket(
    bucket_to_parts: tuple[tuple[int, int], Iterable[bytes]], shards: _Shards
) -> tuple[tuple[int, int], _BucketFile]:
    (number, bucket), parts = bucket_to_parts
    layout = shards.layout[number]
    shard = bucket // layout.buckets_per_shard
    path = shards.path(number, shard)
    if layout.buckets_per_shard > 1:
        path = filesystem.join(shards.folder, f'bucket-{number}-{bucket:08d}')
    rows = sort_rows([FramedRows.from_bytes(part) for part in parts])
    data = rows.records.tobytes()
    filesystem.write_bytes(path, data)
    sha256 = hashlib.sha256(data).hexdigest()
    crc32c = google_crc32c.value(data)
    written = _BucketFile(bucket, path, len(data), crc32c, len(rows.keys), sha256)
    return (number, shard), written


def _join_buckets(
    shard_to_buckets: tuple[tuple[int, int], Iterable[_BucketFile]], shards: _Shards
) -> WrittenFile:
    (number, shard), buckets = shard_to_buckets
    path = shards.path(number, shard)
    ordered = sorted(buckets, key=lambda bucket: bucket.bucket)
    sha256 = ordered[0].sha256
    if shards.layout[number].buckets_per_shard > 1:
        sha256 = _concatenate(ordered, path)
    crc32c = 0
    for bucket in ordered:
        crc32c = combine_crc32c(crc32c, bucket.crc32c, bucket.bytes)
    return WrittenFile(
        filesystem.split_path(path)[1],
        sum(bucket.bytes for bucket in ordered),
        crc32c,
        sum(bucket.examples for bucket in ordered),
        sha256,
    )


def _concatenate(buckets: Sequence[_BucketFile], path: str) -> str:
    """Writes a shard of its buckets; returns its SHA-256."""
    sha256 = hashlib.sha256()
    with filesystem.create(path) as shard:
        for bucket in buckets:
            with filesystem.open_binary(bucket.path) as stream:
                while piece := stream.read(_READ_BYTES):
                    shard.write(piece)
                    sha256.update(piece)
    return sha256.hexdigest()


@dataclass(eq=False)
class ConvertShards(beam.PTransform):
    """Converts shards of TFRecords to another format and deletes the TFRecords.

    Takes the names of the shards; returns a `WrittenFile` for each file that it writes.

    Attributes:
        folder: the folder of the shards and of the files.
        output_format: `TEXT` or `PARQUET`.
        features: the features of the examples.
        scheme: gives the pieces of the ids, which text consists of.
    """

    folder: str
    output_format: OutputFormat
    features: Sequence[EncodedFeature]
    scheme: Scheme

    def expand(self, names: beam.PCollection) -> beam.PCollection:
        return (
            names  # str
            | 'Reshuffle' >> beam.Reshuffle()
            | 'Convert' >> beam.ParDo(_ConvertFn(self))  # WrittenFile
        )


def converted_names(name: str, output_format: OutputFormat, features: Sequence[str]) -> list[str]:
    """Returns the names of the files that a shard is converted to: for text, one for each feature."""
    if output_format == TEXT:
        return [f'{name}.{feature}' for feature in features]
    return [f'{name}.parquet' if output_format == PARQUET else name]


class _ConvertFn(beam.DoFn):
    """Converts one shard after another."""

    def __init__(self, transform: ConvertShards):
        self._folder, self._format = transform.folder, transform.output_format
        self._names = tuple(encoded.feature.name for encoded in transform.features)
        self._vocabularies = tuple(encoded.vocabulary for encoded in transform.features)
        self._scheme = transform.scheme
        # With one handle for each path, a process loads each vocabulary once.
        self._handles = {path: Shared() for path in self._vocabularies}

    def setup(self) -> None:
        if self._format == TEXT:
            path_to_writer = {
                path: handle.acquire(functools.partial(self._line_writer, path), tag=path)
                for path, handle in self._handles.items()
            }
            self._line_writers = [path_to_writer[path] for path in self._vocabularies]

    def process(self, element: str) -> Iterator[WrittenFile]:
        source = filesystem.join(self._folder, element)
        convert = self._to_text if self._format == TEXT else self._to_parquet
        yield from convert(source, element)
        filesystem.delete_file(source)

    def _line_writer(self, path: str) -> PieceLineWriter:
        if self._scheme.fixed is not None:
            return PieceLineWriter(self._scheme.fixed.pieces)
        data = filesystem.read_bytes(path)
        vocabulary = self._scheme.parse(data, path, filesystem.read_if_there)
        return PieceLineWriter(vocabulary.pieces, self._scheme.piece_writer(vocabulary) is None)

    def _rows(self, source: str) -> Iterator[EncodedRows]:
        with filesystem.open_binary(source) as stream:
            yield from stream_rows(stream, self._names, source)

    def _to_text(self, source: str, name: str) -> Iterator[WrittenFile]:
        names = converted_names(name, TEXT, self._names)
        sizes, checksums, count = [0] * len(names), [0] * len(names), 0
        digests = [hashlib.sha256() for _ in names]
        with contextlib.ExitStack() as stack:
            files = [
                stack.enter_context(filesystem.create(filesystem.join(self._folder, text_name)))
                for text_name in names
            ]
            for rows in self._rows(source):
                for index, feature in enumerate(self._names):
                    ids, offsets = rows.ids[feature], rows.offsets[feature]
                    text = self._line_writers[index].lines(ids, offsets)
                    files[index].write(text.data)
                    sizes[index] += len(text)
                    checksums[index] = google_crc32c.extend(checksums[index], text)
                    digests[index].update(text)
                count += len(rows)
        for text_name, size, checksum, digest in zip(names, sizes, checksums, digests, strict=True):
            yield WrittenFile(text_name, size, checksum, count, digest.hexdigest())

    def _to_parquet(self, source: str, name: str) -> Iterator[WrittenFile]:
        [parquet_name] = converted_names(name, PARQUET, self._names)
        path = filesystem.join(self._folder, parquet_name)
        with filesystem.create(path) as file:
            count = write_parquet(file, self._rows(source), self._names)
        size, crc32c, sha256 = 0, 0, hashlib.sha256()
        with filesystem.open_binary(path) as stream:
            while piece := stream.read(_READ_BYTES):
                size += len(piece)
                crc32c = google_crc32c.extend(crc32c, piece)
                sha256.update(piece)
        yield WrittenFile(parquet_name, size, crc32c, count, sha256.hexdigest())
