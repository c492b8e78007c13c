"""The work folder: what a killed run goes on with, until its output is whole."""

import contextlib
import os
from collections.abc import Iterator

from pipelines.files import filesystem
from tokcore.errors import InputError

WORK_FOLDER = '.tokbeam'
"""Below or beside the output, unless `--work` names another."""


@contextlib.contextmanager
def usable_work(work: str | None, output: str) -> Iterator[None]:
    """Has a work folder there for a block that writes to it: that of `--work`, if it is given.

    One that was made for the block is deleted at its end if nothing is left in it.

    Args:
        work: what was given; None for the folder in the output's.
        output: the output's folder.

    Raises:
        InputError: it cannot be written to, or something else is in its place.
    """
    if work is None:
        _refuse_other(filesystem.join(output, WORK_FOLDER))
    if work is None or not filesystem.is_local(work):
        yield
        return
    made: list[str] = []
    try:
        made = filesystem.make_folders(work)
        if not os.access(work, os.W_OK | os.X_OK):
            raise PermissionError(0, 'Permission denied')
    except OSError as error:
        filesystem.delete_empty_folders(made)
        raise InputError(
            f'cannot write to {work}: {error.strerror or error}; give another --work'
        ) from error
    try:
        yield
    finally:
        filesystem.delete_empty_folders(made)


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
        filesystem.delete_if_empty(work)
