"""What a place for files can do: one protocol for this machine's disks and for object stores.

`local.LocalFiles`, `objects.ObjectFiles` and, for what only Beam reaches, `beam_files.BeamFiles`
implement it; `filesystem.files_of` returns the one that a path belongs to. Paths are absolute. Methods
raise OSError as the system does; the functions of `filesystem` turn that into sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol

if TYPE_CHECKING:
    from pipelines.files.local import LocalFolder


@dataclass(frozen=True)
class StoredFile:
    """A file as its filesystem lists it; `name` is what no move of its folder changes."""

    path: str
    name: str
    size: int  # bytes as stored
    modified: float  # seconds since 1970, 0 where the filesystem does not tell
    sha256: str | None = None  # of one that was fetched


class Files(Protocol):
    """The files of this machine, or of stores.

    Attributes:
        is_shared: whether other machines reach a file by the same path. Such stores have no folders,
            links or locks: what concerns those does nothing there.
    """

    is_shared: bool

    def absolute(self, path: str) -> str:
        """Returns a path that means the same in every worker's working directory."""

    def exists(self, path: str) -> bool:
        """Returns whether a file or a folder has a path."""

    def is_folder(self, path: str) -> bool:
        """Returns whether a path is a folder; on a store, whether names of files begin with it."""

    def is_obstructed(self, folder: str) -> bool:
        """Returns whether something that is not a folder, or a link, has the path of a folder."""

    def has_folder_at(self, path: str) -> bool:
        """Returns whether a file cannot have a path, since a folder has it."""

    def stat(self, path: str) -> StoredFile | None:
        """Returns a file, with its last name; None if nothing has the path."""

    def sizes(self, paths: Sequence[str]) -> list[int | None]:
        """Returns the bytes of files, None for those that are missing."""

    def match(self, pattern: str, above: str) -> list[StoredFile]:
        """Returns the files that a glob names, with their names below the path `above`."""

    def check_regular(self, path: str, pattern: str) -> None:
        """Raises InputError if a path, found by a pattern, is not a regular file."""

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

    def make_folders(self, folder: str, root: str | None) -> list[str]:
        """Makes a folder and those above it; returns the new ones, the lowest first."""

    def check_writable(self, folder: str) -> None:
        """Raises OSError if no file may be made in a folder."""

    def delete_if_empty(self, folder: str) -> None:
        """Deletes a folder with nothing in it."""

    def open_folder(self, folder: str, root: str | None) -> LocalFolder | None:
        """Opens a folder as `LocalFolder.open` does; None on a store."""


class StoreFiles:
    """What `Files` of all stores have in common: there are no folders, links or locks."""

    is_shared = True

    def is_obstructed(self, folder: str) -> bool:
        return False

    def has_folder_at(self, path: str) -> bool:
        return False

    def check_regular(self, path: str, pattern: str) -> None:
        """Every object is a regular file."""

    def delete_known(self: Files, folder: str, is_known: Callable[[str], bool]) -> None:
        self.delete([file.path for file in self.list_folder(folder) if is_known(file.name)])

    def make_folders(self, folder: str, root: str | None) -> list[str]:
        return []

    def delete_if_empty(self, folder: str) -> None:
        """There are none."""

    def open_folder(self, folder: str, root: str | None) -> LocalFolder | None:
        return None
