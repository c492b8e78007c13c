"""Programs that a test starts and surely ends, with every process that they started."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

_KILL_SECONDS = 10
_POLL_SECONDS = 0.1


@contextlib.contextmanager
def running(
    command: Sequence[object], log: Path, environment: dict[str, str]
) -> Iterator[subprocess.Popen]:
    """Runs a program in a process group of its own, which is killed in the end; logs to a file."""
    with log.open('wb') as stream:
        process = subprocess.Popen(
            [str(each) for each in command],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            # The group outlives its leader: a job server, workers that nobody waits for.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=_KILL_SECONDS)


def succeed_within(
    seconds: float, command: Sequence[object], log: Path, environment: dict[str, str]
) -> str:
    """Runs a program that must end well in time; returns what it said."""
    with running(command, log, environment) as process:
        try:
            status = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            status = f'none after {seconds} seconds'
    said = log.read_text(errors='replace')
    assert status == 0, f'status {status}\n{said}'
    return said


def free_port() -> int:
    """Returns a port that nothing listens at."""
    with socket.socket() as probe:
        probe.bind(('localhost', 0))
        return probe.getsockname()[1]


def wait_for_port(port: int, process: subprocess.Popen, seconds: float) -> None:
    """Returns when a program listens at a port; fails if it ends or takes too long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert process.poll() is None, f'ended with status {process.returncode}'
        with contextlib.suppress(OSError), socket.create_connection(('localhost', port), 1):
            return
        time.sleep(_POLL_SECONDS)
    raise AssertionError(f'nothing listens at port {port} after {seconds} seconds')
