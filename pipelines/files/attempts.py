"""Attempts: a run's own folder in the output folder, from which whole files get their final names.

The name of an attempt begins with a digest of the output's files, so that a run deletes what earlier runs
have left at its output alone.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Sequence

from pipelines.files import filesystem
from pipelines.files.filesystem import delete_empty_folders, make_folders
from pipelines.files.local_folder import ATTEMPT_PREFIX, LinkError, LocalFolder, attempt_name
from pipelines.files.system_errors import telling
from tokcore.errors import InputError
from tokcore.process_end import UndoneAtEnd

_DIGITS = 8
"""Of the digest; other outputs in a folder are few."""


class Attempt:
    """A run's own folder in the output folder, deleted when the run ends, however it ends.

    The caller holds the claim on the output, so no other run uses what earlier attempts left.

    Args:
        folder: the output folder.
        names: if given, the output is these files of the folder, which other outputs share.
        held: the output folder, as the claim has opened it.
    """

    def __init__(self, folder: str, names: Sequence[str] = (), held: LocalFolder | None = None):
        self.folder = folder
        beginning = _beginning(names)
        self._name = beginning + attempt_name()[len(beginning) :]
        self.path = _below(folder, self._name)
        self._names = tuple(names)
        self._held = held
        self._own: LocalFolder | None = None

    def __enter__(self) -> 'Attempt':
        self._stack = contextlib.ExitStack()
        try:
            with telling(f'write to {self.folder}'):
                if self._held is None:
                    self._stack.callback(delete_empty_folders, make_folders(self.folder))
                    self._held = filesystem.open_folder(self.folder)
                    if self._held is not None:
                        self._stack.enter_context(self._held)
                sweep_attempts(self.folder, self._names, self._held)
                self._stack.enter_context(UndoneAtEnd(self._begin, lambda _: self._delete()))
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_) -> None:
        self._stack.close()

    def _begin(self) -> None:
        if self._held is not None:
            self._held.make_folder(self._name)
            self._own = self._held.below(self._name)

    def _delete(self) -> None:
        if self._held is None or self._own is None:
            _delete_objects(self.path)
            return
        with telling(f'delete {self.path}'), self._own:
            self._own.delete_all()
            self._held.delete_if_empty(self._name)

    def write(self, name: str, data: bytes) -> None:
        """Writes a file of this attempt."""
        filesystem.write_bytes(self.path_of(name), data)

    def path_of(self, name: str) -> str:
        """Returns the path of a file of this attempt, by its name with `/` between names."""
        return _below(self.path, name)

    def publish(self, names: Sequence[str]) -> None:
        """Moves whole files of this attempt to their final names in the output folder."""
        if self._held is None:
            filesystem.rename_all(
                [(self.path_of(name), _below(self.folder, name)) for name in names]
            )
            return
        for name in names:
            self.publish_as(name, self.folder, name)

    def publish_as(self, source: str, folder: str, name: str) -> None:
        """Moves a whole file of this attempt to a final name.

        Args:
            source: its name in the attempt, with `/` between names.
            folder: the output folder, or the one above it.
            name: the final name in `folder`, with `/` between names.

        Raises:
            InputError: a folder has the name, or a link is on the way.
        """
        target = _below(folder, name)
        if self._held is None or self._own is None:
            filesystem.rename(self.path_of(source), target)
            return
        with (
            telling(f'write {target}'),
            self._own.parent_of(source) as (own, own_name),
            self._opened(folder) as final,
            final.parent_of(name, make=True) as (into, new_name),
        ):
            if into.is_folder(new_name):
                raise InputError(
                    f'{target} is a folder where a file of the result goes; move it away'
                )
            own.replace(own_name, new_name, into)

    def delete_final(self, folder: str, name: str) -> None:
        """Deletes a file of an earlier result, or a link in its place; never a folder.

        Args:
            folder: the output folder, or the one above it.
            name: in `folder`, with `/` between names; no link on the way is followed.
        """
        path = _below(folder, name)
        if self._held is None:
            filesystem.delete_file(path)
            return
        missing = contextlib.suppress(FileNotFoundError, NotADirectoryError, LinkError)
        with (
            telling(f'delete {path}'),
            self._opened(folder) as final,
            missing,
            final.parent_of(name) as (above, last),
        ):
            if not above.is_folder(last):
                above.delete(last)

    @contextlib.contextmanager
    def _opened(self, folder: str) -> Iterator[LocalFolder]:
        """Yields the output folder, or opens the one above it."""
        assert self._held is not None
        if folder == self.folder:
            yield self._held
            return
        with LocalFolder.open(folder) as above:
            if not above.has(os.path.basename(self.folder), self._held):
                raise InputError(
                    f'{self.folder} was moved or replaced while this run worked there; run again'
                )
            yield above


def sweep_attempts(folder: str, names: Sequence[str], held: LocalFolder | None) -> None:
    """Deletes the attempts at this output that killed runs left, and links with such names.

    Args:
        folder: the output folder.
        names: as those of `Attempt`.
        held: the folder, open; None on an object store.
    """
    missing = contextlib.suppress(FileNotFoundError, NotADirectoryError)
    with telling(f'delete what is left in {folder}'), missing:
        beginning = _beginning(names)
        if held is None:
            for name in filesystem.entries(folder):
                if name.startswith(beginning):
                    _delete_objects(_below(folder, name))
            return
        for name, is_folder in held.entries():
            if name.startswith(beginning):
                (held.delete_tree if is_folder else held.delete)(name)


def _beginning(names: Sequence[str]) -> str:
    return ATTEMPT_PREFIX + hashlib.sha256(json.dumps(names).encode()).hexdigest()[:_DIGITS]


def _delete_objects(path: str) -> None:
    filesystem.delete_files([file.path for file in filesystem.list_folder(path)])


def _below(folder: str, name: str) -> str:
    """Returns the path of a file below a folder, by its name with `/` between names."""
    return os.path.join(folder, name)
