"""The work folder: what a killed run goes on with, until its output is whole."""

import contextlib
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.files import filesystem
from pipelines.files.folders import delete_empty_folders, delete_if_empty, make_folders
from pipelines.files.system_errors import system_error
from tokcore.errors import InputError

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
        return self.given or filesystem.join(self.output, WORK_FOLDER)

    def sweep(self) -> None:
        """Does nothing: what is in it is swept by those who put it there."""

    @contextlib.contextmanager
    def swept(self) -> Iterator[None]:
        """Has the folder there for a block that writes to it, if it was given.

        One that was made for the block is deleted at its end if nothing is left in it.

        Raises:
            InputError: it cannot be written to, or something else is in its place.
        """
        if self.given is None:
            _refuse_other(self.path)
        if self.given is None or not filesystem.is_local(self.given):
            yield
            return
        made: list[str] = []
        try:
            made = make_folders(self.given)
            if not os.access(self.given, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            delete_empty_folders(made)
            raise system_error(error, f'write to {self.given}') from error
        try:
            yield
        finally:
            delete_empty_folders(made)


def _refuse_other(folder: str) -> None:
    if filesystem.is_local(folder) and os.path.lexists(folder):
        if os.path.islink(folder) or not os.path.isdir(folder):
            raise InputError(
                f'{folder} is in the place of the work folder and no folder; move it away, or give '
                '--work'
            )


def delete_own_if_empty(work: str) -> None:
    """Deletes a work folder that the tool has named, if there is nothing in it."""
    if filesystem.split_path(work)[1] == WORK_FOLDER:
        delete_if_empty(work)
