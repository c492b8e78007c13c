"""Whole commands in processes of their own, and how long they take above their start-up.

A command is the arguments of a Python interpreter; `{text}` and `{output}` in it stand for paths.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ..outcome import Outcome, Ready
from .written import files_digest


def run(
    ready: Ready,
    *,
    arguments: Sequence[str],
    text: str,
    output: str,
    cold: bool = False,
) -> Outcome:
    """Runs a command once, everything included; `cold` without any compiled kernel."""
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
    """Runs a command on a kilobyte and then on the text; the difference is its time."""
    ready()
    start_up = _seconds(arguments, small, output, None)
    _remove(output)
    whole = _seconds(arguments, text, output, None)
    facts = {'start_up_seconds': start_up, 'whole_seconds': whole, **_facts(output)}
    return Outcome(whole - start_up, facts)


def _seconds(
    arguments: Sequence[str], text: str, output: str, environment: dict[str, str] | None
) -> float:
    filled = [each.format(text=text, output=output) for each in arguments]
    started = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, *filled], env=environment, stdout=subprocess.DEVNULL, stderr=sys.stderr
    )
    seconds = time.perf_counter() - started
    if ended.returncode:
        sys.exit(ended.returncode)  # its last words are on stderr
    return seconds


def _facts(output: str) -> dict[str, object]:
    """Says what the command wrote, and removes it."""
    facts: dict[str, object] = {}
    shards = sorted(Path(output).glob('*-train-*')) if Path(output).is_dir() else []
    if shards:
        facts = {
            'digest': files_digest(shards),
            'bytes_written': sum(path.stat().st_size for path in shards),
        }
    _remove(output)
    return facts


def _remove(output: str) -> None:
    path = Path(output)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
