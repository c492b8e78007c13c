"""Files of a cache on disk, each with a checksum before its content.

A file is written under another name and moved, so that it is never half. One that is missing, damaged
or cannot be read is treated alike: what it held is made again.
"""

import os
import pathlib
import tempfile
import zlib

PART = '.part-'
"""Begins the names of files that were not written to the end."""

_CHECKSUM_BYTES = 4


def read_cached(path: pathlib.Path) -> bytes | None:
    """Returns the content of a file; None if there is none, or a damaged one."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    content = data[_CHECKSUM_BYTES:]
    return content if data[:_CHECKSUM_BYTES] == _checksum(content) else None


def write_cached(path: pathlib.Path, content: bytes) -> None:
    """Writes a file; raises OSError, and then leaves nothing."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=PART, delete=False) as part:
        try:
            part.write(_checksum(content))
            part.write(content)
            part.close()
            os.replace(part.name, path)
        except OSError:
            os.unlink(part.name)
            raise


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, 'little')
