"""Framed examples to shards: sorted bucket by bucket, and joined in the order of the keys."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import apache_beam as beam
import google_crc32c

from pipelines.files import filesystem
from pipelines.transforms.encode_blocks import SplitShards
from pipelines.transforms.write_report import WrittenFile
from tokcore.corpus.range_checksums import combine_crc32c
from tokcore.records.framing import FramedRows, sort_rows

_COPY_BYTES = 8 << 20


@dataclass(frozen=True)
class _BucketFile:
    """One sorted bucket in a file of its own."""

    bucket: int
    path: str
    bytes: int
    crc32c: int
    examples: int


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


def shard_name(name: str, split: str, shard: int, shards: int) -> str:
    """Returns a shard's file name as Tensor2Tensor forms it: `enzh-train-00000-of-00010`."""
    return f'{name}-{split}-{shard:05d}-of-{shards:05d}'


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
