"""Converts shards of TFRecords to the other formats: what files each becomes, and how they are written.

A shard is converted by itself and in the order of its rows, so its files are the same bytes wherever
that happens: at the end of an encoding, or of a finished folder.
"""

import collections
import contextlib
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.utils.shared import Shared

from pipelines.files import filesystem
from pipelines.options.job import FLAT, MEGATRON, PARQUET, TEXT, OutputFormat
from pipelines.transforms.stats import WrittenFile
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.vocabulary import SpecialIds
from tokcore.reading.checking import Sums
from tokcore.reading.shards import EncodedRows, PieceLineWriter, stream_rows, write_parquet
from tokcore.records.flat import flat_dtype, list_bytes
from tokcore.records.manifest import SHARD_NAME, Manifest, OutputFile
from tokcore.records.megatron import index_bytes, megatron_dtype

_READ_BYTES = 8 << 20

STREAMS = (MEGATRON, FLAT)
"""The formats that are ids one after another; they have no empty rows."""

STREAM_DTYPES = ('uint16', 'int32', 'uint32')
"""The dtypes of ids in them."""


@dataclass(frozen=True)
class Column:
    """A feature of the rows.

    Attributes:
        name: of the feature.
        vocab_size: how many ids its vocabulary has.
        special_ids: those that stand for no text: of begin, end and padding, as far as there are such.
        vocabulary: the path of its file.
    """

    name: str
    vocab_size: int
    special_ids: tuple[int, ...]
    vocabulary: str = ''

    @classmethod
    def of(
        cls, name: str, vocab_size: int, special_ids: SpecialIds, vocabulary: str = ''
    ) -> 'Column':
        """Returns the column of a feature, from the special ids of its vocabulary."""
        roles = (special_ids.pad, special_ids.begin, special_ids.end)
        own = tuple(sorted({id_ for id_ in roles if id_ is not None}))
        return cls(name, vocab_size, own, vocabulary)


@dataclass(frozen=True)
class Shard:
    """A shard that is converted: its name, and the number of its first row among all of its split."""

    name: str
    first_row: int


@dataclass(eq=False)
class ConvertShards(beam.PTransform):
    """Converts shards of TFRecords to another format and deletes the TFRecords.

    Takes `Shard`s; returns a `WrittenFile` for each file that it writes.

    Attributes:
        folder: the folder of the shards and of the files.
        output_format: any but TFRecords.
        columns: the features of the examples.
        scheme: gives the pieces of the ids, which text consists of.
    """

    folder: str
    output_format: OutputFormat
    columns: Sequence[Column]
    scheme: Scheme

    def expand(self, shards: beam.PCollection) -> beam.PCollection:
        return (
            shards  # Shard
            | 'Reshuffle' >> beam.Reshuffle()
            | 'Convert' >> beam.ParDo(_ConvertFn(self))  # WrittenFile
        )


_STREAM_FILE = re.compile(
    rf'(?P<shard>{SHARD_NAME})'
    r'(?P<side>_(text|inputs|targets)_document|\.inputs|\.targets|)\.(?P<end>bin|idx|npy|csv\.gz)'
)
_BESIDE = {'bin': 'idx', 'npy': 'csv.gz'}


@dataclass(frozen=True)
class StreamFile:
    """A file of a format of streams, by its name.

    Attributes:
        feature: the feature of its rows; '' if these have only one.
        beside: of a file of ids the one that lists its rows; '' of such a list.
    """

    feature: str
    beside: str

    @classmethod
    def of(cls, name: str) -> 'StreamFile':
        """Returns what a name says; raises ValueError if no such file has it."""
        match = _STREAM_FILE.fullmatch(name)
        if match is None:
            raise ValueError(f'{name} is not of a format of streams')
        feature = match['side'].strip('_.').removesuffix('_document')
        beside = _BESIDE.get(match['end'])
        base = name.removesuffix(match['end'])
        return cls(feature if feature != 'text' else '', base + beside if beside else '')


