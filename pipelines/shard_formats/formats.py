"""The formats of shards, by their names. Each is imported when it is needed."""

from __future__ import annotations

import dataclasses
import functools
import os
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.utils.shared import Shared

from pipelines.engines.engine import RunPipeline
from pipelines.files import filesystem
from pipelines.options.job import SHARD_FORMATS, TFRECORD
from pipelines.shard_formats.shard_format import (
    Column,
    ConvertedFormat,
    Shard,
    ShardFormat,
    line_writer,
    shards_in_order,
)
from pipelines.transforms.read import CreateReshuffled
from pipelines.transforms.stats import WriteStats, WrittenFile, read_stats, write_rows
from pipelines.transforms.write_shards import write_converted_index
from tokcore.encoding.scheme import Scheme
from tokcore.reading.record_index import index_name
from tokcore.reading.shards import PieceLineWriter, stream_rows
from tokcore.records.manifest import Manifest, OutputFile


def shard_format(name: str, pack: int | None = None) -> ShardFormat:
    """Returns the format that `--output-format` names; `pack` is the length of its rows, if it has one."""
    format_class = pkgutil.resolve_name(SHARD_FORMATS[name])
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


def convert_shards(
    shards: Sequence[OutputFile],
    output_format: ConvertedFormat,
    columns: Sequence[Column],
    scheme: Scheme,
    run: RunPipeline,
    folder: str,
) -> tuple[list[OutputFile], list[OutputFile]]:
    """Converts shards of TFRecords in an attempt's folder, and deletes them.

    Returns the entries of the files, and those of the indexes of shards.

    Args:
        shards: of all splits.
        output_format: of the files.
        columns: the features of the examples.
        scheme: gives the pieces of the ids, which text consists of.
        run: runs the pipeline.
        folder: of the attempt.
    """
    report = os.path.join(folder, 'converted')

    def build(pipeline: beam.Pipeline) -> None:
        (
            pipeline
            | CreateReshuffled(shards_in_order(shards))
            | 'ConvertShards' >> ConvertShards(folder, output_format, columns, scheme)
            | 'WriteFileStats' >> WriteStats(report)
        )

    run(build)
    written = {file.name: file for file in read_stats(report, WrittenFile)}
    names = [column.name for column in columns]
    converted, index = [], []
    for shard in shards:
        files = output_format.file_names(shard.name, names)
        index.append(written[index_name(files[0])].listed())
        for name in files:
            file = written[name]
            if file.examples != shard.rows:
                raise RuntimeError(f'{name} has {file.examples} of {shard.rows} rows')
            converted.append(file.listed())
    return converted, index


@dataclass(eq=False)
class ConvertShards(beam.PTransform):
    """Converts shards of TFRecords and their indexes to another format and deletes the TFRecords.

    Takes `Shard`s; returns a `WrittenFile` for each file that it writes.

    Attributes:
        folder: the folder of the shards and of the files.
        output_format: of the files.
        columns: the features of the examples.
        scheme: gives the pieces of the ids, which text consists of.
    """

    folder: str
    output_format: ConvertedFormat
    columns: Sequence[Column]
    scheme: Scheme

    def expand(self, shards: beam.PCollection) -> beam.PCollection:
        return (
            shards  # Shard
            | 'Reshuffle' >> beam.Reshuffle()
            | 'Convert' >> beam.ParDo(_ConvertFn(self))  # WrittenFile
        )


class _ConvertFn(beam.DoFn):
    """Converts one shard after another."""

    def __init__(self, transform: ConvertShards):
        self._folder, self._format = transform.folder, transform.output_format
        self._columns = tuple(transform.columns)
        self._scheme = transform.scheme
        # With one handle for each path, a process loads each vocabulary once.
        self._handles = {column.vocabulary: Shared() for column in self._columns}

    def setup(self) -> None:
        if self._format.needs_pieces:
            path_to_writer = {
                path: handle.acquire(functools.partial(self._line_writer, path), tag=path)
                for path, handle in self._handles.items()
            }
            self._columns = tuple(
                dataclasses.replace(column, lines=path_to_writer[column.vocabulary])
                for column in self._columns
            )

    def process(self, element: Shard) -> Iterator[WrittenFile]:
        source = os.path.join(self._folder, element.name)
        index = os.path.join(self._folder, index_name(element.name))
        # When a bundle is retried, the shard may be deleted; then this file lists what it became.
        done = f'{source}.converted'
        if not filesystem.exists(done):
            with filesystem.open_binary(source) as stream:
                rows = stream_rows(stream, [column.name for column in self._columns], source)
                files = [*self._format.write(rows, element, self._folder, self._columns)]
            files += [write_converted_index([index], files[0], len(self._columns), self._folder)]
            write_rows(done, files)
        filesystem.delete_file(source)
        filesystem.delete_file(index)
        yield from read_stats(done, WrittenFile)

    def _line_writer(self, path: str) -> PieceLineWriter:
        vocabulary = self._scheme.fixed
        if vocabulary is None:
            data = filesystem.read_bytes(path)
            vocabulary = self._scheme.parse(data, path, filesystem.read_if_there)
        return line_writer(self._scheme, vocabulary)
