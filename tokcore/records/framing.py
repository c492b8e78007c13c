"""Encoded rows as whole TFRecords, each with its order key: framed, cut by bucket, sorted, joined.

A TFRecord is

    uint64 length | uint32 CRC32C of the length | payload | uint32 CRC32C of the payload

little-endian, the checksums masked, and stands on its own: a file is its records one after another,
in any order. So rows are framed once, where they were encoded, and from there on only whole records
move.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.compiled.crc import CRC32C, crc_table
from tokcore.compiled.ragged_bytes import row_offsets
from tokcore.compiled.varints import put_varint
from tokcore.encoding.encoded_rows import EncodedSide
from tokcore.records import framing_kernels
from tokcore.records.kept_features import FeatureMessages
from tokcore.records.key_sorting import sort_keys
from tokcore.records.order_keys import shard_of

_CRC_TABLE = crc_table(CRC32C)

# The last byte is the version of the layout in `FramedRows.to_bytes`.
_MAGIC = b'tbframe\x01'

# protobuf parses no message of 2 GiB or more; it also lets lengths travel in four bytes.
_MAX_LENGTH = (1 << 31) - 1


@dataclasses.dataclass(frozen=True, eq=False)
class FramedRows:
    """Rows as TFRecords, one after another, with the keys that order them.

    `keys` is uint64[rows]; `lengths`, int64[rows], is the size of each whole record, both checksums
    included; `records` is uint8[sum of lengths]. Raises ValueError if these do not fit together.
    """

    keys: np.ndarray
    lengths: np.ndarray
    records: np.ndarray

    def __post_init__(self):
        if len(self.keys) != len(self.lengths) or int(self.lengths.sum()) != len(self.records):
            raise ValueError(
                f'{len(self.keys)} keys, {len(self.lengths)} lengths of {int(self.lengths.sum())} '
                f'bytes in all, and {len(self.records)} bytes of records do not fit together'
            )

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the three arrays take."""
        return self.keys.nbytes + self.lengths.nbytes + self.records.nbytes

    def to_bytes(self) -> bytes:
        """Packs the rows: magic, number of rows, keys, lengths (uint32), records; little-endian."""
        return b''.join((
            _MAGIC,
            len(self).to_bytes(8, 'little'),
            self.keys.astype('<u8', copy=False).tobytes(),
            self.lengths.astype('<u4').tobytes(),
            np.ascontiguousarray(self.records).data,
        ))

    @classmethod
    def from_bytes(cls, data: bytes) -> FramedRows:
        """Unpacks `to_bytes`; the arrays are read-only. Raises ValueError for any other bytes."""
        head = len(_MAGIC) + 8
        if data[: len(_MAGIC)] != _MAGIC or len(data) < head:
            raise ValueError(f'these {len(data)} bytes are no framed rows: {data[:head]!r}')
        rows = int.from_bytes(data[len(_MAGIC) : head], 'little')
        if len(data) < head + 12 * rows:
            raise ValueError(f'{len(data)} bytes cannot hold {rows} framed rows; they are cut off')
        keys = np.frombuffer(data, '<u8', rows, head)
        lengths = np.frombuffer(data, '<u4', rows, head + 8 * rows)
        records = np.frombuffer(data, np.uint8, -1, head + 12 * rows)
        return cls(keys.astype(np.uint64, copy=False), read_only(lengths.astype(np.int64)), records)


