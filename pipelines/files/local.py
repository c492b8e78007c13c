"""What a place for files can do, and the files of this machine, by folders that are kept open.

`LocalFiles`, `objects.ObjectFiles` and, for what only Beam reaches, `beam_files.BeamFiles` implement the
protocol `Files`; `filesystem.files_of` returns the one that a path belongs to. Paths are absolute. Methods
raise OSError as the system does; the functions of `filesystem` turn that into sentences.

Whoever may write to a folder can put a link where a file of the tool was, at any moment. So the tool's
files are written and deleted by the descriptor of their folder and a name without separators. Links on
the way to an output or a work folder are the user's and are followed; from the first name on that the
tool has chosen, such as `.tokbeam`, none is.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import stat
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol

from tokcore.errors import InputError, OperatingSystemError
from tokcore.process_end import unless_ending

if TYPE_CHECKING:
    from apache_beam.io.filesystem import FileMetadata


@dataclass(frozen=True)
class StoredFile:
    """A file as its filesystem lists it; `name` is what no move of its folder changes."""

    path: str
    name: str
    size: int  # bytes as stored
    modified: float  # seconds since 1970, 0 where the filesystem does not say
    sha256: str | None = None  # of one that was fetched


class Files(Protocol):
    """The files of this machine, or of stores.

    Attributes:
        is_shared: whether other machines reach a file by the same path. Such stores have no folders,
            links or locks: what concerns those only `LocalFiles` can do.
    """

    is_shared: bool

    def absolute(self, path: str) -> str:
        """Returns a path that means the same in every worker's working directory."""

    def exists(self, path: str) -> bool:
        """Returns whether a file or a folder has a path."""

    def is_folder(self, path: str) -> bool:
        """Returns whether a path is a folder; on a store, whether names of files begin with it."""

    def stat(self, path: str) -> StoredFile | None:
        """Returns a file, with its last name; None if nothing has the path."""

    def sizes(self, paths: Sequence[str]) -> list[int | None]:
        """Returns the bytes of files, None for those that are missing."""

    def match(self, pattern: str, above: str) -> list[StoredFile]:
        """Returns the files that a glob names, with their names below the path `above`."""

    def list_folder(self, folder: str) -> list[StoredFile]:
        """Returns the files in a folder, at any depth, by the bytes of their names in it."""

    def entries(self, folder: str) -> list[str]:
        """Returns the first parts of all names in a folder, sorted; none if it is missing."""

    def names_below(self, folder: str) -> list[str]:
        """Returns the names of the files in a folder, at any depth, links among them, sorted."""

    def open(self, path: str, size: int | None = None, ahead: int = 0) -> BinaryIO:
        """Opens a file to read it as it is stored; raises InputError if it is not a regular file.

        Where its size is known, it may be given, and about how many bytes are read from the first
        place on (`ahead`): a store is then asked less often.
        """

    def create(self, path: str) -> AbstractContextManager[BinaryIO]:
        """Writes a file that has its name only when it is whole."""

    def move(self, moves: Sequence[tuple[str, str]]) -> None:
        """Moves files, (source, destination) each, over whatever has those names."""

    def delete(self, paths: Sequence[str]) -> None:
        """Deletes files or links, as far as they are there."""

    def delete_known(self, folder: str, is_known: Callable[[str], bool]) -> None:
        """Deletes the files in a folder whose names are known, and folders left empty."""

    def check_writable(self, folder: str) -> None:
        """Raises OSError if no file may be made in a folder."""


class StoreFiles:
    """What `Files` of all stores have in common: there are no folders, links or locks."""

    is_shared = True

    def is_folder(self: Files, path: str) -> bool:
        return not self.exists(path) and bool(self.entries(path))

    def names_below(self: Files, folder: str) -> list[str]:
        return [file.name for file in self.list_folder(folder)]

    def delete_known(self: Files, folder: str, is_known: Callable[[str], bool]) -> None:
        self.delete([file.path for file in self.list_folder(folder) if is_known(file.name)])


class ListedByBeam:
    """What `Files` have in common that Beam lists: of this machine, and of stores that only Beam reaches."""

    def sizes(self: Files, paths: Sequence[str]) -> list[int | None]:
        return [None if file is None else file.size for file in map(self.stat, paths)]

    def match(self, pattern: str, above: str) -> list[StoredFile]:
        from apache_beam.io.filesystems import FileSystems  # its import takes a second

        [result] = FileSystems.match([pattern])
        return as_stored(result.metadata_list, above)

    def list_folder(self, folder: str) -> list[StoredFile]:
        from apache_beam.io.filesystems import FileSystems

        prefix = folder.rstrip('/') + '/'
        # `_list` is what every filesystem of Beam implements and `match` is made of; `match` itself
        # would take a bracket in the folder's name for a pattern.
        return as_stored(FileSystems.get_filesystem(folder)._list(prefix), prefix)


