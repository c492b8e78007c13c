"""The wire format of Protocol Buffers, as far as a SentencePiece model needs it."""

from __future__ import annotations

import typing
from collections.abc import Iterator

from tokcore.errors import InputError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}
_MOST_VARINT_BYTES = 10


def message_fields(
    data: bytes, path: str, place: int = 0
) -> Iterator[tuple[int, int | bytes, int]]:
    """Yields the fields of a message in their order: the number, the value, and its place.

    Values are integers, or bytes: a string, a message, or four or eight bytes of a number.

    Args:
        data: the message.
        path: of the file.
        place: the byte of the file where the message begins.

    Raises:
        InputError: the message is damaged; the error names the byte.
    """
    position, size = 0, len(data)
    while position < size:
        begin = position
        tag, position = _varint(data, position, path, place)
        kind = tag & 7
        if kind == _VARINT:
            number, position = _varint(data, position, path, place)
            yield tag >> 3, number, place + begin
            continue
        if kind == _BYTES:
            length, position = _varint(data, position, path, place)
        elif kind in _FIXED_BYTES:
            length = _FIXED_BYTES[kind]
        else:
            damaged(path, place + begin, f'a field of the wire type {kind}')
        if position + length > size:
            damaged(path, place + begin, 'a field that is cut off')
        yield tag >> 3, data[position : position + length], place + position
        position += length


def _varint(data: bytes, position: int, path: str, place: int) -> tuple[int, int]:
    """Returns the number at a position, and where it ends."""
    value = 0
    for shift in range(_MOST_VARINT_BYTES):
        if position + shift >= len(data):
            break
        byte = data[position + shift]
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return value & ((1 << 64) - 1), position + shift + 1
    damaged(path, place + position, 'a number that does not end')


def damaged(path: str, place: int, what: str) -> typing.NoReturn:
    """Raises the InputError for a file that is not what it should be at a byte."""
    raise InputError(f'{path}: {what} at byte {place}; give a whole SentencePiece model')
