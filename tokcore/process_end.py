"""What is undone when a signal ends this process in the middle of its work.

The command waits for signals in a thread of its own, which ends the process while all others work on
(`pipelines.cli.terminal`). What a block makes for its own time is registered here, so that it is undone
then too. Where nobody ends the process so, these blocks are like any others.
"""

import contextlib
import functools
import shutil
import tempfile
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_Made = TypeVar('_Made')

unless_ending = threading.RLock()
"""Held while something is made or undone. Whoever ends the process takes it for good: then nothing more
is made, and no thread leaves a block of `UndoneAtEnd`."""

_undoing: dict[object, Callable[[], object]] = {}


class UndoneAtEnd(Generic[_Made], contextlib.AbstractContextManager[_Made]):
    """Makes something for a block, which is undone after it or when a signal ends the process.

    Args:
        make: is called at the begin of the block; gives what the block gets.
        undo: takes that.
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


def temporary_folder(prefix: str = 'tokbeam-', above: str | None = None) -> UndoneAtEnd[str]:
    """Returns a context in which a new folder is there; `above` is where, as for `mkdtemp`."""
    return UndoneAtEnd(
        lambda: tempfile.mkdtemp(prefix=prefix, dir=above),
        functools.partial(shutil.rmtree, ignore_errors=True),
    )


def undo_all(seconds: float) -> None:
    """Undoes what is registered, the last first; other threads stop when they would make or undo.

    Args:
        seconds: that a thread may take for what it is just making or undoing.
    """
    unless_ending.acquire(timeout=seconds)
    for undo in reversed([*_undoing.values()]):
        with contextlib.suppress(Exception):  # what is left is found by the next run
            undo()
