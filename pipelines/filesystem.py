"""Files wherever Beam's `FileSystems` reach, opened as they are stored.

Beam decompresses by a file's name and reads a cut-off gzip short without an error, so every file is
opened uncompressed here and decompressed by `tokcore.corpus.gzip_text`. Output is written under a
name of its own and renamed when it is whole.
"""

import contextlib
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import BinaryIO

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from tokcore.errors import InputError

_ATTEMPT_PREFIX = '.tokbeam-attempt-'
_DELETED_AT_ONCE = 8
_WILDCARD = re.compile(r'[*?\[]')


@dataclass(frozen=True)
class StoredFile:
    """A file as its filesystem lists it; `name` is what no move of its folder changes."""

    path: str
    name: str
    size: int  # bytes as stored
    modified: float  # seconds since 1970, 0 where the filesystem does not tell


def absolute(path: str) -> str:
    """Returns a path that means the same in every worker's working directory."""
    return path if FileSystems.get_scheme(path) else os.path.abspath(path)


def is_local(path: str) -> bool:
    """Returns whether a path is one of this machine's own filesystem."""
    return FileSystems.get_scheme(path) is None


def join(folder: str, *names: str) -> str:
    return FileSystems.join(folder, *names)


def split_path(path: str) -> tuple[str, str]:
    """Returns a path's folder and its last name."""
    return FileSystems.split(path)


def open_binary(path: str) -> BinaryIO:
    """Opens a file for reading as it is stored, seekable."""
    return FileSystems.open(
        path, 'application/octet-stream', compression_type=CompressionTypes.UNCOMPRESSED
    )


def read_bytes(path: str) -> bytes:
    """Returns a whole file. Raises InputError if it cannot be read."""
    try:
        with open_binary(path) as stream:
            return stream.read()
    except OSError as error:
        raise InputError(f'cannot read {path}: {_reason(error)}; check the path') from error


def exists(path: str) -> bool:
    return FileSystems.exists(path)


def is_folder(path: str) -> bool:
    """Returns whether a path is a folder, or on an object store the beginning of a file's name."""
    if FileSystems.get_scheme(path) is None:
        return os.path.isdir(path)
    return not FileSystems.exists(path) and bool(list_folder(path))


def stored_size(path: str) -> int | None:
    """Returns a file's size in bytes, or None if it is missing."""
    if not FileSystems.exists(path):
        return None
    return FileSystems.get_filesystem(path).size(path)


@contextlib.contextmanager
def create(path: str) -> Iterator[BinaryIO]:
    """Writes a file that appears under its name only when it is whole.

    Of two writers of one path either may win; a writer that fails leaves nothing behind.
    """
    folder, name = split_path(path)
    temporary = join(folder, attempt_name(name))
    try:
        with FileSystems.create(
            temporary, 'application/octet-stream', compression_type=CompressionTypes.UNCOMPRESSED
        ) as stream:
            yield stream
        rename(temporary, path)
    except BaseException:
        if FileSystems.exists(temporary):
            delete(temporary)
        raise


def write_bytes(path: str, data: bytes) -> None:
    """Writes a whole file by `create`."""
    with create(path) as stream:
        stream.write(data)


def rename(source: str, destination: str) -> None:
    """Moves a file over whatever has that name."""
    if FileSystems.get_scheme(source) is None:
        os.replace(source, destination)
    else:
        FileSystems.rename([source], [destination])


def move(source: str, destination: str) -> None:
    """Renames a file into a folder that need not exist yet."""
    if FileSystems.get_scheme(destination) is None:
        os.makedirs(os.path.dirname(destination), exist_ok=True)
    rename(source, destination)


def delete(path: str) -> None:
    """Deletes a file, or a folder with all it holds."""
    if FileSystems.get_scheme(path) is None:
        # Beam's own deletion takes a bracket in a path for a pattern.
        _delete_folder(path) if os.path.isdir(path) else os.remove(path)
    else:
        FileSystems.delete([path])


def _delete_folder(folder: str) -> None:
    files = [os.path.join(base, name) for base, _, names in os.walk(folder) for name in names]
    # To delete a file that is still being written to the disk is mostly to wait.
    with ThreadPoolExecutor(_DELETED_AT_ONCE) as pool:
        list(pool.map(os.remove, files))
    shutil.rmtree(folder)


def delete_if_empty(folder: str) -> None:
    """Deletes a folder with nothing in it; on an object store there are none."""
    if FileSystems.get_scheme(folder) is None and os.path.isdir(folder) and not os.listdir(folder):
        os.rmdir(folder)


