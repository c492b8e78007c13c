"""All features of a tf.train.Example, whatever program wrote it."""

from __future__ import annotations

import struct

from tokcore.records.tfrecord import BYTES, FIXED32, int64_values, message_fields, wire_fields


def parse_features(record: bytes) -> dict[str, list[int] | list[float] | list[bytes]]:
    """Returns all features of a serialized tf.train.Example, whatever their lists hold.

    Raises ValueError if the bytes are not such a message.
    """
    parsed: dict[str, list[int] | list[float] | list[bytes]] = {}
    for features in message_fields(record, 1):
        for entry in message_fields(features, 1):
            if [number for number, _, _ in wire_fields(entry)] not in (
                [1, 2],
                [2, 1],
                [1],
                [2],
                [],
            ):
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


def _float_values(message: bytes) -> list[float]:
    values: list[float] = []
    for number, wire, content in wire_fields(message):
        if number == 1 and isinstance(content, bytes) and wire in (BYTES, FIXED32):
            if len(content) % 4:
                raise ValueError(f'a list of floats has {len(content)} bytes')
            values += struct.unpack(f'<{len(content) // 4}f', content)
    return values
