"""Batches as a `grain.IterDataset`, which grain maps, mixes, prefetches and saves in checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grain

from tokcore.reading.batch_iterator import BatchIterator
from tokcore.reading.batch_options import OrderOptions
from tokcore.reading.batching import Batch


class GrainBatches(grain.IterDataset):
    """The batches of a split; each iterator over it begins at the first one."""

    def __init__(
        self,
        batches: Callable[..., BatchIterator],
        options: OrderOptions,
    ):
        """Use `Dataset.grain`; `batches` takes options, a worker's number, and that of all workers."""
        super().__init__()
        self._batches, self._options = batches, options
        self._worker, self._workers = 0, 1
        batches(options)  # raises what it would raise in a worker

    def __iter__(self) -> GrainIterator:
        return GrainIterator(lambda: self._batches(self._options, self._worker, self._workers))

    def set_slice(self, sl: slice, sequential_slice: bool = False) -> None:
        """Limits it to the batches of one worker; grain calls this on the copy in each process.

        Args:
            sl: from the worker's number on, in steps of the number of workers.
            sequential_slice: is not used: workers take turns, and grain takes turns among them.
        """
        self._worker, self._workers = sl.start, sl.step

    def __str__(self) -> str:
        return f'GrainBatches({self._options.non_defaults()})'

    __repr__ = __str__


class GrainIterator(grain.DatasetIterator):
    """Iterates over the batches, dictionaries of int32 arrays; its state is a value of JSON."""

    def __init__(self, batches: Callable[[], BatchIterator]):
        """Use `iter` of a `GrainBatches`; `batches` returns an iterator at the first batch."""
        super().__init__()
        self._batches, self._iterator = batches, batches()

    def __next__(self) -> Batch:
        return next(self._iterator)

    def get_state(self) -> dict[str, Any]:
        """Returns where it is."""
        return self._iterator.state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes to where another iterator was.

        Raises:
            InputError: it is not a state of this dataset, or of batches with other arguments.
        """
        iterator = self._batches()
        iterator.resume(state, is_same_worker=True)
        self._iterator = iterator
