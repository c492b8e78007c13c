"""The memory at hand, what this process took of it, and what it keeps for itself."""

import ctypes
import sys

import psutil

_GROUP_FILES = ('/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/memory/memory.limit_in_bytes')

# Names of glibc's mallopt(3), and its own limit of the first.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_LARGEST_KEPT = 32 << 20
_MOST_KEPT = 256 << 20


def available_bytes() -> int:
    """Returns what can be had without swapping, within a container's limit."""
    available = psutil.virtual_memory().available
    limit = _group_limit()
    if limit is not None:
        available = min(available, max(0, limit - resident_bytes()))
    return available


def resident_bytes() -> int:
    """Returns what this process holds now."""
    return psutil.Process().memory_info().rss


def peak_bytes() -> int:
    """Returns the most that this process has held so far, resident."""
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


def _group_limit() -> int | None:
    for path in _GROUP_FILES:
        try:
            with open(path) as file:
                limit = file.read().strip()
        except OSError:
            continue
        return int(limit) if limit.isdigit() else None
    return None