def converted_shards(shards: Sequence[OutputFile]) -> list[Shard]:
    """Returns what is converted of the shards of all splits, in their order."""
    converted, rows = [], collections.Counter[str]()
    for shard in shards:
        name = re.fullmatch(SHARD_NAME, shard.name)
        assert name is not None  # the manifest's own, or this program's
        converted.append(Shard(shard.name, rows[name['split']]))
        rows[name['split']] += shard.rows
    return converted


def converted_names(name: str, output_format: OutputFormat, features: Sequence[str]) -> list[str]:
    """Returns the names of the files that a shard becomes, those that need another one after it."""
    if output_format == TEXT:
        return [f'{name}.{feature}' for feature in features]
    if output_format == MEGATRON:
        # PREFIX_KEY_document, as Megatron's own encoder has it; its key of plain text is `text`.
        keys = features if len(features) > 1 else ['text']
        return [f'{name}_{key}_document.{end}' for key in keys for end in ('bin', 'idx')]
    if output_format == FLAT:
        sides = [f'.{feature}' for feature in features] if len(features) > 1 else ['']
        return [f'{name}{side}.{end}' for side in sides for end in ('npy', 'csv.gz')]
    return [f'{name}.parquet' if output_format == PARQUET else name]


def empty_rows(manifest: Manifest) -> dict[str, int]:
    """Returns how many rows the files of each split leave out because they are empty, if they do."""
    counts: dict[str, int] = {}
    seen = set()
    for file in manifest.files:
        name = re.match(SHARD_NAME, file.name)
        # A shard has several files, which leave out the same rows.
        if name is not None and file.dropped and name[0] not in seen:
            seen.add(name[0])
            counts[name['split']] = counts.get(name['split'], 0) + len(file.dropped)
    return counts


def stored_dtype(output_format: object, vocab_size: int) -> str | None:
    """Returns the dtype of ids in a format of streams; None of the others."""
    if output_format == MEGATRON:
        return megatron_dtype(vocab_size)
    return flat_dtype(vocab_size) if output_format == FLAT else None


def without_text(rows: EncodedRows, columns: Sequence[Column]) -> np.ndarray:
    """Tells which rows have no text on a side, bool[rows]: no id beside those that are special."""
    found = np.zeros(len(rows), bool)
    for column in columns:
        ids, offsets = rows.ids[column.name], rows.offsets[column.name]
        left, place = np.arange(len(rows)), 0
        empty = np.zeros(len(rows), bool)
        # Nearly all rows have another id among their first two.
        while len(left):
            ended = offsets[left] + place >= offsets[left + 1]
            empty[left[ended]] = True
            left = left[~ended]
            left = left[np.isin(ids[offsets[left] + place], column.special_ids)]
            place += 1
        found |= empty
    return found


def convert_shard(
    parts: Iterator[EncodedRows],
    shard: Shard,
    folder: str,
    output_format: OutputFormat,
    columns: Sequence[Column],
) -> Iterator[WrittenFile]:
    """Writes the rows of a shard as Parquet or as streams, and yields its files, in their order.

    Args:
        parts: all rows.
        shard: its name, and where it is in its split.
        folder: where the files go.
        output_format: any but TFRecords and text.
        columns: the features of the rows.

    Raises:
        ValueError: an id is not of its vocabulary.
    """
    names = converted_names(shard.name, output_format, [column.name for column in columns])
    if output_format == PARQUET:
        yield _write_parquet(parts, folder, names[0], columns)
        return
    dtypes = [str(stored_dtype(output_format, column.vocab_size)) for column in columns]
    lengths: list[list[np.ndarray]] = [[] for _ in columns]
    kept: list[np.ndarray] = []
    dropped: list[int] = []
    row = 0
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(_SummedFile(folder, name)) for name in names[::2]]
        for rows in parts:
            records = np.arange(row, row + len(rows))
            row += len(rows)
            is_empty = without_text(rows, columns)
            if is_empty.any():
                dropped += records[is_empty].tolist()
                rows, records = rows.take(np.flatnonzero(~is_empty)), records[~is_empty]
            kept.append(records)
            for column, dtype, file, of_rows in zip(columns, dtypes, files, lengths, strict=True):
                ids = rows.ids[column.name]
                if len(ids) and ids.max() >= column.vocab_size:
                    raise ValueError(
                        f'a row of {shard.name} has the id {ids.max()}, and the vocabulary of '
                        f'{column.name} has {column.vocab_size} ids'
                    )
                file.write(ids.astype(np.dtype(dtype).newbyteorder('<')).view(np.uint8))
                of_rows.append(np.diff(rows.offsets[column.name]))
    records = _joined(kept)
    for file, dtype, of_rows, name in zip(files, dtypes, lengths, names[1::2], strict=True):
        with _SummedFile(folder, name) as index:
            if output_format == MEGATRON:
                index.write(index_bytes(_joined(of_rows), dtype))
            else:
                index.write(list_bytes(_joined(of_rows), records, shard.first_row, shard.name))
        yield from (each.written(len(records), dtype, dropped) for each in (file, index))


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0, np.int64), *arrays])


