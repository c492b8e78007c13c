"""Opening a corpus file's stored bytes: whatever is wrong becomes a sentence that names the file.

A file is planned once and read later, several times and by several processes; one that no longer
has its planned size is refused, since its work items and line index are about another text.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import BinaryIO

from tokcore.corpus.dataset import CorpusFile, OpenBinary
from tokcore.errors import InputError


@contextlib.contextmanager
def open_path(path: str, open_binary: OpenBinary) -> Iterator[BinaryIO]:
    """Opens a path as it is stored; an `OSError` on opening or reading is an `InputError`."""
    try:
        with open_binary(path) as stream:
            yield stream
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise InputError(
            f'{path} cannot be read ({reason}); check the path and the permissions'
        ) from error


@contextlib.contextmanager
def open_stored(file: CorpusFile, open_binary: OpenBinary) -> Iterator[BinaryIO]:
    """Opens a corpus file as it is stored, at its beginning.

    Raises:
      InputError: if it cannot be opened or read, or no longer has the size it was planned with.
    """
    with open_path(file.path, open_binary) as stream:
        stream.seek(0, os.SEEK_END)
        size = stream.tell()
        if size != file.size:
            raise InputError(
                f'{file.path} has {size} bytes but had {file.size} when the job was planned; '
                'run again when nothing writes to it any more'
            )
        stream.seek(0)
        yield stream


def read_up_to(stream: BinaryIO, size: int) -> bytes:
    """Reads `size` bytes, or fewer only at the end of the file: remote files may read short."""
    data = stream.read(size)
    if len(data) == size or not data:
        return data
    parts = [data]
    missing = size - len(data)
    while missing and (data := stream.read(missing)):
        parts.append(data)
        missing -= len(data)
    return b''.join(parts)


def read_range(stream: BinaryIO, file: CorpusFile, start: int, end: int) -> bytes:
    """Reads bytes [start, end) of a corpus file, all of them.

    Raises:
      InputError: if the file ends before.
    """
    stream.seek(start)
    data = read_up_to(stream, end - start)
    if len(data) < end - start:
        raise InputError(
            f'{file.path} ends at byte {start + len(data)} but had {file.size} bytes when the job '
            'was planned; run again when nothing writes to it any more'
        )
    return data
