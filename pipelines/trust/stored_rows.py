"""Rows of a shard as they are stored, by number, and the same of rows that are made again.

Two rows are the same if the bytes that a format has for them are: of TFRecords the whole record, of
text the lines, of Parquet, Megatron's and flat files the ids of each column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq

from pipelines.files import filesystem
from pipelines.options.job import MEGATRON, PARQUET, TEXT, TFRECORD, OutputFormat
from pipelines.transforms.convert_shards import (
    STREAM_DTYPES,
    STREAMS,
    Column,
    converted_names,
    without_text,
)
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.vocabulary import Vocabulary
from tokcore.errors import InputError
from tokcore.kernels.bytes import CRC32C, crc_table, row_offsets
from tokcore.kernels.jit import read_only
from tokcore.reading.record_kernels import FOOTER_SIZE, HEADER_SIZE, LARGEST_ID, index_records
from tokcore.reading.shards import UNREADABLE, EncodedRows, ExampleParser, PieceLineWriter
from tokcore.records.flat import document_lengths
from tokcore.records.manifest import OutputFile
from tokcore.records.megatron import index_lengths
from tokcore.records.tfrecord import FramedRows

_MOST_RECORDS = 1 << 16

_LEFT_OUT = b''
"""Stands for a row that the file leaves out because it is empty."""


@dataclass(frozen=True)
class RowForm:
    """How rows of a dataset are stored.

    Attributes:
        folder: of the dataset.
        output_format: as the option has it.
        features: of the text, inputs before targets.
        scheme: of the vocabularies.
        vocabularies: of these features.
        files: of the shards, by their names, as the manifest has them.
    """

    folder: str
    output_format: OutputFormat
    features: Sequence[str]
    scheme: Scheme
    vocabularies: Sequence[Vocabulary]
    files: Mapping[str, OutputFile]

    def stored(self, shard: str, numbers: np.ndarray) -> Iterator[bytes | None]:
        """Yields rows of a shard, None for those that it does not have.

        Args:
            shard: its name as TFRecords.
            numbers: int64[n], ascending.

        Raises:
            InputError: a file of it cannot be read.
        """
        paths = [
            filesystem.join(self.folder, name)
            for name in converted_names(shard, self.output_format, self.features)
        ]
        if self.output_format == TEXT:
            files = [_lines(path) for path in paths]
            for number in numbers.tolist():
                is_there = all(number < len(file) for file in files)
                yield b'\n'.join(file[number] for file in files) if is_there else None
        elif self.output_format == PARQUET:
            yield from _parquet_rows(paths[0], self.features, numbers)
        elif self.output_format in STREAMS:
            yield from self._stream_rows(paths, numbers)
        else:
            yield from _records(paths[0], numbers)

    def made(self, rows: FramedRows) -> Iterator[bytes]:
        """Yields rows that were made again as `stored` yields them."""
        bounds = row_offsets(rows.lengths)
        if self.output_format == TFRECORD:
            for start, end in zip(bounds, bounds[1:]):
                yield rows.records[start:end].tobytes()
            return
        encoded, columns = self._encoded(rows), []
        for name, vocabulary in zip(self.features, self.vocabularies, strict=True):
            ids, offsets = encoded.ids[name], encoded.offsets[name]
            if self.output_format == TEXT:
                writer = PieceLineWriter(
                    vocabulary.pieces, self.scheme.piece_writer(vocabulary) is None
                )
                columns.append(writer.lines(ids, offsets).tobytes().split(b'\n')[:-1])
            else:
                columns.append(_as_bytes(ids, offsets))
        made: Iterator[bytes] = map(b'\n'.join, zip(*columns, strict=True))
        if self.output_format in STREAMS:
            is_empty = without_text(encoded, self._columns).tolist()
            made = (_LEFT_OUT if empty else row for empty, row in zip(is_empty, made, strict=True))
        yield from made

    def _file(self, path: str) -> OutputFile:
        name = filesystem.split_path(path)[1]
        if name not in self.files:
            raise InputError(f'{path} is not in the manifest; see the findings')
        return self.files[name]

    def _dtype(self, path: str) -> str:
        dtype = self._file(path).dtype
        if dtype not in STREAM_DTYPES:
            raise InputError(f'the manifest has no dtype of {path}; see the findings')
        return dtype

    @property
    def _columns(self) -> list[Column]:
        return [
            Column.of(name, each.vocab_size, each.special_ids)
            for name, each in zip(self.features, self.vocabularies, strict=True)
        ]

    def _stream_rows(self, paths: Sequence[str], numbers: np.ndarray) -> Iterator[bytes | None]:
        """Yields rows of Megatron's files or flat ones, `_LEFT_OUT` for those that are empty."""
        dropped = np.array(self._file(paths[0]).dropped, np.int64)
        before = np.searchsorted(dropped, numbers)
        is_left_out = np.isin(numbers, dropped)
        columns = []
        for path, beside in zip(paths[::2], paths[1::2], strict=True):
            try:
                data = filesystem.read_bytes(beside)
                if self.output_format == MEGATRON:
                    offsets = row_offsets(index_lengths(data, self._dtype(path)))
                else:
                    offsets = row_offsets(document_lengths(data))
            except ValueError as error:
                raise InputError(f'{beside} cannot be read ({error}); see the findings') from error
            kind = np.dtype(self._dtype(path)).newbyteorder('<')
            content = _content(path)
            columns.append(
                (offsets, content[: len(content) - len(content) % kind.itemsize].view(kind))
            )
        for number, left_out in zip((numbers - before).tolist(), is_left_out.tolist(), strict=True):
            if left_out:
                yield _LEFT_OUT
            elif any(number + 1 >= len(offsets) for offsets, _ in columns):
                yield None
            else:
                yield b'\n'.join(
                    _as_bytes(ids[start:end], np.array([0, end - start]))[0]
                    for offsets, ids in columns
                    for start, end in [offsets[number : number + 2].tolist()]
                )

    def ids(self, rows: FramedRows) -> dict[str, list[int]]:
        """Returns the ids of a single row by feature."""
        return {name: ids.tolist() for name, ids in self._encoded(rows).ids.items()}

    def _encoded(self, rows: FramedRows) -> EncodedRows:
        bounds = row_offsets(rows.lengths)
        records = np.array([bounds[:-1] + HEADER_SIZE, np.diff(bounds) - HEADER_SIZE - FOOTER_SIZE])
        parser = ExampleParser(dict.fromkeys(self.features, LARGEST_ID))
        return parser.parse(read_only(rows.records), read_only(records))[0]


