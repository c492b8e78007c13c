"""Checks rows that are stored one after another as ids, without a head: Megatron's and flat.

A file of ids does not say where a row begins, nor of which type its ids are: the file beside it and the
manifest do. So each is held against the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

import numpy as np

from tokcore.kernels.bytes import row_offsets
from tokcore.reading.checking import Advance, CheckedFile, Findings, Sums

_PIECE_BYTES = 1 << 20


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
