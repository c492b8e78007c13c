"""Kernels that write tf.train.Example messages and TFRecord frames, and that move whole records.

Sizes first, exactly: a first kernel tells how many bytes each row takes, so that the output is one
array and every row is written once, at its place. The formats are drawn in `framing`.

Inner loops index by unsigned numbers: those cannot count from the end of an array, and without that
case the compiled loops are two to five times as fast.
"""

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.compiled.crc import crc_bytes, word_change
from tokcore.compiled.ragged_bytes import copy_bytes
from tokcore.compiled.varints import put_varint, varint_size
from tokcore.compiled.wide_loads import store_word

# A frame before its payload: uint64 length, uint32 checksum of the length; behind it one checksum.
HEADER_SIZE = 12
FOOTER_SIZE = 4

_8 = np.uint64(8)
_BYTE = np.uint64(0xFF)


@kernel_without_allocation
def _put_masked(out, at, crc):
    """Writes a checksum to out[at:at + 4] as TFRecord masks it, little-endian."""
    rotated = (crc >> np.uint64(15)) | (crc << np.uint64(17))
    # Bits above 32 are left over from the rotation and the sum; only four bytes are written.
    masked = (rotated & np.uint64(0xFFFFFFFF)) + np.uint64(0xA282EAD8)
    for k in range(np.uint64(4)):
        out[at + k] = masked >> (_8 * k) & _BYTE


@kernel_without_allocation
def _message_sizes(packed, name_size):
    """Returns the sizes of Int64List, Feature and map entry around `packed` bytes of varints.

    `name_size` counts the entry's name field, with its tag and length.
    """
    int64_list = 1 + varint_size(packed) + packed if packed else 0
    feature = 1 + varint_size(int64_list) + int64_list
    entry = name_size + 1 + varint_size(feature) + feature
    return int64_list, feature, entry


@kernel_without_allocation
def add_entry_sizes(ids, offsets, name_size, packed_sizes, feature_sizes):
    """Sets packed_sizes[row] and adds one feature's bytes in the Features message to feature_sizes.

    Returns the first row with a negative id, where it stops, or -1.
    """
    for row in range(len(offsets) - 1):
        size = offsets[row + 1] - offsets[row]
        signs = 0
        for i in range(np.uint64(offsets[row]), np.uint64(offsets[row + 1])):
            value = ids[i]
            signs |= value
            # An int32 takes up to five varint bytes. No branch: the loop becomes vector code. As
            # numbers, since where nothing is compiled numpy makes one truth of two.
            size += (
                np.int64(value >= 1 << 7)
                + np.int64(value >= 1 << 14)
                + np.int64(value >= 1 << 21)
                + np.int64(value >= 1 << 28)
            )
        if signs < 0:
            return row
        packed_sizes[row] = size
        entry = _message_sizes(size, name_size)[2]
        feature_sizes[row] += 1 + varint_size(entry) + entry
    return -1


@kernel_without_allocation
def add_frame_sizes(feature_sizes, lengths):
    """Sets lengths[row] to the size of the TFRecord around feature_sizes[row] bytes of Features."""
    for row in range(len(feature_sizes)):
        features = feature_sizes[row]
        lengths[row] = HEADER_SIZE + 1 + varint_size(features) + features + FOOTER_SIZE


@kernel_without_allocation
def put_headers(feature_sizes, lengths, table, out, positions):
    """Writes each row's frame header and the head of its Example; positions move behind them."""
    for row in range(len(lengths)):
        at = positions[row]
        payload = lengths[row] - HEADER_SIZE - FOOTER_SIZE
        store_word(out, np.uint64(at), np.uint64(payload))
        crc = word_change(np.uint64(payload) ^ np.uint64(0xFFFFFFFF), table, 0)
        _put_masked(out, np.uint64(at + 8), crc ^ np.uint64(0xFFFFFFFF))
        out[at + HEADER_SIZE] = 0x0A
        positions[row] = put_varint(out, at + HEADER_SIZE + 1, feature_sizes[row])


@kernel_without_allocation
def put_entries(ids, offsets, name, packed_sizes, out, positions):
    """Writes one feature's map entry of each row at its position; positions move behind them.

    `name` is the entry's name field, with its tag and length.
    """
    for row in range(len(packed_sizes)):
        packed = packed_sizes[row]
        int64_list, feature, entry = _message_sizes(packed, len(name))
        at = positions[row]
        out[at] = 0x0A
        at = put_varint(out, at + 1, entry)
        for k in range(len(name)):
            out[at + k] = name[k]
        at += len(name)
        out[at] = 0x12
        at = put_varint(out, at + 1, feature)
        out[at] = 0x1A
        at = put_varint(out, at + 1, int64_list)
        if packed:
            out[at] = 0x0A
            at = put_varint(out, at + 1, packed)
        end = np.uint64(at)
        for i in range(np.uint64(offsets[row]), np.uint64(offsets[row + 1])):
            value = ids[i]
            if value < 1 << 14:
                # Two bytes without a branch on which of the two sizes it is. The second may be
                # one too many: what stands behind (an entry or the checksum) is written later.
                more = np.int64(value >= 1 << 7)
                out[end] = (value & 127) | (more << 7)
                out[end + np.uint64(1)] = value >> 7
                end += np.uint64(1 + more)
            else:
                end = np.uint64(put_varint(out, np.int64(end), np.int64(value)))
        positions[row] = end


@kernel_without_allocation
def add_message_sizes(offsets, name_size, feature_sizes):
    """Adds the bytes of map entries around ready Features to feature_sizes, as `add_entry_sizes`."""
    for row in range(len(offsets) - 1):
        feature = offsets[row + 1] - offsets[row]
        entry = name_size + 1 + varint_size(feature) + feature
        feature_sizes[row] += 1 + varint_size(entry) + entry


@kernel_without_allocation
def put_messages(data, offsets, name, out, positions):
    """Writes a map entry around each row's ready Feature; positions move behind them."""
    for row in range(len(offsets) - 1):
        feature = offsets[row + 1] - offsets[row]
        at = positions[row]
        out[at] = 0x0A
        at = put_varint(out, at + 1, len(name) + 1 + varint_size(feature) + feature)
        for k in range(len(name)):
            out[at + k] = name[k]
        at += len(name)
        out[at] = 0x12
        at = put_varint(out, at + 1, feature)
        copy_bytes(out, np.uint64(at), data, np.uint64(offsets[row]), np.uint64(feature))
        positions[row] = at + feature


@kernel_without_allocation
def put_footers(lengths, table, out, positions):
    """Writes the checksum behind each payload; positions are where the payloads end."""
    for row in range(len(lengths)):
        end = positions[row]
        start = end + FOOTER_SIZE - lengths[row] + HEADER_SIZE
        _put_masked(out, np.uint64(end), crc_bytes(out, start, end, table))


@kernel_without_allocation
def copy_slices(source, starts, lengths, destinations, out):
    """Copies source[starts[i]:starts[i] + lengths[i]] to out[destinations[i]:] for each i."""
    for i in range(len(starts)):
        copy_bytes(
            out,
            np.uint64(destinations[i]),
            source,
            np.uint64(starts[i]),
            np.uint64(lengths[i]),
        )
