"""The blocks of an xz file, as the indexes at the ends of its streams list them.

Source: the .xz file format, version 1.2.1, sections 2 and 4. Blocks do not depend on one another, so
each can be decoded by itself; xz writes several when it runs with threads or `--block-size`.
"""

import itertools
import zlib
from typing import BinaryIO

from tokcore.corpus.storage.stored_file import read_up_to
from tokcore.corpus.storage.text_part import MOST_INDEX_BYTES, TextPart

_HEADER = b'\xfd7zXZ\x00'
_FOOTER = b'YZ'
_FRAME_BYTES = 12
"""Of a stream's header, and of its footer."""

_PADDING_BYTES = 64 << 10
"""Read at a time to pass over what pads a stream."""


def xz_blocks(stream: BinaryIO, size: int) -> list[TextPart] | None:
    """Returns the blocks of all streams of a file of so many bytes, in order.

    None if its indexes are damaged, or larger than `MOST_INDEX_BYTES`: such a file is to be decoded
    from its beginning, which says what is wrong.
    """
    streams: list[list[TextPart]] = []
    end, left = size, MOST_INDEX_BYTES
    while (end := _before_padding(stream, end)) > 0:
        if end % 4 or end < 2 * _FRAME_BYTES:
            return None
        footer = _read(stream, end - _FRAME_BYTES, end)
        flags, index_bytes = footer[8:10], 4 * (int.from_bytes(footer[4:8], 'little') + 1)
        left -= index_bytes
        is_footer = footer[10:] == _FOOTER and footer[:4] == _crc32(footer[4:10])
        if not is_footer or left < 0 or index_bytes > end - 2 * _FRAME_BYTES:
            return None
        records = _records(_read(stream, end - _FRAME_BYTES - index_bytes, end - _FRAME_BYTES))
        if records is None:
            return None
        begin = end - _FRAME_BYTES - index_bytes - sum(_padded(stored) for stored, _ in records)
        header = _HEADER + flags + _crc32(flags)
        if begin < _FRAME_BYTES or _read(stream, begin - _FRAME_BYTES, begin) != header:
            return None
        streams.append(_parts(records, begin, flags))
        end = begin - _FRAME_BYTES
    return list(itertools.chain.from_iterable(reversed(streams)))


def _before_padding(stream: BinaryIO, end: int) -> int:
    """Where the last stream before a byte ends; zeros between streams are padding."""
    while end > 0:
        start = max(0, end - _PADDING_BYTES)
        kept = len(_read(stream, start, end).rstrip(b'\0'))
        if kept:
            return start + kept
        end = start
    return end


def _read(stream: BinaryIO, start: int, end: int) -> bytes:
    stream.seek(start)
    return read_up_to(stream, end - start)


def _records(index: bytes) -> list[tuple[int, int]] | None:
    """Of each block the bytes stored without padding, and those of its text; None of a damaged index."""
    if index[:1] != b'\0' or index[-4:] != _crc32(index[:-4]):
        return None
    numbers, place = [], 1
    wanted = 1
    while len(numbers) < wanted:
        number = shift = 0
        while True:
            if place >= len(index) - 4 or shift > 56:
                return None
            byte = index[place]
            place += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        numbers.append(number)
        wanted = 1 + 2 * numbers[0]
    return list(zip(numbers[1::2], numbers[2::2], strict=True))


def _parts(records: list[tuple[int, int]], begin: int, flags: bytes) -> list[TextPart]:
    before = _HEADER + flags + _crc32(flags)
    parts = []
    for stored, text in records:
        end = begin + _padded(stored)
        parts.append(TextPart(begin, end, text, before, _tail(stored, text, flags)))
        begin = end
    return parts


def _tail(stored: int, text: int, flags: bytes) -> bytes:
    """What makes a block a whole stream: an index of that block, and a footer."""
    index = b'\0\1' + _variable(stored) + _variable(text)
    index += bytes(-len(index) % 4)
    index += _crc32(index)
    footer = (len(index) // 4 - 1).to_bytes(4, 'little') + flags
    return index + _crc32(footer) + footer + _FOOTER


def _variable(number: int) -> bytes:
    digits = bytearray()
    while number >= 0x80:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])


def _padded(size: int) -> int:
    return -(-size // 4) * 4


def _crc32(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, 'little')
