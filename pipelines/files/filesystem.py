"""Files and folders by their paths, wherever they are; system errors become sentences.

A path with a scheme, as `gs://`, is of an object store, or with `hf://` of the Hugging Face Hub; every other
path is of this machine. All have `/` between names, so `os.path` joins and splits them. A file has its name
only when it is whole. Folders are deleted file by file, by the names of what is known to be the program's own.
"""

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import BinaryIO, cast

from pipelines.files.hub import HubFiles, is_hub_address
from pipelines.files.local import Files, LocalFiles, StoredFile
from pipelines.files.objects import ObjectFiles
from pipelines.files.system_errors import telling
from tokcore.errors import InputError
from tokcore.object_stores import is_object

__all__ = ['StoredFile']

_WILDCARD = re.compile(r'[*?\[]')
_HAS_SCHEME = re.compile(r'\s*[a-zA-Z][-a-zA-Z0-9+.]*://')
_LOCAL, _OBJECTS = LocalFiles(), ObjectFiles()
_HUB = cast(Files, HubFiles())  # `output_path` refuses what would be written there


def files_of(path: str) -> Files:
    """Returns what a path belongs to: this machine's files, or those of object stores or the Hub."""
    if _HAS_SCHEME.match(path) is None:
        return _LOCAL
    if is_hub_address(path):
        return _HUB
    return _OBJECTS if is_object(path) else _beam_files()


@functools.cache
def _beam_files() -> Files:
    from pipelines.files.beam_files import BeamFiles  # takes a second, which most commands need not

    return BeamFiles()


def is_only_beams(path: str) -> bool:
    """Returns whether Beam alone reaches a path; nothing of `tokcore` opens it."""
    return _HAS_SCHEME.match(path) is not None and not is_object(path)


def is_shared(path: str) -> bool:
    """Returns whether other machines reach a file by the same path."""
    return files_of(path).is_shared


def absolute(path: str) -> str:
    """Returns a path that means the same in every worker's working directory.

    Raises:
        InputError: nothing here opens paths of its scheme.
    """
    return files_of(path).absolute(path)


def exists(path: str) -> bool:
    with telling(f'look for {path}'):
        return files_of(path).exists(path)


def is_folder(path: str) -> bool:
    """Returns whether a path is a folder, or on an object store the beginning of a file's name."""
    return files_of(path).is_folder(path)


def stored_size(path: str) -> int | None:
    """Returns a file's size in bytes, or None if it is missing."""
    with telling(f'look at {path}'):
        file = files_of(path).stat(path)
    return None if file is None else file.size


def stored_sizes(paths: Sequence[str]) -> list[int | None]:
    """Returns the bytes of files of one place, None for those that are missing."""
    if not paths:
        return []
    with telling(f'look at {paths[0]}'):
        return files_of(paths[0]).sizes(paths)


def open_binary(path: str, size: int | None = None, ahead: int = 0) -> BinaryIO:
    """Opens a file for reading as it is stored, seekable.

    Args:
        path: of the file.
        size: in bytes, if it is known. A store is then not asked for it, so that only a read shows
            that there is no file, by an OSError, or one of another size, by an InputError.
        ahead: about how many bytes are read from the first place on; a store is asked for them at once.

    Raises:
        InputError: there is no regular file that may be read.
    """
    with telling(f'read {path}'):
        return files_of(path).open(path, size, ahead)


def opener(sizes: Mapping[str, int], ahead: int = 0) -> Callable[[str], BinaryIO]:
    """Returns `open_binary` that knows the sizes of some files by their paths."""
    return lambda path: open_binary(path, sizes.get(path), ahead)


def read_bytes(path: str) -> bytes:
    """Returns a whole file. Raises InputError if it cannot be read."""
    with telling(f'read {path}'), open_binary(path) as stream:
        return stream.read()


def read_if_there(path: str) -> bytes | None:
    """Returns what a file holds, or None if it is missing."""
    if not is_object(path):
        return read_bytes(path) if exists(path) else None
    with telling(f'read {path}'):
        try:
            return _OBJECTS.open(path).read()
        except FileNotFoundError:
            return None


