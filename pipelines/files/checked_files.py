"""Files that tell when they are damaged: a length and a CRC-32C stand before the content.

    8 bytes   magic; its last byte is the version
    8 bytes   length of the content, little-endian
    4 bytes   CRC-32C of these 16 bytes and the content, little-endian
    ...       the content

Version 0.1.0 at 6b30307 wrote the content alone, and that is still read. No content begins as the
magic does: neither JSON, nor a packed table, nor the length of one. So a file of which only the
magic is damaged is not taken for one of that version.
"""

import struct

import google_crc32c

from pipelines.files import filesystem
from tokcore.errors import InputError

_HEAD = struct.Struct('<8sQ')
_CRC32C = struct.Struct('<I')
_MAGIC = b'\x89TKF\r\n\x1a\x01'


def write_checked(path: str, *pieces: bytes) -> None:
    """Writes a whole file, of pieces one after another."""
    head = _HEAD.pack(_MAGIC, sum(map(len, pieces)))
    crc32c = google_crc32c.value(head)
    for piece in pieces:
        crc32c = google_crc32c.extend(crc32c, piece)
    with filesystem.create(path) as stream:
        stream.write(head + _CRC32C.pack(crc32c))
        for piece in pieces:
            stream.write(piece)


def read_checked(path: str) -> bytes:
    """Returns the content of a file.

    Raises:
        InputError: it is missing, damaged, or cannot be read.
    """
    try:
        data = filesystem.read_bytes(path)
    except InputError as error:
        if filesystem.exists(path):
            raise
        raise InputError(f'{path} is missing; run again, and it is made anew') from error
    if not data.startswith(_MAGIC):
        return data
    start = _HEAD.size + _CRC32C.size
    if len(data) < start:
        raise damaged(path)
    _, length = _HEAD.unpack_from(data)
    (crc32c,) = _CRC32C.unpack_from(data, _HEAD.size)
    content = data[start:]
    found = google_crc32c.extend(google_crc32c.value(data[: _HEAD.size]), content)
    if len(content) != length or found != crc32c:
        raise damaged(path)
    return content


def damaged(path: str) -> InputError:
    """Returns what tells that a file is not as it was written."""
    return InputError(f'{path} is damaged; run again, and it is made anew')
