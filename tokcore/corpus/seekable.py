"""The text of a compressed file from any byte on, where the file has an index of its parts.

xz: the index at the end of each stream lists blocks that can be decompressed alone (.xz file format,
version 1.2.1, sections 2 and 4); xz writes several with threads or `--block-size`. zstd: a skippable
frame at the end is a seek table (Zstandard seekable format, version 0.1.0, in zstd's
`contrib/seekable_format`); its checksums, XXH64 of each frame's text, are not verified.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from tokcore.corpus.contents import XZ, ZSTD
from tokcore.corpus.corpus import CorpusFile, MemberFile, OpenBinary
from tokcore.corpus.looks import checked_text
from tokcore.corpus.storage import (
    PIECE_BYTES,
    exceeded_limit,
    open_stored,
    read_up_to,
    unpacked_stream,
)
from tokcore.errors import InputError

_HEADER = b'\xfd7zXZ\x00'
_FOOTER = b'YZ'
_FRAME_BYTES = 12
"""The size of a stream's header, and of its footer."""

_PADDING_BYTES = 64 << 10
"""The bytes read at a time to skip the padding after a stream."""

_SKIPPABLE = 0x184D2A5E
_SEEKABLE = 0x8F92EAB1
_HEAD = struct.Struct('<II')
_FOOT = struct.Struct('<IBI')
_CHECKSUMS, _RESERVED = 0x80, 0x7C

_MOST_INDEX_BYTES = 1 << 20
"""The largest index that is read: it can list some terabytes, and becomes a list of parts in memory."""


def may_have_index(file: CorpusFile) -> bool:
    """Returns whether a file may have an index of parts; members of archives are read without."""
    return file.compressed in _INDEXES and not isinstance(file, MemberFile)


def can_seek(file: CorpusFile, open_binary: OpenBinary) -> bool:
    """Returns whether the text of a file can be read from any byte on; raises InputError as `part_ends`."""
    return not file.is_stream or (may_have_index(file) and bool(part_ends(file, open_binary)))


def part_ends(file: CorpusFile, open_binary: OpenBinary) -> tuple[int, ...]:
    """Returns where each part ends in a file's text; empty if the file has no valid index.

    It is empty too for a file that unpacks to too much for its size, which is refused when it is read.

    Raises:
        InputError: it cannot be read, or has changed its size.
    """
    with open_stored(file, open_binary) as stream:
        parts = _indexed_parts(file, stream)
    ends = tuple(itertools.accumulate(part.text_bytes for part in parts or ()))
    return () if not ends or exceeded_limit(file.size, ends[-1], file.size) else ends


def text_from(
    file: CorpusFile, offset: int, open_binary: OpenBinary
) -> Generator[bytes, None, None]:
    """Yields the text of a file with an index, in pieces, from a byte of the text on.

    Only the part with that byte and the later ones are decompressed, one after another.

    Raises:
        InputError: the file cannot be read, has changed, is damaged, or its index is wrong; or, from the
            beginning on, it is not text.
    """
    pieces = _text_from(file, offset, open_binary)
    return pieces if offset else checked_text(file, pieces)


def _text_from(
    file: CorpusFile, offset: int, open_binary: OpenBinary
) -> Generator[bytes, None, None]:
    with open_stored(file, open_binary) as stream:
        parts = _indexed_parts(file, stream)
        if parts is None:
            raise InputError(
                f'{file.path} had an index when the job was planned, and has none any more; run '
                'again when nothing writes to it any more'
            )
        for part in parts:
            if part.text_bytes > offset:
                for piece in _part_pieces(file, stream, part):
                    if offset < len(piece):
                        yield piece[offset:]
                    offset = max(0, offset - len(piece))
            else:
                offset -= part.text_bytes


def _xz_blocks(stream: BinaryIO, size: int) -> list[_TextPart] | None:
    """Returns the blocks of all streams of an xz file with `size` bytes, in order.

    None if an index is damaged, or if they are larger than `_MOST_INDEX_BYTES` together. Decompressing
    such a file from its beginning shows what is wrong.
    """
    streams: list[list[_TextPart]] = []
    end, left = size, _MOST_INDEX_BYTES
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
        streams.append(_block_parts(records, begin, flags))
        end = begin - _FRAME_BYTES
    return list(itertools.chain.from_iterable(reversed(streams)))


