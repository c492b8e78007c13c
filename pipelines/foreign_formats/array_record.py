"""Shards of ArrayRecord, which readers of grain take rows of by their numbers."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from pipelines.files import filesystem
from pipelines.shard_formats.shard_format import (
    Column,
    ConvertedFormat,
    Shard,
    StoredDataset,
)
from pipelines.transforms.stats import SummedFile, WrittenFile
from tokcore.encoding.encoder import EncodedSide
from tokcore.errors import InputError, missing_package
from tokcore.kernels.bytes import row_offsets
from tokcore.kernels.jit import read_only
from tokcore.reading.checking import Advance, CheckedFile, Findings, Sums, largest_ids
from tokcore.reading.record_kernels import FOOTER_SIZE, HEADER_SIZE
from tokcore.reading.shards import EncodedRows, ExampleParser
from tokcore.records.manifest import Manifest, OutputFile
from tokcore.records.tfrecord import FramedRows, frame_examples

OPTIONS = 'group_size:1,transpose:false,pad_to_block_boundary:false,zstd:3,window_log:20,max_parallelism:1'
"""Each record is compressed by itself, so that reading one unpacks one; grain asks for that. All options
are named, so that defaults of another version of the library change nothing."""

_READ_BYTES = 8 << 20
_RECORDS = 1 << 14
_IN_ANY_ORDER = 'readahead_buffer_size:0,max_parallelism:0'


class ArrayRecord(ConvertedFormat):
    """A file a shard, whose records are the payloads of the TFRecords, in their order."""

    name = 'array_record'

    def require(self, sides: Sequence[str]) -> None:
        array_record_library()

    def write(
        self,
        parts: Iterator[EncodedRows],
        shard: Shard,
        folder: str,
        columns: Sequence[Column],
    ) -> Iterator[WrittenFile]:
        names = [column.name for column in columns]
        [name] = self.file_names(shard.name, names)
        count = 0
        # The library writes files of this machine alone.
        with _room(folder) as path:
            writer = array_record_library().ArrayRecordWriter(path, OPTIONS)
            for rows in parts:
                sides = [
                    (feature, EncodedSide(rows.ids[feature], rows.offsets[feature]))
                    for feature in names
                ]
                framed = frame_examples(sides, np.zeros(len(rows), np.uint64))
                for payload in self.row_bytes(framed, columns):
                    writer.write(payload)
                count += len(rows)
            writer.close()
            with open(path, 'rb') as stream, SummedFile(folder, name) as file:
                while piece := stream.read(_READ_BYTES):
                    file.write(piece)
        yield file.written(count)

    def check(
        self, stream: BinaryIO, file: OutputFile, dataset: StoredDataset, advance: Advance
    ) -> CheckedFile:
        sums, findings = Sums(), Findings(file.name)
        with _room(None) as path:
            with open(path, 'wb') as copy:
                while piece := stream.read(_READ_BYTES):
                    sums.add(piece)
                    copy.write(piece)
                    advance(len(piece))
            count = _check_records(path, ExampleParser(largest_ids(dataset.id_counts)), findings)
        return sums.checked(count, findings)

    def stored_rows(
        self,
        paths: Sequence[str],
        numbers: np.ndarray,
        columns: Sequence[Column],
        files: Mapping[str, OutputFile],
    ) -> Iterator[bytes | None]:
        [path] = paths
        with _room(None) as copy:
            if filesystem.is_shared(path):
                with filesystem.open_binary(path) as stream, open(copy, 'wb') as target:
                    shutil.copyfileobj(stream, target)
                path = copy
            try:
                reader = _reader(path, _IN_ANY_ORDER)
                wanted = numbers[numbers < reader.num_records()].tolist()
                yield from reader.read(wanted) if wanted else ()
            except (RuntimeError, ValueError, IndexError) as error:
                raise InputError(
                    f'{path} cannot be read ({error!s:.200}); see the findings'
                ) from error
        yield from [None] * (len(numbers) - len(wanted))

    def row_bytes(self, rows: FramedRows, columns: Sequence[Column]) -> Iterator[bytes]:
        bounds = row_offsets(rows.lengths).tolist()
        for start, end in zip(bounds, bounds[1:]):
            yield rows.records[start + HEADER_SIZE : end - FOOTER_SIZE].tobytes()

    def reading_code(self, manifest: Manifest) -> Iterator[str]:
        paths = [file.name for file in manifest.files]
        yield from (
            'import grain',
            'import tensorflow as tf',
            '',
            f'records = grain.sources.ArrayRecordDataSource({paths[:1]!r})',
            'example = tf.train.Example.FromString(records[0])',
        )


def array_record_library() -> Any:
    """Returns the module of `array-record`; raises InputError if it is not installed."""
    try:
        from array_record.python import array_record_module
    except ImportError as error:
        raise missing_package('the format array_record', 'array-record') from error
    return array_record_module


@contextlib.contextmanager
def _room(folder: str | None) -> Iterator[str]:
    """Yields the path of a temporary file, in the folder if that is on this machine."""
    above = None if folder is None or filesystem.is_shared(folder) else folder
    with tempfile.TemporaryDirectory(prefix='tokbeam-', dir=above) as room:
        yield os.path.join(room, 'records')


def _reader(path: str, options: str = '') -> Any:
    """Returns a reader of a file; raises RuntimeError if it is not one of ArrayRecord."""
    reader = array_record_library().ArrayRecordReader(path, options)
    if not reader.ok():
        reader.close()  # which says why
        raise RuntimeError('it is not a file of ArrayRecord')
    return reader


def _check_records(path: str, examples: ExampleParser, findings: Findings) -> int:
    """Adds what is wrong with the records of a file; returns how many there are."""
    first = 0
    try:
        reader = _reader(path)
        count = reader.num_records()
        while first < count:
            records = reader.read(first, min(first + _RECORDS, count))
            bounds = row_offsets(np.array([len(record) for record in records], np.int64))
            bounds_of_records = read_only(np.array([bounds[:-1], np.diff(bounds)]))
            data = read_only(np.frombuffer(b''.join(records), np.uint8))
            for number in examples.count(data, bounds_of_records)[1].tolist():
                try:
                    examples.parse_in_python(records[number])
                except ValueError as error:
                    findings.add(str(error), first + number)
            first += len(records)
    except (RuntimeError, ValueError, IndexError) as error:
        findings.add(f'it cannot be read from its record {first} on ({error!s:.200})', first)
    return first
