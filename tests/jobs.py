"""Running the `tokbeam` command in tests, on files that they write."""

import contextlib
import gzip
import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import faster_beam
from sizes import command_of, sizes_apart, with_sizes

from pipelines.cli.main import main


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it said on stderr."""

    status: int
    said: str


def run(*arguments: object) -> Ended:
    """Runs one command line in this process."""
    faster_beam.install()
    words, sizes = sizes_apart(arguments)
    root = logging.getLogger()
    handlers = root.handlers[:]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), with_sizes(sizes):
            status = main(words)
    finally:
        root.handlers[:] = handlers
    return Ended(status, without_compiling(said.getvalue()))


def without_compiling(said: str) -> str:
    """Returns what a command said, without what only the first run of a kernel says."""
    lines = said.splitlines(keepends=True)
    return ''.join(line for line in lines if not line.startswith(_COMPILING))


_COMPILING = ('tokbeam: compiling kernels ', 'tokbeam: compile kernels ', 'tokbeam: compiled in ')


def succeed(*arguments: object) -> str:
    """Runs a command line that must end with status 0; returns what it said."""
    ended = run(*arguments)
    assert ended.status == 0, ended.said
    return ended.said


def refuse(*arguments: object) -> str:
    """Runs a command line that must be refused with status 2 and one sentence; returns that."""
    ended = run(*arguments)
    assert ended.status == 2, ended.said
    sentence = ended.said.splitlines()[-1]
    assert sentence.startswith('tokbeam: ')
    return sentence


def succeed_elsewhere(*arguments: object, **environment: str) -> str:
    """Runs a command line in a process of its own."""
    ended = subprocess.run(
        command_of(*arguments),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return without_compiling(ended.stderr)


_LIMITING = """
import json, os, resource, sys
for kind, most in json.loads(sys.argv[1]):
    resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


def limited_command(limits: Mapping[int, int], *arguments: object) -> list[str]:
    """Returns the command line of a process that has limits on what the system gives it.

    It sets them itself: a function that sets them before would make the parent fork, and a fork
    does not survive threads of gRPC, which Beam may have started.
    """
    limiting = [sys.executable, '-c', _LIMITING, json.dumps(list(limits.items()))]
    return [*limiting, *command_of(*arguments)[1:]]


@contextlib.contextmanager
def files_up_to(most: int) -> Iterator[None]:
    """Within, no file that this process writes grows beyond `most` bytes; to write more is an error."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


_WITH_SIGNALS = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
os.execv(sys.executable, sys.argv[1:])
"""


def interruptible_command(*arguments: object) -> list[str]:
    """Returns the command line of a process that takes SIGINT and SIGHUP.

    Whoever runs the tests in the background, or with `nohup`, may have them ignored, and so would their
    children. They are restored without a fork, as limits are set.
    """
    return [sys.executable, '-c', _WITH_SIGNALS, *command_of(*arguments)]


def write(path: Path, data: bytes) -> Path:
    """Writes an input file, compressed if its name says so; returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == '.gz' else data)
    return path
