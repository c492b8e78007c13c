"""Ctrl-C and SIGTERM: one line and the end, whatever the process is busy with.

Python runs its own handlers in the main thread only, and only between two steps of it: not while
Beam waits for a lock or a kernel runs for minutes. So threads that do nothing else wait for the
signals and end the process. Nothing is tidied up: what lies on the disk is either whole or swept by
the next run.
"""

import contextlib
import os
import signal
import sys
import threading
import time

KEPT = 'what is finished is kept, and the same command goes on from there'

_LAST_SECONDS = 2
_GRACE_SECONDS = 0.5

_QUIET_LOOKS = 4
_BETWEEN_LOOKS = 0.02  # seconds

_ending = threading.Event()

line_is_open = threading.Event()
"""Set while a bar stands on the terminal's last line, which the line at the end must not join."""

terminal_lock = threading.RLock()
"""Held by whoever draws on the terminal; once a signal has come it is never given back."""


def end_on_signals(kept: str) -> None:
    """Makes SIGINT and SIGTERM end this process with one line and status 130 or 143.

    One that is ignored, as `nohup` and shells without job control make it for SIGINT, stays ignored.

    Args:
        kept: what the line says after the signal, or nothing.
    """
    threading.excepthook = _tell_of_thread
    numbers = [signal.SIGINT, signal.SIGTERM]
    numbers = [each for each in numbers if signal.getsignal(each) != signal.SIG_IGN]
    if sys.platform == 'linux' and signal.SIGINT in numbers:
        numbers.remove(signal.SIGINT)
        _wait_for_blocked(signal.SIGINT, kept)
    _wait_for_handled(numbers, kept)


def _wait_for_blocked(number: int, kept: str) -> None:
    """Ends this process on a signal that its child processes ignore.

    A terminal sends Ctrl-C to them too, and a worker of Beam's would tell of it with a traceback
    before it is ended by this process. What is ignored here they ignore; and what is blocked as well
    Linux keeps for the thread that waits for it.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [number])  # inherited by all threads from here on
    signal.signal(number, signal.SIG_IGN)

    def wait() -> None:
        signal.sigwait([number])
        _end(number, kept)

    threading.Thread(target=wait, daemon=True).start()


def _wait_for_handled(numbers: list[int], kept: str) -> None:
    """Ends this process on signals whose numbers the system's handler writes to a pipe."""
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, _leave_to_the_thread)

    def wait() -> None:
        _end(os.read(receiver, 1)[0], kept)

    threading.Thread(target=wait, daemon=True).start()


def _leave_to_the_thread(number: int, frame: object) -> None:
    """A handler must be there, or the number would not be written."""


def is_ending() -> bool:
    """Whether a signal has come, after which nothing more is to be shown."""
    return _ending.is_set()


def wait_if_ending() -> None:
    """Waits for the end if a signal has come: what breaks then is not to be told."""
    if _ending.wait(_GRACE_SECONDS):
        threading.Event().wait()


def _tell_of_thread(arguments: threading.ExceptHookArgs) -> None:
    # A worker process that got the same signal is gone before this process knows of it.
    wait_if_ending()
    threading.__excepthook__(arguments)


def _end(number: int, kept: str) -> None:
    _ending.set()
    # Whatever becomes of the line: who reads stderr may have stopped.
    threading.Timer(_LAST_SECONDS, os._exit, [128 + number]).start()
    # Else a bar that is being drawn would follow the line. A terminal that takes nothing is not
    # waited for.
    terminal_lock.acquire(timeout=_GRACE_SECONDS)
    name = 'interrupted' if number == signal.SIGINT else 'terminated'
    line = f'tokbeam: {name}{"; " * bool(kept)}{kept}\n'
    with contextlib.suppress(OSError, ValueError):
        os.write(sys.stderr.fileno(), ('\n' * line_is_open.is_set() + line).encode())
    try:
        _end_children()
    finally:
        os._exit(128 + number)


def _end_children() -> None:
    """Ends the processes that this one has started: Beam's workers, a job server."""
    import psutil  # not before it is needed: help and filters start without it

    stopped: dict[int, psutil.Process] = {}
    quiet = 0
    # A thread may be about to start the next one, and a shell that is killed while it starts its
    # command leaves that behind. So they are all stopped before the first is killed.
    while quiet < _QUIET_LOOKS:
        children = psutil.Process().children(recursive=True)
        new = [child for child in children if child.pid not in stopped]
        for child in new:
            stopped[child.pid] = child
            with contextlib.suppress(psutil.Error):
                child.suspend()
        quiet = 0 if new else quiet + 1
        time.sleep(_BETWEEN_LOOKS)
    for child in stopped.values():
        with contextlib.suppress(psutil.Error):
            child.kill()
