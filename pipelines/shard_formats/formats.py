"""The formats of shards, by their names. Each is imported when it is needed."""

from __future__ import annotations

import importlib

from pipelines.options.job import SHARD_FORMATS, TFRECORD
from pipelines.shard_formats.shard_format import ConvertedFormat, ShardFormat
from tokcore.records.manifest import Manifest


def shard_format(name: str, pack: int | None = None) -> ShardFormat:
    """Returns the format that `--output-format` names; `pack` is the length of its rows, if it has one."""
    module, _, kind = SHARD_FORMATS[name].partition(':')
    format_class = getattr(importlib.import_module(module), kind)
    return format_class() if pack is None else format_class(pack)


def converted_format(name: str, pack: int | None = None) -> ConvertedFormat:
    """Returns the format that TFRecords are converted to; `pack` is as of `shard_format`."""
    converted = shard_format(name, pack)
    assert isinstance(converted, ConvertedFormat), f'{name} is not converted'
    return converted


def stored_format(manifest: Manifest) -> ShardFormat:
    """Returns the format of a dataset's shards; TFRecords if its manifest names one that is not known."""
    name = manifest.options.get('output_format')
    return shard_format(name if isinstance(name, str) and name in SHARD_FORMATS else TFRECORD)
