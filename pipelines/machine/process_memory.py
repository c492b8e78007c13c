"""The memory at hand, what this process took of it, and what it keeps for itself."""

import contextlib
import ctypes
import pathlib
import sys

import psutil

from pipelines.machine.control_groups import ROOT, Group, own_groups

# Names of glibc's mallopt(3), and its own limit of the first.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_LARGEST_KEPT = 32 << 20
_MOST_KEPT = 256 << 20

_STATUS = pathlib.Path('/proc/self/status')


def available_bytes(root: pathlib.Path = ROOT) -> int:
    """Returns what can be had without swapping, within a container's limits.

    `root` is where the system's files on control groups are.
    """
    left = [
        max(0, limit - _held(group))
        for group in own_groups('memory', root)
        for limit in _limits(group)
    ]
    return min([psutil.virtual_memory().available, *left])


def total_bytes(root: pathlib.Path = ROOT) -> int:
    """Returns the memory of this machine, or of the container if it may have less."""
    limits = [limit for group in own_groups('memory', root) for limit in _limits(group)]
    return min([psutil.virtual_memory().total, *limits])


def resident_bytes() -> int:
    """Returns what this process holds now."""
    return psutil.Process().memory_info().rss


def peak_bytes() -> int:
    """Returns the most that this process has held so far, resident."""
    # Linux's getrusage(2) begins with what the process held that started this one by exec(3).
    with contextlib.suppress(OSError):
        told = _STATUS.read_text().partition('VmHWM:')[2].split()
        if told:
            return int(told[0]) << 10
    try:
        import resource
    except ImportError:  # Windows keeps it elsewhere
        return psutil.Process().memory_info().peak_wset
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == 'darwin' else peak << 10


def keep_freed_memory() -> None:
    """Makes glibc keep freed blocks for the next ones instead of giving them back to the system.

    Blocks of megabytes come and go. Returned and taken again, each page of them is cleared and
    mapped anew: that was a fifth of the time of counting, and threads wait for each other there.
    And what one thread frees the next one gets, still in the cache, if all share one arena.
    Other C libraries are left as they are.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc
        return
    mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)
    mallopt(_TRIM_THRESHOLD, _MOST_KEPT)
    mallopt(_ARENA_MAX, 1)


def _limits(group: Group) -> list[int]:
    # Beyond `memory.high` a process is not ended but slowed down until it hardly moves.
    names = ('memory.max', 'memory.high') if group.unified else ('memory.limit_in_bytes',)
    return [limit for name in names for limit in group.numbers(name) if limit is not None]


def _held(group: Group) -> int:
    """What the processes of a group hold together, but for files that are only cached."""
    used = group.numbers('memory.current' if group.unified else 'memory.usage_in_bytes')
    if not used or used[0] is None:
        return resident_bytes()
    cached = group.statistics('memory.stat')
    prefix = '' if group.unified else 'total_'
    kinds = ('inactive_file', 'active_file')
    return max(0, used[0] - sum(cached.get(prefix + kind, 0) for kind in kinds))
