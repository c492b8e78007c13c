"""Shards of text: a file for each side, and in it a line of pieces for each row."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

import numpy as np

from pipelines.files import filesystem
from pipelines.shard_formats.shard_format import (
    Column,
    ConvertedFormat,
    Shard,
    StoredDataset,
    parse_rows,
)
from pipelines.transforms.stats import SummedFile, WrittenFile
from tokcore.reading.checking import Advance, CheckedFile, check_lines
from tokcore.reading.shards import EncodedRows
from tokcore.records.manifest import Manifest, OutputFile
from tokcore.records.tfrecord import FramedRows


class Text(ConvertedFormat):
    """Line `i` of each of a shard's files is of row `i`."""

    name = 'text'
    needs_pieces = True

    def file_names(self, shard: str, features: Sequence[str]) -> list[str]:
        return [f'{shard}.{feature}' for feature in features]

    def write(
        self,
        parts: Iterator[EncodedRows],
        shard: Shard,
        folder: str,
        columns: Sequence[Column],
    ) -> Iterator[WrittenFile]:
        names = self.file_names(shard.name, [column.name for column in columns])
        count = 0
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(SummedFile(folder, name)) for name in names]
            for rows in parts:
                for column, file in zip(columns, files, strict=True):
                    file.write(_lines(rows, column))
                count += len(rows)
        for file in files:
            yield file.written(count)

    def check(
        self, stream: BinaryIO, file: OutputFile, dataset: StoredDataset, advance: Advance
    ) -> CheckedFile:
        feature = file.name.rpartition('.')[2]
        return check_lines(stream, file.name, dataset.pieces(feature), advance)

    def stored_rows(
        self,
        paths: Sequence[str],
        numbers: np.ndarray,
        columns: Sequence[Column],
        files: Mapping[str, OutputFile],
    ) -> Iterator[bytes | None]:
        sides = [filesystem.read_bytes(path).split(b'\n')[:-1] for path in paths]
        for number in numbers.tolist():
            is_there = all(number < len(lines) for lines in sides)
            yield b'\n'.join(lines[number] for lines in sides) if is_there else None

    def row_bytes(self, rows: FramedRows, columns: Sequence[Column]) -> Iterator[bytes]:
        encoded = parse_rows(rows, [column.name for column in columns])
        sides = [_lines(encoded, column).tobytes().split(b'\n')[:-1] for column in columns]
        return map(b'\n'.join, zip(*sides, strict=True))

    def reading_code(self, manifest: Manifest) -> Iterator[str]:
        name = manifest.files[0].name if manifest.files else ''
        yield f'lines = open({name!r}, encoding="utf-8").read().splitlines()'


def _lines(rows: EncodedRows, column: Column) -> np.ndarray:
    assert column.lines is not None  # the format says that it needs pieces
    return column.lines.lines(rows.ids[column.name], rows.offsets[column.name])