@contextlib.contextmanager
def create(path: str) -> Iterator[BinaryIO]:
    """Writes a file that appears under its name only when it is whole.

    Of two writers of one path either may win; a writer that fails leaves nothing behind.

    Raises:
        FullDiskError: there is no room for it.
        InputError: it cannot be written otherwise.
    """
    with telling(f'write {path}'), files_of(path).create(path) as stream:
        yield stream


def write_bytes(path: str, data: bytes) -> None:
    """Writes a whole file by `create`."""
    with create(path) as stream:
        stream.write(data)


def delete_file(path: str) -> None:
    """Deletes a file or a link if it is there; never a folder, nor what a link leads to.

    Raises:
        InputError: it is a folder, or cannot be deleted.
    """
    with telling(f'delete {path}'):
        files_of(path).delete([path])


def delete_known(folder: str, is_known: Callable[[str], bool]) -> None:
    """Deletes the files below a folder that are known by their names, and folders left empty.

    What else is there stays. A link is a file here: it is removed and not followed.

    Args:
        folder: a folder, or a link, which is removed.
        is_known: takes a file's name below the folder, with `/` between names.
    """
    with telling(f'delete {folder}'):
        files_of(folder).delete_known(folder, is_known)


def make_folders(folder: str, root: str | None = None) -> list[str]:
    """Makes a folder and those above it; returns the ones that were not there, the lowest first.

    On an object store there are none. Raises OSError and LinkError as `LocalFolder.open`, whose
    `root` this is.
    """
    return [] if is_shared(folder) else _LOCAL.make_folders(folder, root)


def delete_empty_folders(folders: Sequence[str]) -> None:
    """Deletes folders, the lowest first, as far as there is nothing in them."""
    for folder in folders:
        delete_if_empty(folder)


def delete_if_empty(folder: str) -> None:
    """Deletes a folder with nothing in it; on an object store there are none."""
    if not is_shared(folder):
        _LOCAL.delete_if_empty(folder)


def names_below(folder: str) -> list[str]:
    """Returns the names of the files below a folder, links among them, with `/` between names."""
    with telling(f'look into {folder}'):
        return files_of(folder).names_below(folder)


def entries(folder: str) -> list[str]:
    """Returns the names in a folder, sorted; none if it is missing."""
    with telling(f'look into {folder}'):
        return files_of(folder).entries(folder)


def list_folder(folder: str) -> list[StoredFile]:
    """Returns the files below a folder, at any depth, by the bytes of their names below it."""
    return files_of(folder).list_folder(folder)


def find(pattern: str) -> list[StoredFile]:
    """Returns the files that a path or a glob names, by the bytes of their relative paths.

    `*` stops at a folder's border and `**` does not, as everywhere in Beam. A file whose name holds
    a wildcard character is found by that name.

    Raises:
        InputError: nothing is there, or something that is not a regular file.
    """
    stored = find_any(pattern)
    if not stored:
        if _WILDCARD.search(absolute(pattern)) is None:
            raise InputError(f'{pattern} does not exist; give an existing file or a glob')
        raise InputError(f'no file matches {pattern}; check the pattern (quote it for the shell)')
    return stored


def find_any(pattern: str) -> list[StoredFile]:
    """Returns what `find` does, or nothing if there are no such files."""
    path = absolute(pattern)
    files = files_of(path)
    with telling(f'look for {pattern}'):
        wildcard = _WILDCARD.search(path)
        named = files.stat(path)
        if named is not None:
            stored = [named]
        elif wildcard is None:
            return []
        else:
            stored = files.match(path, path[: wildcard.start()].rpartition('/')[0] + '/')
    if not files.is_shared:
        for file in stored:
            _LOCAL.check_regular(file.path, pattern)
    return stored


def has_folder_at(path: str) -> bool:
    """Returns whether a path is a folder, of this machine."""
    files = files_of(path)
    return not files.is_shared and files.is_folder(path)
