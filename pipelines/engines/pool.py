"""Threads inside a bundle, the bound on a bundle's output, and a coder for packed values.

Calls run in threads and return their results in the order of submission; kernels release the
interpreter lock. On Flink 1.x the output of a bundle waits in the heap of a TaskManager, which ends
with about 1 GB of it, so the output is bounded, and its size is a metric.
"""

import collections
import concurrent.futures
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.engines.machine import keep_freed_memory

BUNDLE_BYTES = 'bundle_bytes'
"""The name of the metric: the distribution of the bytes that bundles put out."""

MOST_BUNDLE_BYTES = 512 << 20
"""The most bytes that a bundle may put out: half of what ends a TaskManager of 2 GB. Beam's translator
for streaming, the only one for Flink 2, has bundles of 1,000 elements, which put out less. For the learner this costs one pass
over the counts for each 0.5 GB of distinct suffixes."""

_Result = TypeVar('_Result')
_DetachedResult = TypeVar('_DetachedResult')

_WINDOWS = (GlobalWindow(),)
_END = _WINDOWS[0].max_timestamp()


class OversizedBundleError(RuntimeError):
    """A bundle would put out more than it may."""


class BundleOutput:
    """Counts the bytes that a DoFn puts out in each bundle.

    Args:
        namespace: of the metric.
        most: the bytes that a bundle may put out.
    """

    def __init__(self, namespace: str, most: int = MOST_BUNDLE_BYTES):
        self._most = most
        self._metric = Metrics.distribution(namespace, BUNDLE_BYTES)
        self._bytes = 0

    def begin(self) -> None:
        """Begins a bundle."""
        self._bytes = 0

    def fits(self, size: int, share: float = 1) -> bool:
        """Returns whether `size` more bytes stay within a share of the bound."""
        return self._bytes + size <= share * self._most

    def add(self, size: int) -> None:
        """Counts bytes that are about to be put out; raises as `refuse_excess`."""
        self.refuse_excess(size)
        self._bytes += size

    def refuse_excess(self, size: int) -> None:
        """Raises OversizedBundleError if `size` more bytes would exceed the bound."""
        if not self.fits(size):
            raise OversizedBundleError(
                f'a bundle would put out {self._bytes + size} bytes, more than {self._most}'
            )

    def end(self) -> None:
        """Ends a bundle, and updates the metric."""
        self._metric.update(self._bytes)


class _Packable(Protocol):
    def to_bytes(self) -> bytes: ...

    @classmethod
    def from_bytes(cls, data: bytes) -> Any: ...


class PackedCoder(beam.coders.Coder):
    """Encodes a type by its `to_bytes` and `from_bytes`; equal values must have the same bytes."""

    def __init__(self, packable: type[_Packable]):
        self._packable = packable

    @classmethod
    def from_type_hint(cls, typehint: type, registry: beam.coders.typecoders.CoderRegistry):
        """Returns the coder of a registered type; Beam calls this."""
        return cls(typehint)

    def encode(self, value: Any) -> bytes:
        return value.to_bytes()

    def decode(self, encoded: bytes) -> Any:
        return self._packable.from_bytes(encoded)

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> type:
        return self._packable


def with_output_types(hint: object) -> beam.PTransform:
    """Returns a transform that declares the type of the elements and leaves them as they are.

    The type hints of a ParDo apply to all of its outputs, so a main output that needs a coder of its
    own gets its type here.
    """
    return 'WithOutputTypes' >> beam.Map(_identity).with_output_types(hint)


def _identity(element: Any) -> Any:
    return element


@dataclass(eq=False)
class ThreadedMap(beam.PTransform):
    """`beam.Map` with several threads in each worker; results keep the order of the elements.

    Attributes:
        function: maps an element; it should spend its time without the interpreter lock.
        workers: threads of a worker process.
    """

    function: Callable[[Any], Any]
    workers: int = 1

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        return elements | 'Call' >> beam.ParDo(_ThreadedMapFn(self.function, self.workers))


class _ThreadedMapFn(beam.DoFn):
    def __init__(self, function: Callable[[Any], Any], workers: int):
        self._function, self._workers = function, workers

    def setup(self) -> None:
        self._pool: OrderedPool = OrderedPool(self._workers)

    def process(self, element: Any) -> Iterator:
        yield from self._pool.submit(self._function, element)

    def finish_bundle(self) -> Iterator:
        yield from map(in_global_window, self._pool.drain())

    def teardown(self) -> None:
        self._pool.close()


