"""Progress of worker processes: each leaves what it has done in a small file, and the driver adds it up.

A DoFn that counts work takes `work_reports()` where the driver makes it, and calls `begin` when it is
set up. `advance` then writes what it counts to the process's file, when a work begins and now and then;
the driver looks as often. A bundle that is run twice counts twice, so that more than all is shown as
all. What was counted after the last report is shown when the pipeline has ended well: then all is done.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import platform
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipelines.engines.progress import called_every, count_elsewhere, set_done, set_total
from pipelines.files import filesystem
from pipelines.files.local import ATTEMPT_PREFIX
from tokcore.errors import InputError
from tokcore.kernels.jit import before_compiling
from tokcore.object_stores import is_object

_LOGGER = logging.getLogger(__name__)

_SECONDS = 1.0
"""Between two looks, and between two reports, on this machine."""

_STORE_SECONDS = 5.0
"""The same on an object store, where each report is a request, and each look one and one for each report."""

_PAUSE = 200
"""Times as long as a report took a process waits for the next: reports take half a percent of its time."""

_FOLDER = 'progress'

_MOST_BYTES = 1 << 16


@dataclass(frozen=True)
class WorkReports:
    """Where workers of a pipeline report; None: nowhere, since they are threads of the driver."""

    folder: str | None = None

    def begin(self) -> None:
        """Makes this process report what `advance` counts from here on."""
        if self.folder is not None:
            with _beginning:
                if self.folder not in _writers:
                    _writers.clear()
                    _writers[self.folder] = _Writer(self.folder)
                    before_compiling[:] = [_writers[self.folder].note_compiling]
                count_elsewhere(_writers[self.folder])


_writers: dict[str, _Writer] = {}
_beginning = threading.Lock()

_reports = WorkReports()
_has_read = threading.Event()


def work_reports() -> WorkReports:
    """Returns where the workers of the pipeline report that is being made."""
    return _reports


def workers_report() -> bool:
    """Returns whether the driver has read a report of the pipeline that runs."""
    return _has_read.is_set()


@contextlib.contextmanager
def reports_read(folder: str | None) -> Iterator[None]:
    """Makes workers report while a pipeline is made and run, and passes on what they report.

    Args:
        folder: that driver and workers both reach, of an attempt, with which the reports are deleted;
            None: no reports. One that only Beam reaches has none: there a file takes several requests.
    """
    global _reports
    if folder is None or ('://' in folder and not is_object(folder)):
        yield
        return
    below = os.path.join(folder, _FOLDER)
    _reports = WorkReports(below)
    reader = _Reader(below)
    try:
        with called_every(_seconds(below), reader.look):
            yield
        reader.end()
    finally:
        _reports = WorkReports()
        _has_read.clear()


def _seconds(folder: str) -> float:
    return _STORE_SECONDS if is_object(folder) else _SECONDS


class _Writer:
    """The report of this process; several threads may add to it."""

    def __init__(self, folder: str):
        self._path = os.path.join(folder, f'{os.getpid()}-{uuid.uuid4().hex}')
        self._seconds = _seconds(folder)
        self._done: dict[str, int] = {}
        self._totals: dict[str, int] = {}
        self._due = 0.0
        self._compiles: str | None = None
        self._lock = threading.Lock()

    def advance(self, work: str, amount: int) -> None:
        with self._lock:
            begins = work not in self._done
            self._done[work] = self._done.get(work, 0) + amount
            if begins or time.monotonic() >= self._due:
                self._write()

    def set_total(self, work: str, total: int) -> None:
        with self._lock:
            self._totals[work] = total
            self._write()  # this process may have nothing else to report

    def note_compiling(self) -> None:
        """Reports that the work waits for kernels, which takes a minute on a new machine."""
        if self._compiles is None:
            with self._lock:
                self._compiles = platform.node()
                self._write()

    def _write(self) -> None:
        fields = {'done': self._done, 'totals': self._totals, 'compiles': self._compiles}
        report = json.dumps(fields).encode()
        began = time.monotonic()
        # For a bar that stands still no job ends.
        with contextlib.suppress(OSError, InputError):
            filesystem.write_bytes(self._path, report)
        ended = time.monotonic()
        self._due = ended + max(self._seconds, _PAUSE * (ended - began))


class _Reader:
    """Adds up the reports in a folder."""

    def __init__(self, folder: str):
        self._folder = folder
        self._totals: dict[str, int] = {}
        self._works: set[str] = set()
        self._compiling: set[object] = {None}

    def look(self) -> None:
        """Tells listeners what has been done in all."""
        sums: dict[str, int] = {}
        totals: dict[str, int] = {}
        for report in _read_reports(self._folder):
            for work, done in report.get('done', {}).items():
                sums[work] = sums.get(work, 0) + done
            totals |= report.get('totals', {})
            host = report.get('compiles')
            if host not in self._compiling:
                _LOGGER.info('workers on %s compile kernels, once for that machine', host)
                self._compiling.add(host)
        for work, total in totals.items():
            if self._totals.get(work) != total:
                set_total(work, total)
        self._totals = totals
        for work, done in sums.items():
            set_done(work, done)
            _has_read.set()
        self._works |= sums.keys()

    def end(self) -> None:
        """Tells that all work is done of which there are reports: the pipeline has ended well."""
        self.look()
        for work in self._works:
            set_done(work, sys.maxsize)  # up to its total


def _read_reports(folder: str) -> Iterator[dict[str, Any]]:
    with contextlib.suppress(OSError, InputError):  # the next look may find more
        for name in filesystem.entries(folder):
            if not name.startswith(ATTEMPT_PREFIX):  # of a file that is not whole yet
                yield _read_report(os.path.join(folder, name))


def _read_report(path: str) -> dict[str, Any]:
    """Returns what a file has; empty if it is not a report: others may write to an output folder."""
    try:
        with filesystem.open_binary(path) as stream:
            report = json.loads(stream.read(_MOST_BYTES))
    except (ValueError, RecursionError, OSError, InputError):
        return {}
    parts = [report.get('done'), report.get('totals')] if isinstance(report, dict) else [None]
    if parts[0] is not None and not isinstance(report.get('compiles') or '', str):
        return {}
    for part in parts:
        if not isinstance(part, dict) or not all(type(number) is int for number in part.values()):
            return {}
    return report
