"""Folders made for a run's files, and deleted with what is known to be its own.

What lies in a folder may be somebody else's: all but a run's own folders are deleted by the names of
what is in them. On an object store there are no folders, only names that begin alike.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from pipelines.files.filesystem import delete_file, is_local, list_folder
from pipelines.files.system_errors import telling

_DELETED_AT_ONCE = 8


def make_folders(folder: str) -> list[str]:
    """Makes a folder and those above it; returns the ones that were not there, the lowest first.

    On an object store there are none. Raises OSError where one cannot be made.
    """
    if not is_local(folder):
        return []
    missing = []
    above = folder
    while not os.path.lexists(above):
        missing.append(above)
        above = os.path.dirname(above)
    os.makedirs(folder, exist_ok=True)
    return missing


def delete_empty_folders(folders: Sequence[str]) -> None:
    """Deletes folders, the lowest first, as far as there is nothing in them."""
    for folder in folders:
        delete_if_empty(folder)


def delete_if_empty(folder: str) -> None:
    """Deletes a folder with nothing in it; on an object store there are none."""
    if is_local(folder) and not os.path.islink(folder):
        with contextlib.suppress(OSError):  # it has something in it, or is gone
            os.rmdir(folder)


def delete_tree(folder: str) -> None:
    """Deletes a local folder of this run's own with all it holds; no link is followed."""
    with telling(f'delete {folder}'):
        if os.path.islink(folder):
            os.unlink(folder)
        elif os.path.isdir(folder):
            _delete_files([os.path.join(folder, name) for name in _names_below(folder)])
            shutil.rmtree(folder)


def delete_within(folder: str, kept: str) -> None:
    """Deletes all that a local folder of this run's own holds but one file of it."""
    with telling(f'delete {folder}'):
        _delete_files([os.path.join(folder, name) for name in _names_below(folder) if name != kept])
        for entry in list(os.scandir(folder)):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)


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
    if os.path.islink(folder):
        delete_file(folder)
        return
    known = [name for name in _names_below(folder) if is_known(name)]
    with telling(f'delete {folder}'):
        _delete_files([os.path.join(folder, name) for name in known])
        for base, _, _ in os.walk(folder, topdown=False):
            delete_if_empty(base)


def names_below(folder: str) -> list[str]:
    """Returns the names of the files below a folder, links among them, with `/` between names."""
    if is_local(folder):
        return sorted(_names_below(folder))
    return [file.name for file in list_folder(folder)]


def _names_below(folder: str) -> list[str]:
    names = []
    for base, folders, files in os.walk(folder):
        # `walk` does not go into links to folders, but names them among the folders.
        links = [name for name in folders if os.path.islink(os.path.join(base, name))]
        for name in (*files, *links):
            below = os.path.relpath(os.path.join(base, name), folder)
            names.append(below.replace(os.sep, '/'))
    return names


def _delete_files(paths: Sequence[str]) -> None:
    # To delete a file that is still being written to the disk is mostly to wait.
    with ThreadPoolExecutor(_DELETED_AT_ONCE) as pool:
        list(pool.map(_unlink, paths))


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
