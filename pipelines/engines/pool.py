"""Threads inside a bundle, the size of its output, and values that cross Beam as their own bytes.

Calls run in threads and give their results in the order of submission; the kernels release the
interpreter lock. Flink 1.x hangs, without an error, when a bundle puts out more than about 1 GB, so
the output of a bundle is bounded and counted as a metric.
"""

import collections
import concurrent.futures
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.engines.machine import keep_freed_memory

BUNDLE_BYTES = 'bundle_bytes'
"""The distribution, over bundles, of the bytes put out."""

MOST_BUNDLE_BYTES = 512 << 20
"""What a bundle may put out: half of what hangs. For the learner it costs one pass over the counts
for each 0.5 GB of distinct suffixes."""

_Result = TypeVar('_Result')
_Aside = TypeVar('_Aside')

_WINDOWS = (GlobalWindow(),)
_END = _WINDOWS[0].max_timestamp()


class OversizedBundleError(RuntimeError):
    """A bundle would put out more than it may."""


class BundleOutput:
    """The bytes of one bundle after another.

    Args:
        namespace: of the metric.
        most: the bytes that a bundle may put out.
    """

    def __init__(self, namespace: str, most: int = MOST_BUNDLE_BYTES):
        self._most = most
        self._bytes = Metrics.distribution(namespace, BUNDLE_BYTES)
        self._sent = 0

    def begin(self) -> None:
        self._sent = 0

    def fits(self, size: int, share: float = 1) -> bool:
        """Returns whether so many bytes more stay within a share of the bound."""
        return self._sent + size <= share * self._most

    def add(self, size: int) -> None:
        """Counts what is about to be put out. Raises OversizedBundleError if it is too much."""
        self.refuse_excess(size)
        self._sent += size

    def refuse_excess(self, size: int) -> None:
        """Raises OversizedBundleError if so many bytes more would be too much."""
        if not self.fits(size):
            raise OversizedBundleError(
                f'a bundle would put out {self._sent + size} bytes, more than {self._most}'
            )

    def end(self) -> None:
        """Tells the bundle's bytes."""
        self._bytes.update(self._sent)


class PackedCoder(beam.coders.Coder):
    """For a type with `to_bytes` and `from_bytes`, which equal values give the same bytes."""

    def __init__(self, packed: type):
        self._packed = packed

    @classmethod
    def from_type_hint(cls, typehint: type, registry: beam.coders.typecoders.CoderRegistry):
        """Returns the coder of a type that is registered, as Beam asks for it."""
        return cls(typehint)

    def encode(self, value: Any) -> bytes:
        return value.to_bytes()

    def decode(self, encoded: bytes) -> Any:
        return self._packed.from_bytes(encoded)

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> type:
        return self._packed


def with_output_types(hint: object) -> beam.PTransform:
    """Returns a transform that declares the type of the elements and leaves them as they are.

    The type hints of a ParDo hold for all of its outputs; a main output that needs a coder of its
    own gets its type here.
    """
    return 'WithOutputTypes' >> beam.Map(_unchanged).with_output_types(hint)


def _unchanged(element: Any) -> Any:
    return element


@dataclass(eq=False)
class ThreadedMap(beam.PTransform):
    """`beam.Map`, with `workers` calls at once in a worker; results keep the order of the elements.

    Attributes:
        call: takes an element; one that spends its time without the interpreter's lock.
        workers: how many threads.
    """

    call: Callable[[Any], Any]
    workers: int = 1

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        return elements | 'Call' >> beam.ParDo(_ThreadedMapFn(self.call, self.workers))


class _ThreadedMapFn(beam.DoFn):
    def __init__(self, call: Callable[[Any], Any], workers: int):
        self._call, self._workers = call, workers

    def setup(self) -> None:
        self._calls: OrderedPool = OrderedPool(self._workers)

    def process(self, element: Any) -> Iterator:
        yield from self._calls.submit(self._call, element)

    def finish_bundle(self) -> Iterator:
        yield from map(in_global_window, self._calls.drain())

    def teardown(self) -> None:
        self._calls.close()


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

    def each(self, call: Callable[..., _Result], arguments: Iterable[tuple]) -> Iterator[_Result]:
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


def in_global_window(output):
    """Returns an output, tagged or not, as `finish_bundle` must give it in a batch job."""
    if isinstance(output, TaggedOutput):
        return TaggedOutput(output.tag, in_global_window(output.value))
    return WindowedValue(output, _END, _WINDOWS)


def _run(unclaimed: list[tuple[concurrent.futures.Future, Callable, tuple]]) -> None:
    try:
        ended, call, arguments = unclaimed.pop()
    except IndexError:
        return
    try:
        ended.set_result(call(*arguments))
    except BaseException as error:  # whatever it is, it is raised where the result is taken
        ended.set_exception(error)
