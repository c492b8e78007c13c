"""Arrays of Arrow as sides of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tokcore.compiled.compilation import read_only
from tokcore.compiled.ragged_bytes import pick_ranges, prepend_rows
from tokcore.text.sides import Side

_LINE_FEED = read_only(np.frombuffer(b'\n', np.uint8))


def array_side(array: pa.LargeBinaryArray) -> Side:
    """Returns strings as rows, a line feed between them; what is null is empty."""
    _, offsets, values = array.buffers()
    bounds = np.zeros(1, np.int64)
    if len(array):
        bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    text = np.frombuffer(values, np.uint8) if values else np.empty(0, np.uint8)
    ends = bounds[1:].copy()
    if array.null_count:
        # What stands under a null is none of its row's.
        nulls = array.is_null().to_numpy(zero_copy_only=False)
        ends[nulls] = bounds[:-1][nulls]
    joined, starts, ends = prepend_rows(
        read_only(text), read_only(bounds[:-1].copy()), read_only(ends), _LINE_FEED
    )
    return Side(joined, starts + 1, ends)


def side_array(side: Side) -> pa.LargeBinaryArray:
    """Returns rows as strings of their own."""
    data, offsets = pick_ranges(side.text, side.starts, side.ends)
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(side.starts), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
