"""Small inputs without compiled kernels, where this machine has none yet.

To compile what a command needs takes ten seconds or more. Every kernel is a Python function too, some
hundred times slower, which numba leaves as it is with NUMBA_DISABLE_JIT=1: a few hundred kilobytes are
done before a compiler would be. What is made is the same, byte for byte.
"""

import argparse
import glob
import os
import select
import stat
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.options.commands import known_commands
from tokcore.kernels.cache_folder import has_kernels
from tokcore.options import path

MOST_BYTES = 256 << 10
"""Of everything that a plain run reads."""

_VARIABLE = 'NUMBA_DISABLE_JIT'

_COMPRESSED = ('.gz', '.bgz', '.bz2', '.xz', '.zst', '.tgz', '.zip', '.parquet')
"""Endings of files whose text may be many times as long."""


def run_plain_if_small(options: argparse.Namespace) -> None:
    """Has numba leave kernels as they are, if all that the command reads is small and local.

    It must run before numba is imported, which reads the variable then. Threads that share a table need
    compiled kernels, so such a command has one worker. Whoever sets the variable decides.

    Sets `workers` of the options, which are those of the command.
    """
    if _VARIABLE in os.environ or 'numba' in sys.modules:
        return
    if getattr(options, 'workers', None) not in (None, 1):
        return
    try:
        reads_lines = options.command in ('tokenize', 'detokenize')
        size = _bytes_waiting(0) if reads_lines else 0
        for more in _sizes(options):
            size += more
            if size > MOST_BYTES:  # the rest of a large folder is not looked at
                return
    except (OSError, ValueError):  # the command says what is wrong with a path
        return
    if size <= MOST_BYTES and not has_kernels():
        os.environ[_VARIABLE] = '1'
        options.workers = 1


def _sizes(options: argparse.Namespace) -> Iterator[float]:
    """Yields the bytes of each file that the command reads; infinity where that is not known."""
    names = ['path', 'second', 'datasets']
    names += [
        declaration.key
        for declaration in known_commands()[options.command].options
        if declaration.option.kind is path
    ]
    values: list[Any] = [getattr(options, name, None) for name in names]
    while values:
        value = values.pop()
        if isinstance(value, (list, tuple)):
            values += value
        elif isinstance(value, Mapping):
            values += value.values()
        elif hasattr(value, 'paths'):
            values += value.paths.values()
        elif isinstance(value, str):
            yield from _sizes_of(value)


def _sizes_of(pattern: str) -> Iterator[float]:
    if '://' in pattern:
        yield float('inf')
    names = glob.glob(pattern)
    if not names and {'!', '='} & set(pattern):  # a member of an archive, or counts with a weight
        yield float('inf')
    for name in names:
        state = os.stat(name)
        if stat.S_ISDIR(state.st_mode):
            for folder, _, files in os.walk(name):
                for file in files:
                    yield os.stat(os.path.join(folder, file)).st_size
        elif not stat.S_ISREG(state.st_mode) or name.endswith(_COMPRESSED):
            yield float('inf')
        else:
            yield state.st_size


def _bytes_waiting(descriptor: int) -> float:
    """Returns how much an input has; infinity for a writer that has not ended yet."""
    import fcntl
    import termios

    state = os.fstat(descriptor)
    if stat.S_ISREG(state.st_mode):
        return state.st_size
    if not stat.S_ISFIFO(state.st_mode):
        return float('inf')
    poll = select.poll()
    poll.register(descriptor, 0)  # for the end alone
    if not any(event & select.POLLHUP for _, event in poll.poll(0)):
        return float('inf')
    return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)
