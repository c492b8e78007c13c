"""Progress of a running job: events for the progress bar, and the counters that they come from.

What a person should read is a line of the log, written where it happens; the events here carry what
a bar or a program needs. Work is counted where it is done. With Beam's local runner that is a
thread of this process; worker processes have no listeners, and leave their counts where the driver
finds them (`work_reports`). An event costs microseconds and a block of text milliseconds, so a block
is one event.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

BYTES = 'B'
COMPRESSED_BYTES = 'B compressed'

ON_BAR = 'is_on_bar'
"""The attribute of a record of the log that says what a progress bar also shows."""

AT_ONCE = 'is_at_once'
"""The attribute of a warning in the log that is of no use at the end of the job, where others are shown."""


class Event:
    """A step of a job's progress."""


@dataclass(frozen=True)
class StageBegan(Event):
    """A stage begins, perhaps as a part of another stage.

    Attributes:
        stage: its name.
        parts: the stages that are parts of it, in order; empty if it has none.
    """

    stage: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class StageEnded(Event):
    """A stage is over, whether it succeeded or failed."""

    stage: str


@dataclass(frozen=True)
class WorkDone(Event):
    """How far some work is; sent once with `done` 0 when the work begins, then at each advance.

    Attributes:
        stage: the stage that does the work.
        work: which of the stage's kinds of work it is, such as `reading`.
        done: the amount done since the work began.
        total: the amount that there is in all; the last event has `done` equal to it.
        unit: `BYTES`, `COMPRESSED_BYTES` if some of them are, or the name of what is counted.
    """

    stage: str
    work: str
    done: int
    total: int
    unit: str


@dataclass(frozen=True)
class RoundEnded(Event):
    """A search for a vocabulary has finished one more round.

    Attributes:
        number: of the round; the first is 1.
        size: of the vocabulary that it made; None if it is not known.
        target: the size that is searched for.
    """

    number: int
    size: int | None = None
    target: int | None = None


Listener = Callable[[Event], None]

_listeners: list[Listener] = []

_stages: list[str] = []


def notify(event: Event) -> None:
    """Calls all listeners with an event, in the calling thread."""
    for listener in tuple(_listeners):
        listener(event)


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Calls a listener with every event while the block runs."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextlib.contextmanager
def called_every(seconds: float, function: Callable[[], None]) -> Iterator[None]:
    """Calls a function now and then, in a thread of its own, while the block runs."""
    ended = threading.Event()

    def call() -> None:
        while not ended.wait(seconds):
            function()

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextlib.contextmanager
def stage_running(stage: str, parts: Sequence[str] = ()) -> Iterator[None]:
    """Notifies listeners that a stage begins, and after the block that it has ended."""
    _stages.append(stage)
    notify(StageBegan(stage, tuple(parts)))
    try:
        yield
    finally:
        _stages.remove(stage)
        notify(StageEnded(stage))


def running_stage() -> str | None:
    """Returns the innermost stage that runs; None between stages."""
    return _stages[-1] if _stages else None


_LEAST_STEP = 1 / 4096
"""The least share of all work that is reported: a report takes as long as reading a few kilobytes, and
readers need none for each of ten thousand small files."""


class _Work:
    """Counts some work of this process; several threads may advance it."""

    def __init__(self, stage: str, work: str, total: int | None, unit: str):
        self._stage, self._work, self._unit = stage, work, unit
        self._done, self._total = 0, 0
        self._told = 0  # of what is done
        self._lock = threading.Lock()
        if total is not None:
            self.set_total(total)

    def set_total(self, total: int) -> None:
        with self._lock:
            self._total = total
            self._notify()

    def advance(self, amount: int) -> None:
        with self._lock:  # events are sent one at a time and in order
            self._done += amount
            is_step = self._done - self._told >= self._total * _LEAST_STEP
            if is_step or self._done >= self._total:
                self._notify()

    def set_done(self, done: int) -> None:
        with self._lock:
            done = min(done, self._total)
            if done > self._done:
                self._done = done
                self._notify()

    def _notify(self) -> None:
        self._told = self._done
        notify(WorkDone(self._stage, self._work, self._done, self._total, self._unit))


class Counter(Protocol):
    """Counts the work of a process in which none is tracked."""

    def advance(self, work: str, amount: int) -> None: ...

    def set_total(self, work: str, total: int) -> None: ...


_tracked: dict[str, _Work] = {}

_elsewhere: list[Counter] = []


def count_elsewhere(counter: Counter) -> None:
    """Counts work that is not tracked in this process by a counter, and no more by another."""
    _elsewhere[:] = [counter]


@contextlib.contextmanager
def track_work(stage: str, work: str, total: int | None, unit: str = BYTES) -> Iterator[None]:
    """Counts work while the block runs, and sends a `WorkDone` for each part of it.

    Args:
        stage: the stage that does the work.
        work: the name by which `advance` knows the work.
        total: the amount that there is; None if `set_total` will be called.
        unit: as `WorkDone` has it.
    """
    tracked = _tracked[work] = _Work(stage, work, total, unit)
    try:
        yield
    finally:
        if _tracked.get(work) is tracked:  # and not the work of another thread
            del _tracked[work]


def set_total(work: str, total: int) -> None:
    """Sets the total of work that began without one."""
    if work in _tracked:
        _tracked[work].set_total(total)
    else:
        for counter in _elsewhere:
            counter.set_total(work, total)


def set_done(work: str, done: int) -> None:
    """Counts work as done up to an amount, and up to its total; never back."""
    if work in _tracked:
        _tracked[work].set_done(done)


def advance(work: str, amount: int) -> None:
    """Counts a part of work as done."""
    tracked = _tracked.get(work)
    if not amount:
        return
    if tracked is not None:
        tracked.advance(amount)
    else:
        for counter in _elsewhere:
            counter.advance(work, amount)
