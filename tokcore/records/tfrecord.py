"""TFRecords of tf.train.Examples: how rows are framed, split by bucket, sorted, joined, and read.

    uint64 length | uint32 CRC32C of the length | payload | uint32 CRC32C of the payload

Numbers are little-endian, the checksums masked. Rows are framed once, where they are encoded; from
there on whole records are moved. The kernels compute the exact sizes first, so that each row is
written once, in its place; their inner loops index by unsigned numbers, which makes them two to
five times as fast. Other features than ids hold one value each:

    1a size (0a size varint)    int64_list
    12 06   (0a 04 float32)     float_list
    0a size (0a size bytes)     bytes_list

The reader uses neither TensorFlow nor the kernels: its checksums come from google-crc32c.
"""

from __future__ import annotations

import dataclasses
import io
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import google_crc32c
import numpy as np

from tokcore.corpus.corpus import ExtraFeature
from tokcore.corpus.order_keys import shard_of
from tokcore.encoding.encoder import EncodedSide
from tokcore.errors import InputError
from tokcore.kernels.bytes import (
    CRC32C,
    copy_bytes,
    crc32c_bytes,
    crc_table,
    put_varint,
    row_offsets,
    varint_size,
    word_change,
)
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import store_word
from tokcore.kernels.sorting import sort_keys
from tokcore.text.rows import Side

CRC32C_TABLE = crc_table(CRC32C)

# The last byte is the version of the layout that `FramedRows.to_bytes` writes.
_MAGIC = b'tbframe\x02'

# protobuf parses no message of 2 GiB or more; and lengths fit into four bytes.
_MAX_LENGTH = (1 << 31) - 1

# Before the payload uint64 length and uint32 checksum of the length; after it a checksum.
HEADER_SIZE = 12
FOOTER_SIZE = 4

_8 = np.uint64(8)
_BYTE = np.uint64(0xFF)

_FLOAT_HEAD = np.frombuffer(b'\x12\x06\x0a\x04', np.uint8)
_MOST_VARINT = 10

_COUNTS = struct.Struct('<QQ')
_LENGTH = struct.Struct('<Q')
_CHECKSUM = struct.Struct('<I')

_REMEDY = 'the file is damaged or not a TFRecord file; write it again'

# Wire types of protobuf's encoding.
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


