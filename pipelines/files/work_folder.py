"""The work folder, in which runs leave what a rerun continues from.

A file in it tells when it is damaged, by its length and a checksum:

    8 bytes   magic; its last byte is the number of the format
    8 bytes   length of the content, little-endian
    4 bytes   CRC-32C of these 16 bytes and the content, little-endian
    ...       the content
"""

import contextlib
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import google_crc32c

from pipelines.files import filesystem
from pipelines.files.claims import LostError
from pipelines.files.filesystem import delete_empty_folders, delete_if_empty, make_folders
from pipelines.files.system_errors import system_error
from tokcore.errors import InputError, OperatingSystemError
from tokcore.format_numbers import CHECKED_FILE

WORK_FOLDER = '.tokbeam'
"""Below or beside the output, unless `--work` names another."""


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
            _refuse_other(self.path)
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


def _refuse_other(folder: str) -> None:
    if filesystem.files_of(folder).is_obstructed(folder):
        raise InputError(
            f'{folder} is in the place of the work folder and is not a folder; move it away, or give '
            '--work'
        )


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
