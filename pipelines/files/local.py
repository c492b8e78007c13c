"""The files of this machine, written and deleted by the descriptor of their folder.

Beam lists them by folder and by glob. It takes a second to import, so only those who list do.
"""

import contextlib
import errno
import os
import stat as modes
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

from pipelines.files.files import StoredFile
from pipelines.files.local_folder import LinkError, LocalFolder
from tokcore.errors import InputError


class LocalFiles:
    """The `Files` of this machine."""

    is_shared = False

    def absolute(self, path: str) -> str:
        return os.path.abspath(path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def is_obstructed(self, folder: str) -> bool:
        is_there = os.path.lexists(folder)
        return is_there and (os.path.islink(folder) or not os.path.isdir(folder))

    def has_folder_at(self, path: str) -> bool:
        return os.path.isdir(path)

    def stat(self, path: str) -> StoredFile | None:
        if not os.path.exists(path):
            return None
        status = os.stat(path)
        return StoredFile(path, os.path.basename(path), status.st_size, status.st_mtime)

    def sizes(self, paths: Sequence[str]) -> list[int | None]:
        return [None if file is None else file.size for file in map(self.stat, paths)]

    def match(self, pattern: str, above: str) -> list[StoredFile]:
        from pipelines.files.beam_files import match

        return match(pattern, above)

    def check_regular(self, path: str, pattern: str) -> None:
        if os.path.isfile(path):
            return
        if path == self.absolute(pattern):
            raise _not_regular(pattern, os.path.isdir(path))
        raise _not_regular(path, is_folder=False, prefix=f'{pattern} matches ')

    def list_folder(self, folder: str) -> list[StoredFile]:
        from pipelines.files.beam_files import stored_files

        return stored_files(folder)

    def entries(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def names_below(self, folder: str) -> list[str]:
        with _missing_is_fine(), LocalFolder.open(folder) as own:
            return sorted(own.names_below())
        return []

    def open(self, path: str, size: int | None = None, ahead: int = 0) -> BinaryIO:
        # Opening a pipe that nobody writes to would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, 'O_NONBLOCK', 0))
        mode = os.fstat(descriptor).st_mode
        if not modes.S_ISREG(mode):
            os.close(descriptor)
            raise _not_regular(path, modes.S_ISDIR(mode))
        return os.fdopen(descriptor, 'rb')

    @contextlib.contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        with (
            LocalFolder.above(path, make=True) as (folder, name),
            folder.create(name) as stream,
        ):
            yield stream

    def move(self, moves: Sequence[tuple[str, str]]) -> None:
        for source, destination in moves:
            with (
                LocalFolder.above(source) as (folder, name),
                LocalFolder.above(destination) as (into, new_name),
            ):
                folder.replace(name, new_name, into)

    def delete(self, paths: Sequence[str]) -> None:
        missing = contextlib.suppress(FileNotFoundError)
        for path in paths:
            with missing, LocalFolder.above(path) as (folder, name):
                folder.delete(name)

    def delete_known(self, folder: str, is_known: Callable[[str], bool]) -> None:
        with _missing_is_fine(), LocalFolder.above(folder) as (above, name):
            try:
                own = above.below(name)
            except LinkError:
                above.delete(name)
                return
            with own:
                own.delete_known(is_known)
            above.delete_if_empty(name)

    def make_folders(self, folder: str, root: str | None) -> list[str]:
        missing = []
        above = folder
        while not os.path.lexists(above):
            missing.append(above)
            above = os.path.dirname(above)
        with LocalFolder.open(folder, root, make=True):
            return missing

    def check_writable(self, folder: str) -> None:
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def delete_if_empty(self, folder: str) -> None:
        with contextlib.suppress(OSError, LinkError), LocalFolder.above(folder) as (above, name):
            above.delete_if_empty(name)

    def open_folder(self, folder: str, root: str | None) -> LocalFolder | None:
        return LocalFolder.open(folder, root)


def _missing_is_fine() -> contextlib.AbstractContextManager:
    return contextlib.suppress(FileNotFoundError, NotADirectoryError)


def _not_regular(path: str, is_folder: bool, prefix: str = '') -> InputError:
    if is_folder:
        return InputError(
            f'{prefix}{path} is a folder, not a file; give an existing file or a glob'
        )
    return InputError(
        f'{prefix}{path} is not a regular file, and a pipe or device cannot be read twice; '
        'write it to a file first'
    )
