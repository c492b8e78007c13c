"""The cores and the memory of a process, also within a container."""

import os
import subprocess
import sys

import pytest

from pipelines.engines import machine as engines_machine
from pipelines.engines.machine import available_bytes, resident_bytes, total_bytes, usable_cores

MIB = 1 << 20
UNIFIED = '36 32 0:28 {} /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n'
SPLIT = (
    '32 31 0:29 {0} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n'
    '35 31 0:32 {0} /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n'
    '41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n'
)

NO_LIMIT = f'{(1 << 63) - 4096}\n'  # as version 1 writes it

HELD = 512 << 20

CHILD = 'from pipelines.engines.machine import peak_bytes; print(peak_bytes())'

PARENT = f"""
import subprocess, sys
held = bytearray(b'x') * {HELD}
print(subprocess.run([sys.executable, '-c', sys.argv[1]], check=True, capture_output=True,
                     text=True).stdout)
"""


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """A machine of 16 cores with 8 GiB, of which 6 are free; this process holds 100 MiB."""

    class Memory:
        total, available = 8192 * MIB, 6144 * MIB

    monkeypatch.setattr(engines_machine.psutil, 'virtual_memory', Memory)
    monkeypatch.setattr(engines_machine, 'resident_bytes', lambda: 100 * MIB)
    monkeypatch.setattr(os, 'sched_getaffinity', lambda process: set(range(16)), raising=False)


@pytest.fixture
def tree(tmp_path):
    """Writes files of a system, by their paths."""

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


def unified(own, files, mounted='/'):
    """A system with version 2, this process being in the group `own`."""
    return {
        'proc/self/cgroup': f'0::{own}\n',
        'proc/self/mountinfo': UNIFIED.format(mounted),
        **{f'sys/fs/cgroup/{name}': text for name, text in files.items()},
    }


def split(own, files, mounted='/'):
    """A system with version 1."""
    return {
        'proc/self/cgroup': f'4:memory:{own}\n2:cpu,cpuacct:{own}\n0::/\n',
        'proc/self/mountinfo': SPLIT.format(mounted),
        **{f'sys/fs/cgroup/{name}': text for name, text in files.items()},
    }


def limited(own, group_to_limit, mounted='/'):
    """A system with version 1 and limits of memory."""
    files = {
        f'memory{group}/memory.limit_in_bytes': limit for group, limit in group_to_limit.items()
    }
    return split(own, files, mounted)


GIB, TWO_GIB, FOUR_GIB = (f'{number << 30}\n' for number in (1, 2, 4))
JOB, ABOVE = 'user/job/memory.max', 'user/memory.max'
LIMITED = {
    'the root of a container': unified('/', {'memory.max': GIB}),
    'the own group': unified('/user/job', {JOB: GIB, ABOVE: 'max\n'}),
    'the group above': unified('/user/job', {JOB: 'max\n', ABOVE: GIB}),
    'the tightest': unified('/user/job', {JOB: GIB, ABOVE: TWO_GIB, 'other/memory.max': '9\n'}),
    'where it is slowed down': unified('/', {'memory.max': FOUR_GIB, 'memory.high': GIB}),
    'version 1, own group': limited('/docker/7', {'/docker/7': GIB, '': NO_LIMIT}),
    'version 1, group above': limited('/docker/7', {'/docker/7': NO_LIMIT, '/docker': GIB}),
    # The container sees its own group alone, under the name that it has outside.
    'version 1, only the own group mounted': limited('/docker/7', {'': GIB}, '/docker/7'),
    'version 1, below what is mounted': limited('/docker/7/job', {'/job': GIB}, '/docker/7'),
    'a space in a name': {
        **unified('/', {}),
        'proc/self/mountinfo': UNIFIED.format('/').replace('fs/cgroup', 'fs/my\\040groups'),
        'sys/fs/my groups/memory.max': GIB,
    },
}


@pytest.mark.parametrize('files', LIMITED.values(), ids=LIMITED)
def test_a_limit_of_any_group_above_this_process_holds(tree, files):
    root = tree(files)
    assert total_bytes(root) == 1024 * MIB
    assert available_bytes(root) == 924 * MIB