@dataclasses.dataclass(frozen=True, eq=False)
class FramedRows:
    """Rows as TFRecords, one after another, with the keys that order them.

    Attributes:
        keys: uint64[rows].
        lengths: int64[rows], the size of each whole record.
        records: uint8[sum of lengths].
        sizes: uint32[rows, n]: the ids of each feature of text, and the bytes of the text; n may be 0.

    Raises ValueError if these do not fit together.
    """

    keys: np.ndarray
    lengths: np.ndarray
    records: np.ndarray
    sizes: np.ndarray

    def __post_init__(self):
        if len(self.keys) != len(self.sizes):
            raise ValueError(f'{len(self.keys)} keys and sizes of {len(self.sizes)} rows')
        if len(self.keys) != len(self.lengths) or int(self.lengths.sum()) != len(self.records):
            raise ValueError(
                f'{len(self.keys)} keys, {len(self.lengths)} lengths of {int(self.lengths.sum())} '
                f'bytes in all, and {len(self.records)} bytes of records do not fit together'
            )

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """Bytes of memory of the arrays."""
        return sum(array.nbytes for array in vars(self).values())

    def to_bytes(self) -> bytes:
        """Returns magic, number of rows, keys, lengths (uint32), sizes and records; little-endian.

        The number of rows is followed by that of the sizes of a row.
        """
        return b''.join(
            (
                _MAGIC,
                _COUNTS.pack(*self.sizes.shape),
                self.keys.astype('<u8', copy=False).tobytes(),
                self.lengths.astype('<u4').tobytes(),
                self.sizes.astype('<u4', copy=False).tobytes(),
                np.ascontiguousarray(self.records).data,
            )
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> FramedRows:
        """Returns the rows of `to_bytes`, in read-only arrays; raises ValueError for other bytes."""
        head = len(_MAGIC) + _COUNTS.size
        if data[: len(_MAGIC)] != _MAGIC or len(data) < head:
            raise ValueError(f'these {len(data)} bytes are not framed rows: {data[:head]!r}')
        rows, width = _COUNTS.unpack(data[len(_MAGIC) : head])
        first = head + (12 + 4 * width) * rows
        if len(data) < first:
            raise ValueError(f'{len(data)} bytes cannot hold {rows} framed rows; they are cut off')
        keys = np.frombuffer(data, '<u8', rows, head)
        lengths = np.frombuffer(data, '<u4', rows, head + 8 * rows)
        sizes = np.frombuffer(data, '<u4', rows * width, head + 12 * rows).reshape(rows, width)
        records = np.frombuffer(data, np.uint8, -1, first)
        return cls(
            keys.astype(np.uint64, copy=False),
            read_only(lengths.astype(np.int64)),
            records,
            sizes.astype(np.uint32, copy=False),
        )


def frame_examples(
    features: Sequence[tuple[str, EncodedSide | FeatureMessages]],
    keys: np.ndarray,
    text_bytes: np.ndarray | None = None,
) -> FramedRows:
    """Frames each row as a TFRecord of a tf.train.Example with these features, in row order.

    `features` are names with ids, which become int64 features, or with serialized features; all have
    a row for each key (uint64[rows]). `text_bytes`, int64[rows], are those of the text of each row; with
    None, the rows have no sizes. The payload is that of protobuf's deterministic serialization,
    with map entries sorted by the bytes of their names:

        Example    0a size Features
        Features   0a size entry, for each name
        entry      0a size name, 12 size Feature
        Feature    1a size Int64List
        Int64List  0a size varints, or nothing at all for an empty list

    Raises ValueError if names repeat, numbers of rows differ, ids are not int32 or uint16 or are
    negative, or an example takes 2 GiB, which protobuf cannot read.
    """
    keys = np.asarray(keys, np.uint64)
    rows = len(keys)
    # (name field, ids or serialized features, offsets, bytes of varints per row or None)
    columns: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]] = []
    feature_sizes = np.zeros(rows, np.int64)
    names = [name for name, _ in features]
    if len(set(names)) != len(names):
        raise ValueError(f'features repeat a name: {names}')
    for name, encoded in sorted(features, key=lambda feature: feature[0].encode()):
        field = np.frombuffer(_name_field(name), np.uint8)
        if isinstance(encoded, FeatureMessages):
            _add_message_sizes(encoded.offsets, len(field), feature_sizes)
            columns.append((field, encoded.data, encoded.offsets, None))
            continue
        ids, offsets = _checked_column(name, encoded, rows)
        packed_sizes = np.empty(rows, np.int64)
        bad = _add_entry_sizes(ids, offsets, len(field), packed_sizes, feature_sizes)
        if bad >= 0:
            raise ValueError(f'row {bad} of feature {name!r} has a negative id')
        columns.append((field, ids, offsets, read_only(packed_sizes)))

    lengths = np.empty(rows, np.int64)
    _add_frame_sizes(feature_sizes, lengths)
    if rows and lengths.max() > _MAX_LENGTH:
        raise ValueError(f'an example takes {lengths.max()} bytes; protobuf reads none of 2 GiB')
    records = np.empty(int(lengths.sum()), np.uint8)
    positions = row_offsets(lengths)[:-1]
    _put_headers(feature_sizes, lengths, CRC32C_TABLE, records, positions)
    for field, data, offsets, sizes in columns:
        if sizes is None:
            _put_messages(data, offsets, field, records, positions)
        else:
            _put_entries(data, offsets, field, sizes, records, positions)
    _put_footers(lengths, CRC32C_TABLE, records, positions)
    row_sizes = np.empty((rows, 0), np.uint32)
    if text_bytes is not None:
        sides = [side for _, side in features if isinstance(side, EncodedSide)]
        row_sizes = np.empty((rows, len(sides) + 1), np.uint32)
        for column, side in enumerate(sides):  # without arrays of 64 bits in between
            starts, ends = side.offsets[:-1], side.offsets[1:]
            np.subtract(ends, starts, out=row_sizes[:, column], casting='unsafe')
        row_sizes[:, -1] = text_bytes
    return FramedRows(keys, lengths, records, row_sizes)


