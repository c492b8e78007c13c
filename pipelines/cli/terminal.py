"""The terminal: progress on standard error, results on standard output, Ctrl-C and SIGTERM.

Progress is a bar on a terminal and elsewhere a line every half minute, drawn by a thread of its own
because a long kernel reports nothing for minutes. Python runs signal handlers in the main thread
only, and not while that waits for a lock or a kernel; so a thread waits for the signals and ends
the process. The first signal lets workers write what they hold, and removes temporary
files (`process_end`); the second does not wait for workers.
"""

import contextlib
import io
import json
import logging
import os
import signal
import sys
import threading
import time
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, TextIO

from pipelines.cli.printable import columns_of, escaped, fitted, printable
from pipelines.engines.progress import (
    BYTES,
    COMPRESSED_BYTES,
    ON_BAR,
    Event,
    RoundEnded,
    StageBegan,
    StageEnded,
    WorkDone,
    called_every,
    listening,
)
from pipelines.files.system_errors import system_error
from tokcore.errors import InputError
from tokcore.process_end import (
    GRACE_SECONDS,
    has_busy_workers,
    hold_if_interrupted,
    interrupt,
    is_interrupted,
    kept_work,
    stop_waiting,
    undo_all,
    wait_for_workers,
)

if typing.TYPE_CHECKING:
    from tqdm import tqdm

_LOGGER = logging.getLogger(__name__)

_LINE_SECONDS = 30
_LOOK_SECONDS = 0.5
_FIRST_SECONDS = 3.0
"""Of some work without an estimate of its time: the first steps are no measure."""

_STANDSTILL_SECONDS, _STANDSTILL_STEPS = 30, 10
"""After so long without a report, and so many times the longest step, work stands still: a cluster has
restarted, as a rule, and how it went before says nothing of when it goes on."""

_LEAST_COLUMNS = 13
_BAR_COLUMNS = 22
"""Of the bar and the share in percent: the fewest, and the fewest next to an amount or a rate."""

_BYTE_UNITS = (('GiB', 1 << 30), ('MiB', 1 << 20), ('KiB', 1 << 10))
_JSON_SECONDS = 1

Clock = Callable[[], float]

_FINISH_SECONDS = 10
"""For workers to write what they hold in memory."""

_LAST_SECONDS = 40
"""After that, to end processes, cancel a cluster's job and delete files."""

_SECOND_SECONDS = 2
"""To end processes and delete files after a second signal."""

_QUIET_LOOKS = 4
_BETWEEN_LOOKS = 0.02  # seconds

line_is_open = threading.Event()
"""Set while a bar stands on the terminal's last line, which the line at the end must not join."""

terminal_lock = threading.RLock()
"""Held by whoever draws on the terminal; once a signal has come it is never given back."""


@contextlib.contextmanager
def _drawing() -> Iterator[bool]:
    """Gives whether progress may be shown; after a signal it may not, and no worker waits for that."""
    while not terminal_lock.acquire(timeout=_BETWEEN_LOOKS):
        if is_interrupted():
            yield False
            return
    try:
        yield not is_interrupted()
    finally:
        terminal_lock.release()


@contextlib.contextmanager
def shown_progress(stream: TextIO, as_json: bool = False) -> Iterator[None]:
    """Shows how far a job is while the block runs: a bar on a terminal or in a notebook, or lines.

    With `as_json` each event is an object on a line, for a program.
    """
    if as_json:
        with listening(JsonProgress(stream)):
            yield
        return
    shown: Bar | ProgressLog = Bar(stream) if stream.isatty() or in_ipython() else ProgressLog()
    try:
        with called_every(_LOOK_SECONDS, shown.look), listening(shown):
            yield
    finally:
        if isinstance(shown, Bar):
            shown.close()


def in_ipython() -> bool:
    """Returns whether this process is one of IPython: in a terminal, or the kernel of a notebook."""
    module = sys.modules.get('IPython')
    return module is not None and module.get_ipython() is not None