def _zstd_frames(stream: BinaryIO, size: int) -> list[_TextPart] | None:
    """Returns the frames of a zstd file with `size` bytes, in order.

    None if it has no seek table, or one that does not match the file or is larger than
    `_MOST_INDEX_BYTES`: such a file must be decompressed from its beginning.
    """
    if size < _HEAD.size + _FOOT.size:
        return None
    frames, descriptor, magic = _FOOT.unpack(_read(stream, size - _FOOT.size, size))
    entry_bytes = 12 if descriptor & _CHECKSUMS else 8
    content_bytes = frames * entry_bytes + _FOOT.size
    begin = size - _HEAD.size - content_bytes
    if (
        magic != _SEEKABLE
        or descriptor & _RESERVED
        or content_bytes > _MOST_INDEX_BYTES
        or begin < 0
    ):
        return None
    table = _read(stream, begin, size)
    if _HEAD.unpack_from(table) != (_SKIPPABLE, content_bytes):
        return None
    parts, start = [], 0
    for entry in range(_HEAD.size, _HEAD.size + frames * entry_bytes, entry_bytes):
        stored, text = _HEAD.unpack_from(table, entry)
        parts.append(_TextPart(start, start + stored, text))
        start += stored
    return parts if start == begin else None


def _before_padding(stream: BinaryIO, end: int) -> int:
    """Returns where the last stream before a byte ends; zeros between streams are padding."""
    while end > 0:
        start = max(0, end - _PADDING_BYTES)
        size = len(_read(stream, start, end).rstrip(b'\0'))
        if size:
            return start + size
        end = start
    return end


def _read(stream: BinaryIO, start: int, end: int) -> bytes:
    stream.seek(start)
    return read_up_to(stream, end - start)


def _records(index: bytes) -> list[tuple[int, int]] | None:
    """Returns each block's stored size, without padding, and its text's; None if the index is damaged."""
    if index[:1] != b'\0' or index[-4:] != _crc32(index[:-4]):
        return None
    numbers: list[int] = []
    position, expected = 1, 1
    while len(numbers) < expected:
        number = shift = 0
        while True:
            if position >= len(index) - 4 or shift > 56:
                return None
            byte = index[position]
            position += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        numbers.append(number)
        expected = 1 + 2 * numbers[0]
    return list(zip(numbers[1::2], numbers[2::2], strict=True))


def _block_parts(records: list[tuple[int, int]], begin: int, flags: bytes) -> list[_TextPart]:
    before = _HEADER + flags + _crc32(flags)
    parts = []
    for stored, text in records:
        end = begin + _padded(stored)
        parts.append(_TextPart(begin, end, text, before, _tail(stored, text, flags)))
        begin = end
    return parts


def _tail(stored: int, text: int, flags: bytes) -> bytes:
    """Returns the bytes that complete a stream of one block: its index and a footer."""
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


@dataclass(frozen=True)
class _TextPart:
    """A block of an xz file, or a frame of a zstd one.

    Attributes:
        start: of its stored bytes.
        end: of its stored bytes.
        text_bytes: the size of its text, as the file's index says.
        before: bytes to put before the stored ones to make a whole stream.
        after: bytes to put after them.
    """

    start: int
    end: int
    text_bytes: int
    before: bytes = b''
    after: bytes = b''


_INDEXES = {XZ: _xz_blocks, ZSTD: _zstd_frames}


def _indexed_parts(file: CorpusFile, stream: BinaryIO) -> list[_TextPart] | None:
    return _INDEXES[str(file.compressed)](stream, file.size)


def _part_pieces(file: CorpusFile, stream: BinaryIO, part: _TextPart) -> Iterator[bytes]:
    size = 0
    for large in unpacked_stream(file, _PartStream(stream, part), part.start - len(part.before)):
        size += len(large)
        if size > part.text_bytes:
            break
        for start in range(0, len(large), PIECE_BYTES):
            yield large[start : start + PIECE_BYTES]
    if size != part.text_bytes:
        raise InputError(
            f'{file.path} does not unpack at byte {part.start} to the {part.text_bytes} bytes that '
            'its index says; get the file again, or pack it again'
        )


class _PartStream:
    """Reads a part as a whole stream, from a file in which nobody else seeks meanwhile."""

    def __init__(self, stream: BinaryIO, part: _TextPart):
        self._stream = stream
        self._before, self._after = part.before, part.after
        self._left = part.end - part.start
        stream.seek(part.start)

    def read(self, size: int, /) -> bytes:
        if self._before:
            data, self._before = self._before[:size], self._before[size:]
        elif self._left:
            data = read_up_to(self._stream, min(size, self._left))
            self._left = self._left - len(data) if data else 0
        else:
            data, self._after = self._after[:size], self._after[size:]
        return data
