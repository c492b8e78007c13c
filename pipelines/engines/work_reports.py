"""Progress of worker processes: each leaves what it has done in a small file, and the driver adds it up.

A DoFn that counts work takes `work_reports()` where the driver makes it, calls `begin` when it is set
up, and `tell` at the end of a bundle. `advance` then writes what it counts to the process's file, at most
once a second; the driver looks as often. A bundle that is run twice counts twice, so that more than
all is told as all.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.engines.progress import count_elsewhere, set_done, set_total
from tokcore.errors import InputError
from tokcore.regular_files import read_regular

_SECONDS = 1.0
"""Between two looks, and between two reports: a report takes a few tenths of a millisecond."""

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
                count_elsewhere(_writers[self.folder])

    def tell(self) -> None:
        """Reports what has been counted since the last time."""
        writer = _writers.get(self.folder or '')
        if writer is not None:
            writer.tell()


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
    """Makes workers report while a pipeline is made and run, and tells what they report.

    Args:
        folder: that driver and workers both reach, of an attempt, with which the reports are deleted;
            None: no reports. A store has none, since each would be a request.
    """
    global _reports
    if folder is None or '://' in folder:
        yield
        return
    _reports = WorkReports(os.path.join(folder, _FOLDER))
    reader = _Reader(_reports.folder or '')
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_SECONDS):
            reader.look()

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield
        ended.set()
        looking.join()
        reader.look()  # at what the last bundles have told
    finally:
        ended.set()
        looking.join()
        _reports = WorkReports()
        _has_read.clear()


class _Writer:
    """The report of this process; several threads may add to it."""

    def __init__(self, folder: str):
        self._folder, self._name = folder, f'{os.getpid()}-{uuid.uuid4().hex}'
        self._done: dict[str, int] = {}
        self._totals: dict[str, int] = {}
        self._told = 0.0
        self._is_told = True
        self._lock = threading.Lock()

    def advance(self, work: str, amount: int) -> None:
        with self._lock:
            self._done[work] = self._done.get(work, 0) + amount
            self._is_told = False
            if time.monotonic() - self._told >= _SECONDS:
                self._write()

    def set_total(self, work: str, total: int) -> None:
        with self._lock:
            self._totals[work] = total
            self._is_told = False

    def tell(self) -> None:
        with self._lock:
            if not self._is_told:
                self._write()

    def _write(self) -> None:
        self._told, self._is_told = time.monotonic(), True
        report = json.dumps({'done': self._done, 'totals': self._totals}).encode()
        with contextlib.suppress(OSError):  # for a bar that stands still no job ends
            _replace_file(self._folder, self._name, report)


def _replace_file(folder: str, name: str, data: bytes) -> None:
    """Writes a file of a folder, which must not be a link; it has its name only when it is whole."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
    above = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        new = f'{name}.new'
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, dir_fd=above)
        with open(file, 'wb') as stream:
            stream.write(data)
        os.replace(new, name, src_dir_fd=above, dst_dir_fd=above)
    finally:
        os.close(above)


class _Reader:
    """Adds up the reports in a folder."""

    def __init__(self, folder: str):
        self._folder = folder
        self._totals: dict[str, int] = {}

    def look(self) -> None:
        """Tells listeners what has been done in all."""
        sums: dict[str, int] = {}
        totals: dict[str, int] = {}
        for path in _whole_files(self._folder):
            report = _read_report(path)
            for work, done in report.get('done', {}).items():
                sums[work] = sums.get(work, 0) + done
            totals |= report.get('totals', {})
        for work, total in totals.items():
            if self._totals.get(work) != total:
                set_total(work, total)
        self._totals = totals
        for work, done in sums.items():
            set_done(work, done)
            _has_read.set()


def _whole_files(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:  # no worker has reported
        return []
    return [os.path.join(folder, name) for name in names if not name.endswith('.new')]


def _read_report(path: str) -> dict[str, dict[str, int]]:
    """Returns what a file has; empty if it is none: others may write to an output folder."""
    try:
        report = json.loads(read_regular(path, _MOST_BYTES))
    except (ValueError, RecursionError, OSError, InputError):
        return {}
    parts = [report.get('done'), report.get('totals')] if isinstance(report, dict) else [None]
    for part in parts:
        if not isinstance(part, dict) or not all(type(number) is int for number in part.values()):
            return {}
    return report
