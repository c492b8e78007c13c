"""Runs commands in children forked from one warm process, which watches each of them.

    with ForkedCommands(lanes=2) as commands:
        ended = commands[0].run(['count', '--text', 'a', '--output', 'c'], folder)

A lane runs one command at a time; each lane may be used by a thread of its own.
"""

import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from command_outcome import Outcome

LONGEST_SECONDS = 30
MOST_BYTES = 2 << 30

_END_SECONDS = 10
_KEPT = re.compile(r'tokbeam: failed: .*; its traceback is in (\S+)$', re.MULTILINE)


@dataclass(frozen=True)
class Ended(Outcome):
    """How a command ended; a status below 0 is minus the number of the signal that ended it."""

    stdout: bytes
    seconds: float
    peak: int  # bytes resident
    stopped: str | None  # why it was killed, if it had to be: 'time' or 'memory'
    left_processes: bool  # processes of its group went on without it; they are ended now


class Lane:
    """Runs one command after another."""

    def __init__(self, connection: socket.socket, scratch: Path, log: Path):
        self._connection = connection
        self._log = log
        self._unread = b''
        self._said = scratch / 'stdout', scratch / 'stderr'
        self._is_ready = False
        self._process: int | None = None
        self.arguments: Sequence[object] = ()  # of what was started last

    def run(self, arguments: Sequence[object], folder: Path, **how) -> Ended:
        """Runs a command line to its end in a folder; `how` is as for `start`."""
        self.start(arguments, folder, **how)
        return self.end()

    def start(
        self,
        arguments: Sequence[object],
        folder: Path,
        *,
        stdin: str | None = os.devnull,
        stdout: str | None = '',
        stderr: str | None = '',
        ignores_sigint: bool = False,
        limits: Mapping[str, int] | None = None,
        seconds: float = LONGEST_SECONDS,
        imports: bool = False,
        plant: Mapping[str, object] | None = None,
    ) -> int:
        """Starts a command line and returns its process, which leads a session of its own.

        Args:
            arguments: what follows `tokbeam`.
            folder: the working directory.
            stdin: a path to read from, or None for no standard input at all, as after `<&-`.
            stdout: likewise to append to; '' for a file that `end` gives back.
            stderr: likewise.
            ignores_sigint: whether it starts with SIGINT ignored, as after `nohup`.
            limits: of its resources by their names, as `{'FSIZE': 1000}`.
            seconds: after which it is killed.
            imports: whether modules in the folder can be imported, as with PYTHONPATH.
            plant: fields of the `Planter` that is at work while the command runs, and as `record`
                the path of a file that gets its `steps` and `planted` as JSON; None: no planter.
        """
        if not self._is_ready:
            assert self._answer() == b'ready', self._log.read_text()
            self._is_ready = True
        if self._process is not None:  # left by who failed before its end
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process, signal.SIGKILL)
            self.end()
        for path in self._said:
            path.unlink(missing_ok=True)
        self.arguments = arguments
        request = {
            'arguments': [
                os.fsdecode(each) if isinstance(each, bytes) else str(each) for each in arguments
            ],
            'folder': str(folder),
            'stdin': stdin,
            'stdout': str(self._said[0]) if stdout == '' else stdout,
            'stderr': str(self._said[1]) if stderr == '' else stderr,
            'ignores_sigint': ignores_sigint,
            'limits': dict(limits or {}),
            'seconds': seconds,
            'bytes': MOST_BYTES,
            'imports': imports,
            'plant': None if plant is None else dict(plant),
        }
        self._connection.sendall(json.dumps(request).encode() + b'\n')
        self._process = json.loads(self._answer())['pid']
        return self._process

    def has_ended(self) -> bool:
        """Returns whether what was started is at its end."""
        return b'\n' in self._unread or bool(select.select([self._connection], [], [], 0)[0])

    def send(self, number: signal.Signals) -> None:
        """Sends the command's process group a signal; a command that has just ended gets none."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process, number)

    def end(self) -> Ended:
        """Waits for the end of what was started."""
        answer = json.loads(self._answer())
        self._process = None
        stdout, stderr = (path.read_bytes() if path.exists() else b'' for path in self._said)
        said = stderr.decode(errors='backslashreplace')
        return Ended(stderr=said + _taken_traceback(said), stdout=stdout, **answer)

    def _answer(self) -> bytes:
        while b'\n' not in self._unread:
            received = self._connection.recv(4096)
            if not received:
                return b''
            self._unread += received
        line, _, self._unread = self._unread.partition(b'\n')
        return line


class ForkedCommands:
    """A warm process with several lanes; all of them end with the `with` block."""

    def __init__(self, lanes: int):
        self._count = lanes

    def __enter__(self) -> Sequence[Lane]:
        with contextlib.ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix='lanes-')))
            pairs = [socket.socketpair() for _ in range(self._count)]
            theirs = [each for _, each in pairs]
            log = stack.enter_context(open(scratch / 'log', 'w+'))
            process = subprocess.Popen(
                [
                    sys.executable,
                    str(Path(__file__).with_name('warm_process.py')),
                    *(str(each.fileno()) for each in theirs),
                ],
                pass_fds=[each.fileno() for each in theirs],
                stdin=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
            stack.callback(_end, process)
            lanes = []
            for number, (ours, other) in enumerate(pairs):
                other.close()
                stack.callback(ours.shutdown, socket.SHUT_RDWR)
                folder = scratch / str(number)
                folder.mkdir()
                lanes.append(Lane(ours, folder, scratch / 'log'))
            self._stack = stack.pop_all()
        return lanes

    def __exit__(self, *_) -> None:
        self._stack.close()


def _taken_traceback(said: str) -> str:
    """Returns the traceback that a failed command wrote to a file, and deletes the file."""
    kept = _KEPT.search(said)
    if not kept or not os.path.exists(kept[1]):
        return ''
    path = Path(kept[1])
    text = path.read_text(errors='backslashreplace')
    path.unlink()
    return text


def _end(process: subprocess.Popen) -> None:
    """Waits until the lanes have seen their sockets closed and have ended their children."""
    try:
        process.wait(timeout=_END_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
