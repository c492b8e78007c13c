"""The memory at hand, and what this process took of it."""

import sys

import psutil

_GROUP_FILES = ('/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/memory/memory.limit_in_bytes')


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


def _group_limit() -> int | None:
    for path in _GROUP_FILES:
        try:
            with open(path) as file:
                limit = file.read().strip()
        except OSError:
            continue
        return int(limit) if limit.isdigit() else None
    return None
