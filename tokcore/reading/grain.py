"""Batches as a `grain.IterDataset`, which grain maps, mixes, prefetches and saves in checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grain

from tokcore.reading.batch_iterator import BatchIterator
from tokcore.reading.batch_options import BatchOptions
from tokcore.reading.batching import Batch


class GrainBatches(grain.IterDataset):
    """The batches of a split; each iterator over it begins at the first one."""

    def __init__(
        self,
        batches: Callable[[BatchOptions], BatchIterator],
        from_state: Callable[[dict[str, Any]], BatchIterator],
        options: BatchOptions,
    ):
        """Use `Dataset.grain`."""
        super().__init__()
        self._batches, self._from_state, self._options = batches, from_state, options
        batches(options)  # raises what it would raise in a worker

    def __iter__(self) -> GrainIterator:
        return GrainIterator(self._batches(self._options), self._from_state)

    def set_slice(self, sl: slice, sequential_slice: bool = False) -> None:
        """Limits it to the rows of one worker; grain calls this on the copy in each worker process.

        Args:
            sl: from the worker's number on, in steps of the number of workers.
            sequential_slice: is not used: a worker's rows are contiguous in an epoch's order.
        """
        self._options = self._options.for_worker(sl.start, sl.step)

    def __str__(self) -> str:
        return f'GrainBatches({self._options.non_defaults()})'


class GrainIterator(grain.DatasetIterator):
    """Iterates over the batches, dictionaries of int32 arrays; its state is a value of JSON."""

    def __init__(
        self,
        iterator: BatchIterator,
        from_state: Callable[[dict[str, Any]], BatchIterator],
    ):
        """Use `iter` of a `GrainBatches`."""
        super().__init__()
        self._iterator, self._from_state = iterator, from_state

    def __next__(self) -> Batch:
        return next(self._iterator)

    def get_state(self) -> dict[str, Any]:
        """Returns where it is."""
        return self._iterator.state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes to where another iterator was; raises InputError if it is no state of this dataset."""
        self._iterator = self._from_state(state)
