"""The cores and the memory that this process may use, also within a container.

Linux limits a container by control groups. A process is in a group of each hierarchy, and the
limits of all parent groups hold too. `/proc/self/cgroup` names the groups, and
`/proc/self/mountinfo` says where a hierarchy is mounted. Version 2 has one hierarchy, version 1 one
per controller.
"""

import ctypes
import os
import pathlib
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import psutil

# Names of glibc's mallopt(3), and its own limit of the first.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_LARGEST_KEPT = 32 << 20
_MOST_KEPT = 256 << 20
_DEFAULT_KEPT = 128 << 10

_STATUS = pathlib.Path('/proc/self/status')

ROOT = pathlib.Path('/')

_ESCAPED = re.compile(r'\\([0-7]{3})')


def available_bytes(root: pathlib.Path = ROOT) -> int:
    """Returns the memory that is available without swapping, within a container's limits.

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
    """Returns the resident memory of this process."""
    return psutil.Process().memory_info().rss


def peak_bytes() -> int:
    """Returns the peak of this process's resident memory."""
    # Linux's getrusage(2) begins with what the process held that started this one by exec(3).
    if words := _text(_STATUS).partition('VmHWM:')[2].split():
        return int(words[0]) << 10
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
    _set_malloc({_MMAP_THRESHOLD: _LARGEST_KEPT, _TRIM_THRESHOLD: _MOST_KEPT, _ARENA_MAX: 1})


def return_freed_memory() -> None:
    """Makes glibc give freed blocks back to the system, now and later, for work in a few large blocks.

    By itself it keeps larger blocks the larger those are that were freed before. Then a learner whose phases
    use different arrays takes nearly as much as all of them together.
    """
    if _set_malloc({_MMAP_THRESHOLD: _DEFAULT_KEPT, _TRIM_THRESHOLD: _DEFAULT_KEPT}):
        ctypes.CDLL(None).malloc_trim(0)


def _set_malloc(values: Mapping[int, int]) -> bool:
    """Sets glibc's parameters; returns False with another C library."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return all(mallopt(name, value) for name, value in values.items())


@dataclass(frozen=True)
class Group:
    """A group's folder, and whether it is of version 2."""

    folder: pathlib.Path
    unified: bool

    def numbers(self, name: str) -> list[int | None]:
        """Returns the numbers in a file of the group, and None for words such as `max`.

        The list is empty if the file is missing.
        """
        words = _text(self.folder / name).split()
        return [int(word) if re.fullmatch('-?[0-9]+', word) else None for word in words]

    def statistics(self, name: str) -> dict[str, int]:
        """Returns the lines `key value` of a file of the group."""
        words = _text(self.folder / name).split()
        return {key: int(value) for key, value in zip(words[::2], words[1::2]) if value.isdigit()}


def _limits(group: Group) -> list[int]:
    # Beyond `memory.high` a process is not ended but slowed down until it hardly moves.
    names = ('memory.max', 'memory.high') if group.unified else ('memory.limit_in_bytes',)
    return [limit for name in names for limit in group.numbers(name) if limit is not None]


def _held(group: Group) -> int:
    """Returns the memory of a group's processes together, without cached files."""
    used = group.numbers('memory.current' if group.unified else 'memory.usage_in_bytes')
    if not used or used[0] is None:
        return resident_bytes()
    cached = group.statistics('memory.stat')
    prefix = '' if group.unified else 'total_'
    kinds = ('inactive_file', 'active_file')
    return max(0, used[0] - sum(cached.get(prefix + kind, 0) for kind in kinds))


def usable_cores(root: pathlib.Path = ROOT) -> int:
    """Returns how many cores this process can keep busy, within its affinity and its CPU quota.

    Half a core counts as one. `root` is where the system's files are.
    """
    has_affinity = hasattr(os, 'sched_getaffinity')
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    for group in own_groups('cpu', root):
        if group.unified:
            numbers = group.numbers('cpu.max')
        else:
            numbers = group.numbers('cpu.cfs_quota_us') + group.numbers('cpu.cfs_period_us')
        # In microseconds; the quota is None or -1 without a limit.
        quota, period = numbers if len(numbers) == 2 else (None, None)
        if quota is not None and quota > 0 and period:
            cores = min(cores, -(-quota // period))
    return max(1, cores)


def own_groups(controller: str, root: pathlib.Path = ROOT) -> Iterator[Group]:
    """Yields this process's group of a controller, and the groups above it.

    Args:
        controller: 'memory' or 'cpu'.
        root: where the system's files are; another one in tests.
    """
    paths = dict(_group_paths(root))
    for mounted, mount_point, unified, options in _mounts(root):
        key = '' if unified else controller
        if key not in paths or not (unified or controller in options):
            continue
        below = pathlib.PurePosixPath(paths[key])
        # A group from outside of what is mounted here cannot be seen; the mounted one is above it.
        inside = below.relative_to(mounted) if below.is_relative_to(mounted) else ''
        top = root / mount_point.lstrip('/')
        folder = top / inside
        while True:
            yield Group(folder, unified)
            if folder == top:
                break
            folder = folder.parent


def _group_paths(root: pathlib.Path) -> Iterator[tuple[str, str]]:
    """Yields each hierarchy's controllers, '' for version 2, and this process's group in it."""
    for line in _text(root / 'proc/self/cgroup').splitlines():
        fields = line.split(':', 2)
        if len(fields) == 3:
            for controller in fields[1].split(','):
                yield controller, fields[2]


def _mounts(root: pathlib.Path) -> Iterator[tuple[str, str, bool, list[str]]]:
    """Yields each mounted hierarchy: the part seen, where, if of version 2, its controllers."""
    for line in _text(root / 'proc/self/mountinfo').splitlines():
        before, _, after = line.partition(' - ')
        fields, kind = before.split(), after.split()
        if len(fields) >= 5 and len(kind) >= 3 and kind[0] in ('cgroup', 'cgroup2'):
            mounted, mount_point = (_ESCAPED.sub(_character, path) for path in fields[3:5])
            yield mounted, mount_point, kind[0] == 'cgroup2', kind[2].split(',')


def _character(match: re.Match) -> str:
    return chr(int(match[1], 8))


def _text(path: pathlib.Path) -> str:
    """Returns what a file of the system says; '' if it is missing."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ''