def _write_parquet(
    parts: Iterator[EncodedRows], folder: str, name: str, columns: Sequence[Column]
) -> WrittenFile:
    path = filesystem.join(folder, name)
    with filesystem.create(path) as file:
        count = write_parquet(file, parts, [column.name for column in columns])
    sums = Sums()
    with filesystem.open_binary(path) as stream:
        while piece := stream.read(_READ_BYTES):
            sums.add(piece)
    return WrittenFile(name, sums.bytes, sums.crc32c, count, sums.sha256)


class _SummedFile:
    """A file that is written from its beginning to its end, with its size and its checksums."""

    def __init__(self, folder: str, name: str):
        self._path, self._name = filesystem.join(folder, name), name
        self._sums = Sums()

    def __enter__(self) -> '_SummedFile':
        self._created = filesystem.create(self._path)
        self._stream = self._created.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._created.__exit__(*error)

    def write(self, data: Any) -> None:
        """Writes bytes, or an array of uint8."""
        self._stream.write(memoryview(data))
        self._sums.add(data)

    def written(
        self, rows: int, dtype: str | None = None, dropped: Sequence[int] = ()
    ) -> WrittenFile:
        sums = self._sums
        return WrittenFile(
            self._name, sums.bytes, sums.crc32c, rows, sums.sha256, dtype, tuple(dropped)
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
        if self._format == TEXT:
            path_to_writer = {
                path: handle.acquire(functools.partial(self._line_writer, path), tag=path)
                for path, handle in self._handles.items()
            }
            self._line_writers = [path_to_writer[column.vocabulary] for column in self._columns]

    def process(self, element: Shard) -> Iterator[WrittenFile]:
        source = filesystem.join(self._folder, element.name)
        with filesystem.open_binary(source) as stream:
            rows = stream_rows(stream, [column.name for column in self._columns], source)
            if self._format == TEXT:
                yield from self._to_text(rows, element.name)
            else:
                yield from convert_shard(rows, element, self._folder, self._format, self._columns)
        filesystem.delete_file(source)

    def _line_writer(self, path: str) -> PieceLineWriter:
        if self._scheme.fixed is not None:
            return PieceLineWriter(self._scheme.fixed.pieces)
        data = filesystem.read_bytes(path)
        vocabulary = self._scheme.parse(data, path, filesystem.read_if_there)
        return PieceLineWriter(vocabulary.pieces, self._scheme.piece_writer(vocabulary) is None)

    def _to_text(self, parts: Iterator[EncodedRows], name: str) -> Iterator[WrittenFile]:
        names = converted_names(name, TEXT, [column.name for column in self._columns])
        count = 0
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(_SummedFile(self._folder, each)) for each in names]
            for rows in parts:
                for column, writer, file in zip(
                    self._columns, self._line_writers, files, strict=True
                ):
                    file.write(writer.lines(rows.ids[column.name], rows.offsets[column.name]))
                count += len(rows)
        for file in files:
            yield file.written(count)