def split_by_bucket(rows: FramedRows, buckets: int) -> list[tuple[int, FramedRows]]:
    """Returns the rows of each bucket, `(key * buckets) >> 64`, that has any, by bucket number.

    Rows of a bucket stay in order, in arrays of their own. Raises ValueError if `buckets` is not
    within 1 to 2^32.
    """
    bucket = shard_of(rows.keys, buckets)
    if buckets <= 1 << 16:
        bucket = bucket.astype(np.uint16)  # numpy sorts 16 bits by radix, ten times as fast
    order = np.argsort(bucket, kind='stable')
    bucket = bucket[order]
    keys = rows.keys[order]
    lengths = rows.lengths[order]
    sizes = rows.sizes[order]
    offsets = row_offsets(lengths)
    records = np.empty(len(rows.records), np.uint8)
    _copy(rows.records, row_offsets(rows.lengths)[order], lengths, offsets[:-1], records)
    if len(rows) == 0:
        return []
    firsts = np.flatnonzero(np.r_[True, bucket[1:] != bucket[:-1]])
    row_bounds = np.append(firsts, len(rows)).tolist()
    byte_bounds = np.append(offsets[firsts], len(records)).tolist()
    if len(firsts) == 1:
        return [(int(bucket[0]), FramedRows(keys, lengths, records, sizes))]
    # Copies: a view would keep the whole block in memory until the last bucket is sent.
    return [
        (
            number,
            FramedRows(
                keys[row_bounds[i] : row_bounds[i + 1]].copy(),
                lengths[row_bounds[i] : row_bounds[i + 1]].copy(),
                records[byte_bounds[i] : byte_bounds[i + 1]].copy(),
                sizes[row_bounds[i] : row_bounds[i + 1]].copy(),
            ),
        )
        for i, number in enumerate(bucket[firsts].tolist())
    ]


def join_rows(parts: Iterable[FramedRows]) -> FramedRows:
    """Returns the rows of all parts, one part after another."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    return FramedRows(
        np.concatenate([np.empty(0, np.uint64), *(part.keys for part in parts)]),
        np.concatenate([np.empty(0, np.int64), *(part.lengths for part in parts)]),
        np.concatenate([np.empty(0, np.uint8), *(part.records for part in parts)]),
        joined_sizes([part.sizes for part in parts]),
    )


def joined_sizes(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Returns the sizes of rows of several parts, uint32[rows, n] each, one after another."""
    return np.concatenate(parts) if parts else np.empty((0, 0), np.uint32)


def sort_rows(parts: Iterable[FramedRows]) -> FramedRows:
    """Returns the rows of all parts in ascending order of their keys.

    Raises ValueError if two keys are equal: keys are of a bijection, so a row came twice.
    """
    parts = list(parts)
    keys = np.concatenate([np.empty(0, np.uint64), *(part.keys for part in parts)])
    lengths = np.concatenate([np.empty(0, np.int64), *(part.lengths for part in parts)])
    keys, order = sort_keys(keys)
    sorted_lengths = lengths[order]
    destinations = np.empty(len(keys), np.int64)
    destinations[order] = row_offsets(sorted_lengths)[:-1]
    records = np.empty(int(lengths.sum()), np.uint8)
    first = 0
    for part in parts:
        # From each part straight to the end: the parts are never joined in memory.
        last = first + len(part)
        starts = row_offsets(part.lengths)[:-1]
        _copy(part.records, starts, part.lengths, destinations[first:last], records)
        first = last
    sizes = joined_sizes([part.sizes for part in parts])
    return FramedRows(keys, sorted_lengths, records, sizes.take(order, 0))


def _copy(source, starts, lengths, destinations, out) -> None:
    _copy_slices(
        read_only(source), read_only(starts), read_only(lengths), read_only(destinations), out
    )


