"""Files and folders wherever Beam's `FileSystems` reach, opened as they are stored.

Beam decompresses by a file's name and reads a truncated gzip file without an error, so files are
opened uncompressed here and decompressed by `tokcore.corpus.storage`. Output is written under a
temporary name and renamed when it is whole. Folders are deleted file by file, by the names of what
is known to be the program's own. System errors become `InputError`.
"""

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from apache_beam.io.filesystem import CompressionTypes, FileMetadata
from apache_beam.io.filesystems import FileSystems

from pipelines.files.local_folder import LinkError, LocalFolder, attempt_name
from pipelines.system_errors import telling
from tokcore.errors import InputError

_WILDCARD = re.compile(r'[*?\[]')


def make_folders(folder: str, root: str | None = None) -> list[str]:
    """Makes a folder and those above it; returns the ones that were not there, the lowest first.

    On an object store there are none. Raises as `LocalFolder.open`, whose `root` this is.
    """
    if not is_local(folder):
        return []
    missing = []
    above = folder
    while not os.path.lexists(above):
        missing.append(above)
        above = os.path.dirname(above)
    with LocalFolder.open(folder, root, make=True):
        return missing


def delete_empty_folders(folders: Sequence[str]) -> None:
    """Deletes folders, the lowest first, as far as there is nothing in them."""
    for folder in folders:
        delete_if_empty(folder)


def delete_if_empty(folder: str) -> None:
    """Deletes a folder with nothing in it; on an object store there are none."""
    if is_local(folder):
        with contextlib.suppress(OSError, LinkError), LocalFolder.above(folder) as (above, name):
            above.delete_if_empty(name)


def delete_known(folder: str, is_known: Callable[[str], bool]) -> None:
    """Deletes the files below a folder that are known by their names, and folders left empty.

    What else is there stays. A link is a file here: it is removed and not followed.

    Args:
        folder: a folder, or a link, which is removed.
        is_known: tells it of a file's name below the folder, with `/` between names.
    """
    if not is_local(folder):
        for file in list_folder(folder):
            if is_known(file.name):
                delete_file(file.path)
        return
    missing = contextlib.suppress(FileNotFoundError, NotADirectoryError)
    with telling(f'delete {folder}'), missing, LocalFolder.above(folder) as (above, name):
        try:
            own = above.below(name)
        except LinkError:
            above.delete(name)
            return
        with own:
            own.delete_known(is_known)
        above.delete_if_empty(name)


def names_below(folder: str) -> list[str]:
    """Returns the names of the files below a folder, links among them, with `/` between names."""
    if not is_local(folder):
        return [file.name for file in list_folder(folder)]
    missing = contextlib.suppress(FileNotFoundError, NotADirectoryError)
    with telling(f'look into {folder}'), missing, LocalFolder.open(folder) as own:
        return sorted(own.names_below())
    return []


@dataclass(frozen=True)
class StoredFile:
    """A file as its filesystem lists it; `name` is what no move of its folder changes."""

    path: str
    name: str
    size: int  # bytes as stored
    modified: float  # seconds since 1970, 0 where the filesystem does not tell
    sha256: str | None = None  # of one that was fetched


def absolute(path: str) -> str:
    """Returns a path that means the same in every worker's working directory.

    Raises:
        InputError: it is of a filesystem that cannot be had here.
    """
    if is_local(path):
        return os.path.abspath(path)
    try:
        FileSystems.get_filesystem(path)
    except ValueError as error:
        scheme = FileSystems.get_scheme(path)
        remedy = {
            'file': 'give the path without file://',
            'gs': "install Google's: pip install 'apache-beam[gcp]'",
            's3': "install Amazon's: pip install 'apache-beam[aws]'",
            'azfs': "install Azure's: pip install 'apache-beam[azure]'",
        }.get(scheme, 'Beam knows gs, s3, azfs and hdfs; copy the file to one of them, or here')
        raise InputError(f'{path}: nothing here opens {scheme}:// paths; {remedy}') from error
    return path


def is_local(path: str) -> bool:
    """Returns whether a path is one of this machine's own filesystem."""
    return FileSystems.get_scheme(path) is None


def join(folder: str, *names: str) -> str:
    return FileSystems.join(folder, *names)


def split_path(path: str) -> tuple[str, str]:
    """Returns a path's folder and its last name."""
    return FileSystems.split(path)


def open_binary(path: str) -> BinaryIO:
    """Opens a file for reading as it is stored, seekable.

    Raises:
        InputError: there is no regular file that may be read.
    """
    with telling(f'read {path}'):
        if is_local(path):
            return _open_regular(path)
        return FileSystems.open(
            path, 'application/octet-stream', compression_type=CompressionTypes.UNCOMPRESSED
        )


def read_bytes(path: str) -> bytes:
    """Returns a whole file. Raises InputError if it cannot be read."""
    with telling(f'read {path}'), open_binary(path) as stream:
        return stream.read()


def read_if_there(path: str) -> bytes | None:
    """Returns what a file holds, or None if there is none."""
    return read_bytes(path) if exists(path) else None


def exists(path: str) -> bool:
    with telling(f'look for {path}'):
        return FileSystems.exists(path)