class Pace:
    """How fast work goes on: all of it since it began, the later the more.

    Work is reported in steps. After the last one it is taken to go on as before, for as long as there was no
    report before. So the time that is left goes down like a clock; from reports alone it would grow between
    them. What a rerun finds finished counts for little, since that comes first. Where work stands still, there
    is no estimate, and the next report begins a new measure.
    """

    def __init__(self, began: float):
        self.began = began
        self._measure_from(began, 0)

    def _measure_from(self, now: float, done: int) -> None:
        self._since = self._reported = self._at = now
        self._done = done
        self._likely = float(done)  # how much is done at a time, it is taken
        self._longest = 0.0  # between two reports
        self._weighted = 0.0  # the sum of all steps, each times the middle of its time

    def take(self, done: int, now: float) -> None:
        """Takes a report that so much is done in all."""
        if self._stands(now):
            self._measure_from(now, done)
            return
        self._go_on(now)
        self._longest = max(self._longest, now - self._reported)
        self._weighted += (done - self._done) * self._middle(now)
        self._done, self._reported = done, now
        # Of two threads that end together, the first has no report of what the other has done.
        self._likely = max(done, (self._likely + done) / 2)

    def rate_and_left(self, total: int, now: float) -> tuple[float, float | None]:
        """Returns what is done in a second, and the seconds until all is; (0, None) if there is no measure."""
        self._go_on(now)
        if now - self._since < _FIRST_SECONDS or not self._weighted or self._stands(now):
            return 0.0, 0.0 if self._done >= total else None
        return self._rate(), max(0.0, total - self._likely) / self._rate()

    def _stands(self, now: float) -> bool:
        longest = max(_STANDSTILL_SECONDS, _STANDSTILL_STEPS * self._longest)
        return self._weighted > 0 and now - self._reported > longest

    def _go_on(self, now: float) -> None:
        until = min(now, self._reported + self._longest)
        self._likely += max(0.0, until - self._at) * self._rate()
        self._at = now

    def _rate(self) -> float:
        weighted = self._weighted + (self._likely - self._done) * self._middle(self._at)
        return 2 * weighted / max(_FIRST_SECONDS, self._at - self._since) ** 2

    def _middle(self, now: float) -> float:
        return (self._reported + now) / 2 - self._since


class ProgressState:
    """What a job is doing, according to its progress events.

    Attributes:
        stages: those that run; each is a part of the one before it.
        work: the last event of work that has not ended; None if no work is counted.
        pace: of that work; it begins with the work, or else with the stage.
        last_round: the last round of a search that the innermost stage has ended, if any.
    """

    def __init__(self, clock: Clock):
        self._clock = clock
        self.stages: list[str] = []
        self._parts: tuple[str, ...] = ()  # of the outermost stage
        self.work: WorkDone | None
        self.last_round: RoundEnded | None
        self._begin()

    def take(self, event: Event) -> None:
        if isinstance(event, WorkDone):
            is_same = self.work is not None and self.work.work == event.work
            if event.done < event.total:
                if not is_same:
                    self._begin()
                self.work = event
                self.pace.take(event.done, self._clock())
            elif is_same:
                self._begin()
        elif isinstance(event, StageBegan):
            if not self.stages:
                self._parts = event.parts
            self.stages.append(event.stage)
            self._begin()
        elif isinstance(event, StageEnded):
            self.stages.remove(event.stage)
            self._begin()
        elif isinstance(event, RoundEnded):
            self.last_round = event

    def _begin(self) -> None:
        self.work, self.last_round, self.pace = None, None, Pace(self._clock())

    @property
    def label(self) -> str:
        """What the job is doing, in a few words; empty between stages."""
        if self.work is not None:
            return self.work.stage + self._part(self.work.stage)
        if not self.stages:
            return ''
        label = self.stages[-1] + self._part()
        ended = self.last_round
        if ended is not None:
            label += f': round {ended.number + 1}'
            if ended.size is not None and ended.target is not None:
                label += f', the last made {ended.size:,} of {ended.target:,} entries'
        return label

    def _part(self, work: str = '') -> str:
        """Which part of the job this is, as ` (1 of 3)`; empty for a job without parts."""
        for stage in (work, *reversed(self.stages)):
            if stage in self._parts:
                return f' ({self._parts.index(stage) + 1} of {len(self._parts)})'
        return ''


