"""Rows as a flat stream of ids, and the list of its documents, as OLMo and Dolma have them.

`X.npy` is the ids of all rows, little-endian, without a header, its name notwithstanding: `numpy.memmap`
opens it, and `numpy.load` does not. `X.csv.gz` has a line for each row, without quotes or a header:

    start,end,row,shard,record

the row is ids[start:end]; its number in all shards of the split; the name of the shard, and its number
there, by which `tokbeam where` finds its text.
"""

from __future__ import annotations

import gzip
import io
import zlib

import numpy as np

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
