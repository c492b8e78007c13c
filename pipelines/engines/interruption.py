"""What a job finishes when a signal comes, and what of its work the next run continues with."""

import threading

GRACE_SECONDS = 0.5
"""A worker process that gets the same signal may be gone before this process knows of it."""

_signalled = threading.Event()

_lock = threading.Condition()
_busy: set[int] = set()
_kept: dict[str, None] = {}
_text = {'kept': 0, 'total': 0}

_UNITS = ((1_000_000_000, 'GB'), (1_000_000, 'MB'), (1000, 'kB'))


def is_interrupted() -> bool:
    """Returns whether a signal has come, after which no new work is begun and nothing is shown."""
    return _signalled.is_set()


def hold_if_interrupted(seconds: float = 0) -> None:
    """Blocks this thread for good if a signal has come, or comes within some seconds."""
    if _signalled.wait(seconds):
        threading.Event().wait()


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
    """Waits until no worker holds anything, as long as that may take, or until `stop_waiting`."""
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
