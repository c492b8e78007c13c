"""What a DoFn does within a bundle: calls in flight, and outputs at the bundle's end.

Threads keep some calls in flight and give results in the order of submission. The calls spend their
time in kernels that release the interpreter lock, so threads of one worker run side by side; order
in equals order out, so nothing else in the house knows of them.
"""

import collections
import concurrent.futures
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.memory import keep_freed_memory

_Result = TypeVar('_Result')

_WINDOWS = (GlobalWindow(),)
_END = _WINDOWS[0].max_timestamp()


class CallsInFlight(Generic[_Result]):
    """Runs up to `workers` calls at once; with one worker they run in the calling thread.

    `ahead` calls more wait for a worker that is done before its elders.
    """

    def __init__(self, workers: int, ahead: int = 0):
        keep_freed_memory()
        self._in_flight = workers + ahead
        self._pending: collections.deque[concurrent.futures.Future] = collections.deque()
        self._pool = concurrent.futures.ThreadPoolExecutor(workers) if workers > 1 else None

    def submit(self, call: Callable[..., _Result], *arguments) -> Iterator[_Result]:
        """Starts a call and yields the results that are due: only so many stay in flight."""
        if self._pool is None:
            yield call(*arguments)
            return
        while len(self._pending) >= self._in_flight:
            yield self._pending.popleft().result()
        self._pending.append(self._pool.submit(call, *arguments))

    def each(
        self, call: Callable[..., _Result], arguments: Iterable[tuple]
    ) -> Iterator[_Result]:
        """Yields a call's results for all arguments, in order; none else may be in flight."""
        for each in arguments:
            yield from self.submit(call, *each)
        yield from self.drain()

    def start_aside(self, call: Callable, *arguments) -> concurrent.futures.Future:
        """Starts a call by the same workers whose result is not one of those in order."""
        if self._pool is not None:
            return self._pool.submit(call, *arguments)
        done: concurrent.futures.Future = concurrent.futures.Future()
        done.set_result(call(*arguments))
        return done

    def drain(self) -> Iterator[_Result]:
        """Yields the results of all calls in flight."""
        while self._pending:
            yield self._pending.popleft().result()

    def close(self) -> None:
        """Ends the threads; calls not started are dropped."""
        self._pending.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


def in_global_window(output):
    """Returns an output, tagged or not, as `finish_bundle` must give it in a batch job."""
    if isinstance(output, TaggedOutput):
        return TaggedOutput(output.tag, in_global_window(output.value))
    return WindowedValue(output, _END, _WINDOWS)