class ProgressLog:
    """Logs a line of progress every half minute."""

    def __init__(self, clock: Clock = time.monotonic, write: Callable[[str], None] = _LOGGER.info):
        self._clock, self._write = clock, write
        self._now = ProgressState(clock)
        self._last = clock()
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        with self._lock:
            self._now.take(event)
        self.look()

    def look(self) -> None:
        """Logs the line if it is due."""
        with self._lock:
            if self._clock() - self._last < _LINE_SECONDS:
                return
            self._last = self._clock()
            line = self._line()
        if line:
            self._write(line)

    def _line(self) -> str:
        now, time = self._now, self._clock()
        work, spent = now.work, f'for {format_time(time - now.pace.began)}'
        if work is None:
            return f'{now.label}, {spent}' if now.label else ''
        line = f'{now.label}: {100 * work.done // work.total} % of {format_amount(work.total, work.unit)}'
        rate, left = now.pace.rate_and_left(work.total, time)
        if left is None or rate < 1:  # parts that each take another time, over a second
            return f'{line}, {spent}'
        return f'{line}, {_per_second(rate, work.unit)}, {format_time(left)} left'


class JsonProgress:
    """Writes each event as an object of JSON on a line; of one work at most once in a second."""

    def __init__(self, stream: TextIO, clock: Clock = time.monotonic):
        self._stream, self._clock = stream, clock
        self._works: dict[str, tuple[Pace, float]] = {}  # and when each was last written

    def __call__(self, event: Event) -> None:
        with _drawing() as is_shown:
            if not is_shown:
                return
            if isinstance(event, WorkDone):
                self._write_work(event)
            elif isinstance(event, StageBegan):
                self._write('stage', stage=event.stage, state='began', parts=list(event.parts))
            elif isinstance(event, StageEnded):
                self._write('stage', stage=event.stage, state='ended')
            elif isinstance(event, RoundEnded):
                self._write('round', number=event.number, size=event.size, target=event.target)

    def _write_work(self, event: WorkDone) -> None:
        now = self._clock()
        if event.done == 0 or event.work not in self._works:
            self._works[event.work] = (Pace(now), -_JSON_SECONDS)
        pace, written = self._works[event.work]
        pace.take(event.done, now)
        if now - written < _JSON_SECONDS and 0 < event.done < event.total:
            return
        self._works[event.work] = (pace, now)
        _, left = pace.rate_and_left(event.total, now)
        self._write(
            'work',
            stage=event.stage,
            work=event.work,
            done=event.done,
            total=event.total,
            unit='bytes' if _is_bytes(event.unit) else event.unit,
            seconds=round(now - pace.began, 3),
            left=None if left is None else round(left, 3),
        )

    def _write(self, event: str, **fields: object) -> None:
        with contextlib.suppress(OSError, ValueError):  # nobody reads it; the job goes on
            self._stream.write(json.dumps({'event': event, **fields}) + '\n')
            self._stream.flush()


