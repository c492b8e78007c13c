"""Files for a later run, which tell when they are damaged: by their length and a checksum.

8 bytes   magic; its last byte is the number of the format
8 bytes   length of the content, little-endian
4 bytes   CRC-32C of these 16 bytes and the content, little-endian
...       the content
"""

import struct

import google_crc32c

from pipelines.files import filesystem
from tokcore.errors import InputError
from tokcore.format_numbers import CHECKED_FILE

_HEAD = struct.Struct('<8sQ')
_CRC32C = struct.Struct('<I')
_MAGIC = b'\x89TKF\r\n\x1a' + bytes([CHECKED_FILE])


def write_checked(path: str, *pieces: bytes) -> None:
    """Writes a file of pieces, with its length and checksum; it has its name only when it is whole."""
    head = _HEAD.pack(_MAGIC, sum(map(len, pieces)))
    crc32c = google_crc32c.value(head)
    for piece in pieces:
        crc32c = google_crc32c.extend(crc32c, piece)
    with filesystem.create(path) as stream:
        stream.write(head + _CRC32C.pack(crc32c))
        for piece in pieces:
            stream.write(piece)


def read_checked(path: str) -> bytes:
    """Returns the content of a file that `write_checked` wrote.

    Raises:
        InputError: it is missing, damaged, or cannot be read.
    """
    try:
        data = filesystem.read_bytes(path)
    except InputError as error:
        if filesystem.exists(path):
            raise
        raise InputError(f'{path} is missing; run again, and it is made anew') from error
    start = _HEAD.size + _CRC32C.size
    if len(data) < start or not data.startswith(_MAGIC):
        raise damaged(path)
    _, length = _HEAD.unpack_from(data)
    (crc32c,) = _CRC32C.unpack_from(data, _HEAD.size)
    content = data[start:]
    actual = google_crc32c.extend(google_crc32c.value(data[: _HEAD.size]), content)
    if len(content) != length or actual != crc32c:
        raise damaged(path)
    return content


def damaged(path: str) -> InputError:
    """Returns the error for a file that is not as it was written."""
    return InputError(f'{path} is damaged; run again, and it is made anew')
