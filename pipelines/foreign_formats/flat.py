"""Shards as flat streams of ids: with lists of their rows, as OLMo and Dolma have them, and for nanoGPT.

`X.npy` is the ids of all rows, little-endian, without a header, its name notwithstanding: `numpy.memmap`
opens it, and `numpy.load` does not. `X.csv.gz` has a line for each row, without quotes or a header:

    start,end,row,shard,record

the row is ids[start:end]; its number in all shards of the split; the name of the shard, and its number
there, by which `tokbeam where` finds its text. nanoGPT's loader reads the same stream as `train.bin`, and
that of the split `dev` as `val.bin`.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from pipelines.foreign_formats.id_streams import IdStreams
from pipelines.options.job import NANOGPT
from pipelines.shard_formats.shard_format import Shard
from tokcore.errors import InputError
from tokcore.records.manifest import Manifest, OutputFile, file_of_shard, name_of_split


class Flat(IdStreams):
    """One stream for each shard, and of pairs for each side."""

    name = 'flat'
    endings = ('npy', 'csv.gz')
    without_header = ' without a header'

    def base_name(self, shard: str, feature: str) -> str:
        return f'{shard}.{feature}' if feature else shard

    def dtype(self, vocab_size: int) -> str:
        return flat_dtype(vocab_size)

    def list_bytes(
        self, lengths: np.ndarray, dtype: str, records: np.ndarray, shard: Shard
    ) -> bytes:
        return list_bytes(lengths, records, shard.first_row, shard.name)

    def lengths(self, data: bytes, dtype: str) -> np.ndarray:
        return document_lengths(data)

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


MOST_UINT16 = 1 << 16
"""Ids that 16 bits have room for."""

_COMPRESSION = 6
_FIELDS = 5
"""Of a line."""

_QUOTE = '"'
_PIECE_LINES = 1 << 16


def flat_dtype(vocab_size: int) -> str:
    """Returns the dtype of the ids of a vocabulary: `uint16` or `uint32`."""
    return 'uint16' if vocab_size <= MOST_UINT16 else 'uint32'


def list_bytes(lengths: np.ndarray, records: np.ndarray, first_row: int, shard: str) -> bytes:
    """Returns a `.csv.gz`.

    Args:
        lengths: int[n], the ids of each row.
        records: int64[n], the number of each row in its shard.
        first_row: the number of the shard's first row in its split.
        shard: its name.
    """
    name = f'"{shard.replace(_QUOTE, _QUOTE * 2)}"' if set(shard) & {_QUOTE, ','} else shard
    stream, end = io.BytesIO(), 0
    # No name and no time in the head: the same rows have the same bytes.
    with gzip.GzipFile('', 'wb', _COMPRESSION, stream, mtime=0) as file:
        for first in range(0, len(lengths), _PIECE_LINES):
            part, lines = slice(first, first + _PIECE_LINES), []
            for length, record in zip(lengths[part].tolist(), records[part].tolist(), strict=True):
                start, end = end, end + length
                lines.append(f'{start},{end},{first_row + record},{name},{record}\n')
            file.write(''.join(lines).encode('utf-8', 'surrogateescape'))
    return stream.getvalue()


def document_lengths(data: bytes) -> np.ndarray:
    """Returns the lengths of the rows of a `.csv.gz`, int64[n].

    Raises:
        ValueError: saying, as a clause, why the bytes are not a list of rows that lie one after another.
    """
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
            raise ValueError(f'its line {number + 1} does not begin where the row before it ends')
        lengths.append(after - start)
        end = after
    if text and not text.endswith(b'\n'):
        raise ValueError('it ends within a line')
    return np.array(lengths, np.int64)


_NANOGPT_DTYPE = 'uint16'
"""What the loader maps a file as; there is no other."""


class NanoGpt(Flat):
    """The one shard of each split as a flat stream, with the name that the loader opens."""

    name = NANOGPT
    endings = ('bin', 'csv.gz')

    def base_name(self, shard: str, feature: str) -> str:
        file = file_of_shard(shard)
        return shard if file is None else name_of_split(file.split)

    def dtype(self, vocab_size: int) -> str:
        return _NANOGPT_DTYPE

    def require(self, sides: Sequence[str]) -> None:
        if len(sides) > 1:
            raise InputError(
                'nanoGPT reads one stream of ids, and pairs have two; give text, or the format flat'
            )

    def require_ids(self, count: int) -> None:
        if flat_dtype(count) != _NANOGPT_DTYPE:
            raise InputError(
                f'nanoGPT reads ids as {_NANOGPT_DTYPE}, at most {MOST_UINT16:,} of them, and there are {count:,}; take a '
                'smaller vocabulary, or the format flat'
            )

    def notes(self, manifest: Manifest) -> Iterator[str]:
        yield from super().notes(manifest)
        if 'dev' not in (lines.split for lines in manifest.lines):
            yield (
                f'no {name_of_split("dev")}.bin, which nanoGPT reads too: give --dev-share or --dev-text, and '
                'the split dev becomes that file'
            )
