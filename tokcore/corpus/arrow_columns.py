"""Converts columns of Arrow to rows of text and to extra features, and rows to columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokcore.corpus.corpus import ExtraFeature
from tokcore.corpus.fields import BYTES, FLOAT, INT, UNKNOWN_LABEL, WRONG_TYPE, ExtraField
from tokcore.kernels.bytes import pick_ranges
from tokcore.kernels.jit import read_only
from tokcore.text.rows import Side

_WHOLE = r'^[+-]?[0-9]{1,19}$'
_NUMBER = r'^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$'


def extra_features(
    arrays: Sequence[pa.Array], fields: Sequence[ExtraField]
) -> tuple[list[ExtraFeature], dict[int, str]]:
    """Returns the features of fields, and the reason of each row with a value that does not fit.

    The values of such rows, and of null ones, have no meaning.
    """
    reasons: dict[int, str] = {}
    features = []
    for array, field in zip(arrays, fields, strict=True):
        values, does_not_fit = _values(array, field)
        features.append(ExtraFeature(field.name, values))
        reason = UNKNOWN_LABEL if field.labels else WRONG_TYPE
        for row in np.flatnonzero(does_not_fit).tolist():
            reasons.setdefault(row, reason)
    return features, reasons


def _values(array: pa.Array, field: ExtraField) -> tuple[np.ndarray | Side, np.ndarray]:
    """Returns the values, and the rows whose value does not fit: bool[rows]."""
    if field.labels:
        names = pa.array([label.encode() for label in field.labels], pa.large_binary())
        return _numbers(pc.index_in(array.cast(pa.large_binary()), names), np.int64)
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
        values, is_null = _numbers(array.cast(pa.float64(), safe=False), np.float32)
    return values, is_null | ~np.isfinite(values)


def _parsed(array: pa.LargeBinaryArray, kind: str) -> pa.Array:
    """Parses texts as numbers; null where they are not numbers."""
    pattern = _WHOLE if kind == INT else _NUMBER
    fits = pc.match_substring_regex(array, pattern)
    numbers = pc.if_else(fits, array, pa.scalar(None, pa.large_binary())).cast(pa.large_string())
    plain = pc.replace_substring_regex(numbers, r'^\+', '')
    if kind == FLOAT:
        return plain.cast(pa.float64())
    try:
        return plain.cast(pa.int64())
    except pa.ArrowInvalid:
        # Some numbers of 19 digits do not fit in 64 bits.
        words = plain.to_pylist()
        fitting = [
            int(word) if word is not None and -(1 << 63) <= int(word) < 1 << 63 else None
            for word in words
        ]
        return pa.array(fitting, pa.int64())


def _numbers(array: pa.Array, kind: type) -> tuple[np.ndarray, np.ndarray]:
    is_null = array.is_null().to_numpy(zero_copy_only=False)
    filled = array.fill_null(0).to_numpy(zero_copy_only=False)
    return read_only(filled.astype(kind)), is_null


def array_side(array: pa.LargeBinaryArray) -> Side:
    """Returns strings as rows with a line feed between them; null is an empty row."""
    _, offsets, values = array.buffers()
    bounds = np.zeros(1, np.int64)
    if len(array):
        bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    text = np.frombuffer(values, np.uint8) if values else np.empty(0, np.uint8)
    ends = bounds[1:].copy()
    if array.null_count:
        # The buffer may have bytes for a null value.
        nulls = array.is_null().to_numpy(zero_copy_only=False)
        ends[nulls] = bounds[:-1][nulls]
    return Side(text, bounds[:-1], ends).joined()


def side_array(side: Side) -> pa.LargeBinaryArray:
    """Returns rows as an array of strings, which copies their bytes."""
    data, offsets = pick_ranges(side.text, side.starts, side.ends)
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(side.starts), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