def list_folder(folder: str) -> list[StoredFile]:
    """Returns the files below a folder, at any depth, by the bytes of their names below it."""
    prefix = folder.rstrip('/') + '/'
    filesystem = FileSystems.get_filesystem(folder)
    # `_list` is what every filesystem of Beam implements and `match` is made of; `match` itself
    # would take a bracket in the folder's name for a pattern.
    files = [
        StoredFile(
            found.path,
            found.path[len(prefix) :],
            found.size_in_bytes,
            found.last_updated_in_seconds or 0,
        )
        for found in filesystem._list(prefix)
    ]
    return sorted(files, key=lambda file: file.name.encode('utf-8', 'surrogateescape'))


def find(pattern: str) -> list[StoredFile]:
    """Returns the files that a path or a glob names, by the bytes of their relative paths.

    `*` stops at a folder's border and `**` does not, as everywhere in Beam. A file whose name holds
    a wildcard character is found by that name.

    Raises:
        InputError: nothing is there.
    """
    path = absolute(pattern)
    try:
        if not _WILDCARD.search(path) or FileSystems.exists(path):
            filesystem = FileSystems.get_filesystem(path)
            if not FileSystems.exists(path) or os.path.isdir(path):
                what = 'is a folder, not a file' if os.path.isdir(path) else 'does not exist'
                raise InputError(f'{pattern} {what}; give an existing file or a glob')
            if FileSystems.get_scheme(path) is None and not os.path.isfile(path):
                raise InputError(
                    f'{pattern} is not a regular file, and a pipe or device cannot be read twice; '
                    'write it to a file first'
                )
            found = filesystem.metadata(path)
            modified = found.last_updated_in_seconds or 0
            return [StoredFile(path, split_path(path)[1], found.size_in_bytes, modified)]
        fixed = path[: _WILDCARD.search(path).start()].rpartition('/')[0] + '/'
        [result] = FileSystems.match([path])
    except OSError as error:
        raise InputError(f'cannot look for {pattern}: {_reason(error)}; check the path') from error
    if not result.metadata_list:
        raise InputError(f'no file matches {pattern}; check the pattern (quote it for the shell)')
    files = [
        StoredFile(
            found.path,
            found.path[len(fixed) :],
            found.size_in_bytes,
            found.last_updated_in_seconds or 0,
        )
        for found in result.metadata_list
    ]
    return sorted(files, key=lambda file: file.name.encode('utf-8', 'surrogateescape'))


def attempt_name(name: str) -> str:
    """Returns a name for what is not whole yet; no two attempts have the same."""
    return f'{_ATTEMPT_PREFIX}{name}-{uuid.uuid4().hex}'


class Attempt:
    """A folder of one run's own inside the output's, swept when the run ends, however it ends.

    Args:
        folder: the output's.
        names: if given, the output is these files of the folder, where others may be at work.
    """

    def __init__(self, folder: str, names: Sequence[str] = ()):
        self.folder = folder
        self.path = join(folder, attempt_name(names[0] if names else 'run'))
        self._names = names

    def __enter__(self) -> 'Attempt':
        self._is_new = not exists(self.folder)
        try:
            sweep_attempts(self.folder, self._names)
            probe = join(self.path, 'probe')
            write_bytes(probe, b'')
            delete(probe)
        except OSError as error:
            raise InputError(
                f'cannot write to {self.folder}: {_reason(error)}; give another --output'
            ) from error
        return self

    def __exit__(self, *_) -> None:
        if FileSystems.exists(self.path):
            delete(self.path)
        is_local = FileSystems.get_scheme(self.folder) is None
        if self._is_new and is_local and not os.listdir(self.folder):
            os.rmdir(self.folder)

    def publish(self, names: Sequence[str]) -> None:
        """Gives whole files of this attempt their final names in the output's folder."""
        for name in names:
            move(join(self.path, *name.split('/')), join(self.folder, *name.split('/')))


def sweep_attempts(folder: str, names: Sequence[str] = ()) -> None:
    """Deletes what killed runs left in a folder, or only that of the files named."""
    of_names = '|'.join(map(re.escape, names))
    pattern = re.compile(re.escape(_ATTEMPT_PREFIX) + (f'({of_names})-[0-9a-f]+' if names else '.*'))
    if FileSystems.get_scheme(folder) is None:
        found = os.listdir(folder) if os.path.isdir(folder) else []
    else:
        found = {file.name.partition('/')[0] for file in list_folder(folder)}
    for name in found:
        if pattern.fullmatch(name):
            delete(join(folder, name))


def _reason(error: OSError) -> str:
    return error.strerror or ' '.join(str(error).split())
