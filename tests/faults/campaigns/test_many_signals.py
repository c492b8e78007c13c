"""SIGINT, SIGTERM and SIGHUP at drawn moments: a line, soon, the status that says so, and nothing lost.

Fifty of them: `FUZZ_CASES=50 pytest -m fuzz tests/faults/campaigns/test_many_signals.py`.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from command_outcome import Outcome
from jobs import interruptible_command
from stopped_runs import (
    SEED,
    Moment,
    assert_finished,
    assert_whole,
    cases,
    draw_moment,
    run,
    wait_for,
)

pytestmark = [pytest.mark.fuzz, pytest.mark.slow]

_SOON = 30  # seconds from a signal to the end, on a machine with other work too
_LONGEST = 120  # for a real process, which imports and may have to share its cores
_STATUSES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def wait_until_it_listens(process: int) -> None:
    """Waits until a process has its handlers: before, an interpreter only starts."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        while not _caught(process, signal.SIGTERM):
            time.sleep(0.001)


def _caught(process: int, number: int) -> bool:
    lines = Path(f'/proc/{process}/status').read_text().splitlines()
    [caught] = [line.split()[1] for line in lines if line.startswith('SigCgt')]
    is_zombie = any(line.startswith('State') and 'Z' in line for line in lines)
    return is_zombie or bool(int(caught, 16) >> number - 1 & 1)


def assert_ended_by(outcome: Outcome, number: signal.Signals) -> None:
    assert outcome.status == _STATUSES[number], outcome.stderr
    assert 1 <= len(outcome.complaints) <= 2, outcome.stderr  # two where something is written first
    assert all(line.startswith('tokbeam: ') for line in outcome.complaints), outcome.stderr


@pytest.mark.parametrize('number', cases(usual=8))
def test_a_signal_at_a_drawn_moment(lane, jobs, tmp_path, number):
    dice = random.Random(f'signal-{SEED}-{number}')
    job = jobs[list(jobs)[number % len(jobs)]]
    sent = dice.choice(list(_STATUSES))
    folder = tmp_path / 'results'
    folder.mkdir()
    process = lane.start(job.command(folder, *job.draw_spread(dice)), tmp_path)
    wait_until_it_listens(process)
    is_running = wait_for(lane, folder, draw_moment(dice, job))
    if is_running:
        with contextlib.suppress(ProcessLookupError):  # it ended between the look and the signal
            os.kill(process, sent)
    started = time.monotonic()
    ended = lane.end()
    assert time.monotonic() - started < _SOON
    assert not ended.left_processes
    if not is_running or ended.status == 0:  # it may have been at its very end
        assert ended.status == 0, ended.stderr
    else:
        assert_ended_by(ended, sent)
    assert_whole(folder, job.reference)
    run(lane, job.command(folder, *job.draw_spread(dice)), tmp_path)
    assert_finished(folder, job.reference)
    shutil.rmtree(folder)


def test_a_process_that_ignores_sigint_goes_on_ignoring_it(lane, jobs, tmp_path):
    folder = tmp_path / 'results'
    folder.mkdir()
    job = jobs['build']
    process = lane.start(job.command(folder), tmp_path, ignores_sigint=True)
    wait_until_it_listens(process)
    for _ in range(3):
        assert wait_for(lane, folder, Moment(names=job.names // 5, seconds=0))
        os.kill(process, signal.SIGINT)
    assert lane.end().status == 0
    assert_finished(folder, job.reference)


class RealProcess:
    """`python -m pipelines` in a session of its own, looked at as a lane is."""

    def __init__(self, command: list[object], log: Path):
        self._log = log
        with log.open('wb') as stream:
            self._process = subprocess.Popen(
                interruptible_command(*command),
                stdin=subprocess.DEVNULL,
                stderr=stream,
                start_new_session=True,
            )
        self.pid = self._process.pid

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def end(self, seconds: float) -> Outcome:
        try:
            status = self._process.wait(seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                if not self.has_ended():
                    os.killpg(self.pid, signal.SIGKILL)
        return Outcome(status, self._log.read_text(errors='backslashreplace'))

    def processes(self) -> list[psutil.Process]:
        """Returns it and all that it started and that are still there."""
        return [
            each
            for each in psutil.process_iter()
            if _session(each.pid) == self.pid and _is_alive(each)
        ]


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _session(process: int) -> int | None:
    try:
        return os.getsid(process)
    except ProcessLookupError:
        return None


@pytest.mark.parametrize('number', range(max(2, len(cases(usual=8)) // 4)))
@pytest.mark.parametrize('to_all', [False, True], ids=['to it', 'to its group'])
def test_a_signal_to_a_process_of_its_own(lane, jobs, tmp_path, number, to_all):
    dice = random.Random(f'process-{SEED}-{number}-{to_all}')
    job = jobs[dice.choice(list(jobs))]
    sent = list(_STATUSES)[number % len(_STATUSES)]
    folder = tmp_path / 'results'
    folder.mkdir()
    process = RealProcess(job.command(folder, *job.draw_spread(dice)), tmp_path / 'log')
    wait_until_it_listens(process.pid)
    is_running = wait_for(process, folder, draw_moment(dice, job))
    if is_running:
        (os.killpg if to_all else os.kill)(process.pid, sent)
    ended = process.end(_SOON if is_running else _LONGEST)
    if ended.status:
        assert_ended_by(ended, sent)
    assert_whole(folder, job.reference)
    run(lane, job.command(folder, *job.draw_spread(dice)), tmp_path)
    assert_finished(folder, job.reference)


@pytest.mark.parametrize('sent', _STATUSES, ids=lambda sent: sent.name)
@pytest.mark.parametrize('to_all', [False, True], ids=['to it', 'to its group'])
def test_worker_processes_end_too(lane, jobs, tmp_path, sent, to_all):
    job = jobs['encode']
    folder = tmp_path / 'results'
    folder.mkdir()
    command = job.command(
        folder, '--direct_running_mode=multi_processing', '--direct_num_workers=2'
    )
    process = RealProcess(command, tmp_path / 'log')
    while len(process.processes()) < 3 and not process.has_ended():
        time.sleep(0.01)
    (os.killpg if to_all else os.kill)(process.pid, sent)
    ended = process.end(_SOON)
    until = time.monotonic() + _SOON
    while process.processes() and time.monotonic() < until:
        time.sleep(0.01)
    assert process.processes() == []
    assert_ended_by(ended, sent)
    run(lane, job.command(folder), tmp_path)
    assert_finished(folder, job.reference)