class Bar:
    """Draws a progress bar on a terminal; log lines are written above it."""

    def __init__(self, terminal: TextIO, clock: Clock = time.monotonic):
        self._terminal, self._clock = terminal, clock
        self._now = ProgressState(clock)
        self._bar: tqdm | None = None
        self._output: _CellOutput | None = None
        self._shown: Pace | None = None  # whose bar it is
        self._replaced = [
            (handler, handler.setStream(_AboveBar(self, terminal)))
            for handler in logging.getLogger().handlers
            if isinstance(handler, logging.StreamHandler) and handler.stream is terminal
        ]
        for handler, _ in self._replaced:
            handler.addFilter(_is_not_of_the_bar)

    def __call__(self, event: Event) -> None:
        with _drawing() as is_shown:
            if is_shown:
                self._now.take(event)
                self._draw()

    def look(self) -> None:
        """Draws the bar again, with the current time."""
        with _drawing() as is_shown:
            if is_shown and self._bar is not None:
                self._bar.bar_format = self._format()
                self._bar.refresh()

    def close(self) -> None:
        """Removes the bar, and gives the terminal back to the log."""
        with terminal_lock:
            self._end_bar()
            if self._output is not None:
                self._output.close()
            for handler, stream in self._replaced:
                handler.setStream(stream)
                handler.removeFilter(_is_not_of_the_bar)

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Removes the bar while something else is written to the terminal."""
        with terminal_lock:
            if self._bar is not None:
                self._bar.clear()
            yield
            if self._bar is not None:
                self._bar.refresh()

    def _draw(self) -> None:
        now = self._now
        if self._bar is None or not now.label or now.pace is not self._shown:
            self._end_bar()
            if now.label:
                self._begin_bar()
        else:
            self._bar.bar_format = self._format()
            if now.work is None:  # another round; the time goes on
                self._bar.refresh()
            else:
                self._bar.update(now.work.done - self._bar.n)

    def _format(self) -> str:
        """Returns the line, with a field for the bar; what a narrow terminal has no room for is left out."""
        from tqdm import tqdm  # slow; without a terminal there is no bar

        def on_clock(seconds: float) -> str:
            return tqdm.format_interval(round(seconds))

        now, time = self._now, self._clock()
        work, spent, label = now.work, on_clock(time - now.pace.began), now.label
        columns = columns_of(self._terminal)
        # Even of no width, a bar makes tqdm cut the line off where the terminal ends.
        if work is None:
            if len(label) + len(spent) + 3 > columns:
                label = label.partition(',')[0]
            return f'{label} [{spent}]{{bar:0}}'
        rate, left = now.pace.rate_and_left(work.total, time)
        spent += f'<{"?" if left is None else on_clock(left)}'
        speed = f', {_per_second(rate, work.unit)}' if rate >= 1 else ''
        done, *_ = format_amount(work.done, work.unit, work.total).split(' ')
        amount = f'{done}/{format_amount(work.total, work.unit)}'
        texts = (f'{amount} [{spent}{speed}]', f'{amount} [{spent}]', f'[{spent}]')
        if len(label) + len(spent) + _LEAST_COLUMNS > columns:
            label = label.partition(' (')[0]
        room = columns - len(label) - _BAR_COLUMNS
        text = next((text for text in texts if len(text) <= room), texts[-1])
        return f'{label}: {{percentage:3.0f}}%|{{bar}}| {text}'

    def _begin_bar(self) -> None:
        # Its import is slow, and without a terminal there is no bar.
        if in_ipython():
            from tqdm.auto import tqdm
            from tqdm.notebook import tqdm_notebook

            is_in_cell = issubclass(tqdm, tqdm_notebook)
        else:
            is_in_cell = False
            from tqdm import tqdm

        tqdm.monitor_interval = 0  # its monitor is a second thread like the one of `shown_progress`
        work, self._shown = self._now.work, self._now.pace
        line_is_open.set()
        self._bar = tqdm(
            total=None if work is None else work.total,
            initial=0 if work is None else work.done,
            file=self._terminal,
            leave=False,
            dynamic_ncols=True,
            bar_format=self._format(),
            **({'display': False} if is_in_cell else {}),
        )
        if is_in_cell:
            self._output = self._output or _CellOutput()
            self._output.show(self._bar)

    def _end_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            line_is_open.clear()
        self._bar = None


class _CellOutput:
    """The output of a notebook's cell in which bars follow each other; at the end it is empty.

    Bars with an output each would leave as many lines in the notebook.
    """

    def __init__(self) -> None:
        from IPython.display import display
        from ipywidgets import VBox

        self._box = VBox()
        self._handle = display(self._box, display_id=True)

    def show(self, bar: Any) -> None:
        self._box.children = [bar.container]

    def close(self) -> None:
        self._box.close()
        self._handle.update({'text/plain': ''}, raw=True)


def _is_not_of_the_bar(record: logging.LogRecord) -> bool:
    """Hides lines of the log that a bar shows: `extra={ON_BAR: True}`."""
    return not getattr(record, ON_BAR, False)


class _AboveBar(io.TextIOBase):
    """A stream that writes to a terminal above the bar."""

    def __init__(self, bar: Bar, terminal: TextIO):
        self._bar, self._terminal = bar, terminal

    def write(self, text: str) -> int:
        with self._bar.aside():
            written = self._terminal.write(text)
            self._terminal.flush()
        return written

    def flush(self) -> None:
        self._terminal.flush()


def format_time(seconds: float) -> str:
    """Returns a time for a reader: `40 s`, `3 min`, `2 h 5 min`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f'{round(seconds)} s'
    return f'{minutes} min' if minutes < 60 else f'{minutes // 60} h {minutes % 60} min'


