"""The formats of shards, by their names."""

from __future__ import annotations

from collections.abc import Mapping

from pipelines.options.job import OutputFormat
from pipelines.shard_formats.array_record import ArrayRecord
from pipelines.shard_formats.flat import Flat, NanoGpt
from pipelines.shard_formats.joined import Joined
from pipelines.shard_formats.megatron import Megatron
from pipelines.shard_formats.packed import Packed
from pipelines.shard_formats.parquet import Parquet
from pipelines.shard_formats.shard_format import ConvertedFormat, ShardFormat
from pipelines.shard_formats.text import Text
from pipelines.shard_formats.tfrecord import TfRecord
from tokcore.records.manifest import Manifest

CONVERTED: Mapping[str, ConvertedFormat] = {
    form.name: form
    for form in (
        Text(),
        Parquet(),
        Megatron(),
        Flat(),
        NanoGpt(),
        Packed(),
        Joined(),
        ArrayRecord(),
    )
}
"""The formats that TFRecords are converted to."""

TFRECORD = TfRecord()


def shard_format(name: OutputFormat, pack: int | None = None) -> ShardFormat:
    """Returns the format that `--output-format` names; `pack` is the length of its rows, if it has one."""
    return TFRECORD if name == TFRECORD.name else converted_format(name, pack)


def converted_format(name: OutputFormat, pack: int | None) -> ConvertedFormat:
    """Returns the format that TFRecords are converted to; `pack` is as of `shard_format`."""
    if pack is None:
        return CONVERTED[name]
    return Joined(pack) if name == Joined.name else Packed(pack)


def stored_format(manifest: Manifest) -> ShardFormat:
    """Returns the format of a dataset's shards; TFRecords if its manifest names one that is not known."""
    name = manifest.options.get('output_format')
    return CONVERTED.get(name, TFRECORD) if isinstance(name, str) else TFRECORD
