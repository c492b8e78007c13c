"""What a run writes before its result is whole: its attempt, and work from which a rerun continues.

An attempt is a run's own folder in the output folder, from which whole files get their final names. Its
name begins with a digest of the output's files, so that a run deletes what earlier runs have left at its
output alone.

A file in the work folder has its length and a checksum, which show whether it is damaged:

    8 bytes   magic; its last byte is the number of the format
    8 bytes   length of the content, little-endian
    4 bytes   CRC-32C of these 16 bytes and the content, little-endian
    ...       the content
"""

import contextlib
import hashlib
import json
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import google_crc32c

from pipelines.files import filesystem
from pipelines.files.claims import LostError
from pipelines.files.filesystem import delete_empty_folders, delete_if_empty, make_folders
from pipelines.files.local import ATTEMPT_PREFIX, LinkError, LocalFolder, attempt_name
from pipelines.files.system_errors import system_error, telling
from tokcore.errors import InputError, OperatingSystemError
from tokcore.format_numbers import CHECKED_FILE
from tokcore.process_end import UndoneAtEnd

_DIGITS = 8
"""Of the digest; other outputs in a folder are few."""


class Attempt:
    """A run's own folder in the output folder, deleted when the run ends, however it ends.

    The caller has the claim on the output, so no other run uses what earlier attempts left.

    Args:
        folder: the output folder.
        names: if given, the output is these files of the folder, which other outputs share.
        held: the output folder, as the claim has opened it; None on a store.

    Attributes:
        path: of the run's own folder.
    """

    def __init__(self, folder: str, names: Sequence[str] = (), held: LocalFolder | None = None):
        beginning = _beginning(names)
        self._name = beginning + attempt_name()[len(beginning) :]
        self.path = os.path.join(folder, self._name)
        self._folder, self._names, self._held = folder, tuple(names), held
        self._files = filesystem.files_of(folder)
        self._own: LocalFolder | None = None

    def __enter__(self) -> 'Attempt':
        self._stack = contextlib.ExitStack()
        with telling(f'write to {self._folder}'):
            sweep_attempts(self._folder, self._names, self._held)
            self._stack.enter_context(UndoneAtEnd(self._begin, lambda _: self._delete()))
        return self

    def __exit__(self, *_) -> None:
        self._stack.close()

    def _begin(self) -> None:
        if self._held is not None:
            self._own = self._held.below(self._name, make=True)

    def _delete(self) -> None:
        with telling(f'delete {self.path}'):
            if self._held is None or self._own is None:
                self._files.delete([file.path for file in self._files.list_folder(self.path)])
                return
            with self._own:
                self._own.delete_all()
            self._held.delete_if_empty(self._name)

    def publish(self, moves: Sequence[tuple[str, str]]) -> None:
        """Moves whole files of this attempt to their final names.

        Args:
            moves: for each its name in the attempt, with `/` between names, and its path in the output
                folder or next to it.

        Raises:
            InputError: a folder has the name, or a link is on the way.
        """
        if self._own is None:
            with telling(f'write {moves[0][1] if moves else self._folder}'):
                self._files.move([(os.path.join(self.path, name), path) for name, path in moves])
            return
        for source, path in moves:
            with (
                telling(f'write {path}'),
                self._own.parent_of(source) as (own, own_name),
                self._opened(path, make=True) as (into, new_name),
            ):
                if into.is_folder(new_name):
                    raise InputError(
                        f'{path} is a folder where a file of the result goes; move it away'
                    )
                own.replace(own_name, new_name, into)

    def delete_final(self, paths: Sequence[str]) -> None:
        """Deletes files of an earlier result, links in their place, and folders that are left empty.

        Args:
            paths: in the output folder or next to it; no link on the way is followed.
        """
        if self._held is None:
            with telling(f'delete {paths[0] if paths else self._folder}'):
                self._files.delete(paths)
            return
        missing = contextlib.suppress(FileNotFoundError, NotADirectoryError, LinkError)
        for path in paths:
            with telling(f'delete {path}'), missing, self._opened(path) as (above, last):
                if not above.is_folder(last):
                    above.delete(last)
        for folder in {os.path.dirname(path) for path in paths} - {self._folder}:
            delete_if_empty(folder)

    @contextlib.contextmanager
    def _opened(self, path: str, make: bool = False) -> Iterator[tuple[LocalFolder, str]]:
        """Opens the folder of a final path for a block; gives it, and the file's name in it."""
        assert self._held is not None
        with contextlib.ExitStack() as stack:
            folder, final = self._folder, self._held
            if not path.startswith(os.path.join(folder, '')):
                folder = os.path.dirname(folder)
                final = stack.enter_context(LocalFolder.open(folder))
                if not self._held.is_at_its_path():
                    raise InputError(
                        f'{self._folder} was moved or replaced while this run worked there; run again'
                    )
            name = os.path.relpath(path, folder).replace(os.sep, '/')
            yield stack.enter_context(final.parent_of(name, make))


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
            files = filesystem.files_of(folder)
            left = [name for name in files.entries(folder) if name.startswith(beginning)]
            paths = [files.list_folder(os.path.join(folder, name)) for name in left]
            files.delete([file.path for of_attempt in paths for file in of_attempt])
            return
        for name, is_folder in held.entries():
            if name.startswith(beginning):
                (held.delete_tree if is_folder else held.delete)(name)