def _name_field(name: str) -> bytes:
    encoded = name.encode()
    size = np.empty(5, np.uint8)
    used = put_varint(size, 0, len(encoded))
    return b'\n' + size[:used].tobytes() + encoded


def _checked_column(name: str, encoded: EncodedSide, rows: int) -> tuple[np.ndarray, np.ndarray]:
    ids, offsets = encoded.ids, encoded.offsets
    if ids.dtype not in (np.int32, np.uint16) or offsets.dtype != np.int64:
        raise ValueError(
            f'feature {name!r} has {ids.dtype} ids and {offsets.dtype} offsets, not int32 or uint16 '
            'and int64'
        )
    if len(offsets) != rows + 1:
        raise ValueError(f'feature {name!r} has {len(offsets) - 1} rows for {rows} keys')
    if offsets[0] < 0 or offsets[-1] > len(ids) or np.any(offsets[1:] < offsets[:-1]):
        raise ValueError(f'the offsets of feature {name!r} do not ascend within its {len(ids)} ids')
    return read_only(np.ascontiguousarray(ids)), read_only(np.ascontiguousarray(offsets))


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
def _add_entry_sizes(ids, offsets, name_size, packed_sizes, feature_sizes):
    """Sets packed_sizes[row] and adds one feature's bytes in the Features message to feature_sizes.

    Returns the first row with a negative id, where it stops, or -1.
    """
    for row in range(len(offsets) - 1):
        size = offsets[row + 1] - offsets[row]
        signs = 0
        for i in range(np.uint64(offsets[row]), np.uint64(offsets[row + 1])):
            value = ids[i]
            signs |= value
            # An int32 takes up to five varint bytes. Without a branch the loop is vectorized. The
            # truths become integers, since without compilation numpy adds two of them to one.
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
def _add_frame_sizes(feature_sizes, lengths):
    """Sets lengths[row] to the size of the TFRecord around feature_sizes[row] bytes of Features."""
    for row in range(len(feature_sizes)):
        features = feature_sizes[row]
        lengths[row] = HEADER_SIZE + 1 + varint_size(features) + features + FOOTER_SIZE


@kernel_without_allocation
def _put_headers(feature_sizes, lengths, table, out, positions):
    """Writes each row's frame header and the head of its Example; positions move to its end."""
    for row in range(len(lengths)):
        at = positions[row]
        payload = lengths[row] - HEADER_SIZE - FOOTER_SIZE
        store_word(out, np.uint64(at), np.uint64(payload))
        crc = word_change(np.uint64(payload) ^ np.uint64(0xFFFFFFFF), table, 0)
        _put_masked(out, np.uint64(at + 8), crc ^ np.uint64(0xFFFFFFFF))
        out[at + HEADER_SIZE] = 0x0A
        positions[row] = put_varint(out, at + HEADER_SIZE + 1, feature_sizes[row])


@kernel_without_allocation
def _put_entries(ids, offsets, name, packed_sizes, out, positions):
    """Writes one feature's map entry of each row at its position; positions move to its end.

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
                # one too many: what follows (an entry or the checksum) is written later.
                more = np.int64(value >= 1 << 7)
                out[end] = (value & 127) | (more << 7)
                out[end + np.uint64(1)] = value >> 7
                end += np.uint64(1 + more)
            else:
                end = np.uint64(put_varint(out, np.int64(end), np.int64(value)))
        positions[row] = end


@kernel_without_allocation
def _add_message_sizes(offsets, name_size, feature_sizes):
    """Adds the bytes of map entries of serialized Features to feature_sizes, as `_add_entry_sizes`."""
    for row in range(len(offsets) - 1):
        feature = offsets[row + 1] - offsets[row]
        entry = name_size + 1 + varint_size(feature) + feature
        feature_sizes[row] += 1 + varint_size(entry) + entry


@kernel_without_allocation
def _put_messages(data, offsets, name, out, positions):
    """Writes the map entry of each row's serialized Feature; positions move to its end."""
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
def _put_footers(lengths, table, out, positions):
    """Writes the checksum after each payload; positions are where the payloads end."""
    for row in range(len(lengths)):
        end = positions[row]
        start = end + FOOTER_SIZE - lengths[row] + HEADER_SIZE
        _put_masked(out, np.uint64(end), crc32c_bytes(out, start, end, table))


