"""What a job tells while it runs: events, to those that listen in the process that drives it.

Work is counted where it is done. With Beam's own engine that is a thread of this process; a worker
process or a cluster has no listeners, so of them come what the driver itself tells: stages, rounds,
results. An event costs some microseconds and a block of text milliseconds, so a block is told once.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

_LOGGER = logging.getLogger(__name__)

BYTES = 'B'


class Event:
    """Something that a listener may want to know."""


class News(Event):
    """An event that is told as a sentence, its string, to who reads the log."""

    level: ClassVar[int] = logging.INFO


@dataclass(frozen=True)
class StageBegan(Event):
    """A stage's own work begins, perhaps as a part of another stage's."""

    stage: str


@dataclass(frozen=True)
class StageEnded(Event):
    """The end of a stage that began, whether it came to its end or failed."""

    stage: str


@dataclass(frozen=True)
class WorkDone(Event):
    """How far some work is; told when it begins, with 0, and then whenever there is more of it.

    Attributes:
        stage: whose work it is.
        work: what is done, among what a stage does.
        done: so much, in all.
        total: of so much, which the last such event has as `done`.
        unit: `BYTES`, or what is counted.
    """

    stage: str
    work: str
    done: int
    total: int
    unit: str


Listener = Callable[[Event], None]


def log_news(event: Event) -> None:
    """Writes what is news to the log: a listener that is always there."""
    if isinstance(event, News):
        _LOGGER.log(event.level, '%s', event)


_listeners: list[Listener] = [log_news]


def tell(event: Event) -> None:
    """Tells all listeners of an event, in the thread that it is told in."""
    for listener in tuple(_listeners):
        listener(event)


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Has a listener told of all events while the block runs."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextlib.contextmanager
def stage_running(stage: str) -> Iterator[None]:
    """Around a stage's own work."""
    tell(StageBegan(stage))
    try:
        yield
    finally:
        tell(StageEnded(stage))


class _Work:
    """Some work of this process, of which threads do parts."""

    def __init__(self, stage: str, work: str, total: int | None, unit: str):
        self._stage, self._work, self._unit = stage, work, unit
        self._done, self._total = 0, 0
        self._lock = threading.Lock()
        if total is not None:
            self.expect(total)

    def expect(self, total: int) -> None:
        self._total = total
        self.advance(0)

    def advance(self, amount: int) -> None:
        with self._lock:  # listeners are told of one part after another, and in order
            self._done += amount
            tell(WorkDone(self._stage, self._work, self._done, self._total, self._unit))


_at_work: dict[str, _Work] = {}


@contextlib.contextmanager
def counted(stage: str, work: str, total: int | None, unit: str = BYTES) -> Iterator[None]:
    """Counts work that is done while the block runs; `WorkDone` tells of it.

    Args:
        stage: whose work it is.
        work: the name by which `advance` knows it.
        total: how much there is; None if `expect` will tell.
        unit: `BYTES`, or what is counted.
    """
    _at_work[work] = _Work(stage, work, total, unit)
    try:
        yield
    finally:
        del _at_work[work]


def expect(work: str, total: int) -> None:
    """Tells how much there is of work whose amount was not known; nothing if nobody counts it."""
    if work in _at_work:
        _at_work[work].expect(total)


def advance(work: str, amount: int) -> None:
    """Counts a part of work as done; nothing if nobody counts it, as in a worker process."""
    counting = _at_work.get(work)
    if counting is not None and amount:
        counting.advance(amount)
