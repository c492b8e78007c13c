"""Batches that a thread makes ahead, while a model is trained with those before them."""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Iterator
from typing import Protocol

from tokcore.reading.batching import Batch

_Made = tuple[Batch | BaseException, dict[str, object]]
"""A batch, or what was raised in its place, and the state after it."""


class _Batches(Protocol):
    """What is used of a `BatchIterator`."""

    def __next__(self) -> Batch: ...

    def state(self) -> dict[str, object]: ...


class PrefetchedBatches(Iterator[Batch]):
    """The batches of an iterator, some of them made ahead; for one thread.

    The thread that makes them ends with the batches, or when this is no longer referred to.
    """

    def __init__(self, batches: _Batches, ahead: int):
        """Use `BatchIterator.prefetch`."""
        self._made: queue.SimpleQueue[_Made] = queue.SimpleQueue()
        self._room = threading.Semaphore(ahead)
        self._state, self._raised = batches.state(), False
        self._shown = f'<PrefetchedBatches, {ahead} ahead: {batches!r}>'
        stop = threading.Event()
        self._thread = threading.Thread(
            target=_make, args=(batches, self._made, self._room, stop), daemon=True
        )
        self._thread.start()
        self._end = weakref.finalize(self, _end, stop, self._room, self._thread)

    def __next__(self) -> Batch:
        if self._raised:
            raise StopIteration
        made, self._state = self._made.get()
        if isinstance(made, BaseException):
            self._raised = True
            raise made
        self._room.release()
        return made

    def __repr__(self) -> str:
        """Tells what is read ahead."""
        return self._shown

    def state(self) -> dict[str, object]:
        """Returns the state after the last batch that was given, as `BatchIterator.state`."""
        return self._state

    def close(self) -> None:
        """Ends the thread; there are no more batches."""
        self._raised = True
        self._end()


def _make(
    batches: _Batches,
    made: queue.SimpleQueue[_Made],
    room: threading.Semaphore,
    stop: threading.Event,
) -> None:
    while True:
        room.acquire()
        if stop.is_set():
            return
        try:
            batch = next(batches)
        except BaseException as error:
            # Whoever asks for the batch gets the error; StopIteration is one of them.
            made.put((error, batches.state()))
            return
        made.put((batch, batches.state()))


def _end(stop: threading.Event, room: threading.Semaphore, thread: threading.Thread) -> None:
    stop.set()
    room.release()
    if thread is not threading.current_thread():  # which may collect garbage
        thread.join()