@kernel_without_allocation
def _copy_slices(source, starts, lengths, destinations, out):
    """Copies source[starts[i]:starts[i] + lengths[i]] to out[destinations[i]:] for each i."""
    for i in range(len(starts)):
        copy_bytes(
            out,
            np.uint64(destinations[i]),
            source,
            np.uint64(starts[i]),
            np.uint64(lengths[i]),
        )


def feature_messages(column: ExtraFeature) -> FeatureMessages:
    """Returns the serialized Features of a column."""
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


@dataclass(frozen=True)
class FeatureMessages:
    """A serialized Feature for each row.

    Attributes:
        data: uint8, one after another.
        offsets: int64[rows + 1], row r is data[offsets[r]:offsets[r + 1]].
    """

    data: np.ndarray
    offsets: np.ndarray


def _int_messages(values: np.ndarray) -> FeatureMessages:
    """Returns the Features of int64[rows]; negative numbers take ten bytes, as in protobuf."""
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
    """Sets sizes[row] to the size of a Feature that holds lengths[row] bytes."""
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


def parse_example(record: bytes) -> dict[str, list[int]]:
    """Returns the int64 features of a serialized tf.train.Example, packed or not.

    As in protobuf, the last entry of a name wins and unknown fields are skipped. Raises ValueError if
    the bytes are not such a message, or a feature holds floats or strings.

    Examples:
        >>> with open('data/enzh/enzh-train-00000-of-00002', 'rb') as shard:
        ...     record = next(tokcore.read_records(shard.read(), shard.name))
        >>> {name: len(ids) for name, ids in tokcore.parse_example(record).items()}
        {'inputs': 19, 'targets': 16}
    """
    parsed: dict[str, list[int]] = {}
    for features in message_fields(record, 1):
        for entry in message_fields(features, 1):
            # The last one wins and a missing one is empty, as for any singular field.
            name = [b'', *message_fields(entry, 1)][-1].decode()
            values: list[int] = []
            for feature in message_fields(entry, 2):
                if message_fields(feature, 1) or message_fields(feature, 2):
                    raise ValueError(f'feature {name!r} is not a list of int64')
                for int64_list in message_fields(feature, 3):
                    values += int64_values(int64_list)
            parsed[name] = values
    return parsed


def parse_features(record: bytes) -> dict[str, list[int] | list[float] | list[bytes]]:
    """Returns all features of a serialized tf.train.Example, whatever their lists hold.

    Raises ValueError if the bytes are not such a message.
    """
    parsed: dict[str, list[int] | list[float] | list[bytes]] = {}
    for features in message_fields(record, 1):
        for entry in message_fields(features, 1):
            numbers = sorted(number for number, _, _ in wire_fields(entry))
            if numbers not in ([], [1], [2], [1, 2]):
                # Parsers of protobuf differ in what they take of such an entry.
                raise ValueError('an entry has other fields than one name and one list of values')
            name = [b'', *message_fields(entry, 1)][-1].decode()
            parsed[name] = []
            for feature in message_fields(entry, 2):
                texts = [
                    text for part in message_fields(feature, 1) for text in message_fields(part, 1)
                ]
                floats = [
                    value for part in message_fields(feature, 2) for value in _float_values(part)
                ]
                ints = [
                    value for part in message_fields(feature, 3) for value in int64_values(part)
                ]
                parsed[name] = texts or floats or ints
    return parsed


def read_records(data: bytes, name: str) -> Iterator[bytes]:
    """Yields the payload of each TFRecord in the bytes of a file.

    Raises InputError, naming the file (`name`) and the record's byte, if a record is cut off, a
    checksum does not match, or a record is of 2 GiB or more, which protobuf does not parse.

    Examples:
        >>> with open('data/enzh/enzh-train-00000-of-00002', 'rb') as shard:
        ...     records = list(tokcore.read_records(shard.read(), shard.name))
        >>> len(records)
        177
    """
    return stream_records(io.BytesIO(data), name)


