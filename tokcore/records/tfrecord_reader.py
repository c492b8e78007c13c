"""Reads TFRecords and the int64 features of tf.train.Example without TensorFlow.

For tests, checks and looking into a file; training reads the files with TensorFlow's own readers.
The checksums come from google-crc32c and not from the kernel that wrote them.
"""

import struct
from collections.abc import Iterator

import google_crc32c

from tokcore.errors import InputError

_LENGTH = struct.Struct('<Q')
_CHECKSUM = struct.Struct('<I')
_HEADER_SIZE = _LENGTH.size + _CHECKSUM.size

_REMEDY = 'the file is damaged or not a TFRecord file; write it again'

# Wire types of protobuf's encoding.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def read_records(data: bytes, name: str) -> Iterator[bytes]:
    """Yields the payload of each TFRecord in a file's bytes, both checksums checked.

    Raises InputError, with the file's `name` and the byte offset of the record, if a record is cut
    off or a checksum does not match.
    """
    at = 0
    while at < len(data):
        where = f'{name}, byte {at}'
        if len(data) - at < _HEADER_SIZE:
            raise InputError(f'{where}: the file ends within the head of a TFRecord; {_REMEDY}.')
        length_bytes = data[at : at + _LENGTH.size]
        if _masked(length_bytes) != _CHECKSUM.unpack_from(data, at + _LENGTH.size)[0]:
            raise InputError(
                f"{where}: the checksum of a TFRecord's length does not match; {_REMEDY}."
            )
        start = at + _HEADER_SIZE
        end = start + _LENGTH.unpack(length_bytes)[0]
        if len(data) - _CHECKSUM.size < end:
            raise InputError(
                f'{where}: the file ends after {len(data) - start} of the {end - start} bytes of a '
                f'TFRecord and its checksum; {_REMEDY}.'
            )
        payload = bytes(data[start:end])
        if _masked(payload) != _CHECKSUM.unpack_from(data, end)[0]:
            raise InputError(
                f"{where}: the checksum of a TFRecord's content does not match; {_REMEDY}."
            )
        yield payload
        at = end + _CHECKSUM.size


def parse_example(record: bytes) -> dict[str, list[int]]:
    """Returns the int64 features of a serialized tf.train.Example, packed or not.

    As in protobuf, the last entry of a name wins and unknown fields are passed over. Raises
    ValueError if the bytes are no such message, or a feature holds floats or strings.
    """
    parsed: dict[str, list[int]] = {}
    for features in _fields(record, 1):
        for entry in _fields(features, 1):
            # The last one wins and a missing one is empty, as for any singular field.
            name = [b'', *_fields(entry, 1)][-1].decode()
            values: list[int] = []
            for feature in _fields(entry, 2):
                if _fields(feature, 1) or _fields(feature, 2):
                    raise ValueError(f'feature {name!r} is no list of int64')
                for int64_list in _fields(feature, 3):
                    values += _int64_values(int64_list)
            parsed[name] = values
    return parsed


def _masked(data: bytes) -> int:
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _int64_values(message: bytes) -> list[int]:
    values = []
    for number, wire, content in _wire_fields(message):
        if number != 1:
            continue
        if wire == _VARINT:
            values.append(_signed(content))
        elif wire == _BYTES:
            at = 0
            while at < len(content):
                value, at = _varint(content, at)
                values.append(_signed(value))
        else:
            raise ValueError(f'an int64 list with wire type {wire} is no tf.train.Example')
    return values


def _fields(message: bytes, wanted: int) -> list[bytes]:
    """Returns the contents of one length-delimited field, in order."""
    contents = []
    for number, wire, content in _wire_fields(message):
        if number == wanted:
            if wire != _BYTES:
                raise ValueError(f'field {wanted} with wire type {wire} is no tf.train.Example')
            contents.append(content)
    return contents


def _wire_fields(message: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        wire = tag & 7
        if wire == _VARINT:
            content, at = _varint(message, at)
        elif wire in (_BYTES, _FIXED64, _FIXED32):
            if wire == _BYTES:
                size, at = _varint(message, at)
            else:
                size = 8 if wire == _FIXED64 else 4
            content = message[at : at + size]
            if len(content) != size:
                raise ValueError(f'a field of {size} bytes is cut off at {len(content)}')
            at += size
        else:
            raise ValueError(f'wire type {wire} is no tf.train.Example')
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