UNLIMITED = {
    'no control groups': {},
    'no limit': unified('/job', {'job/memory.max': 'max\n', 'job/memory.high': 'max\n'}),
    'no limit in version 1': limited('/', {'': NO_LIMIT}),
    'more than the machine has': unified('/', {'memory.max': f'{1 << 50}\n'}),
    'another group': unified('/job', {'other/memory.max': f'{MIB}\n'}),
    'no number': unified('/', {'memory.max': 'much\n'}),
    'nothing mounted': {'proc/self/cgroup': '0::/\n', 'proc/self/mountinfo': '1 2 3\n - \n'},
}


@pytest.mark.parametrize('files', UNLIMITED.values(), ids=UNLIMITED)
def test_without_one_it_is_the_machines(tree, files):
    root = tree(files)
    assert total_bytes(root) == 8192 * MIB
    assert available_bytes(root) == 6144 * MIB
    assert usable_cores(root) == 16


def test_what_others_in_the_container_hold_is_not_to_be_had(tree):
    root = tree(unified('/', {'memory.max': f'{1024 * MIB}\n', 'memory.current': f'{700 * MIB}\n'}))
    assert available_bytes(root) == 324 * MIB


@pytest.mark.parametrize(
    'files',
    [
        unified(
            '/',
            {
                'memory.max': f'{1024 * MIB}\n',
                'memory.current': f'{1000 * MIB}\n',
                'memory.stat': f'anon 5\nactive_file {200 * MIB}\ninactive_file {300 * MIB}\n',
            },
        ),
        split(
            '/',
            {
                'memory/memory.limit_in_bytes': f'{1024 * MIB}\n',
                'memory/memory.usage_in_bytes': f'{1000 * MIB}\n',
                'memory/memory.stat': f'inactive_file 7\ntotal_active_file {200 * MIB}\n'
                f'total_inactive_file {300 * MIB}\n',
            },
        ),
    ],
    ids=['version 2', 'version 1'],
)
def test_cached_files_give_way(tree, files):
    assert available_bytes(tree(files)) == 524 * MIB


def test_a_container_that_is_full_has_nothing_left(tree):
    root = tree(unified('/', {'memory.max': f'{50 * MIB}\n'}))
    assert available_bytes(root) == 0


PERIOD = {f'cpu,cpuacct/{group}/cpu.cfs_period_us': '100000\n' for group in ('docker', 'docker/7')}
QUOTAS = {
    'cpu,cpuacct/docker/7/cpu.cfs_quota_us': '150000\n',
    'cpu,cpuacct/docker/cpu.cfs_quota_us': '-1\n',
}
ABOVE_IT = {'user/job/cpu.max': 'max 100000\n', 'user/cpu.max': '4000 1000\n'}
CORES = {
    'two and a half': (unified('/job', {'job/cpu.max': '250000 100000\n'}), 3),
    'half a core': (unified('/', {'cpu.max': '50000 100000\n'}), 1),
    'no quota': (unified('/', {'cpu.max': 'max 100000\n'}), 16),
    'more than there are': (unified('/', {'cpu.max': '6400000 100000\n'}), 16),
    'the group above': (unified('/user/job', ABOVE_IT), 4),
    'version 1': (split('/docker/7', {**PERIOD, **QUOTAS}), 2),
    'nonsense': (unified('/', {'cpu.max': 'much 0\n'}), 16),
    'no time at all': (unified('/', {'cpu.max': '0 0\n'}), 16),
}


@pytest.mark.parametrize(('files', 'cores'), CORES.values(), ids=CORES)
def test_the_time_granted_is_rounded_up_to_cores(tree, files, cores):
    assert usable_cores(tree(files)) == cores


def test_cores_that_this_process_may_not_use_do_not_count(tree, monkeypatch):
    monkeypatch.setattr(os, 'sched_getaffinity', lambda process: {3, 7})
    assert usable_cores(tree({})) == 2
    assert usable_cores(tree(unified('/', {'cpu.max': '300000 100000\n'}))) == 2


def test_where_the_system_does_not_tell_all_cores_count(tree, monkeypatch):
    monkeypatch.delattr(engines_machine.os, 'sched_getaffinity')
    assert usable_cores(tree({})) == (os.cpu_count() or 1)


def test_this_process_holds_something():
    assert resident_bytes() > 10 * MIB


def test_a_parents_memory_is_not_the_childs():
    command = [sys.executable, '-c', PARENT, CHILD]
    peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert 1 << 20 < peak < HELD