def stream_records(stream: BinaryIO, name: str, at: int = 0) -> Iterator[bytes]:
    """Yields the payload of each TFRecord of a stream; raises InputError as `read_records`.

    `at` is the byte of the file at which the stream is.
    """
    while head := stream.read(HEADER_SIZE):
        where = f'{name}, byte {at}'
        if len(head) < HEADER_SIZE:
            raise InputError(f'{where}: the file ends within the head of a TFRecord; {_REMEDY}.')
        if masked_crc32c(head[: _LENGTH.size]) != _CHECKSUM.unpack_from(head, _LENGTH.size)[0]:
            raise InputError(
                f"{where}: the checksum of a TFRecord's length does not match; {_REMEDY}."
            )
        [length] = _LENGTH.unpack_from(head)
        if length > _MAX_LENGTH:
            raise InputError(f'{where}: a TFRecord of {length} bytes is too long; {_REMEDY}.')
        rest = stream.read(length + _CHECKSUM.size)
        if len(rest) < length + _CHECKSUM.size:
            raise InputError(
                f'{where}: the file ends within a TFRecord, after {len(rest)} of the '
                f'{length + _CHECKSUM.size} bytes of its content and checksum; {_REMEDY}.'
            )
        payload = rest[:length]
        if masked_crc32c(payload) != _CHECKSUM.unpack_from(rest, length)[0]:
            raise InputError(
                f"{where}: the checksum of a TFRecord's content does not match; {_REMEDY}."
            )
        yield payload
        at += len(head) + len(rest)


def masked_crc32c(data: bytes) -> int:
    """Returns the CRC-32C of bytes as TFRecords have it."""
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def int64_values(message: bytes) -> list[int]:
    values = []
    for number, wire, content in wire_fields(message):
        if number != 1:
            continue
        if isinstance(content, int):
            values.append(_signed(content))
        elif wire == BYTES:
            at = 0
            while at < len(content):
                value, at = _varint(content, at)
                values.append(_signed(value))
        else:
            raise ValueError(f'an int64 list with wire type {wire} is not a tf.train.Example')
    return values


def message_fields(message: bytes, field_number: int) -> list[bytes]:
    """Returns the contents of one length-delimited field, in order."""
    contents = []
    for number, wire, content in wire_fields(message):
        if number == field_number:
            if wire != BYTES or isinstance(content, int):
                raise ValueError(
                    f'field {field_number} with wire type {wire} is not a tf.train.Example'
                )
            contents.append(content)
    return contents


def wire_fields(message: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        wire = tag & 7
        if not 8 <= tag < 1 << 32:
            raise ValueError(f'a field with the tag {tag} is not a tf.train.Example')
        content: int | bytes
        if wire == VARINT:
            content, at = _varint(message, at)
        elif wire in (BYTES, FIXED64, FIXED32):
            if wire == BYTES:
                size, at = _varint(message, at)
            else:
                size = 8 if wire == FIXED64 else 4
            if len(message) - at < size:
                raise ValueError(f'a field of {size} bytes is cut off at {len(message) - at}')
            content = message[at : at + size]
            at += size
        else:
            raise ValueError(f'wire type {wire} is not a tf.train.Example')
        yield tag >> 3, wire, content


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for k in range(10):
        if at + k >= len(data):
            raise ValueError('a varint is cut off')
        byte = data[at + k]
        value |= (byte & 127) << (7 * k)
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at + k + 1
    raise ValueError('a varint is longer than ten bytes')


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _float_values(message: bytes) -> list[float]:
    values: list[float] = []
    for number, wire, content in wire_fields(message):
        if number == 1 and isinstance(content, bytes) and wire in (BYTES, FIXED32):
            if len(content) % 4:
                raise ValueError(f'a list of floats has {len(content)} bytes')
            values += struct.unpack(f'<{len(content) // 4}f', content)
    return values
