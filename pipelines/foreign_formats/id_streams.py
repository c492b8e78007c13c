"""Formats whose files are ids one after another, little-endian, each with a file that says where rows begin.

Each row is followed by the id that ends documents, if there is one and the template does not end with it.
They have no empty rows: these are left out, and the manifest has their numbers. A shard without rows
has no files, since `numpy.memmap` refuses one of 0 bytes; the manifest lists them as of 0 rows.

A file of ids does not say where a row begins, nor of which type its ids are: the list of rows and the
manifest do. So each is checked against the others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import os
import struct
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import BinaryIO, ClassVar

import numpy as np

from pipelines.files import filesystem
from pipelines.options.job import NANOGPT
from pipelines.shard_formats.shard_format import (
    Column,
    ConvertedFormat,
    Shard,
    StoredDataset,
    bytes_of_ids,
    dropped_rows,
    mapped_bytes,
    parse_rows,
    rows_of_ids,
    what_ends,
)
from pipelines.transforms.stats import SummedFile, WrittenFile
from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets
from tokcore.reading.checking import Advance, CheckedFile, Finding, Findings, Sums, check_bytes
from tokcore.reading.shards import EncodedRows
from tokcore.records.manifest import NAMES_OF_SPLITS, Manifest, OutputFile, file_of_shard
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
        """Returns the lengths of the rows that a file lists, int[n].

        Raises:
            ValueError: saying, as a clause, why it is not a list of rows that lie one after another.
        """

    def file_names(self, shard: str, features: Sequence[str]) -> list[str]:
        named = features if len(features) > 1 else ['']
        return [
            f'{self.base_name(shard, feature)}.{ending}'
            for feature in named
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
                yield file.written(len(records), dtype=dtype, dropped=tuple(dropped))

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
            # What is wrong with that file is found where it is checked itself.
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
    """Returns which rows have no text on a side, bool[rows]: they have only special ids."""
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
        lengths: int[rows], of the rows, as the list of rows has them; None: the list is damaged.
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


_MAGIC = b'MMIDIDX\x00\x00'
_VERSION = 1
_HEAD = struct.Struct('<9sQBQQ')

_CODES = {
    1: 'uint8', 2: 'int8', 3: 'int16', 4: 'int32', 5: 'int64', 6: 'float64', 7: 'float32', 8: 'uint16',
}  # fmt: skip

_MEGATRON_MOST = 65_500
"""Megatron's own bound: vocabularies of so many ids have int32."""


class Megatron(IdStreams):
    """`PREFIX_KEY_document.bin` and `.idx` for each shard, and of pairs for each side.

    The `.idx` is, little-endian,

        b'MMIDIDX\\0\\0' | uint64 1 | uint8 code of the dtype | uint64 rows n | uint64 n + 1
        int32[n]      lengths of the rows, in ids
        int64[n]      bytes of the `.bin` before each row
        int64[n + 1]  the row at which each document begins, and n: a row is a document

    as `megatron.core.datasets.indexed_dataset` of Megatron-LM has it, version 1.
    """

    name = 'megatron'
    endings = ('bin', 'idx')

    def base_name(self, shard: str, feature: str) -> str:
        return f'{shard}_{feature or "text"}_document'  # Megatron's own key of plain text is `text`

    def dtype(self, vocab_size: int) -> str:
        return 'uint16' if vocab_size < _MEGATRON_MOST else 'int32'

    def list_bytes(
        self, lengths: np.ndarray, dtype: str, records: np.ndarray, shard: Shard
    ) -> bytes:
        [code] = [code for code, name in _CODES.items() if name == dtype]
        count, starts = len(lengths), row_offsets(lengths)[:-1] * np.dtype(dtype).itemsize
        parts = [
            _HEAD.pack(_MAGIC, _VERSION, code, count, count + 1),
            lengths.astype('<i4').tobytes(),
            starts.astype('<i8').tobytes(),
            np.arange(count + 1, dtype='<i8').tobytes(),
        ]
        return b''.join(parts)

    def lengths(self, data: bytes, dtype: str) -> np.ndarray:
        if len(data) < _HEAD.size:
            raise ValueError(f'it ends within its head, after {len(data)} bytes')
        magic, version, code, count, documents = _HEAD.unpack_from(data)
        if magic != _MAGIC or version != _VERSION:
            raise ValueError('it does not begin as an index of Megatron, version 1')
        if _CODES.get(code) != dtype:
            raise ValueError(
                f'it says that ids are {_CODES.get(code, f"of an unknown dtype, {code}")}, and the manifest '
                f'states {dtype}'
            )
        if documents != count + 1 or len(data) != _HEAD.size + 12 * count + 8 * documents:
            raise ValueError(
                f'it has {len(data)} bytes, which are not those of {count} rows as {documents - 1} documents'
            )
        lengths = np.frombuffer(data, '<i4', count, _HEAD.size)
        same = self.list_bytes(lengths, dtype, np.arange(count), Shard('', 0))
        if len(lengths) and lengths.min() < 0 or data != same:
            raise ValueError('its rows do not lie one after another, each a document')
        return lengths

    def reading_code(self, manifest: Manifest) -> Iterator[str]:
        first = next(file for file in manifest.files if file.is_stored)
        yield from (
            'from megatron.core.datasets.indexed_dataset import IndexedDataset',
            '',
            f'rows = IndexedDataset({first.name.removesuffix(".bin")!r})',
        )


