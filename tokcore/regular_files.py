"""Opens regular files for reading, and nothing else: a pipe or a device may never end."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

from tokcore.errors import InputError


def open_regular(path: str | os.PathLike) -> BinaryIO:
    """Opens a regular file, or a link to one, for reading.

    Raises:
        InputError: it is a folder, a pipe, a socket or a device, or no file can have this name.
        OSError: as `open`.
    """
    name = os.fspath(path)
    refuse_hub_address(name)
    try:
        # Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
        descriptor = os.open(name, os.O_RDONLY | getattr(os, 'O_NONBLOCK', 0))
    except ValueError as error:
        raise InputError(f'{name!r} is not the name of a file ({error}); give another') from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        what = 'a folder' if stat.S_ISDIR(mode) else 'a pipe or a device'
        raise InputError(f'{name} is {what} and not a regular file; give a regular file')
    return os.fdopen(descriptor, 'rb')


def refuse_hub_address(path: str) -> None:
    """Refuses an address of the Hugging Face Hub, whose files `pipelines` alone fetches.

    Raises:
        InputError: it is one.
    """
    if not path.startswith('hf://'):
        return
    is_dataset = path.startswith('hf://datasets/')
    words = path.removeprefix('hf://').removeprefix('datasets/').split('/')
    name, _, revision = '/'.join(words[:2]).partition('@')
    arguments = [repr(name)]
    arguments += ["repo_type='dataset'"] if is_dataset else []
    arguments += [f'revision={revision!r}'] if revision else []
    raise InputError(
        f'{path} is on the Hugging Face Hub, and files of this machine are opened here; give the folder '
        f'that huggingface_hub.snapshot_download({", ".join(arguments)}) returns'
    )


def read_regular(path: str | os.PathLike, most_bytes: int | None = None) -> bytes:
    """Returns the bytes of a regular file.

    Args:
        path: of the file.
        most_bytes: the largest size that is read; None: no limit.

    Raises:
        InputError: as `open_regular`, or the file is larger.
        OSError: it cannot be opened or read.
    """
    with open_regular(path) as file:
        if most_bytes is not None and os.fstat(file.fileno()).st_size > most_bytes:
            raise InputError(
                f'{os.fspath(path)} has more than {most_bytes:,} bytes, too many for what it should '
                'be; give another file'
            )
        return file.read()
