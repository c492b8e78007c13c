"""All features of a tf.train.Example, and the TFRecords of a stream, whatever program wrote them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

import google_crc32c

from tokcore.errors import InputError
from tokcore.records.tfrecord import BYTES, FIXED32, int64_values, message_fields, wire_fields

_HEAD = struct.Struct('<QI')
_CHECKSUM = struct.Struct('<I')

_MOST_BYTES = (1 << 31) - 1
"""protobuf parses no message of 2 GiB or more."""

_REMEDY = 'the file is damaged or not a TFRecord file; write it again'


def parse_features(record: bytes) -> dict[str, list[int] | list[float] | list[bytes]]:
    """Returns all features of a serialized tf.train.Example, whatever their lists hold.

    Raises ValueError if the bytes are not such a message.
    """
    parsed: dict[str, list[int] | list[float] | list[bytes]] = {}
    for features in message_fields(record, 1):
        for entry in message_fields(features, 1):
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


def _float_values(message: bytes) -> list[float]:
    values: list[float] = []
    for number, wire, content in wire_fields(message):
        if number == 1 and isinstance(content, bytes) and wire in (BYTES, FIXED32):
            if len(content) % 4:
                raise ValueError(f'a list of floats has {len(content)} bytes')
            values += struct.unpack(f'<{len(content) // 4}f', content)
    return values


def stream_records(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """Yields the payload of each TFRecord of a stream; raises InputError as `read_records`."""
    place = 0
    while head := stream.read(_HEAD.size):
        where = f'{name}, byte {place}'
        if len(head) < _HEAD.size:
            raise InputError(f'{where}: the file ends within the head of a TFRecord; {_REMEDY}.')
        length, checksum = _HEAD.unpack(head)
        if masked_crc32c(head[:8]) != checksum:
            raise InputError(
                f"{where}: the checksum of a TFRecord's length does not match; {_REMEDY}."
            )
        if length > _MOST_BYTES:
            raise InputError(f'{where}: a TFRecord of {length} bytes is too long; {_REMEDY}.')
        rest = stream.read(length + _CHECKSUM.size)
        if len(rest) < length + _CHECKSUM.size:
            raise InputError(f'{where}: the file ends within a TFRecord; {_REMEDY}.')
        if masked_crc32c(rest[:length]) != _CHECKSUM.unpack_from(rest, length)[0]:
            raise InputError(
                f"{where}: the checksum of a TFRecord's content does not match; {_REMEDY}."
            )
        yield rest[:length]
        place += len(head) + len(rest)


def masked_crc32c(data: bytes) -> int:
    """Returns the CRC-32C of bytes as TFRecords have it."""
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
