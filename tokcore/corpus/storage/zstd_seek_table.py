"""The frames of a zstd file, as a seek table at its end lists them.

Source: the Zstandard seekable format, version 0.1.0, of zstd's `contrib/seekable_format`. The table
is a skippable frame, so any decoder passes over it. Its own checksums, XXH64 of each frame's text, are
not compared: frames have theirs where they were asked for.
"""

import struct
from typing import BinaryIO

from tokcore.corpus.storage.stored_file import read_up_to
from tokcore.corpus.storage.text_part import MOST_INDEX_BYTES, TextPart

_SKIPPABLE = 0x184D2A5E
_SEEKABLE = 0x8F92EAB1
_HEAD = struct.Struct('<II')
_FOOT = struct.Struct('<IBI')
_CHECKSUMS, _RESERVED = 0x80, 0x7C


def zstd_frames(stream: BinaryIO, size: int) -> list[TextPart] | None:
    """Returns the frames of a file of so many bytes, in order.

    None if it has no seek table, or one that does not go with it, or is larger than
    `MOST_INDEX_BYTES`: such a file is to be decoded from its beginning.
    """
    if size < _HEAD.size + _FOOT.size:
        return None
    stream.seek(size - _FOOT.size)
    frames, descriptor, magic = _FOOT.unpack(read_up_to(stream, _FOOT.size))
    entry_bytes = 12 if descriptor & _CHECKSUMS else 8
    content_bytes = frames * entry_bytes + _FOOT.size
    begin = size - _HEAD.size - content_bytes
    if magic != _SEEKABLE or descriptor & _RESERVED or content_bytes > MOST_INDEX_BYTES or begin < 0:
        return None
    stream.seek(begin)
    table = read_up_to(stream, size - begin)
    if _HEAD.unpack_from(table) != (_SKIPPABLE, content_bytes):
        return None
    parts, place = [], 0
    for entry in range(_HEAD.size, _HEAD.size + frames * entry_bytes, entry_bytes):
        stored, text = _HEAD.unpack_from(table, entry)
        parts.append(TextPart(place, place + stored, text))
        place += stored
    return parts if place == begin else None
