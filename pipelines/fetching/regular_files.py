"""Files of a folder that several may share: what is no regular file counts as missing.

A link would lead out of the folder, and of a pipe or a device nobody ever gets to the end.
"""

import hashlib
import json
import os
import stat
from collections.abc import Mapping

from pipelines.files.local_folder import LocalFolder

_MOST_RECORD_BYTES = 64 << 10
"""A record is an address and a few numbers; servers and users cut addresses off at 8 KiB."""

_PIECE_BYTES = 1 << 20


def regular_state(folder: LocalFolder, name: str) -> os.stat_result | None:
    """Returns the size and times of a regular file; None if there is none."""
    state = folder.state(name)
    return state if state is not None and stat.S_ISREG(state.st_mode) else None


def read_record(folder: LocalFolder, name: str) -> Mapping[str, object]:
    """Returns the fields of a file of JSON; none where it is missing or damaged."""
    data = folder.read(name, _MOST_RECORD_BYTES + 1) or b''
    try:
        fields = json.loads(data) if len(data) <= _MOST_RECORD_BYTES else None
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def sha256_of(folder: LocalFolder, name: str) -> str:
    """Returns the SHA-256 of a regular file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with os.fdopen(folder.open_file(name, os.O_RDONLY), 'rb') as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()
