"""Framed rows from pairs of a key and a record, and back."""

import numpy as np

from tokcore.records.tfrecord import FramedRows


def framed(records: list[tuple[int, bytes]]) -> FramedRows:
    return FramedRows(
        np.array([key for key, _ in records], np.uint64),
        np.array([len(record) for _, record in records], np.int64),
        np.frombuffer(b''.join(record for _, record in records), np.uint8),
        np.array([[key & 0xFFFF] for key, _ in records], np.uint32).reshape(-1, 1),
    )


def records_of(rows: FramedRows) -> list[tuple[int, bytes]]:
    """Returns (key, whole record) of each row, whose sizes, if it has any, must be those of `framed`."""
    if rows.sizes.shape[1]:
        assert rows.sizes.tolist() == [[key & 0xFFFF] for key in rows.keys.tolist()]
    ends = np.cumsum(rows.lengths).tolist()
    data = rows.records.tobytes()
    return [
        (key, data[end - length : end])
        for key, length, end in zip(rows.keys.tolist(), rows.lengths.tolist(), ends, strict=True)
    ]