MOST_UINT16 = 1 << 16
"""Ids that 16 bits have room for."""

_COMPRESSION = 6
_FIELDS = 5  # of a line
_QUOTE = '"'
_PIECE_LINES = 1 << 16


class Flat(IdStreams):
    """One stream for each shard, and of pairs for each side, as OLMo and Dolma have them.

    `X.npy` is the ids without a header, its name notwithstanding: `numpy.memmap` opens it, and `numpy.load`
    does not. `X.csv.gz` has a line for each row, without quotes or a header:

        start,end,row,shard,record

    the row is ids[start:end]; its number in all shards of the split; the name of the shard, and its number
    there, by which `tokbeam where` finds its text.
    """

    name = 'flat'
    endings = ('npy', 'csv.gz')
    without_header = ' without a header'

    def base_name(self, shard: str, feature: str) -> str:
        return f'{shard}.{feature}' if feature else shard

    def dtype(self, vocab_size: int) -> str:
        return 'uint16' if vocab_size <= MOST_UINT16 else 'uint32'

    def list_bytes(
        self, lengths: np.ndarray, dtype: str, records: np.ndarray, shard: Shard
    ) -> bytes:
        name = shard.name
        if {*name} & {_QUOTE, ','}:
            name = f'"{name.replace(_QUOTE, _QUOTE * 2)}"'
        stream, end = io.BytesIO(), 0
        # No name and no time in the head: the same rows have the same bytes.
        with gzip.GzipFile('', 'wb', _COMPRESSION, stream, mtime=0) as file:
            for first in range(0, len(lengths), _PIECE_LINES):
                part, lines = slice(first, first + _PIECE_LINES), []
                for length, record in zip(
                    lengths[part].tolist(), records[part].tolist(), strict=True
                ):
                    start, end = end, end + length
                    lines.append(f'{start},{end},{shard.first_row + record},{name},{record}\n')
                file.write(''.join(lines).encode('utf-8', 'surrogateescape'))
        return stream.getvalue()

    def lengths(self, data: bytes, dtype: str) -> np.ndarray:
        try:
            text = gzip.GzipFile(fileobj=io.BytesIO(data)).read()
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f'it is not whole as a gzip file ({error})') from error
        lengths, end = [], 0
        for number, line in enumerate(text.split(b'\n')[:-1]):
            fields = line.split(b',', _FIELDS - 1)
            if len(fields) < _FIELDS or not (fields[0].isdigit() and fields[1].isdigit()):
                raise ValueError(f'its line {number + 1} is not start,end,row,shard,record')
            start, after = int(fields[0]), int(fields[1])
            if start != end or after < start or after > 1 << 62:
                raise ValueError(
                    f'its line {number + 1} does not begin where the row before it ends'
                )
            lengths.append(after - start)
            end = after
        if text and not text.endswith(b'\n'):
            raise ValueError('it ends within a line')
        return np.array(lengths, np.int64)

    def hint(self, file: OutputFile) -> str:
        return (
            f'is {file.dtype} ids one after another, without a header, so that numpy.load does not '
            f"open it; read it by numpy.memmap({file.name!r}, dtype='{file.dtype}', mode='r')"
        )

    def reading_code(self, manifest: Manifest) -> Iterator[str]:
        first = next(file for file in manifest.files if file.is_stored)
        yield from (
            'import numpy',
            '',
            f'ids = numpy.memmap({first.name!r}, dtype={first.dtype!r}, mode="r")',
        )


class NanoGpt(Flat):
    """The one shard of each split as a flat stream, with the name that nanoGPT's loader opens.

    It maps all files as uint16.
    """

    name = NANOGPT
    endings = ('bin', 'csv.gz')

    def base_name(self, shard: str, feature: str) -> str:
        file = file_of_shard(shard)
        return shard if file is None else NAMES_OF_SPLITS[file.split]

    def dtype(self, vocab_size: int) -> str:
        return 'uint16'

    def require(self, sides: Sequence[str]) -> None:
        if len(sides) > 1:
            raise InputError(
                'nanoGPT reads one stream of ids, and pairs have two; give text, or the format flat'
            )

    def require_ids(self, count: int) -> None:
        if count > MOST_UINT16:
            raise InputError(
                f'nanoGPT reads ids as uint16, at most {MOST_UINT16:,} of them, and there are {count:,}; take a '
                'smaller vocabulary, or the format flat'
            )

    def notes(self, manifest: Manifest) -> Iterator[str]:
        yield from super().notes(manifest)
        if 'dev' not in (lines.split for lines in manifest.lines):
            yield (
                f'no {NAMES_OF_SPLITS["dev"]}.bin, which nanoGPT reads too: the split dev becomes that file; '
                '`build` or `encode` makes it with --dev-share or --dev'
            )
