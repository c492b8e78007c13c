"""Runs commands in process groups of their own, and kills them at a given moment.

A moment is either a number of names that have appeared anywhere in the output folder, or a share of
the time that a whole run takes: the first falls where files are written, the second where results
are computed.
"""

import contextlib
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from earlier_revisions import in_place_of_ours
from sizes import command_of

_POLL_SECONDS = 0.002
"""Between looks at the folder; a name that comes and goes in the meantime is not counted."""

_FIRST_SHARE = 0.3
"""Earlier, a small run has only imported its modules."""


@dataclass(frozen=True)
class Measured:
    """The seconds of a whole run, and the number of names that appeared."""

    seconds: float
    names: int


@dataclass(frozen=True)
class Moment:
    """When to kill a run: at a number of names, or after some seconds."""

    names: int | None = None
    seconds: float | None = None

    def has_come(self, names: int, seconds: float) -> bool:
        if self.names is not None:
            return names >= self.names
        return self.seconds is not None and seconds >= self.seconds


NEVER = Moment()


def moments_of(measured: Measured, count: int, seed: int) -> list[Moment]:
    """Returns pseudo-random moments, of the two kinds in turn."""
    dice = random.Random(seed)
    return [
        Moment(names=dice.randint(1, measured.names))
        if number % 2 == 0
        else Moment(seconds=measured.seconds * dice.uniform(_FIRST_SHARE, 1))
        for number in range(count)
    ]


def run_until(
    arguments: Sequence[object], folder: Path, moment: Moment, packages: Path | None = None
) -> tuple[bool, Measured]:
    """Runs a command that writes to a folder, and kills it with all its children when the moment comes.

    The command is that of `packages`, a folder with another version's, if it is given. Returns
    whether it was killed, which a run that ends before its moment is not, and what was seen of it. A
    run that ends otherwise than well is an error of the test, with what it said.
    """
    seen = set(names_in(folder))
    before = len(seen)
    started = time.monotonic()
    with tempfile.TemporaryFile() as said, _process(arguments, said, packages) as process:
        while process.poll() is None:
            seen.update(names_in(folder))
            if moment.has_come(len(seen) - before, time.monotonic() - started):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                break
            time.sleep(_POLL_SECONDS)
        status = process.wait()
        said.seek(0)
        assert status in (0, -signal.SIGKILL), said.read().decode()
    return status != 0, Measured(time.monotonic() - started, len(seen) - before)


@contextlib.contextmanager
def _process(
    arguments: Sequence[object], said: BinaryIO, packages: Path | None
) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(
        command_of(*arguments),
        stderr=said,
        start_new_session=True,
        **({} if packages is None else in_place_of_ours(packages)),
    )
    try:
        yield process
    finally:
        # Also if the test itself fails or is interrupted.
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def names_in(folder: Path) -> Iterator[str]:
    """Names a folder's entries at any depth, as far as they stay there long enough."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                yield entry.path
                if entry.is_dir(follow_symlinks=False):
                    yield from names_in(Path(entry.path))
    except (FileNotFoundError, NotADirectoryError):
        return
