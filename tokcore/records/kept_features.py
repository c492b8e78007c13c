"""What goes along with rows as features of their examples: bytes, int64 and floats, one of each.

A Feature is a message of one list, and a list of one value:

    1a size (0a size varint)    int64_list
    12 06   (0a 04 float32)     float_list
    0a size (0a size bytes)     bytes_list
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation, read_only
from tokcore.compiled.ragged_bytes import copy_bytes, row_offsets
from tokcore.compiled.varints import put_varint, varint_size
from tokcore.corpus.rows import KeptColumn
from tokcore.text.sides import Side

_FLOAT_HEAD = np.frombuffer(b'\x12\x06\x0a\x04', np.uint8)
_MOST_VARINT = 10


@dataclass(frozen=True)
class FeatureMessages:
    """A Feature for each of some rows.

    Attributes:
        data: uint8, one after another.
        offsets: int64[rows + 1], where they are.
    """

    data: np.ndarray
    offsets: np.ndarray


def feature_messages(column: KeptColumn) -> FeatureMessages:
    """Returns the Features of a column."""
    values = column.values
    if isinstance(values, Side):
        return _bytes_messages(values)
    if values.dtype == np.float32:
        data = np.empty((len(values), 8), np.uint8)
        data[:, :4] = _FLOAT_HEAD
        data[:, 4:] = np.ascontiguousarray(values, '<f4').view(np.uint8).reshape(-1, 4)
        return FeatureMessages(
            read_only(data.reshape(-1)), read_only(8 * np.arange(len(values) + 1))
        )
    return _int_messages(values)


def _int_messages(values: np.ndarray) -> FeatureMessages:
    """Those of int64[rows]; negative numbers take ten bytes, as protobuf has them."""
    shifts = 7 * np.arange(_MOST_VARINT, dtype=np.uint64)
    shifted = values.view(np.uint64)[:, None] >> shifts
    sizes = 1 + np.count_nonzero(shifted[:, 1:], axis=1)
    digits = (shifted & np.uint64(127)).astype(np.uint8)
    places = np.arange(_MOST_VARINT)
    digits[places < sizes[:, None] - 1] |= 128
    data = np.empty((len(values), 4 + _MOST_VARINT), np.uint8)
    data[:, 0], data[:, 1], data[:, 2], data[:, 3] = 0x1A, sizes + 2, 0x0A, sizes
    data[:, 4:] = digits
    is_used = np.arange(data.shape[1]) < (sizes + 4)[:, None]
    return FeatureMessages(read_only(data[is_used]), read_only(row_offsets(sizes + 4)))


def _bytes_messages(side: Side) -> FeatureMessages:
    lengths = side.ends - side.starts
    sizes = np.empty(len(lengths), np.int64)
    _bytes_message_sizes(read_only(lengths), sizes)
    offsets = row_offsets(sizes)
    data = np.empty(int(offsets[-1]), np.uint8)
    _put_bytes_messages(
        side.text, read_only(np.ascontiguousarray(side.starts)), read_only(lengths), offsets, data
    )
    return FeatureMessages(read_only(data), read_only(offsets))


@kernel_without_allocation
def _bytes_message_sizes(lengths, sizes):
    """Sets sizes[row] to the bytes of the Feature of so many bytes."""
    for row in range(len(lengths)):
        inner = 1 + varint_size(lengths[row]) + lengths[row]
        sizes[row] = 1 + varint_size(inner) + inner


@kernel_without_allocation
def _put_bytes_messages(text, starts, lengths, offsets, out):
    """Writes each row's Feature to out[offsets[row]:]."""
    for row in range(len(lengths)):
        length = lengths[row]
        at = offsets[row]
        out[at] = 0x0A
        at = put_varint(out, at + 1, 1 + varint_size(length) + length)
        out[at] = 0x0A
        at = put_varint(out, at + 1, length)
        copy_bytes(out, np.uint64(at), text, np.uint64(starts[row]), np.uint64(length))
