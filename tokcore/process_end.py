"""How a signal ends this process in the middle of its work: what is finished, what is kept and what is undone.

The command waits for signals in a thread of its own, which ends the process while all others work on
(`pipelines.cli.terminal`). Workers first write what they hold in memory. What a block makes for its own time
is registered here, so that it is undone then too. Where nobody ends the process so, these blocks are like
any others. A call in Python leaves the process to its caller: there Ctrl-C is a KeyboardInterrupt, which waits
for workers too (`interrupted_call`).
"""

import contextlib
import functools
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

_Made = TypeVar('_Made')

GRACE_SECONDS = 0.5
"""A worker process that gets the same signal may be gone before this process knows of it."""

unless_ending = threading.RLock()
"""Held while something is made or undone. Whoever ends the process takes it for good: then nothing more
is made, and no thread leaves a block of `UndoneAtEnd`."""

_undoing: dict[object, Callable[[], object]] = {}

_signalled = threading.Event()
_in_call = threading.Event()

_lock = threading.Condition()
_busy: set[int] = set()
_kept: dict[str, None] = {}
_text = {'kept': 0, 'total': 0}

_UNITS = ((1_000_000_000, 'GB'), (1_000_000, 'MB'), (1000, 'kB'))


class UndoneAtEnd(Generic[_Made], contextlib.AbstractContextManager[_Made]):
    """Makes something for a block, which is undone after it or when a signal ends the process.

    Args:
        make: makes it, when the block begins; the block gets what it returns.
        undo: gets that too.
    """

    def __init__(self, make: Callable[[], _Made], undo: Callable[[_Made], object]):
        self._make, self._undo = make, undo

    def __enter__(self) -> _Made:
        with unless_ending:
            made = self._make()
            _undoing[self] = functools.partial(self._undo, made)
            return made

    def __exit__(self, *_) -> None:
        with unless_ending:
            _undoing.pop(self)()


@contextlib.contextmanager
def undone_at_end(undo: Callable[[], object]) -> Iterator[None]:
    """Has something undone if a signal ends the process in a block, and not after it."""
    with unless_ending:
        _undoing[undo] = undo
    try:
        yield
    finally:
        with unless_ending:
            del _undoing[undo]


def temporary_folder(prefix: str = 'tokbeam-', above: str | None = None) -> UndoneAtEnd[str]:
    """Returns a context in which a new folder is there; `above` is where, as for `mkdtemp`."""
    return UndoneAtEnd(
        lambda: tempfile.mkdtemp(prefix=prefix, dir=above),
        functools.partial(shutil.rmtree, ignore_errors=True),
    )


def undo_all(seconds: float) -> Iterator[Exception]:
    """Undoes what is registered, the last first; other threads stop when they would make or undo.

    It waits some seconds for what a thread is just making or undoing. Yields the errors; what is left
    then is found by the next run.
    """
    unless_ending.acquire(timeout=seconds)
    for undo in reversed([*_undoing.values()]):
        try:
            undo()
        except Exception as error:
            yield error


def is_interrupted() -> bool:
    """Returns whether a signal has come, after which no new work is begun and nothing is shown."""
    return _signalled.is_set()


def hold_if_interrupted(seconds: float = 0) -> None:
    """Blocks this thread for good if a signal has come, or comes within some seconds.

    Raises:
        KeyboardInterrupt: the process goes on after it.
    """
    if _signalled.wait(seconds):
        if _in_call.is_set():
            raise KeyboardInterrupt
        threading.Event().wait()


@contextlib.contextmanager
def interrupted_call() -> Iterator[None]:
    """Has Ctrl-C in a block wait until workers have written what they hold; a second one does not wait.

    Only where it would be a KeyboardInterrupt, as in a script or a notebook.

    Raises:
        KeyboardInterrupt: with what is kept.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def take(*_: object) -> None:
        if interrupt() and has_busy_workers():
            return  # one that has written raises it
        raise KeyboardInterrupt

    _forget()
    _in_call.set()
    signal.signal(signal.SIGINT, take)
    try:
        yield
    except KeyboardInterrupt as error:
        kept = kept_work()
        outcome = f'kept: {kept}; make the same call to continue' if kept else 'nothing is kept'
        raise KeyboardInterrupt(outcome) from error
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _in_call.clear()
        _forget()


def _forget() -> None:
    """Begins anew: no signal has come, nothing is kept, and no worker is busy."""
    _signalled.clear()
    _kept.clear()
    expect_text(0)
    stop_waiting()


def delay_end(worker: object) -> None:
    """Has a signal wait until a worker has written what it holds in memory, and calls `allow_end`."""
    with _lock:
        _busy.add(id(worker))


def allow_end(worker: object) -> None:
    """Ends what `delay_end` began, if it did."""
    with _lock:
        _busy.discard(id(worker))
        _lock.notify_all()


def interrupt() -> bool:
    """Asks all workers to write what they hold; returns False if they were asked before."""
    was_set = _signalled.is_set()
    _signalled.set()
    return not was_set


def has_busy_workers() -> bool:
    """Returns whether a worker holds something."""
    return bool(_busy)


def wait_for_workers(seconds: float) -> None:
    """Waits until no worker holds anything, for some seconds at most, or until `stop_waiting`."""
    with _lock:
        _lock.wait_for(lambda: not _busy, seconds)


def stop_waiting() -> None:
    """Has `wait_for_workers` wait no more: what is not written is dropped."""
    with _lock:
        _busy.clear()
        _lock.notify_all()


def keep(what: str) -> None:
    """Notes a part of the work that the next run continues with, in the words of a message."""
    _kept[what] = None


def expect_text(size: int) -> None:
    """Notes how many bytes of text are to be encoded into runs that are kept."""
    with _lock:
        _text.update(kept=0, total=size)


def keep_text(size: int) -> None:
    """Notes that so many more bytes of text are encoded and kept."""
    with _lock:
        _text['kept'] += size


def kept_work() -> str:
    """Returns what is kept, as `the counts, the vocabulary, 34 of 48 MB encoded`; '' if nothing is."""
    parts = [*_kept]
    kept = _text['kept']
    if kept:
        total = max(kept, _text['total'])
        unit, name = next((unit for unit in _UNITS if total >= 10 * unit[0]), (1, 'bytes'))
        parts.append(f'{kept / unit:,.0f} of {total / unit:,.0f} {name} encoded')
    return ', '.join(parts)