def _as_bytes(ids: np.ndarray, offsets: np.ndarray) -> list[bytes]:
    """The ids of each row, with their number before them."""
    data = ids.astype('<i8')
    return [
        np.int64(end - start).tobytes() + data[start:end].tobytes()
        for start, end in zip(offsets, offsets[1:])
    ]


def _lines(path: str) -> list[bytes]:
    with filesystem.open_binary(path) as stream:
        return stream.read().split(b'\n')[:-1]


def _parquet_rows(
    path: str, features: Sequence[str], numbers: np.ndarray
) -> Iterator[bytes | None]:
    first = 0
    with filesystem.open_binary(path) as stream:
        try:
            file = pq.ParquetFile(stream)
            for group in range(file.metadata.num_row_groups):
                end = first + file.metadata.row_group(group).num_rows
                own = numbers[np.searchsorted(numbers, first) : np.searchsorted(numbers, end)]
                if len(own):
                    table = file.read_row_group(group, columns=[*features]).take(own - first)
                    columns = [table.column(name).to_pylist() for name in features]
                    for row in zip(*columns, strict=True):
                        yield b'\n'.join(
                            np.int64(len(ids)).tobytes() + np.array(ids, '<i8').tobytes()
                            for ids in row
                        )
                first = end
        except UNREADABLE as error:
            raise InputError(f'{path} cannot be read ({error!s:.200}); see the findings') from error
    for _ in numbers[np.searchsorted(numbers, first) :]:
        yield None


def _records(path: str, numbers: np.ndarray) -> Iterator[bytes | None]:
    """Yields whole TFRecords, with what frames them."""
    data = _content(path)
    records = np.empty((2, _MOST_RECORDS), np.int64)
    damaged, table = np.empty(_MOST_RECORDS, np.uint8), crc_table(CRC32C)
    wanted = numbers.tolist()
    place = first = at = 0
    while at < len(wanted):
        place, count, _ = index_records(data, place, table, False, records[0], records[1], damaged)
        if not count:
            break
        while at < len(wanted) and wanted[at] < first + count:
            start, size = records[:, wanted[at] - first].tolist()
            yield data[start - HEADER_SIZE : start + size + FOOTER_SIZE].tobytes()
            at += 1
        first += count
    yield from [None] * (len(wanted) - at)


def _content(path: str) -> np.ndarray:
    """A file's bytes, uint8; of this machine they are mapped and not read."""
    with filesystem.open_binary(path) as stream:
        if filesystem.is_shared(path) or not filesystem.stored_size(path):
            return read_only(np.frombuffer(stream.read(), np.uint8))
    return read_only(np.asarray(np.memmap(path, np.uint8, 'r')))
