"""Names that a filesystem cannot hold, refused before any work and not when a file is written.

Also what a run writes under names of its own on the way must fit; these are short but lie deeper.
"""

import os
from collections.abc import Iterable

from pipelines.files import filesystem
from tokcore.errors import InputError
from tokcore.options.values import shown

_USUAL_NAME = 255  # bytes, where the system does not tell; all usual filesystems have this
_USUAL_PATH = 4096

_ROOM_BELOW = 512
"""Bytes of path that a run takes below its output or work folder: folders of attempts and of a
learner's rounds, and in them a name of at most 255."""


def refuse_long_names(folder: str, names: Iterable[str], option: str) -> None:
    """Refuses names that the filesystem of a folder, which need not exist yet, cannot hold.

    On object stores, which have no folders, nothing is refused.

    Args:
        folder: an absolute path.
        names: of files to be made in it.
        option: that decides the names, as `--name`.

    Raises:
        InputError: a name, or the path, is too long.
    """
    if not filesystem.is_local(folder):
        return
    above = folder
    while not os.path.isdir(above) and above != os.path.dirname(above):
        above = os.path.dirname(above)
    longest = _limit(above, 'PC_NAME_MAX', _USUAL_NAME)
    for part in folder.split(os.sep):
        if len(os.fsencode(part)) > longest:
            raise InputError(_sentence(part, above, longest, '--output or --work'))
    for name in names:
        if len(os.fsencode(name)) > longest:
            raise InputError(_sentence(name, above, longest, option))
    whole = _limit(above, 'PC_PATH_MAX', _USUAL_PATH)
    size = len(os.fsencode(folder))
    if size + _ROOM_BELOW > whole:
        raise InputError(
            f'{shown(folder)} has {size} bytes, and paths of at most {whole - _ROOM_BELOW} leave '
            'room for the files below them; give a shorter one'
        )


def _limit(folder: str, name: str, usual: int) -> int:
    try:
        limit = os.pathconf(folder, name)
    except (AttributeError, OSError, ValueError):  # not on this system, or not for this folder
        return usual
    return limit if limit > 0 else usual


def _sentence(name: str, folder: str, longest: int, option: str) -> str:
    return (
        f'the name {shown(name)} would have {len(os.fsencode(name))} bytes, and names in {folder} '
        f'have at most {longest}; give a shorter {option}'
    )
