"""Whole commands, each in a new process, and their time above start-up.

A command is a list of arguments for Python; `{text}` and `{output}` in it stand for paths.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ..outcome import Outcome, Ready
from .written import files_digest, remove


def run(
    ready: Ready,
    *,
    arguments: Sequence[str],
    text: str,
    output: str,
    cold: bool = False,
) -> Outcome:
    """Runs a command once; if it is `cold`, without compiled kernels."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        if cold:
            environment.update(NUMBA_CACHE_DIR=folder, XDG_CACHE_HOME=folder)
        ready()
        seconds = _seconds(arguments, text, output, environment)
    return Outcome(seconds, _facts(output))


def run_above_start_up(
    ready: Ready, *, arguments: Sequence[str], text: str, small: str, output: str
) -> Outcome:
    """Runs a command on a kilobyte and then on the text; its time is the difference."""
    ready()
    start_up = _seconds(arguments, small, output, None)
    remove(output)
    whole = _seconds(arguments, text, output, None)
    facts = {'start_up_seconds': start_up, 'whole_seconds': whole, **_facts(output)}
    return Outcome(whole - start_up, facts)


def run_halves_above_start_up(
    ready: Ready, *, arguments: Sequence[str], halves: Sequence[str], small: str, output: str
) -> Outcome:
    """Runs a command on two texts at the same time, as `run_above_start_up` does on one."""
    outputs = [f'{output}.{number}' for number in range(len(halves))]
    ready()
    seconds = []
    for texts in ([small] * len(halves), halves):
        started = time.perf_counter()
        running = [
            subprocess.Popen(_filled(arguments, *each), stdout=subprocess.DEVNULL)
            for each in zip(texts, outputs, strict=True)
        ]
        statuses = [process.wait() for process in running]
        seconds.append(time.perf_counter() - started)
        if any(statuses):
            sys.exit(max(statuses))  # the message of the command is on stderr
        for each in outputs:
            remove(each)
    start_up, whole = seconds
    return Outcome(whole - start_up, {'start_up_seconds': start_up, 'whole_seconds': whole})


def _filled(arguments: Sequence[str], text: str, output: str) -> list[str]:
    return [sys.executable, *(each.format(text=text, output=output) for each in arguments)]


def _seconds(
    arguments: Sequence[str], text: str, output: str, environment: dict[str, str] | None
) -> float:
    filled = _filled(arguments, text, output)
    started = time.perf_counter()
    ended = subprocess.run(filled, env=environment, stdout=subprocess.DEVNULL, stderr=sys.stderr)
    seconds = time.perf_counter() - started
    if ended.returncode:
        sys.exit(ended.returncode)  # its message is on stderr
    return seconds


def _facts(output: str) -> dict[str, object]:
    """Returns the digest and size of the shards, and removes the output."""
    facts: dict[str, object] = {}
    shards = sorted(Path(output).glob('*-train-*')) if Path(output).is_dir() else []
    if shards:
        facts = {
            'digest': files_digest(shards),
            'bytes_written': sum(path.stat().st_size for path in shards),
        }
    remove(output)
    return facts
