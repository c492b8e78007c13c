"""A function of elements, called in some threads of a worker at once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from pipelines.engines.ordered_calls import OrderedPool, in_global_window


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
