"""How far a job is, on standard error: a bar on a terminal, elsewhere a line each half minute.

Both listen to the events of `pipelines.engines.progress`. A thread of their own looks at the clock,
since what takes long may tell nothing for minutes.
"""

import contextlib
import io
import logging
import threading
import time
import typing
from collections.abc import Callable, Iterator
from typing import TextIO

from pipelines.cli.interrupts import is_ending, line_is_open, terminal_lock
from pipelines.engines.progress import (
    BYTES,
    Event,
    StageBegan,
    StageEnded,
    WorkDone,
    listening,
)
from pipelines.engines.progress_events import RoundEnded

if typing.TYPE_CHECKING:
    from tqdm import tqdm

_LOGGER = logging.getLogger(__name__)

_LINE_SECONDS = 30
_LOOK_SECONDS = 0.5

Clock = Callable[[], float]


class Now:
    """What a job is at, as the events tell it.

    Attributes:
        stages: that have begun and not ended; the last is a part of those before it.
        work: the last that was told of work that is not at its end, None if nothing is counted.
        began: when that work began, or else the stage.
        rounds: of a search, that the last stage has seen.
    """

    def __init__(self, clock: Clock):
        self._clock = clock
        self.stages: list[str] = []
        self.work: WorkDone | None = None
        self.began = clock()
        self.rounds = 0

    def take(self, event: Event) -> None:
        if isinstance(event, WorkDone):
            self._take_work(event)
        elif isinstance(event, StageBegan):
            self.stages.append(event.stage)
            self._begin()
        elif isinstance(event, StageEnded):
            self.stages.remove(event.stage)
            self._begin()
        elif isinstance(event, RoundEnded):
            self.rounds = event.number

    def _take_work(self, event: WorkDone) -> None:
        if event.done >= event.total:
            if self.work is not None and self.work.work == event.work:
                self._begin()
        elif self.work is None or self.work.work != event.work:
            self._begin()
            self.work = event
        else:
            self.work = event

    def _begin(self) -> None:
        self.work, self.rounds, self.began = None, 0, self._clock()

    @property
    def label(self) -> str:
        """What the job is at, in some words; nothing between stages."""
        if self.work is not None:
            return self.work.stage
        stage = self.stages[-1] if self.stages else ''
        return f'{stage}: round {self.rounds + 1}' if self.rounds else stage


class HalfMinuteLines:
    """Writes a line for each half minute that a job takes."""

    def __init__(self, clock: Clock = time.monotonic, write: Callable[[str], None] = _LOGGER.info):
        self._clock, self._write = clock, write
        self._now = Now(clock)
        self._last = clock()
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        with self._lock:
            self._now.take(event)
        self.look()

    def look(self) -> None:
        """Writes the line if it is due."""
        with self._lock:
            if self._clock() - self._last < _LINE_SECONDS:
                return
            self._last = self._clock()
            line = self._line()
        if line:
            self._write(line)

    def close(self) -> None:
        """Nothing is left to be done."""

    def _line(self) -> str:
        now, seconds = self._now, self._clock() - self._now.began
        work = now.work
        if work is None:
            return f'{now.label}, for {said_time(seconds)}' if now.label else ''
        line = f'{now.label}: {100 * work.done // work.total} % of {_said(work.total, work.unit)}'
        if not work.done or seconds <= 0:
            return line
        rate = work.done / seconds
        left = (work.total - work.done) / rate
        return f'{line}, {_said(rate, work.unit)}/s, {said_time(left)} left'


class Bar:
    """Draws a bar on a terminal; what is logged is written above it."""

    def __init__(self, terminal: TextIO, clock: Clock = time.monotonic):
        self._terminal = terminal
        self._now = Now(clock)
        self._bar: tqdm | None = None
        self._shown: tuple[str, float] | None = None  # whose bar it is, and since when
        self._lock = terminal_lock
        self._replaced = [
            (handler, handler.setStream(_AboveBar(self, terminal)))
            for handler in logging.getLogger().handlers
            if isinstance(handler, logging.StreamHandler) and handler.stream is terminal
        ]

    def __call__(self, event: Event) -> None:
        with self._lock:
            self._now.take(event)
            if not is_ending():
                self._draw()

    def look(self) -> None:
        """Draws the bar with the time that it is now."""
        with self._lock:
            if self._bar is not None and not is_ending():
                self._bar.refresh()

    def close(self) -> None:
        """Takes the bar away, and gives the log its terminal back."""
        with self._lock:
            self._end_bar()
            for handler, stream in self._replaced:
                handler.setStream(stream)

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Around what else is written to the terminal."""
        with self._lock:
            if self._bar is not None:
                self._bar.clear()
            yield
            if self._bar is not None:
                self._bar.refresh()

    def _draw(self) -> None:
        now = self._now
        wanted = (now.label, now.began) if now.label else None
        if wanted != self._shown:
            self._end_bar()
            if wanted is not None:
                self._begin_bar()
            self._shown = wanted
        elif self._bar is not None and now.work is not None:
            self._bar.update(now.work.done - self._bar.n)

    def _begin_bar(self) -> None:
        # It takes its time to import, and who has no terminal needs none.
        from tqdm import tqdm

        tqdm.monitor_interval = 0  # a thread of its own, and here is one already
        work = self._now.work
        how: dict[str, object] = {'desc': self._now.label, 'file': self._terminal, 'leave': False}
        if work is None:
            how |= {'total': None, 'bar_format': '{desc} [{elapsed}]'}
        else:
            is_bytes = work.unit == BYTES
            how |= {'total': work.total, 'initial': work.done, 'unit_scale': True}
            how['unit'] = work.unit if is_bytes else f' {work.unit}'
            how['unit_divisor'] = 1024 if is_bytes else 1000
        line_is_open.set()
        self._bar = tqdm(dynamic_ncols=True, **how)

    def _end_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            line_is_open.clear()
        self._bar = self._shown = None


class _AboveBar(io.TextIOBase):
    """A terminal to write lines to, above the bar on it."""

    def __init__(self, bar: Bar, terminal: TextIO):
        self._bar, self._terminal = bar, terminal

    def write(self, text: str) -> int:
        with self._bar.aside():
            written = self._terminal.write(text)
            self._terminal.flush()
        return written

    def flush(self) -> None:
        self._terminal.flush()


@contextlib.contextmanager
def shown_progress(stream: TextIO) -> Iterator[None]:
    """Shows how far a job is while the block runs: a bar if the stream is a terminal, or lines."""
    shown = Bar(stream) if stream.isatty() else HalfMinuteLines()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_SECONDS):
            shown.look()

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        with listening(shown):
            yield
    finally:
        ended.set()
        looking.join()
        shown.close()


def said_time(seconds: float) -> str:
    """Returns a time as people say it: `40 s`, `3 min`, `2 h 5 min`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f'{round(seconds)} s'
    return f'{minutes} min' if minutes < 60 else f'{minutes // 60} h {minutes % 60} min'


def _said(amount: float, unit: str) -> str:
    if unit != BYTES:
        return f'{amount:,.0f} {unit}'
    for name, size in (('GiB', 1 << 30), ('MiB', 1 << 20), ('KiB', 1 << 10)):
        if amount >= size:
            return f'{amount / size:.1f} {name}'
    return f'{amount:.0f} B'
