"""Columns of Arrow as rows of text, and as the features that go along with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokcore.corpus.corpus import ExtraFeature
from tokcore.corpus.fields import BYTES, FLOAT, INT, UNKNOWN_LABEL, WRONG_TYPE, ExtraField
from tokcore.kernels.bytes import pick_ranges, prepend_rows
from tokcore.kernels.jit import read_only
from tokcore.text.rows import Side

_WHOLE = r'^[+-]?[0-9]{1,19}$'
_NUMBER = r'^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$'

_LINE_FEED = read_only(np.frombuffer(b'\n', np.uint8))


def extra_features(
    arrays: Sequence[pa.Array], fields: Sequence[ExtraField]
) -> tuple[list[ExtraFeature], dict[int, str]]:
    """Returns columns, and by row the first reason why a value is none.

    Of such rows, and of those that are null, what is in the columns means nothing.

    Args:
        arrays: of each field: text, or numbers.
        fields: what they are to be.
    """
    bad: dict[int, str] = {}
    columns = []
    for array, field in zip(arrays, fields, strict=True):
        values, wrong = _values(array, field)
        columns.append(ExtraFeature(field.name, values))
        reason = UNKNOWN_LABEL if field.labels else WRONG_TYPE
        for row in np.flatnonzero(wrong).tolist():
            bad.setdefault(row, reason)
    return columns, bad


def extra_features_of_cells(
    cells: Sequence[Side], fields: Sequence[ExtraField]
) -> tuple[list[ExtraFeature], dict[int, str]]:
    """Returns what `extra_features` does of texts in a row's line, that of the last without its '\\r'."""
    arrays = []
    for each in cells:
        ends = each.ends.copy()
        if len(each.text):
            ends -= (ends > each.starts) & (each.text[np.maximum(ends - 1, 0)] == 13)
        arrays.append(side_array(Side(each.text, each.starts, ends)))
    return extra_features(arrays, fields)


def _values(array: pa.Array, field: ExtraField) -> tuple[np.ndarray | Side, np.ndarray]:
    """Returns the values, and of which rows there is none: bool[rows]."""
    if field.labels:
        names = pa.array([each.encode() for each in field.labels], pa.large_binary())
        found = pc.index_in(array.cast(pa.large_binary()), names)
        return _numbers(found, np.int64)
    if field.kind == BYTES:
        return array_side(array), np.zeros(len(array), bool)
    if pa.types.is_large_binary(array.type):
        array = _parsed(array, field.kind)
    if field.kind == INT:
        if pa.types.is_uint64(array.type):
            fits = pc.less_equal(array, pa.scalar((1 << 63) - 1, pa.uint64()))
            array = pc.if_else(fits, array, pa.scalar(None, pa.uint64()))
        return _numbers(array.cast(pa.int64()), np.int64)
    assert field.kind == FLOAT
    with np.errstate(over='ignore'):
        values, wrong = _numbers(array.cast(pa.float64(), safe=False), np.float32)
    return values, wrong | ~np.isfinite(values)


def _parsed(array: pa.LargeBinaryArray, kind: str) -> pa.Array:
    """Returns texts as numbers, null where they are none."""
    pattern = _WHOLE if kind == INT else _NUMBER
    fits = pc.match_substring_regex(array, pattern)
    kept = pc.if_else(fits, array, pa.scalar(None, pa.large_binary())).cast(pa.large_string())
    plain = pc.replace_substring_regex(kept, r'^\+', '')
    if kind == FLOAT:
        return plain.cast(pa.float64())
    try:
        return plain.cast(pa.int64())
    except pa.ArrowInvalid:
        # Of 19 digits some are beyond 64 bits.
        words = plain.to_pylist()
        return pa.array(
            [
                int(each) if each is not None and -(1 << 63) <= int(each) < 1 << 63 else None
                for each in words
            ],
            pa.int64(),
        )


def _numbers(array: pa.Array, kind: type) -> tuple[np.ndarray, np.ndarray]:
    wrong = array.is_null().to_numpy(zero_copy_only=False)
    filled = array.fill_null(0).to_numpy(zero_copy_only=False)
    return read_only(filled.astype(kind)), wrong


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
