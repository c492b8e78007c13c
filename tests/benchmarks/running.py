"""Runs one contender once, in a fresh process, watching its clock and the memory of its tree."""

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]

_TICK_SECONDS = 0.1


@dataclass(frozen=True)
class Run:
    """How a run ended; `problem` says why there is no time."""

    seconds: float | None = None
    peak_bytes: int = 0
    """Of the resident memory of the process tree, shared pages counted in each process."""
    facts: Mapping[str, object] = field(default_factory=dict)
    problem: str = ''
    too_slow: bool = False


def run_task(
    task: str,
    options: Mapping[str, object],
    cores: int | None,
    lane: int = 0,
    limit_seconds: float | None = None,
    root: Path | None = None,
) -> Run:
    """Runs a task function; ends it if it takes longer than the limit once it is ready.

    The function is that of this revision, or of the one in the folder `root`. It is kept to so many cores, the last ones in lane 0, those before them in the next lane.
    """
    order = json.dumps(
        {'task': task, 'options': options, 'cores': cores, 'lane': lane}, default=str
    )
    # With this set, each process would compile all modules anew.
    environment = {
        name: value for name, value in os.environ.items() if name != 'PYTHONDONTWRITEBYTECODE'
    }
    with tempfile.TemporaryFile('w+') as errors:
        process = subprocess.Popen(
            [sys.executable, '-m', 'tests.benchmarks.task_process', order],
            stdout=subprocess.PIPE,
            stderr=errors,
            # Before all else, what is there is imported: by the task, and by commands that it runs.
            cwd=root or ROOT,
            env=environment | {'PYTHONPATH': str(root or ROOT)},
        )
        try:
            lines, peak, in_time = _watch(process, limit_seconds)
        finally:
            _end(process)
        if not in_time:
            return Run(problem=f'over {limit_seconds:g} s', too_slow=True, peak_bytes=peak)
        reply = json.loads(lines[-1]) if lines and lines[-1].startswith(b'{') else {}
        if 'missing' in reply:
            return Run(problem=f'missing: {reply["missing"]}')
        if 'seconds' not in reply:
            errors.seek(0)
            said = [line.strip() for line in errors if line.strip()]
            return Run(problem=f'failed: {said[-1] if said else "without a word"}', peak_bytes=peak)
        return Run(reply['seconds'], peak, reply['facts'])


def _watch(process: subprocess.Popen, limit_seconds: float | None) -> tuple[list[bytes], int, bool]:
    """Returns the lines written, the tree's peak memory since it was ready, and if it kept time."""
    written = b''
    peak = 0
    ready_at = None
    tree = psutil.Process(process.pid)
    while True:
        readable, _, _ = select.select([process.stdout], [], [], _TICK_SECONDS)
        if readable:
            piece = process.stdout.read1()
            if not piece:
                return written.splitlines(), peak, True
            written += piece
            if ready_at is None and written.startswith(b'ready\n'):
                ready_at = time.monotonic()
        if ready_at is not None:
            peak = max(peak, _resident_bytes(tree))
            if limit_seconds is not None and time.monotonic() - ready_at > limit_seconds:
                return [], peak, False


def _resident_bytes(tree: psutil.Process) -> int:
    total = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in [tree, *tree.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
    return total


def _end(process: subprocess.Popen) -> None:
    if process.poll() is None:
        try:
            tree = psutil.Process(process.pid)
            family = [*tree.children(recursive=True), tree]
        except psutil.NoSuchProcess:
            family = []
        try:
            process.wait(1)  # it closed its output, so it is about to end
        except subprocess.TimeoutExpired:
            for member in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    member.kill()
            process.wait()
    process.stdout.close()