class LocalFiles(ListedByBeam):
    """The `Files` of this machine."""

    is_shared = False

    def absolute(self, path: str) -> str:
        return os.path.abspath(path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def stat(self, path: str) -> StoredFile | None:
        if not os.path.exists(path):
            return None
        status = os.stat(path)
        return StoredFile(path, os.path.basename(path), status.st_size, status.st_mtime)

    def check_regular(self, path: str, pattern: str) -> None:
        """Raises InputError if a path, found by a pattern, is not a regular file."""
        if os.path.isfile(path):
            return
        if path == self.absolute(pattern):
            raise _not_regular(pattern, os.path.isdir(path))
        raise _not_regular(path, is_folder=False, prefix=f'{pattern} matches ')

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
        if not stat.S_ISREG(mode):
            os.close(descriptor)
            raise _not_regular(path, stat.S_ISDIR(mode))
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
        """Makes a folder and those above it; returns the new ones, the lowest first."""
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
        """Deletes a folder with nothing in it."""
        with contextlib.suppress(OSError, LinkError), LocalFolder.above(folder) as (above, name):
            above.delete_if_empty(name)


def as_stored(listed: Iterable[FileMetadata], above: str) -> list[StoredFile]:
    """Returns files that Beam lists below a path, by the bytes of their names below it."""
    files = [
        StoredFile(
            file.path,
            file.path[len(above) :],
            file.size_in_bytes,
            file.last_updated_in_seconds or 0,
        )
        for file in listed
    ]
    return sorted(files, key=lambda file: file.name.encode('utf-8', 'surrogateescape'))


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


ATTEMPT_PREFIX = '.tokbeam-attempt-'
"""Begins the name of what is not whole yet."""

_OWN_NAME = re.compile(r'\.tokbeam(-.*)?|shuffle-[0-9a-f]{32}|learner-[0-9a-f]{16}', re.DOTALL)
"""Folders that the tool makes and names for itself, below folders of the user's."""

_HAS_DESCRIPTORS = (
    {os.open, os.mkdir, os.stat, os.unlink, os.rmdir, os.rename} <= os.supports_dir_fd
    and os.scandir in os.supports_fd
    and hasattr(os, 'O_NOFOLLOW')
)
"""Not on Windows: there paths are used, and links looked for before."""

# A folder that may be entered and not listed can be opened as no more than a path.
_FOLDER_FLAGS = (
    getattr(os, 'O_PATH', os.O_RDONLY) | getattr(os, 'O_DIRECTORY', 0) | getattr(os, 'O_CLOEXEC', 0)
)
_FILE_FLAGS = (
    getattr(os, 'O_NOFOLLOW', 0)
    | getattr(os, 'O_NONBLOCK', 0)  # to open a pipe would wait for its other end
    | getattr(os, 'O_CLOEXEC', 0)
    | getattr(os, 'O_BINARY', 0)
)

_DEEPEST = 64
"""Folders within folders that are looked into; the tool makes a tenth of it. Each takes a descriptor."""

_DELETED_AT_ONCE = 8

_WRITE_BYTES = 1 << 20
"""The most that is written by one call. ext4 takes pages as large as a call allows, and large ones are
seldom those that were in use a moment ago: new files took up to ten times as long in calls of 4 MiB and
more. Calls of 256 KiB are not faster."""


class LinkError(OperatingSystemError):
    """A symbolic link is where a folder or a file of the tool goes."""

    def __init__(self, path: str):
        super().__init__(f'{path} is a symbolic link, and none is followed there; remove the link')


def attempt_name() -> str:
    """Returns a name for what is not whole yet; no two attempts have the same."""
    return f'{ATTEMPT_PREFIX}{uuid.uuid4().hex}'


class LocalFolder:
    """A folder of this machine; closed at the end of a block.

    Names are those of its entries and have no separator. Methods raise OSError as the system does,
    and InputError for a name with a separator.

    Attributes:
        path: by which it was opened.
    """

    def __init__(self, path: str, descriptor: int | None):
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def open(cls, path: str, root: str | None = None, make: bool = False) -> LocalFolder:
        """Opens a folder.

        Args:
            path: of the folder.
            root: a folder above it, below which no link is followed; None: above the first name
                that the tool has given.
            make: whether to make it, and those above it. An attempt's folder is never made so: it
                is there as long as the attempt is.

        Raises:
            LinkError: there is a link where none is followed.
            OSError: it is not there, or no folder.
        """
        above, own = _split_own(path, root)
        if make:
            os.makedirs(above, exist_ok=True)
        folder = cls(above, _open_folder(above, None, _FOLDER_FLAGS))
        for name in own:
            with folder:
                folder = folder.below(name, make and not name.startswith(ATTEMPT_PREFIX))
        return folder

    @classmethod
    @contextlib.contextmanager
    def above(cls, path: str, make: bool = False) -> Iterator[tuple[LocalFolder, str]]:
        """Opens the folder of a file for a block, as `open`; gives it, and the file's name in it."""
        above, name = os.path.split(path)
        with cls.open(above or os.curdir, make=make) as folder:
            yield folder, name

    def __enter__(self) -> LocalFolder:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def below(self, name: str, make: bool = False) -> LocalFolder:
        """Opens a folder in this one.

        Raises:
            LinkError: it is a link.
        """
        place, at = self._place(name)
        if make:
            with unless_ending, contextlib.suppress(FileExistsError):
                os.mkdir(place, dir_fd=at)
        path = os.path.join(self.path, name)
        if not _HAS_DESCRIPTORS and self.is_link(name):
            raise LinkError(path)
        try:
            flags = _FOLDER_FLAGS | getattr(os, 'O_NOFOLLOW', 0)
            return LocalFolder(path, _open_folder(place, at, flags))
        except OSError as error:
            if self.is_link(name):
                raise LinkError(path) from error
            raise

    @contextlib.contextmanager
    def parent_of(self, names: str, make: bool = False) -> Iterator[tuple[LocalFolder, str]]:
        """Opens for a block the folder of a file at any depth below this one.

        Args:
            names: of the folders on the way and of the file, with `/` between them.
            make: whether to make the folders on the way.

        Raises:
            LinkError: there is a link on the way.
        """
        *on_the_way, name = names.split('/')
        with contextlib.ExitStack() as stack:
            folder = self
            for folder_name in on_the_way:
                folder = stack.enter_context(folder.below(folder_name, make))
            yield folder, name

    def is_at_its_path(self) -> bool:
        """Tells whether its path still leads to this folder, and not to another by now."""
        if self._descriptor is None:
            return True
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._descriptor))
        except OSError:
            return False

    def state(self, name: str) -> os.stat_result | None:
        """Returns what the system knows of an entry, of a link itself; None if it is missing."""
        place, at = self._place(name)
        try:
            return os.stat(place, dir_fd=at, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def is_link(self, name: str) -> bool:
        state = self.state(name)
        return state is not None and stat.S_ISLNK(state.st_mode)

    def is_folder(self, name: str) -> bool:
        state = self.state(name)
        return state is not None and stat.S_ISDIR(state.st_mode)

    def entries(self) -> list[tuple[str, bool]]:
        """Returns the name of each entry, and whether it is a folder and not a link, by name."""
        if self._descriptor is None:
            return _entries(self.path)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        descriptor = os.open(os.curdir, flags, dir_fd=self._descriptor)
        try:
            return _entries(descriptor)
        finally:
            os.close(descriptor)

    def names_below(self, deepest: int = _DEEPEST) -> Iterator[str]:
        """Yields the names of the files at any depth, links among them, with `/` between names."""
        for name, is_folder in self.entries():
            if not is_folder:
                yield name
                continue
            folder = self._readable(name) if deepest else None
            if folder is not None:
                with folder:
                    yield from (f'{name}/{path}' for path in folder.names_below(deepest - 1))

    def open_file(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Returns a descriptor of a regular file.

        Args:
            name: of the file.
            flags: as those of `os.open`.
            mode: of a file that is made.

        Raises:
            LinkError: it is a link.
            InputError: it is not a regular file.
        """
        place, at = self._place(name)
        path = os.path.join(self.path, name)
        if not _HAS_DESCRIPTORS and self.is_link(name):
            raise LinkError(path)
        is_new = flags & os.O_CREAT
        try:
            with unless_ending if is_new else contextlib.nullcontext():
                descriptor = os.open(place, flags | _FILE_FLAGS, mode, dir_fd=at)
        except OSError as error:
            if not flags & os.O_EXCL and self.is_link(name):
                raise LinkError(path) from error
            raise
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise InputError(f'{path} is not a regular file; remove it')
        return descriptor

    def read(self, name: str, most: int) -> bytes | None:
        """Returns the first bytes of a file; None if there is no regular file of that name."""
        try:
            with os.fdopen(self.open_file(name, os.O_RDONLY), 'rb') as stream:
                return stream.read(most)
        except (FileNotFoundError, InputError):
            return None

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        """Writes a file that has its name only when it is whole, in place of what had it."""
        temporary = attempt_name()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            file = _FileInPieces(self.open_file(temporary, flags), 'wb')
            with io.BufferedWriter(file) as stream:
                yield stream
            self.replace(temporary, name)
        except BaseException:
            with contextlib.suppress(OSError):  # the first error is the one to report
                self.delete(temporary)
            raise

    def replace(self, name: str, new_name: str, into: LocalFolder | None = None) -> None:
        """Moves an entry over whatever has a name in this folder or in another."""
        (source, at), (target, into_at) = self._place(name), (into or self)._place(new_name)
        with unless_ending:
            os.replace(source, target, src_dir_fd=at, dst_dir_fd=into_at)

    def delete(self, name: str) -> None:
        """Deletes a file or a link if it is there; never a folder, nor what a link leads to."""
        place, at = self._place(name)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(place, dir_fd=at)

    def delete_if_empty(self, name: str) -> None:
        """Deletes a folder with nothing in it."""
        place, at = self._place(name)
        with contextlib.suppress(OSError):  # it has something in it, is a link, or is gone
            os.rmdir(place, dir_fd=at)

    def delete_tree(self, name: str) -> None:
        """Deletes a folder with all it holds, or a link."""
        try:
            folder = self.below(name)
        except LinkError:
            self.delete(name)
            return
        with folder:
            folder.delete_all()
        place, at = self._place(name)
        os.rmdir(place, dir_fd=at)

    def delete_all(self) -> None:
        """Deletes all entries."""
        entries = self.entries()
        self._delete_files([name for name, is_folder in entries if not is_folder])
        for name, is_folder in entries:
            if is_folder:
                self.delete_tree(name)

    def delete_known(
        self, is_known: Callable[[str], bool], above: str = '', deepest: int = _DEEPEST
    ) -> None:
        """Deletes the files at any depth that are known by their names, and folders left empty.

        Args:
            is_known: takes a file's name below the first folder, with `/` between names.
            above: the names on the way from there to this folder, each with `/` after it.
            deepest: folders within folders that are looked into.
        """
        entries = self.entries()
        self._delete_files(
            [name for name, is_folder in entries if not is_folder and is_known(above + name)]
        )
        for name, is_folder in entries:
            folder = self._readable(name) if is_folder and deepest else None
            if folder is not None:
                with folder:
                    folder.delete_known(is_known, f'{above}{name}/', deepest - 1)
                self.delete_if_empty(name)

    def _readable(self, name: str) -> LocalFolder | None:
        """Opens a folder, perhaps another user's; None if it cannot be listed, or is gone."""
        try:
            folder = self.below(name)
        except (OSError, LinkError):
            return None
        try:
            folder.entries()
        except OSError:
            with folder:
                return None
        return folder

    def _delete_files(self, names: Sequence[str]) -> None:
        if len(names) < 2:
            for name in names:
                self.delete(name)
            return
        # To delete a file that is still being written to the disk is mostly to wait.
        with ThreadPoolExecutor(min(_DELETED_AT_ONCE, len(names))) as pool:
            list(pool.map(self.delete, names))

    def _place(self, name: str) -> tuple[str, int | None]:
        """What the functions of `os` take for an entry: a path, and what that is relative to."""
        if name in ('', os.curdir, os.pardir) or {'/', os.sep, '\0'} & set(name):
            raise InputError(
                f'{name!r} cannot be the name of a file in {self.path}; remove it from there'
            )
        if self._descriptor is None:
            return os.path.join(self.path, name), None
        return name, self._descriptor


class _FileInPieces(io.FileIO):
    """A file of which a call writes at most `_WRITE_BYTES`; the buffer around it writes the rest."""

    def write(self, data, /) -> int:
        return super().write(memoryview(data)[:_WRITE_BYTES])


def _split_own(path: str, root: str | None) -> tuple[str, Sequence[str]]:
    """A path's folder to which links are followed, and the names below it, where none is."""
    parts = path.replace(os.sep, '/').split('/')
    if root is not None:
        first = len(root.replace(os.sep, '/').rstrip('/').split('/'))
    else:
        own = (place for place, name in enumerate(parts) if _OWN_NAME.fullmatch(name))
        first = next(own, len(parts))
    above = '/'.join(parts[:first]) or ('/' if path.startswith('/') else os.curdir)
    return above, [name for name in parts[first:] if name]


def _open_folder(place: str, at: int | None, flags: int) -> int | None:
    if _HAS_DESCRIPTORS:
        return os.open(place, flags, dir_fd=at)
    os.listdir(place)  # raises what opening it would
    return None


def _entries(of: str | int) -> list[tuple[str, bool]]:
    with os.scandir(of) as entries:
        return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
