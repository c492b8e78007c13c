"""Attempts: a run's own folder in the output folder, from which whole files get their final names.

A mark file names the output, and the folder gets its name only when the mark is written; so another
user's folder that only looks like an attempt is left alone.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator, Sequence

from pipelines.files import filesystem
from pipelines.files.filesystem import delete_empty_folders, make_folders
from pipelines.files.local_folder import ATTEMPT_PREFIX, LinkError, LocalFolder, attempt_name
from pipelines.files.system_errors import telling
from tokcore.errors import InputError
from tokcore.process_end import UndoneAtEnd

_MARK_NAME = '.tokbeam-attempt.json'
_NEW_PREFIX = '.tokbeam-new-'
_UUID = r'[0-9a-f]{32}'
_ATTEMPT = re.compile(re.escape(ATTEMPT_PREFIX) + _UUID)
_NEW = re.compile(re.escape(_NEW_PREFIX) + _UUID)

_MOST_MARK_BYTES = 1 << 20


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
        self._name = attempt_name()
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

    def _delete(self) -> None:
        if self._held is None or self._own is None:
            _delete_objects(self.path)
        else:
            with telling(f'delete {self.path}'), self._own:
                _delete_marked(self._held, self._name, self._own)

    def _begin(self) -> None:
        mark = json.dumps({'tokbeam': 'attempt', 'of': self._names}).encode()
        if self._held is None:
            self.write(_MARK_NAME, mark)
            return
        new = _NEW_PREFIX + self._name.removeprefix(ATTEMPT_PREFIX)
        self._held.make_folder(new)
        try:
            self._own = self._held.below(new)
            # Not by another name first: were this killed meanwhile, nobody would know that file.
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(self._own.open_file(_MARK_NAME, flags), 'wb') as file:
                file.write(mark)
            self._held.replace(new, self._name)
        except BaseException:
            if self._own is not None:
                self._own.delete(_MARK_NAME)
                self._own.close()
            self._held.delete_if_empty(new)
            raise

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
        if held is None:
            _sweep_objects(folder, names)
            return
        for name, is_folder in held.entries():
            if is_folder:
                _sweep_folder(held, name, names)
            elif _is_our_link(held, name, names):
                held.delete(name)


def _sweep_folder(above: LocalFolder, name: str, names: Sequence[str]) -> None:
    is_new, is_attempt = _NEW.fullmatch(name), _ATTEMPT.fullmatch(name)
    if not (is_new or is_attempt):
        return
    with above.below(name) as folder:
        if is_new:
            _sweep_unnamed(above, name, folder)
        elif _is_marked(folder.read(_MARK_NAME, _MOST_MARK_BYTES), names):
            _delete_marked(above, name, folder)


def _is_our_link(folder: LocalFolder, name: str, names: Sequence[str]) -> bool:
    """Returns whether an entry is a link in the place of an attempt."""
    has_our_name = bool(_ATTEMPT.fullmatch(name)) or (not names and name.startswith(ATTEMPT_PREFIX))
    return has_our_name and folder.is_link(name)


def _delete_marked(above: LocalFolder, name: str, own: LocalFolder) -> None:
    """Deletes an attempt in an order in which it stays recognizable, should this be killed.

    The mark goes last, after the folder has the name of an attempt that holds only its mark. If
    something else has the attempt's name by now, it is left alone, unless it is a link.
    """
    own.delete_all(kept=_MARK_NAME)
    if above.has(name, own):
        unnamed = _NEW_PREFIX + name.removeprefix(ATTEMPT_PREFIX)
        above.replace(name, unnamed)
        name = unnamed
    _sweep_unnamed(above, name, own)
    if above.is_link(name):
        above.delete(name)


def _sweep_unnamed(above: LocalFolder, name: str, own: LocalFolder) -> None:
    """Deletes an attempt that holds its mark at most."""
    if {entry for entry, _ in own.entries()} <= {_MARK_NAME}:
        own.delete(_MARK_NAME)
        above.delete_if_empty(name)


def _delete_objects(path: str) -> None:
    """Deletes an attempt on an object store, its mark last."""
    paths = [file.path for file in filesystem.list_folder(path) if file.name != _MARK_NAME]
    filesystem.delete_files(paths)
    filesystem.delete_file(_below(path, _MARK_NAME))


def _is_marked(mark: bytes | None, names: Sequence[str]) -> bool:
    try:
        return json.loads(mark or b'') == {'tokbeam': 'attempt', 'of': list(names)}
    except (ValueError, RecursionError):
        return False


def _sweep_objects(folder: str, names: Sequence[str]) -> None:
    for name in filter(_ATTEMPT.fullmatch, filesystem.entries(folder)):
        path = _below(folder, name)
        if _is_marked(filesystem.read_if_there(_below(path, _MARK_NAME)), names):
            _delete_objects(path)


def _below(folder: str, name: str) -> str:
    """Returns the path of a file below a folder, by its name with `/` between names."""
    return os.path.join(folder, name)
