"""What the operating system refuses, as a sentence that says what to do about it.

An `OSError` is mostly no failure of this program: a disk is full, a folder may not be written to, a
share has gone away. Here each gets its remedy by its number; on the way from a worker to the driver
the exception itself may be lost, so that its text is all there is, and that does too.
"""

import contextlib
import errno
import os
import re
from collections.abc import Iterator

from tokcore.errors import FullDiskError, InputError, OperatingSystemError

# A number that this platform does not have is left out.
_REMEDIES = {
    'make room, and run again': ('ENOSPC', 'EDQUOT'),
    'raise the limit on the size of files (ulimit -f), or use a filesystem without one': ('EFBIG',),
    'check the path': ('ENOENT', 'ENXIO', 'EINVAL', 'ENODEV'),
    'check the permissions': ('EACCES', 'EPERM'),
    'it is not open for that, so check the redirection': ('EBADF',),
    'its filesystem is read-only, so give a path on another one': ('EROFS',),
    'a part of the path is a file and not a folder, so check the path': ('ENOTDIR',),
    'there is a folder where a file should be, so give another path': ('EISDIR',),
    'something else has that name, so give another path': ('EEXIST', 'ENOTEMPTY'),
    'give a shorter path or --name': ('ENAMETOOLONG',),
    'symbolic links go round in circles there, so check the path': ('ELOOP',),
    'the limit on open files is too low, so raise it (ulimit -n) or give fewer --workers': (
        'EMFILE',
        'ENFILE',
    ),
    'the limit on processes and threads is too low, so raise it (ulimit -u) or give fewer '
    '--workers': ('EAGAIN',),
    'make memory free, or give fewer --workers': ('ENOMEM',),
    'the disk or the share does not answer as it should, so look after it, and run again': (
        'EIO',
        'ESTALE',
        'ENOTCONN',
        'EHOSTDOWN',
    ),
    'run again when it does better': ('EREMOTEIO',),
    'check the network, and run again': (
        'ECONNREFUSED',
        'ECONNRESET',
        'ECONNABORTED',
        'EHOSTUNREACH',
        'ENETDOWN',
        'ENETUNREACH',
        'EPIPE',
        'ETIMEDOUT',
    ),
    'another program uses it, so run again when that has ended': ('EBUSY', 'ETXTBSY'),
}
_OTHERWISE = 'check the path and its filesystem'

_REMEDY = {
    getattr(errno, name): remedy
    for remedy, names in _REMEDIES.items()
    for name in names
    if hasattr(errno, name)
}
_NO_ROOM = {getattr(errno, name) for name in ('ENOSPC', 'EDQUOT', 'EFBIG') if hasattr(errno, name)}

_NO_MEMORY = 'there is not enough memory; make some free, or give fewer --workers'
_NO_THREADS = "can't start new thread"  # a RuntimeError, with which Python hides an EAGAIN

# As `traceback` prints an exception, and within it an `OSError`: its number, the system's words and
# mostly a path. Beam puts both into the message of a `RuntimeError`.
_EXCEPTION = re.compile(r'^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit)\b.*', re.MULTILINE)
_OS_ERROR = re.compile(r"\w+Error: \[Errno (\d+)\] ([^:\n\[]+)(?:: (['\"])(.+?)\3)?")
_MEMORY_ERROR = re.compile(r'(?:^|[ .])\w*MemoryError\b')


def system_error(error: OSError, what: str) -> InputError:
    """Returns an `OSError` as the user's: `cannot {what}: {reason}; {remedy}`.

    A full disk gives a `FullDiskError`. A path that the error has and `what` does not is added.

    >>> print(system_error(PermissionError(13, 'Permission denied', '/a'), 'write /a'))
    cannot write /a: Permission denied; check the permissions
    """
    reason = error.strerror or ' '.join(str(error).split()) or type(error).__name__
    path = error.filename
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if isinstance(path, str) and path not in what:
        reason += f' ({path})'
    kind = FullDiskError if error.errno in _NO_ROOM else OperatingSystemError
    return kind(f'cannot {what}: {reason}; {_REMEDY.get(error.errno or 0, _OTHERWISE)}')


@contextlib.contextmanager
def telling(what: str) -> Iterator[None]:
    """Raises an `OSError` of a block as the error of `system_error`."""
    try:
        yield
    except OSError as error:
        raise system_error(error, what) from error


def as_input_error(error: BaseException, doing: str) -> InputError | None:
    """Returns what the machine and not the program is to blame for, as a sentence; otherwise None.

    That is any `OSError`, too little memory, and no more threads. An `InputError` stays itself.

    Args:
        error: what ended the work.
        doing: what could not be done, after `cannot`, as `write the counts`.
    """
    if isinstance(error, InputError):
        return error
    if isinstance(error, OSError):
        return system_error(error, doing)
    if isinstance(error, MemoryError):
        return OperatingSystemError(f'cannot {doing}: {_NO_MEMORY}')
    if isinstance(error, RuntimeError) and str(error).startswith(_NO_THREADS):
        return OperatingSystemError(f'cannot {doing}: {_NO_THREADS}; {_REMEDY[errno.EAGAIN]}')
    return None


def as_input_error_from_text(text: str, doing: str) -> InputError | None:
    """Returns the same from the text of a traceback, of which the last exception counts."""
    last = (_EXCEPTION.findall(text) or [''])[-1]
    match = _OS_ERROR.search(last)
    if match:
        number, reason, _, path = match.groups()
        return system_error(OSError(int(number), reason.strip(), path), doing)
    if _MEMORY_ERROR.search(last):
        return OperatingSystemError(f'cannot {doing}: {_NO_MEMORY}')
    if _NO_THREADS in last:
        return OperatingSystemError(f'cannot {doing}: {_NO_THREADS}; {_REMEDY[errno.EAGAIN]}')
    return None
