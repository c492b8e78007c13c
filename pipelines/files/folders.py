"""Folders made for a run's files, and deleted with what is known to be its own.

What lies in a folder may be somebody else's: all but a run's own folders are deleted by the names of
what is in them. On an object store there are no folders, only names that begin alike.
"""

import contextlib
import os
from collections.abc import Callable, Sequence

from pipelines.files.filesystem import delete_file, is_local, list_folder
from pipelines.files.local_folder import LinkError, LocalFolder
from pipelines.files.system_errors import telling


def make_folders(folder: str, root: str | None = None) -> list[str]:
    """Makes a folder and those above it; returns the ones that were not there, the lowest first.

    On an object store there are none. Raises as `LocalFolder.open`, whose `root` this is.
    """
    if not is_local(folder):
        return []
    missing = []
    above = folder
    while not os.path.lexists(above):
        missing.append(above)
        above = os.path.dirname(above)
    with LocalFolder.open(folder, root, make=True):
        return missing


def delete_empty_folders(folders: Sequence[str]) -> None:
    """Deletes folders, the lowest first, as far as there is nothing in them."""
    for folder in folders:
        delete_if_empty(folder)


def delete_if_empty(folder: str) -> None:
    """Deletes a folder with nothing in it; on an object store there are none."""
    if is_local(folder):
        with contextlib.suppress(OSError, LinkError), LocalFolder.above(folder) as (above, name):
            above.delete_if_empty(name)


def delete_known(folder: str, is_known: Callable[[str], bool]) -> None:
    """Deletes the files below a folder that are known by their names, and folders left empty.

    What else is there stays. A link is a file here: it is removed and not followed.

    Args:
        folder: a folder, or a link, which is removed.
        is_known: tells it of a file's name below the folder, with `/` between names.
    """
    if not is_local(folder):
        for file in list_folder(folder):
            if is_known(file.name):
                delete_file(file.path)
        return
    missing = contextlib.suppress(FileNotFoundError, NotADirectoryError)
    with telling(f'delete {folder}'), missing, LocalFolder.above(folder) as (above, name):
        try:
            own = above.below(name)
        except LinkError:
            above.delete(name)
            return
        with own:
            own.delete_known(is_known)
        above.delete_if_empty(name)


def names_below(folder: str) -> list[str]:
    """Returns the names of the files below a folder, links among them, with `/` between names."""
    if not is_local(folder):
        return [file.name for file in list_folder(folder)]
    missing = contextlib.suppress(FileNotFoundError, NotADirectoryError)
    with telling(f'look into {folder}'), missing, LocalFolder.open(folder) as own:
        return sorted(own.names_below())
    return []
