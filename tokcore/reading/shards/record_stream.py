"""The rows of a stream of TFRecords from its beginning to its end, some megabytes at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.compiled.crc import CRC32C, crc_table
from tokcore.compiled.ragged_bytes import row_offsets
from tokcore.reading.shards.record_kernels import (
    CUT_OFF,
    HEAD_CUT_OFF,
    HEAD_DAMAGED,
    LARGEST_ID,
    ODD,
    index_records,
    parse_records,
)
from tokcore.reading.shards.rows import Rows

_PIECE = 8 << 20
_MOST_RECORDS = 1 << 16


def stream_rows(stream: BinaryIO, features: Sequence[str], name: str) -> Iterator[Rows]:
    """Yields all rows of a stream of whole records that this program wrote.

    Raises:
        RuntimeError: naming `name`, if it is damaged or cut off.
    """
    table = crc_table(CRC32C)
    names = [each.encode() for each in features]
    packed = read_only(np.frombuffer(b''.join(names), np.uint8))
    bounds = read_only(row_offsets([len(each) for each in names]))
    records = np.empty((2, _MOST_RECORDS), np.int64)
    damaged = np.empty(_MOST_RECORDS, np.uint8)
    waiting = b''
    while piece := stream.read(_PIECE):
        data = read_only(np.frombuffer(waiting + piece, np.uint8))
        place, ended = 0, False
        while not ended:
            place, count, wrong = index_records(
                data, place, table, True, records[0], records[1], damaged
            )
            if wrong == HEAD_DAMAGED or damaged[:count].any():
                raise RuntimeError(f'{name} is damaged')
            ended = wrong in (HEAD_CUT_OFF, CUT_OFF) or place == len(data)
            if count:
                yield _parsed(data, records[:, :count], packed, bounds, features, name)
        waiting = data[place:].tobytes()
    if waiting:
        raise RuntimeError(f'{name} is cut off')


def _parsed(
    data: np.ndarray,
    records: np.ndarray,
    names: np.ndarray,
    bounds: np.ndarray,
    features: Sequence[str],
    name: str,
) -> Rows:
    count = records.shape[1]
    ids = np.empty((len(features), int(records[1].sum())), np.int32)
    offsets = np.empty((len(features), count + 1), np.int64)
    marks = np.empty(count, np.uint8)
    largest = read_only(np.full(len(features), LARGEST_ID, np.int64))
    parse_records(
        data, read_only(np.ascontiguousarray(records)), names, bounds, largest, ids, offsets, marks
    )
    if (marks == ODD).any():
        raise RuntimeError(f'{name} holds what is no example of {", ".join(features)}')
    return Rows(
        {each: ids[k, : offsets[k, -1]] for k, each in enumerate(features)},
        {each: offsets[k] for k, each in enumerate(features)},
    )
