"""Jobs on a cluster that must not outlive this process: who ends it cancels them first."""

import contextlib
import threading
from collections.abc import Callable, Iterator

_cancels: dict[int, Callable[[], object]] = {}
_lock = threading.Lock()


@contextlib.contextmanager
def cancelled_at_the_end(cancel: Callable[[], object]) -> Iterator[None]:
    """Has a job cancelled by `cancel_jobs` while the block runs."""
    with _lock:
        _cancels[id(cancel)] = cancel
    try:
        yield
    finally:
        with _lock:
            _cancels.pop(id(cancel), None)


def has_jobs() -> bool:
    """Returns whether a job runs on a cluster."""
    return bool(_cancels)


def cancel_jobs() -> None:
    """Cancels all jobs; the first error is raised after all were tried."""
    with _lock:
        cancels = list(_cancels.values())
    with contextlib.ExitStack() as stack:
        for cancel in cancels:
            stack.callback(cancel)
