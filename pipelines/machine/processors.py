"""The processors that this process may use, which in a container are not all that there are."""

import os
import pathlib

from pipelines.machine.control_groups import ROOT, Group, own_groups


def usable_cores(root: pathlib.Path = ROOT) -> int:
    """Returns how many cores can be kept busy: those that may be used, within the time granted.

    Half a core is one. `root` is where the system's files are.
    """
    cores = _allowed_cores()
    for group in own_groups('cpu', root):
        quota, period = _quota(group)
        if quota is not None and quota > 0 and period:
            cores = min(cores, -(-quota // period))
    return max(1, cores)


def _allowed_cores() -> int:
    if hasattr(os, 'sched_getaffinity'):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quota(group: Group) -> tuple[int | None, int | None]:
    """The microseconds of processor time in each period of so many; no quota is None or -1."""
    if group.unified:
        numbers = group.numbers('cpu.max')
    else:
        numbers = group.numbers('cpu.cfs_quota_us') + group.numbers('cpu.cfs_period_us')
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (None, None)
