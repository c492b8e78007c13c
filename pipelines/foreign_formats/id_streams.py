"""Formats whose files are ids one after another, with a file beside each that says where rows begin.

Each row is followed by the id that ends documents, unless its template ends with it or there is none.
They have no empty rows: these are left out, and the manifest has their numbers. A shard without rows
has no files, since `numpy.memmap` refuses one of 0 bytes; the manifest lists them as of 0 rows.

A file of ids does not say where a row begins, nor of which type its ids are: the file beside it and the
manifest do. So each is held against the others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import BinaryIO, ClassVar

import numpy as np

from pipelines.files import filesystem
from pipelines.shard_formats.shard_format import (
    Column,
    ConvertedFormat,
    Shard,
    StoredDataset,
    SummedFile,
    bytes_of_ids,
    dropped_rows,
    mapped_bytes,
    parse_rows,
    rows_of_ids,
    what_ends,
)
from pipelines.transforms.stats import WrittenFile
from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets
from tokcore.reading.checking import Advance, CheckedFile, Finding, Findings, Sums, check_bytes
from tokcore.reading.shards import EncodedRows
from tokcore.records.manifest import Manifest, OutputFile, file_of_shard
from tokcore.records.tfrecord import FramedRows

_DTYPES = ('uint16', 'int32', 'uint32')

_PIECE_BYTES = 1 << 20

_LEFT_OUT = b''
"""Stands for a row that the file leaves out because it is empty."""


class IdStreams(ConvertedFormat):
    """A format of two files for each feature of a shard.

    Attributes:
        endings: of the file of ids and of the one that lists its rows.
        without_header: what a description says of files that do not begin with their type.
    """

    endings: ClassVar[tuple[str, str]]
    without_header: ClassVar[str] = ''

    @abstractmethod
    def base_name(self, shard: str, feature: str) -> str:
        """Returns the name of a feature's files without their ending; '' is the only feature."""

    @abstractmethod
    def dtype(self, vocab_size: int) -> str:
        """Returns the dtype of the ids of a vocabulary."""

    @abstractmethod
    def list_bytes(
        self, lengths: np.ndarray, dtype: str, records: np.ndarray, shard: Shard
    ) -> bytes:
        """Returns the file that lists rows.

        Args:
            lengths: int[n], the ids of each row.
            dtype: of the ids.
            records: int64[n], the number of each row in its shard.
            shard: of the rows.
        """

    @abstractmethod
    def lengths(self, data: bytes, dtype: str) -> np.ndarray:
        """Returns the lengths of the rows that a file lists; raises ValueError, saying what is wrong."""

    def file_names(self, shard: str, features: Sequence[str]) -> list[str]:
        own = features if len(features) > 1 else ['']
        return [
            f'{self.base_name(shard, feature)}.{ending}'
            for feature in own
            for ending in self.endings
        ]

    def write(
        self,
        parts: Iterator[EncodedRows],
        shard: Shard,
        folder: str,
        columns: Sequence[Column],
    ) -> Iterator[WrittenFile]:
        names = self.file_names(shard.name, [column.name for column in columns])
        dtypes = [self.dtype(column.vocab_size) for column in columns]
        lengths: list[list[np.ndarray]] = [[] for _ in columns]
        kept: list[np.ndarray] = []
        dropped: list[int] = []
        row = 0
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(SummedFile(folder, name)) for name in names[::2]]
            for rows in parts:
                records = np.arange(row, row + len(rows))
                row += len(rows)
                is_empty = _without_text(rows, columns)
                if is_empty.any():
                    dropped += records[is_empty].tolist()
                    rows, records = rows.take(np.flatnonzero(~is_empty)), records[~is_empty]
                kept.append(records)
                rows = rows.with_ends(_ends(columns))
                for column, dtype, file, of_rows in zip(
                    columns, dtypes, files, lengths, strict=True
                ):
                    ids = rows.ids[column.name]
                    if len(ids) and ids.max() >= column.vocab_size:
                        raise ValueError(
                            f'a row of {shard.name} has the id {ids.max()}, and the vocabulary of '
                            f'{column.name} has {column.vocab_size} ids'
                        )
                    file.write(ids.astype(np.dtype(dtype).newbyteorder('<')).view(np.uint8))
                    of_rows.append(np.diff(rows.offsets[column.name]))
        records = _joined(kept)
        if not len(records):
            for name in names[::2]:
                filesystem.delete_file(os.path.join(folder, name))
        for ids_file, dtype, of_rows, name in zip(files, dtypes, lengths, names[1::2], strict=True):
            list_file = SummedFile(folder, name)
            if len(records):
                with list_file:
                    list_file.write(self.list_bytes(_joined(of_rows), dtype, records, shard))
            for file in (ids_file, list_file):
                yield file.written(len(records), dtype, dropped)

    def check(
        self, stream: BinaryIO, file: OutputFile, dataset: StoredDataset, advance: Advance
    ) -> CheckedFile:
        dtype = file.dtype or ''
        if dtype not in _DTYPES:
            result = check_bytes(stream, file.name, advance)
            finding = Finding(file.name, 'the manifest does not state the dtype of its ids')
            return dataclasses.replace(result, rows=file.rows, findings=(finding,))
        match = self._own_name(file.name)
        if match is None:
            return check_bytes(stream, file.name, advance)
        feature, base, ending = match
        if ending == self.endings[1]:
            return check_row_list(
                stream, file.name, lambda data: self.lengths(data, dtype), advance
            )
        of_rows: np.ndarray | None = None
        if (data := dataset.content(f'{base}.{self.endings[1]}')) is not None:
            # What is wrong with that file is told where it is checked itself.
            with contextlib.suppress(ValueError):
                of_rows = self.lengths(data, dtype)
        count = dataset.id_counts.get(feature or next(iter(dataset.id_counts), ''))
        end = dataset.ends.get(feature or next(iter(dataset.id_counts), ''))
        result = check_ids(stream, file.name, dtype, count, of_rows, end, advance)
        if of_rows is None:
            result = dataclasses.replace(result, rows=file.rows)
        if count and (wanted := self.dtype(count)) != dtype:
            finding = Finding(
                file.name,
                f'the manifest states {dtype}, and ids of a vocabulary of {count} are {wanted}',
            )
            result = dataclasses.replace(result, findings=(*result.findings, finding))
        return result

    def stored_rows(
        self,
        paths: Sequence[str],
        numbers: np.ndarray,
        columns: Sequence[Column],
        files: Mapping[str, OutputFile],
    ) -> Iterator[bytes | None]:
        first = _recorded(paths[0], files)
        dropped = np.array(first.dropped, np.int64)
        before = np.searchsorted(dropped, numbers)
        is_left_out = np.isin(numbers, dropped)
        if not first.is_stored:
            yield from (_LEFT_OUT if left_out else None for left_out in is_left_out.tolist())
            return
        sides = [
            self.stream(path, list_path, files)
            for path, list_path in zip(paths[::2], paths[1::2], strict=True)
        ]
        for number, left_out in zip((numbers - before).tolist(), is_left_out.tolist(), strict=True):
            if left_out:
                yield _LEFT_OUT
            elif any(number + 1 >= len(offsets) for offsets, _ in sides):
                yield None
            else:
                yield bytes_of_ids(
                    ids[offsets[number] : offsets[number + 1]] for offsets, ids in sides
                )

    def stream(
        self, path: str, list_path: str, files: Mapping[str, OutputFile]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns where the rows of a file begin and end, and its ids; raises InputError for damage."""
        dtype = _recorded(path, files).dtype
        if dtype not in _DTYPES:
            raise InputError(f'the manifest has no dtype of {path}; see the findings')
        try:
            offsets = row_offsets(self.lengths(filesystem.read_bytes(list_path), dtype))
        except ValueError as error:
            raise InputError(f'{list_path} cannot be read ({error}); see the findings') from error
        kind = np.dtype(dtype).newbyteorder('<')
        content = mapped_bytes(path)
        return offsets, content[: len(content) - len(content) % kind.itemsize].view(kind)

    def documents(
        self, paths: Sequence[str], files: Mapping[str, OutputFile]
    ) -> Iterator[list[np.ndarray]]:
        sides = [self.stream(*pair, files) for pair in zip(paths[::2], paths[1::2], strict=True)]
        for row in range(min(len(offsets) for offsets, _ in sides) - 1):
            yield [ids[offsets[row] : offsets[row + 1]] for offsets, ids in sides]

    def described(self, manifest: Manifest) -> str:
        dtypes = ' and '.join(sorted({file.dtype for file in manifest.files if file.dtype}))
        return f'{self.name} files of {dtypes}{self.without_header}: {next(self.notes(manifest))}'

    def notes(self, manifest: Manifest) -> Iterator[str]:
        count = sum(lines.examples for lines in manifest.lines)
        count -= sum(dropped_rows(manifest).values())
        yield f'{count:,} documents, {what_ends(manifest)}'

    def row_bytes(self, rows: FramedRows, columns: Sequence[Column]) -> Iterator[bytes]:
        names = [column.name for column in columns]
        encoded = parse_rows(rows, names)
        is_empty = _without_text(encoded, columns).tolist()
        ended = encoded.with_ends(_ends(columns))
        for empty, row in zip(is_empty, rows_of_ids(ended, names), strict=True):
            yield _LEFT_OUT if empty else row

    def _own_name(self, name: str) -> tuple[str, str, str] | None:
        """Returns the feature, the name without its ending and the ending of a file of this format."""
        file = file_of_shard(name)
        if file is None:
            return None
        for feature in ('', 'inputs', 'targets'):
            base = self.base_name(file.shard, feature)
            ending = name.removeprefix(f'{base}.')
            if ending in self.endings:
                return feature, base, ending
        return None


def _recorded(path: str, files: Mapping[str, OutputFile]) -> OutputFile:
    name = os.path.basename(path)
    if name not in files:
        raise InputError(f'{path} is not in the manifest; see the findings')
    return files[name]


def _ends(columns: Sequence[Column]) -> dict[str, int]:
    return {column.name: column.end for column in columns if column.end is not None}


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0, np.int64), *arrays])


def _without_text(rows: EncodedRows, columns: Sequence[Column]) -> np.ndarray:
    """Tells which rows have no text on a side, bool[rows]: no id beside those that are special."""
    is_empty = np.zeros(len(rows), bool)
    for column in columns:
        ids, offsets = rows.ids[column.name], rows.offsets[column.name]
        left, place = np.arange(len(rows)), 0
        # Nearly all rows have another id among their first two.
        while len(left):
            ended = offsets[left] + place >= offsets[left + 1]
            is_empty[left[ended]] = True
            left = left[~ended]
            left = left[np.isin(ids[offsets[left] + place], column.special_ids)]
            place += 1
    return is_empty


def check_ids(
    stream: BinaryIO,
    name: str,
    dtype: str,
    id_count: int | None,
    lengths: np.ndarray | None,
    end: int | None = None,
    advance: Advance = lambda size: None,
) -> CheckedFile:
    """Checks a file of ids.

    Args:
        stream: at its beginning.
        name: of the file, for findings.
        dtype: of the ids, as the manifest states it.
        id_count: how many ids the vocabulary has; None: not known.
        lengths: int[rows], of the rows, as the file beside this one has them; None: it is not sound.
        end: the id that each row ends with; None: any.
        advance: see `Advance`.
    """
    sums, findings = Sums(), Findings(name)
    kind = np.dtype(dtype).newbyteorder('<')
    ends = None if lengths is None else row_offsets(lengths)[1:]
    place, rest = 0, b''
    while read := stream.read(_PIECE_BYTES):
        sums.add(read)
        advance(len(read))
        data = rest + read
        rest = data[len(data) - len(data) % kind.itemsize :]
        ids = np.frombuffer(data, kind, len(data) // kind.itemsize)
        if id_count is not None and len(ids) and not 0 <= ids.min() <= ids.max() < id_count:
            for number in np.flatnonzero((ids < 0) | (ids >= id_count)).tolist():
                row = None if ends is None else int(np.searchsorted(ends, place + number, 'right'))
                problem = f'{ids[number]} is not an id of the {id_count} of the vocabulary'
                findings.add(problem, row, (place + number) * kind.itemsize)
        if end is not None and ends is not None:
            first, last = np.searchsorted(ends, [place, place + len(ids)], 'right')
            is_other = ids[ends[first:last] - 1 - place] != end
            for row in (first + np.flatnonzero(is_other)).tolist():
                findings.add(
                    f'the row does not end with {end}', row, int(ends[row] - 1) * kind.itemsize
                )
        place += len(ids)
    if rest:
        findings.add(
            f'the file ends within an id of {kind.itemsize} bytes', None, place * kind.itemsize
        )
    if ends is not None and place != (total := int(ends[-1]) if len(ends) else 0):
        findings.add(
            f'it has {place:,} ids, and the rows of the file beside it {total:,}: one of the two was cut '
            'off, or is of another shard'
        )
    return sums.checked(0 if lengths is None else len(lengths), findings)


def check_row_list(
    stream: BinaryIO,
    name: str,
    lengths_of: Callable[[bytes], np.ndarray],
    advance: Advance = lambda size: None,
) -> CheckedFile:
    """Checks a file that lists rows; `lengths_of` returns their lengths, or raises ValueError."""
    sums, findings, parts = Sums(), Findings(name), []
    while read := stream.read(_PIECE_BYTES):
        sums.add(read)
        advance(len(read))
        parts.append(read)
    rows = 0
    try:
        rows = len(lengths_of(b''.join(parts)))
    except ValueError as error:
        findings.add(str(error))
    return sums.checked(rows, findings)
