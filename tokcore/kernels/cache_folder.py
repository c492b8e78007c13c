"""The folder of compiled kernels, and files of caches, each with a checksum before its content.

The folder is found without numba, whose import takes a quarter of a second. Kernels are cached as
pickles, and a pickle can run any code; so a folder that others can write to is not used. A file is
written under another name and moved, so that it is never half. One that is missing, damaged or cannot
be read is treated alike: its content is made again.
"""

import contextlib
import errno
import functools
import hashlib
import os
import pathlib
import platform
import stat
import tempfile
import zlib
from collections.abc import Sequence

_PACKAGE = pathlib.Path(__file__).resolve().parents[1]

NUMBA_VARIABLE = 'NUMBA_CACHE_DIR'
"""A user who sets it chooses the disk, not the folder's name."""

_OF_PROCESSOR = ('model name', 'flags', 'Features', 'CPU implementer', 'CPU part', 'isa')
"""Lines of Linux's description of a processor that say which code it can run."""

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_ENTER = stat.S_IXGRP | stat.S_IXOTH
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def _writable_cache_folder(name: str) -> tuple[pathlib.Path | None, str]:
    """Returns the first folder that can be used, or None and the reason why there is none."""
    refusal = f'there is no home folder, and {NUMBA_VARIABLE} is not set'
    candidates = []
    if chosen := os.environ.get(NUMBA_VARIABLE):
        candidates.append((pathlib.Path(chosen), False))
    home = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    if os.path.isabs(home):
        candidates.append((pathlib.Path(home) / 'tokbeam', True))
    for parent, is_own in candidates:
        # A child process inherits the variable with the folder already named.
        folder = parent if parent.name == name else parent / name
        try:
            private = private_folder(folder, is_own)
            with tempfile.TemporaryFile(dir=private):
                return private, ''
        except OSError as error:
            refusal = refusal_of(folder, error)
    return None, refusal


def refusal_of(folder: object, error: OSError) -> str:
    return f'the cache at {folder} cannot be written ({error.strerror or error})'


def private_folder(path: pathlib.Path, own_parent: bool = False) -> pathlib.Path:
    """Returns a folder that only this user can change, made if needed.

    The user's own folder gets mode 0700. On systems without owners the folder is used as it is.

    Args:
        path: of the folder, which is not a link; missing parents are made with mode 0700.
        own_parent: whether the parent gets mode 0700 too.

    Raises:
        OSError: it cannot be made, or others could change it.
    """
    if not hasattr(os, 'geteuid'):
        path.mkdir(parents=True, exist_ok=True)
        return path
    _make(path.parent)
    # Links in the path are the user's choice; what matters is who may change their targets.
    parent = path.parent.resolve(strict=True)
    if own_parent:
        _narrow(parent)
    if not only_owner_may_replace(
        [folder.stat() for folder in [*reversed(parent.parents), parent]]
    ):
        raise PermissionError(
            errno.EPERM, f'others may write to {parent} or to a folder above it', str(path)
        )
    path = parent / path.name
    _make(path)
    _narrow(path)
    return path


def _make(path: pathlib.Path) -> None:
    if not os.path.lexists(path):
        _make(path.parent)
        path.mkdir(mode=stat.S_IRWXU, exist_ok=True)


def _narrow(path: pathlib.Path) -> None:
    """Removes the rights of others; raises PermissionError if it is not a folder of this user."""
    state = path.lstat()
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, f'{path} is not a folder of this user', str(path))
    if state.st_mode & _OTHERS:
        path.chmod(stat.S_IRWXU)


def only_owner_may_replace(folders: Sequence[os.stat_result]) -> bool:
    """Whether nobody else can replace a folder of this user in the last of the folders of a path.

    The folders are those from the root on: whoever may rename one of them can replace all in it.
    """
    user = os.geteuid()
    # The owner of the root is trusted: the administrator, whatever number a container gives him.
    trusted = {0, user, folders[0].st_uid}
    for folder in folders:
        if folder.st_uid not in trusted:
            return False
        if folder.st_uid == user and not folder.st_mode & _OTHERS_ENTER:
            return True  # nobody else can enter it
        # In a folder with the sticky bit, as /tmp, users may rename only their own entries.
        if folder.st_mode & _OTHERS_WRITE and not folder.st_mode & stat.S_ISVTX:
            return False
    return True


@functools.cache
def note_kernels() -> None:
    """Notes that this process has kernels from the cache, or keeps them there."""
    if CACHE_FOLDER is not None:
        with contextlib.suppress(OSError):  # it is full: small inputs then run as plain Python
            _note_of_kernels(CACHE_FOLDER).touch()


def has_kernels() -> bool:
    """Whether a process has noted that kernels of these sources are kept for this processor."""
    return CACHE_FOLDER is not None and _note_of_kernels(CACHE_FOLDER).exists()


def _note_of_kernels(folder: pathlib.Path) -> pathlib.Path:
    processor = platform.processor()
    with contextlib.suppress(OSError):  # it is there on Linux alone
        lines = pathlib.Path('/proc/cpuinfo').read_text().split('\n\n')[0].split('\n')
        processor = '\n'.join(line for line in lines if line.startswith(_OF_PROCESSOR))
    digest = hashlib.sha256(f'{source_digest()}\n{processor}'.encode()).hexdigest()[:16]
    return folder / f'kept-{digest}'


@functools.cache
def source_digest(package: pathlib.Path = _PACKAGE) -> str:
    """Returns a digest, 16 hexadecimal digits, of the sources in a folder and of what runs them."""
    # Not at the top: some commands are done in less time than this import takes.
    from importlib.metadata import version

    digest = hashlib.sha256()
    versions = [platform.python_implementation(), platform.python_version(), platform.machine()]
    versions += [version(name) for name in ('numba', 'llvmlite', 'numpy')]
    digest.update('\0'.join(versions).encode())
    for path in sorted(package.rglob('*.py')):
        digest.update(path.relative_to(package).as_posix().encode() + b'\0')
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


CACHE_FOLDER, NO_FOLDER = _writable_cache_folder('kernels-by-code')
"""The folder of compiled kernels, or None if there is none that can be used; and the reason."""

PART = '.part-'
"""Begins the names of files that were not written to the end."""

_CHECKSUM_BYTES = 4


def read_cached(path: pathlib.Path) -> bytes | None:
    """Returns the content of a file; None if there is none, or a damaged one."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    content = data[_CHECKSUM_BYTES:]
    return content if data[:_CHECKSUM_BYTES] == _checksum(content) else None


def write_cached(path: pathlib.Path, content: bytes) -> None:
    """Writes a file; raises OSError, and then leaves nothing."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=PART, delete=False) as part:
        try:
            part.write(_checksum(content))
            part.write(content)
            part.close()
            os.replace(part.name, path)
        except OSError:
            os.unlink(part.name)
            raise


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, 'little')
