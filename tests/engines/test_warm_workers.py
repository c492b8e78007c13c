"""Workers forked from a warm process: whichever of the three dies, the others end too."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from deadlines import free_port
from worker_processes import BOOT, worker_environment

pytestmark = pytest.mark.slow

END_SECONDS = 600
LOOK_SECONDS = 0.05


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Where the socket is; what runs there is killed in the end."""
    # A path that is longer than a socket's may be.
    folder = tmp_path_factory.mktemp('workers') / ('deep' * 30)
    yield folder
    if (folder / 'pid').exists():
        warm_process(folder).kill()


@pytest.fixture
def environment(folder):
    """That of `boot`."""
    variables = {'TOKBEAM_WORKERS': str(folder), 'TOKBEAM_WORKERS_IDLE': str(END_SECONDS)}
    return {**worker_environment(), **variables}


def warm_process(folder) -> psutil.Process:
    return psutil.Process(int((folder / 'pid').read_text()))


def wait_for(what):
    end = time.monotonic() + END_SECONDS
    while not (seen := what()):
        assert time.monotonic() < end
        time.sleep(LOOK_SECONDS)
    return seen


@pytest.fixture
def boot(environment):
    """Starts `boot` for a worker that waits for a runner, which is not there."""
    started = []

    def start():
        command = [BOOT, '--id=1', f'--provision_endpoint=localhost:{free_port()}']
        started.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait(END_SECONDS)


@pytest.fixture
def worker(boot, environment, folder):
    """Of a `boot`: it, its worker and the warm process."""
    subprocess.run([BOOT, '--warm'], env=environment, check=True, timeout=END_SECONDS)
    process, warm = boot(), warm_process(folder)
    [forked] = wait_for(warm.children)
    return process, forked, warm


def test_a_killed_worker_ends_its_boot_with_an_error(worker):
    process, forked, warm = worker
    forked.kill()
    assert process.wait(END_SECONDS) == 128 + signal.SIGKILL
    assert warm.is_running()
    wait_for(lambda: not warm.children())


def test_a_killed_boot_ends_its_worker_alone(worker, boot):
    process, forked, warm = worker
    boot()
    wait_for(lambda: len(warm.children()) == 2)
    process.kill()
    forked.wait(END_SECONDS)
    wait_for(lambda: len(warm.children()) == 1)
    assert warm.is_running()


def test_a_killed_warm_process_ends_workers_and_boots_and_is_started_again(
    worker, boot, folder, environment
):
    process, forked, warm = worker
    warm.kill()
    assert process.wait(END_SECONDS) == 1
    wait_for(lambda: not forked.is_running())
    (folder / 'pid').unlink()
    subprocess.run([BOOT, '--warm'], env=environment, check=True, timeout=END_SECONDS)
    boot()
    wait_for(warm_process(folder).children)


def test_it_ends_by_itself_when_nobody_asks(environment, tmp_path):
    folder = tmp_path / 'own'
    environment |= {'TOKBEAM_WORKERS': str(folder), 'TOKBEAM_WORKERS_IDLE': '0.1'}
    subprocess.run([BOOT, '--warm'], env=environment, check=True, timeout=END_SECONDS)
    wait_for(lambda: not (folder / 'socket').exists())
    assert sorted(os.listdir(folder)) == ['lock', 'log']
    assert 'ready after' in (folder / 'log').read_text()


def test_a_python_without_tokbeam_is_told(environment, tmp_path):
    empty = tmp_path / 'bin'
    empty.mkdir()
    (empty / 'python3').symlink_to(os.path.realpath(sys.executable))  # outside of its environment
    environment |= {'PYTHONPATH': '/nowhere', 'TOKBEAM_WORKERS': str(tmp_path / 'own')}
    environment['PATH'] = os.pathsep.join([str(empty), os.defpath])
    ended = subprocess.run([BOOT, '--warm'], env=environment, capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr.startswith('boot: no worker can be started by ')
    assert 'No module named' in ended.stderr
