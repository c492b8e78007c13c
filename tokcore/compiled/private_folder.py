"""A folder that nobody else can write to or put another one in place of.

Compiled kernels are kept as pickles, and whoever writes a pickle decides what its reader runs.
"""

import os
import pathlib
import shutil
import stat
import uuid
from collections.abc import Sequence

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_ENTER = stat.S_IXGRP | stat.S_IXOTH


def private_folder(path: pathlib.Path, own_parent: bool = False) -> pathlib.Path | None:
    """Makes or takes a folder that is this user's alone; None if it cannot be that.

    An own folder that others may look into is narrowed to mode 0700; in place of one that others
    could write to, with whatever it holds by now, a new one is made. Where the system knows no
    owners, the folder is made and taken as it is.

    Args:
        path: of the folder, no link itself; missing folders above it are made for this user alone.
        own_parent: the folder above it is narrowed likewise.

    Raises:
        OSError: it cannot be made.
    """
    if not hasattr(os, 'geteuid'):
        path.mkdir(parents=True, exist_ok=True)
        return path
    _make(path.parent)
    # Links on the way are the user's choice; what counts is who may change where they lead.
    parent = path.parent.resolve(strict=True)
    if own_parent and not _narrow(parent):
        return None
    if not only_owner_may_replace([each.stat() for each in [*reversed(parent.parents), parent]]):
        return None
    path = parent / path.name
    _make(path)
    found = path.lstat()
    if _is_own(found) and _others_may_write(found):
        _put_away(path)
        _make(path)
    return path if _narrow(path) else None


def _make(path: pathlib.Path) -> None:
    if not os.path.lexists(path):
        _make(path.parent)
        path.mkdir(mode=stat.S_IRWXU, exist_ok=True)


def _narrow(path: pathlib.Path) -> bool:
    """Takes others' rights to a folder away; tells whether it is one, and this user's."""
    found = path.lstat()
    if not _is_own(found):
        return False
    if found.st_mode & _OTHERS:
        path.chmod(stat.S_IRWXU)
    return True


def _is_own(found: os.stat_result) -> bool:
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _put_away(folder: pathlib.Path) -> None:
    # Renamed first: what belongs to others within it may not let itself be deleted.
    aside = folder.with_name(f'{folder.name}-{uuid.uuid4().hex}')
    folder.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


def only_owner_may_replace(folders: Sequence[os.stat_result]) -> bool:
    """Tells whether nobody else can rename what this user has in the last of some folders.

    The folders are those of a path, from the root on: who may rename one of them, may replace all
    that is in it.
    """
    user = os.geteuid()
    # Who owns the root is trusted: the administrator, whatever number a container gives him.
    trusted = {0, user, folders[0].st_uid}
    for found in folders:
        if found.st_uid not in trusted:
            return False
        if found.st_uid == user and not found.st_mode & _OTHERS_ENTER:
            return True  # nobody else gets any further
        # In a folder with the sticky bit, as /tmp, each may rename their own entries only.
        if _others_may_write(found) and not found.st_mode & stat.S_ISVTX:
            return False
    return True


def _others_may_write(found: os.stat_result) -> bool:
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and not _is_users_own_group(found.st_gid)


def _is_users_own_group(number: int) -> bool:
    """Tells whether a group has the user alone, as where the umask is 002 every user has one."""
    import grp
    import pwd

    try:
        user = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(number)
    except KeyError:
        return False
    return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