class OrderedPool(Generic[_Result]):
    """Runs up to `workers` calls at once, one of them in the calling thread.

    The submitting thread counts as one of the workers: instead of blocking on the oldest result it
    runs pending calls itself. So `workers` + 1 calls are kept in flight; with fewer, the other
    threads would be idle meanwhile.
    """

    def __init__(self, workers: int):
        keep_freed_memory()
        self._in_flight = workers + 1
        self._pending: collections.deque[Call[_Result]] = collections.deque()
        self._executor = concurrent.futures.ThreadPoolExecutor(workers - 1) if workers > 1 else None

    def submit(self, function: Callable[..., _Result], *arguments) -> Iterator[_Result]:
        """Starts a call, and yields the oldest results while too many calls are in flight."""
        if self._executor is None:
            yield function(*arguments)
            return
        while len(self._pending) >= self._in_flight:
            yield self._next_result(leave=1)
        self._pending.append(Call(function, arguments))
        self._pending[-1].run_in(self._executor)

    def map(
        self, function: Callable[..., _Result], arguments: Iterable[tuple]
    ) -> Iterator[_Result]:
        """Yields the results for all arguments, in order; no other call may be in flight."""
        for one_call in arguments:
            yield from self.submit(function, *one_call)
        yield from self.drain()

    def submit_detached(
        self, function: Callable[..., _DetachedResult], *arguments
    ) -> 'Call[_DetachedResult]':
        """Starts a call in the same threads, and returns it: it has no place in the order."""
        call = Call(function, arguments)
        if self._executor is None:
            call.run()
        else:
            call.run_in(self._executor)
        return call

    def drain(self) -> Iterator[_Result]:
        """Yields the results of all calls in flight."""
        while self._pending:
            yield self._next_result(leave=0)

    def close(self) -> None:
        """Ends the threads; calls that have not started are dropped."""
        self._pending.clear()
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)

    def _next_result(self, leave: int) -> _Result:
        """Returns the oldest call's result; while another thread runs it, this one runs younger ones.

        The youngest `leave` calls are left for that thread, which would be idle otherwise until more
        are submitted.
        """
        oldest = self._pending.popleft()
        oldest.run()
        waiting = [call for call in self._pending if call.is_waiting]
        for younger in waiting[: len(waiting) - leave]:
            if oldest.is_done:
                break
            younger.run()
        return oldest.result()


class Call(Generic[_Result]):
    """A call that is run once, by the first thread that gets to it."""

    def __init__(self, function: Callable[..., _Result], arguments: tuple):
        self._future: concurrent.futures.Future[_Result] = concurrent.futures.Future()
        # Popping from a list is atomic, so one thread gets the item.
        self._unstarted = [(self._future, function, arguments)]

    @property
    def is_waiting(self) -> bool:
        return bool(self._unstarted)

    @property
    def is_done(self) -> bool:
        return self._future.done()

    def run_in(self, executor: concurrent.futures.Executor) -> None:
        """Has a thread of an executor run the call, unless another thread has started it."""
        # The list, not the call: a busy executor would keep the result of a call that ran elsewhere.
        executor.submit(_run, self._unstarted)

    def run(self) -> None:
        """Runs the call in this thread, unless another thread has started it."""
        _run(self._unstarted)

    def result(self) -> _Result:
        """Returns the call's result; runs it in this thread if no other has started it."""
        self.run()
        return self._future.result()


def _run(unstarted: list[tuple[concurrent.futures.Future, Callable, tuple]]) -> None:
    try:
        future, function, arguments = unstarted.pop()
    except IndexError:
        return
    try:
        future.set_result(function(*arguments))
    except BaseException as error:  # whatever it is, `result` raises it
        future.set_exception(error)


def in_global_window(output):
    """Returns an output, tagged or not, as `finish_bundle` must yield it in a batch job."""
    if isinstance(output, TaggedOutput):
        return TaggedOutput(output.tag, in_global_window(output.value))
    return WindowedValue(output, _END, _WINDOWS)