def frame_examples(
    features: Sequence[tuple[str, EncodedSide | FeatureMessages]], keys: np.ndarray
) -> FramedRows:
    """Frames each row as a TFRecord of a tf.train.Example with these features, in row order.

    `features` are names with their ids, which become int64 features, or with features that are
    ready, all with one row per key (uint64[rows]). The payload is as
    in protobuf's deterministic serialization, with map entries sorted by the bytes of their names:

        Example    0a size Features
        Features   0a size entry, for each name
        entry      0a size name, 12 size Feature
        Feature    1a size Int64List
        Int64List  0a size varints, or nothing at all for an empty list

    Raises ValueError if names repeat, numbers of rows differ, ids are not int32 or uint16 or are
    negative, or an example takes 2 GiB, which protobuf cannot read.
    """
    keys = np.array(keys, np.uint64)
    rows = len(keys)
    # (name field, ids or ready features, offsets, bytes of varints per row)
    columns = []
    feature_sizes = np.zeros(rows, np.int64)
    for name, encoded in _sorted_features(features):
        if isinstance(encoded, FeatureMessages):
            field = np.frombuffer(_name_field(name), np.uint8)
            framing_kernels.add_message_sizes(encoded.offsets, len(field), feature_sizes)
            columns.append((field, encoded.data, encoded.offsets, None))
            continue
        ids, offsets = _checked_column(name, encoded, rows)
        field = np.frombuffer(_name_field(name), np.uint8)
        packed_sizes = np.empty(rows, np.int64)
        bad = framing_kernels.add_entry_sizes(
            ids, offsets, len(field), packed_sizes, feature_sizes
        )
        if bad >= 0:
            raise ValueError(f'row {bad} of feature {name!r} has a negative id')
        columns.append((field, ids, offsets, read_only(packed_sizes)))

    lengths = np.empty(rows, np.int64)
    framing_kernels.add_frame_sizes(feature_sizes, lengths)
    if rows and lengths.max() > _MAX_LENGTH:
        raise ValueError(f'an example takes {lengths.max()} bytes; protobuf reads none of 2 GiB')
    records = np.empty(int(lengths.sum()), np.uint8)
    positions = row_offsets(lengths)[:-1]
    framing_kernels.put_headers(feature_sizes, lengths, _CRC_TABLE, records, positions)
    for field, ids, offsets, packed_sizes in columns:
        if packed_sizes is None:
            framing_kernels.put_messages(ids, offsets, field, records, positions)
        else:
            framing_kernels.put_entries(ids, offsets, field, packed_sizes, records, positions)
    framing_kernels.put_footers(lengths, _CRC_TABLE, records, positions)
    return FramedRows(keys, lengths, records)


def split_by_bucket(rows: FramedRows, buckets: int) -> list[tuple[int, FramedRows]]:
    """Returns the rows of each bucket that has any, `(key * buckets) >> 64`, by bucket number.

    Rows of a bucket keep their order, in arrays of their own. Raises ValueError if `buckets` is not
    within 1 to 2^32.
    """
    bucket = shard_of(rows.keys, buckets)
    if buckets <= 1 << 16:
        bucket = bucket.astype(np.uint16)  # numpy sorts 16 bits by radix, ten times as fast
    order = np.argsort(bucket, kind='stable')
    bucket = bucket[order]
    keys = rows.keys[order]
    lengths = rows.lengths[order]
    offsets = row_offsets(lengths)
    records = np.empty(len(rows.records), np.uint8)
    _copy(rows.records, row_offsets(rows.lengths)[order], lengths, offsets[:-1], records)
    if len(rows) == 0:
        return []
    firsts = np.flatnonzero(np.r_[True, bucket[1:] != bucket[:-1]])
    row_bounds = np.append(firsts, len(rows)).tolist()
    byte_bounds = np.append(offsets[firsts], len(records)).tolist()
    if len(firsts) == 1:
        return [(int(bucket[0]), FramedRows(keys, lengths, records))]
    # Copies, since a view would keep all of the block in memory for as long as one bucket waits.
    return [
        (
            number,
            FramedRows(
                keys[row_bounds[i] : row_bounds[i + 1]].copy(),
                lengths[row_bounds[i] : row_bounds[i + 1]].copy(),
                records[byte_bounds[i] : byte_bounds[i + 1]].copy(),
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
    )


def sort_rows(parts: Iterable[FramedRows]) -> FramedRows:
    """Returns the rows of all parts in ascending order of their keys.

    Raises ValueError if two keys are equal: keys come from a bijection, so a row came twice.
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
        # Straight from each part to its place: the parts are never joined in memory.
        last = first + len(part)
        starts = row_offsets(part.lengths)[:-1]
        _copy(part.records, starts, part.lengths, destinations[first:last], records)
        first = last
    return FramedRows(keys, sorted_lengths, records)


def _copy(source, starts, lengths, destinations, out) -> None:
    framing_kernels.copy_slices(
        read_only(source), read_only(starts), read_only(lengths), read_only(destinations), out
    )


def _name_field(name: str) -> bytes:
    encoded = name.encode()
    size = np.empty(5, np.uint8)
    used = put_varint(size, 0, len(encoded))
    return b'\n' + size[:used].tobytes() + encoded


def _sorted_features(
    features: Sequence[tuple[str, EncodedSide | FeatureMessages]],
) -> list[tuple[str, EncodedSide | FeatureMessages]]:
    names = [name for name, _ in features]
    if len(set(names)) != len(names):
        raise ValueError(f'features repeat a name: {names}')
    return sorted(features, key=lambda feature: feature[0].encode())


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
