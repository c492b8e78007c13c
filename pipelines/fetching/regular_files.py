"""Files of the work folder, which are regular files or count as missing.

Others may write to a folder that several share: a link would lead out of it, and of a pipe or a
device nobody ever gets to the end.
"""

import errno
import hashlib
import json
import os
import stat
from collections.abc import Mapping
from typing import BinaryIO

from pipelines.files.system_errors import telling

_MOST_RECORD_BYTES = 64 << 10
"""A record is an address and a few numbers; servers and users cut addresses off at 8 KiB."""

_PIECE_BYTES = 1 << 20


def regular_state(path: str) -> os.stat_result | None:
    """Returns the size and times of a regular file; None if there is none."""
    try:
        state = os.lstat(path)
    except OSError:
        return None
    return state if stat.S_ISREG(state.st_mode) else None


def create_regular(path: str) -> None:
    """Makes an empty file. Raises OSError if anything has that name."""
    with open(path, 'xb'):  # O_EXCL, which follows no link either
        pass


def open_regular(path: str, mode: str) -> BinaryIO:
    """Opens a regular file that is there. Raises OSError for anything else, links too."""
    return open(path, mode, opener=_open_regular)


def read_record(path: str) -> Mapping[str, object]:
    """Returns the fields of a file of JSON; none where it is missing or damaged."""
    try:
        with open_regular(path, 'rb') as file:
            data = file.read(_MOST_RECORD_BYTES + 1)
        fields = json.loads(data) if len(data) <= _MOST_RECORD_BYTES else None
    except (OSError, ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def sha256_of(path: str) -> str:
    """Returns the SHA-256 of a regular file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with telling(f'read {path}'), open_regular(path, 'rb') as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def _open_regular(path: str, flags: int) -> int:
    # Without O_NONBLOCK a pipe would wait for a writer.
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, 'it is not a regular file', path)
    return descriptor