def format_amount(amount: float, unit: str, largest: float = 0) -> str:
    """Returns an amount for a reader: `1,200 examples`, `4.5 MiB`, `4.5 MiB compressed`.

    It is in the unit of the `largest` of several.
    """
    if not _is_bytes(unit):
        return f'{amount:,.0f} {unit}'
    name, size = next((unit for unit in _BYTE_UNITS if max(amount, largest) >= unit[1]), ('B', 1))
    return f'{amount / size:.{size > 1:d}f} {name}{unit.removeprefix(BYTES)}'


def _per_second(rate: float, unit: str) -> str:
    return f'{format_amount(rate, BYTES if _is_bytes(unit) else unit)}/s'


def _is_bytes(unit: str) -> bool:
    return unit in (BYTES, COMPRESSED_BYTES)


def end_on_signals(keeps_work: bool) -> None:
    """Makes SIGINT, SIGTERM and SIGHUP end this process with one line and status 130, 143 or 129.

    A signal that is ignored stays ignored: `nohup` ignores SIGHUP, and shells without job control SIGINT.

    Args:
        keeps_work: whether the line says what the next run continues with.
    """
    threading.excepthook = _report_thread_error
    names = [name for name in ('SIGINT', 'SIGTERM', 'SIGHUP') if hasattr(signal, name)]
    numbers = [getattr(signal, name) for name in names]
    numbers = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    if sys.platform == 'linux' and signal.SIGINT in numbers:
        numbers.remove(signal.SIGINT)
        _wait_for_blocked(signal.SIGINT, keeps_work)
    _wait_for_handled(numbers, keeps_work)


def _take(number: int, keeps_work: bool) -> None:
    if interrupt():
        threading.Thread(target=_end, args=[number, keeps_work], daemon=True).start()
    elif number != getattr(signal, 'SIGHUP', None):  # which comes twice when a terminal is closed
        stop_waiting()
        threading.Timer(_SECOND_SECONDS, os._exit, [128 + number]).start()


def _wait_for_blocked(number: int, keeps_work: bool) -> None:
    """Takes a signal that the child processes of this one ignore.

    A terminal sends Ctrl-C to them too, and a worker of Beam would print a traceback before this
    process ends it. They ignore what is ignored here; and Linux keeps a signal that is also blocked
    for the thread that waits for it.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [number])  # inherited by all threads from here on
    signal.signal(number, signal.SIG_IGN)
    _take_each(lambda: signal.sigwait([number]), keeps_work)


def _wait_for_handled(numbers: Sequence[int], keeps_work: bool) -> None:
    """Takes signals; the interpreter's handler writes their numbers to a pipe."""
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    for number in numbers:
        # Without a handler the number would not be written.
        signal.signal(number, lambda number, frame: None)
    _take_each(lambda: os.read(receiver, 1)[0], keeps_work)


def _take_each(wait: Callable[[], int], keeps_work: bool) -> None:
    """Takes signals in a thread; `wait` returns the next one."""

    def take() -> None:
        while True:
            _take(wait(), keeps_work)

    threading.Thread(target=take, daemon=True).start()


def _report_thread_error(arguments: threading.ExceptHookArgs) -> None:
    hold_if_interrupted(GRACE_SECONDS)
    threading.__excepthook__(arguments)


