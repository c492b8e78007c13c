"""An encode of a format or scheme of one's own, in a process of its own, also killed amid its runs."""

import os
import signal
import subprocess
import time
from pathlib import Path

from jobs import succeed
from sizes import program_of, sizes_apart

ROOT = Path(__file__).resolve().parents[2]


def start_encode(program: Path, command: list[object]) -> subprocess.Popen:
    """Starts a command line of a program that registers what is beside it."""
    words, sizes = sizes_apart(command)
    code = f'import runpy\nrunpy.run_path({str(program)!r}, run_name="__main__")'
    return subprocess.Popen(
        [*program_of(code, sizes), *words],
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(map(str, (program.parent, ROOT)))},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill_and_go_on(program: Path, command: list[object], folder: Path) -> None:
    """Kills an encode that has three runs; the command then keeps these and writes the others.

    Runs are to stay when it ends.
    """
    process = start_encode(program, command)
    while process.poll() is None and len(_runs_of(folder)) < 3:
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    before = _runs_of(folder)
    succeed(*command)
    after = _runs_of(folder)
    assert {name: after[name] for name in before} == before and len(after) > len(before)


def _runs_of(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        path.name: (path.stat().st_mtime_ns, path.stat().st_ino)
        for path in sorted((folder / '.tokbeam').glob('shuffle-*/run-*'))
    }