def is_folder(path: str) -> bool:
    """Returns whether a path is a folder, or on an object store the beginning of a file's name."""
    if is_local(path):
        return os.path.isdir(path)
    return not exists(path) and bool(list_folder(path))


def stored_size(path: str) -> int | None:
    """Returns a file's size in bytes, or None if it is missing."""
    if not exists(path):
        return None
    with telling(f'look at {path}'):
        return FileSystems.get_filesystem(path).size(path)


@contextlib.contextmanager
def create(path: str) -> Iterator[BinaryIO]:
    """Writes a file that appears under its name only when it is whole.

    Of two writers of one path either may win; a writer that fails leaves nothing behind.

    Raises:
        FullDiskError: there is no room for it.
        InputError: it cannot be written otherwise.
    """
    with telling(f'write {path}'):
        if is_local(path):
            with (
                LocalFolder.above(path, make=True) as (folder, name),
                folder.create(name) as stream,
            ):
                yield stream
        else:
            with _create_object(path) as stream:
                yield stream


def write_bytes(path: str, data: bytes) -> None:
    """Writes a whole file by `create`."""
    with create(path) as stream:
        stream.write(data)


def rename(source: str, destination: str) -> None:
    """Moves a file over whatever has that name."""
    with telling(f'write {destination}'):
        if is_local(source):
            with (
                LocalFolder.above(source) as (folder, name),
                LocalFolder.above(destination) as (into, new_name),
            ):
                folder.replace(name, new_name, into)
        else:
            FileSystems.rename([source], [destination])


def delete_file(path: str) -> None:
    """Deletes a file or a link if it is there; never a folder, nor what a link leads to.

    Raises:
        InputError: it is a folder, or cannot be deleted.
    """
    with telling(f'delete {path}'):
        if is_local(path):
            with (
                contextlib.suppress(FileNotFoundError),
                LocalFolder.above(path) as (folder, name),
            ):
                folder.delete(name)
        elif FileSystems.exists(path):
            FileSystems.delete([path])


def list_folder(folder: str) -> list[StoredFile]:
    """Returns the files below a folder, at any depth, by the bytes of their names below it."""
    prefix = folder.rstrip('/') + '/'
    filesystem = FileSystems.get_filesystem(folder)
    # `_list` is what every filesystem of Beam implements and `match` is made of; `match` itself
    # would take a bracket in the folder's name for a pattern.
    return _stored_files(filesystem._list(prefix), prefix)


def find(pattern: str) -> list[StoredFile]:
    """Returns the files that a path or a glob names, by the bytes of their relative paths.

    `*` stops at a folder's border and `**` does not, as everywhere in Beam. A file whose name holds
    a wildcard character is found by that name.

    Raises:
        InputError: nothing is there.
    """
    path = absolute(pattern)
    with telling(f'look for {pattern}'):
        if not _WILDCARD.search(path) or FileSystems.exists(path):
            filesystem = FileSystems.get_filesystem(path)
            if not FileSystems.exists(path):
                raise InputError(f'{pattern} does not exist; give an existing file or a glob')
            if is_local(path) and not os.path.isfile(path):
                raise InputError(_not_regular(pattern, os.path.isdir(path)))
            above = path.removesuffix(split_path(path)[1])
            return _stored_files([filesystem.metadata(path)], above)
        fixed = path[: _WILDCARD.search(path).start()].rpartition('/')[0] + '/'
        [result] = FileSystems.match([path])
    if not result.metadata_list:
        raise InputError(f'no file matches {pattern}; check the pattern (quote it for the shell)')
    files = _stored_files(result.metadata_list, fixed)
    for file in files:
        if is_local(file.path) and not os.path.isfile(file.path):
            raise InputError(f'{pattern} matches {_not_regular(file.path, is_folder=False)}')
    return files


def _open_regular(path: str) -> BinaryIO:
    # Opening a pipe that nobody writes to would wait for ever.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, 'O_NONBLOCK', 0))
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise InputError(_not_regular(path, stat.S_ISDIR(mode)))
    return os.fdopen(descriptor, 'rb')


def _not_regular(path: str, is_folder: bool) -> str:
    if is_folder:
        return f'{path} is a folder, not a file; give an existing file or a glob'
    return (
        f'{path} is not a regular file, and a pipe or device cannot be read twice; '
        'write it to a file first'
    )


@contextlib.contextmanager
def _create_object(path: str) -> Iterator[BinaryIO]:
    temporary = join(split_path(path)[0], attempt_name())
    try:
        with FileSystems.create(
            temporary,
            'application/octet-stream',
            compression_type=CompressionTypes.UNCOMPRESSED,
        ) as stream:
            yield stream
        FileSystems.rename([temporary], [path])
    except BaseException:
        with contextlib.suppress(InputError):  # what went wrong first is told
            delete_file(temporary)
        raise


def _stored_files(listed: Iterable[FileMetadata], above: str) -> list[StoredFile]:
    """The files that a filesystem lists below a path, by the bytes of their names below it."""
    files = [
        StoredFile(
            found.path,
            found.path[len(above) :],
            found.size_in_bytes,
            found.last_updated_in_seconds or 0,
        )
        for found in listed
    ]
    return sorted(files, key=lambda file: file.name.encode('utf-8', 'surrogateescape'))
