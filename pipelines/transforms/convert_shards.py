"""Shards of TFRecords turned into text or Parquet: the same rows in the same order."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam
import google_crc32c
from apache_beam.utils.shared import Shared

from pipelines.files import filesystem
from pipelines.options.choices import PARQUET, TEXT, OutputFormat
from pipelines.transforms.encode_blocks import EncodedFeature
from pipelines.transforms.write_report import WrittenFile
from tokcore.encoding.scheme import Scheme
from tokcore.reading.shards.parquet_rows import write_parquet
from tokcore.reading.shards.record_stream import stream_rows
from tokcore.reading.shards.rows import Rows
from tokcore.reading.shards.text_shards import PieceLines

_READ_BYTES = 8 << 20


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

    def _piece_lines(self, path: str) -> PieceLines:
        if self._scheme.fixed is not None:
            return PieceLines(self._scheme.fixed.pieces)
        data = filesystem.read_bytes(path)
        vocabulary = self._scheme.parse(data, path, filesystem.read_if_there)
        return PieceLines(vocabulary.pieces, self._scheme.piece_lines(vocabulary) is None)

    def process(self, element: str) -> Iterator[WrittenFile]:
        source = filesystem.join(self._folder, element)
        yield from self._text(source, element) if self._format == TEXT else (
            self._parquet(source, element)
        )
        filesystem.delete_file(source)

    def _rows(self, source: str) -> Iterator[Rows]:
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