def _end(number: int, keeps_work: bool) -> None:
    name = 'interrupted' if number == signal.SIGINT else 'terminated'
    is_busy = has_busy_workers()
    # Whatever happens to the line: the reader of stderr may have stopped.
    threading.Timer(_FINISH_SECONDS + _LAST_SECONDS, os._exit, [128 + number]).start()
    # Otherwise a bar that is being drawn would follow the line. A terminal that is stuck is not
    # waited for.
    terminal_lock.acquire(timeout=GRACE_SECONDS)
    if is_busy:
        _write_line(
            f'{name}: writing what is encoded, for {_FINISH_SECONDS} s at most; a second signal '
            'stops at once'
        )
        wait_for_workers(_FINISH_SECONDS)
    kept = kept_work()
    outcome = f'kept: {kept}; run the same command to continue' if kept else 'nothing is kept'
    _write_line(f'{name}; {outcome}' if keeps_work else name)
    try:
        _end_children()
        for error in undo_all(GRACE_SECONDS):
            _write_line(str(error))
    finally:
        os._exit(128 + number)


def _write_line(line: str) -> None:
    """Writes a line to standard error, after a bar that stands there."""
    with contextlib.suppress(OSError, ValueError):
        text = fitted(f'tokbeam: {line}', sys.stderr)
        os.write(sys.stderr.fileno(), ('\n' * line_is_open.is_set() + f'{text}\n').encode())
    line_is_open.clear()


def _end_children() -> None:
    """Ends the processes that this one has started: Beam's workers, a job server."""
    import psutil  # only here: `--help` and `tokenize` start without it

    stopped: dict[int, psutil.Process] = {}
    quiet = 0
    # A thread may be about to start another process, and a shell that is killed while it starts its
    # command leaves that running. So all processes are stopped before the first is killed.
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


@contextlib.contextmanager
def standard_output() -> Iterator[Callable[[bytes], None]]:
    """Gives a function that writes bytes to standard output.

    Write errors are user errors, except a closed pipe.

    Raises:
        InputError: standard output is closed, or cannot be written to.
        BrokenPipeError: the reader has closed the pipe.
    """
    if sys.stdout is None:
        raise InputError('standard output is closed; give a place to write the lines to')
    stream: BinaryIO = sys.stdout.buffer
    is_unbuffered = isinstance(stream, io.RawIOBase)  # python -u
    if is_unbuffered:
        # An unbuffered write may write less without an error.
        stream = open(stream.fileno(), 'wb', closefd=False)

    def write(data: bytes) -> None:
        with _writing():
            stream.write(data)
            if is_unbuffered:
                stream.flush()

    try:
        yield write
    except BaseException:
        with contextlib.suppress(OSError, InputError), _writing():
            stream.flush()
        raise
    with _writing():
        stream.flush()


def print_lines(lines: Iterable[str]) -> None:
    """Writes lines for a reader to standard output, unless it is closed; raises as `standard_output`."""
    _print(''.join(f'{fitted(printable(line, sys.stdout), sys.stdout)}\n' for line in lines))


def print_data(lines: Iterable[str]) -> None:
    """Writes lines for a program, which are never broken; else as `print_lines`."""
    _print(''.join(f'{printable(line, sys.stdout)}\n' for line in lines))


def print_toml(text: str) -> None:
    r"""Writes TOML as `print_lines` does; `\u00FC` stands for a character that cannot be shown."""
    # Only strings have such characters, and all strings are in double quotes.
    lines = text.split('\n')
    _print('\n'.join(escaped(line, sys.stdout, _toml_escape) for line in lines))


def flush_printed() -> None:
    """Flushes standard output before the interpreter would; raises as `standard_output`."""
    with _writing():
        if sys.stdout is not None:
            sys.stdout.flush()


def _toml_escape(character: str) -> str:
    return f'\\U{ord(character):08X}' if character > '\uffff' else f'\\u{ord(character):04X}'


def _print(text: str) -> None:
    with _writing():
        if sys.stdout is not None:
            sys.stdout.write(text)


@contextlib.contextmanager
def _writing() -> Iterator[None]:
    """Makes errors of standard output those of the user, except a closed pipe."""
    try:
        yield
    except OSError as error:
        # The interpreter would write what still waits once more, and complain of its own.
        with open(os.devnull, 'wb') as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise system_error(error, 'write to standard output') from error
