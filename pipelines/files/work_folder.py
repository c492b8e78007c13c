"""The work folder, in which runs leave what a rerun continues from."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from pipelines.files import filesystem
from pipelines.files.claims import LostError
from pipelines.files.filesystem import delete_empty_folders, delete_if_empty, make_folders
from pipelines.files.system_errors import system_error
from tokcore.errors import InputError, OperatingSystemError

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
