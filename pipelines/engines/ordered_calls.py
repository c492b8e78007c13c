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

from pipelines.machine.process_memory import keep_freed_memory

_Result = TypeVar('_Result')
_Aside = TypeVar('_Aside')

_WINDOWS = (GlobalWindow(),)
_END = _WINDOWS[0].max_timestamp()


class OrderedPool(Generic[_Result]):
    """Runs up to `workers` calls at once, one of them in the calling thread.

    The submitting thread counts as one of the workers: instead of blocking on the oldest result it
    runs pending calls itself. So `workers` + 1 calls are kept in flight, or the pool would run dry
    meanwhile.
    """

    def __init__(self, workers: int):
        keep_freed_memory()
        self._in_flight = workers + 1
        self._pending: collections.deque[Call[_Result]] = collections.deque()
        self._pool = concurrent.futures.ThreadPoolExecutor(workers - 1) if workers > 1 else None

    def submit(self, call: Callable[..., _Result], *arguments) -> Iterator[_Result]:
        """Starts a call and yields the results that are due: only so many stay in flight."""
        if self._pool is None:
            yield call(*arguments)
            return
        while len(self._pending) >= self._in_flight:
            yield self._next_result(left=1)
        self._pending.append(Call(call, arguments))
        self._pending[-1].run_in(self._pool)

    def each(
        self, call: Callable[..., _Result], arguments: Iterable[tuple]
    ) -> Iterator[_Result]:
        """Yields a call's results for all arguments, in order; none else may be in flight."""
        for each in arguments:
            yield from self.submit(call, *each)
        yield from self.drain()

    def submit_detached(self, call: Callable[..., _Aside], *arguments) -> 'Call[_Aside]':
        """Starts a call by the same workers whose result is not one of those in order."""
        aside = Call(call, arguments)
        if self._pool is None:
            aside.run()
        else:
            aside.run_in(self._pool)
        return aside

    def drain(self) -> Iterator[_Result]:
        """Yields the results of all calls in flight."""
        while self._pending:
            yield self._next_result(left=0)

    def close(self) -> None:
        """Ends the threads; calls not started are dropped."""
        self._pending.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def _next_result(self, left: int) -> _Result:
        """The oldest call's result; while another thread is at it, this one runs younger ones.

        The last `left` stay for that thread, or it would be idle until more are submitted.
        """
        oldest = self._pending.popleft()
        oldest.run()
        waiting = [each for each in self._pending if each.is_waiting]
        for younger in waiting[: len(waiting) - left]:
            if oldest.is_done:
                break
            younger.run()
        return oldest.result()


class Call(Generic[_Result]):
    """A call that the first thread that comes to it runs."""

    def __init__(self, call: Callable[..., _Result], arguments: tuple):
        self._ended: concurrent.futures.Future[_Result] = concurrent.futures.Future()
        # Of several threads that take the last item of a list, one gets it.
        self._unstarted = [(self._ended, call, arguments)]

    @property
    def is_waiting(self) -> bool:
        return bool(self._unstarted)

    @property
    def is_done(self) -> bool:
        return self._ended.done()

    def run_in(self, pool: concurrent.futures.Executor) -> None:
        """Has a thread of a pool run the call, unless another one has begun to."""
        # Nothing of a call that was claimed: the pool, when busy, would keep its result long after.
        pool.submit(_run, self._unstarted)

    def run(self) -> None:
        """Runs the call in this thread, unless another one has begun to."""
        _run(self._unstarted)

    def result(self) -> _Result:
        """Returns what the call gives; runs it in this thread if none has begun to."""
        self.run()
        return self._ended.result()


def _run(unclaimed: list[tuple[concurrent.futures.Future, Callable, tuple]]) -> None:
    try:
        ended, call, arguments = unclaimed.pop()
    except IndexError:
        return
    try:
        ended.set_result(call(*arguments))
    except BaseException as error:  # whatever it is, it is raised where the result is taken
        ended.set_exception(error)


def in_global_window(output):
    """Returns an output, tagged or not, as `finish_bundle` must give it in a batch job."""
    if isinstance(output, TaggedOutput):
        return TaggedOutput(output.tag, in_global_window(output.value))
    return WindowedValue(output, _END, _WINDOWS)