def _beginning(names: Sequence[str]) -> str:
    return ATTEMPT_PREFIX + hashlib.sha256(json.dumps(names).encode()).hexdigest()[:_DIGITS]


WORK_FOLDER = '.tokbeam'
"""In the output's folder, unless `--work` names another."""


@dataclass(frozen=True)
class WorkFolder:
    """Where work for an output is kept.

    Attributes:
        given: by `--work`; None for the folder in the output's.
        output: the output's folder.
    """

    given: str | None
    output: str

    @property
    def path(self) -> str:
        return self.given or os.path.join(self.output, WORK_FOLDER)

    @contextlib.contextmanager
    def made(self) -> Iterator[None]:
        """Has the folder there for a block that writes to it, if it was given.

        One that was made for the block is deleted at its end if nothing is left in it.

        Raises:
            InputError: it cannot be written to, or something else is in its place.
        """
        if self.given is None:
            is_folder = os.path.isdir(self.path) and not os.path.islink(self.path)
            if not filesystem.is_shared(self.path) and os.path.lexists(self.path) and not is_folder:
                raise InputError(
                    f'{self.path} is in the place of the work folder and is not a folder; move it away, or '
                    'give --work'
                )
            yield
            return
        made: list[str] = []
        try:
            made = make_folders(self.given)
            filesystem.files_of(self.given).check_writable(self.given)
        except OSError as error:
            delete_empty_folders(made)
            raise system_error(error, f'write to {self.given}') from error
        try:
            yield
        finally:
            delete_empty_folders(made)


class KeptWork(Protocol):
    """Work for an output from which a rerun continues: sorted runs, a learner's rounds."""

    def sweep(self, keep_begun: bool = False) -> None:
        """Deletes what no other run is working on; with `keep_begun` only what no rerun can use."""


@contextlib.contextmanager
def swept(work: KeptWork) -> Iterator[None]:
    """Deletes work after a block that makes the output, unless a rerun can use it.

    A rerun can where this one was killed, failed or was refused something by the system. After a
    whole result there is no rerun, and after a refusal the input or the options must change.
    """
    try:
        yield
    except LostError:
        raise
    except OperatingSystemError:
        work.sweep(keep_begun=True)
        raise
    except InputError:
        work.sweep()
        raise
    work.sweep()


def delete_own_if_empty(work: str) -> None:
    """Deletes a work folder that the tool has named, if there is nothing in it."""
    if os.path.basename(work) == WORK_FOLDER:
        delete_if_empty(work)


_HEAD = struct.Struct('<8sQ')
_CRC32C = struct.Struct('<I')
_MAGIC = b'\x89TKF\r\n\x1a' + bytes([CHECKED_FILE])


def write_checked(path: str, *pieces: bytes) -> None:
    """Writes a file of pieces, with its length and checksum; it has its name only when it is whole."""
    head = _HEAD.pack(_MAGIC, sum(map(len, pieces)))
    crc32c = google_crc32c.value(head)
    for piece in pieces:
        crc32c = google_crc32c.extend(crc32c, piece)
    with filesystem.create(path) as stream:
        stream.write(head + _CRC32C.pack(crc32c))
        for piece in pieces:
            stream.write(piece)


def read_checked(path: str) -> bytes:
    """Returns the content of a file that `write_checked` wrote.

    Raises:
        InputError: it is missing, damaged, or cannot be read.
    """
    try:
        data = filesystem.read_bytes(path)
    except InputError as error:
        if filesystem.exists(path):
            raise
        raise InputError(f'{path} is missing; run again, and it is made anew') from error
    start = _HEAD.size + _CRC32C.size
    if len(data) < start or not data.startswith(_MAGIC):
        raise damaged(path)
    _, length = _HEAD.unpack_from(data)
    (crc32c,) = _CRC32C.unpack_from(data, _HEAD.size)
    content = data[start:]
    actual = google_crc32c.extend(google_crc32c.value(data[: _HEAD.size]), content)
    if len(content) != length or actual != crc32c:
        raise damaged(path)
    return content


def damaged(path: str) -> InputError:
    """Returns the error for a file that is not as it was written."""
    return InputError(f'{path} is damaged; run again, and it is made anew')
