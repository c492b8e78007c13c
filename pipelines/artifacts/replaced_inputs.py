"""No result takes the place of what its own run reads."""

import os
from collections.abc import Iterable

from pipelines.files import filesystem
from tokcore.corpus.storage.archives import archive_and_member
from tokcore.errors import InputError


def refuse_replaced(read: Iterable[str], replaced: Iterable[str]) -> None:
    """Refuses a file that a run reads and that its result would replace, by whatever name.

    Args:
        read: paths of what is read; of a member of an archive, `ARCHIVE!MEMBER`.
        replaced: paths of files that get new content or are deleted, which need not be there.

    Raises:
        InputError: a file of this machine is both.
    """
    here = [path for path in replaced if filesystem.is_local(path)]
    # The name itself is replaced, be it a link; what is above it is where links lead.
    places = {
        os.path.join(os.path.realpath(above), name) for above, name in map(os.path.split, here)
    }
    files = {identity for path in here if (identity := _identity(path))}
    for path in read:
        if not filesystem.is_local(path):
            continue
        stored = _stored(path)
        if os.path.realpath(stored) in places or _identity(stored) in files:
            raise InputError(
                f'{stored} is read by this run and would be replaced by its result; give another '
                '--output'
            )


def _stored(path: str) -> str:
    """The file that a path leads to: itself, or the archive that it is a member of."""
    named = archive_and_member(path)
    return named[0] if named and not os.path.lexists(path) else path


def _identity(path: str) -> tuple[int, int] | None:
    """Tells a file from all others, whatever its names are; None if it is not there."""
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return None
    return state.st_dev, state.st_ino
