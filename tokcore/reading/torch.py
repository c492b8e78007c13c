"""Batches as a `torch.utils.data.IterableDataset`, shared by the workers of a `DataLoader`.

An `IterableDataset` does not know which epoch it is: a `DataLoader` copies it into its workers and
calls `iter` there, into new ones in each epoch or, with `persistent_workers`, into the same again. So
the copies count the iterations in shared memory.
"""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import multiprocessing.context
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import numpy as np
import torch
import torch.distributed
import torch.utils.data

from tokcore.checked_json import Within, WrongValue, checked
from tokcore.errors import InputError
from tokcore.reading.batch_iterator import BatchIterator, IteratorState
from tokcore.reading.batch_options import OrderOptions
from tokcore.reading.batching import LABELS

_REMEMBERED = 64
"""Iterations whose seeds are remembered: more than there are loaders that start at the same time."""

_NO_SEED = -1
"""No seed of a loader, which PyTorch draws from 0 on."""

_PROCESSES = 1 + _REMEMBERED
"""Where the processes of workers are in the values that processes share."""


class TorchBatches(torch.utils.data.IterableDataset):
    """The batches of a split, as dictionaries of int32 tensors; `labels` for a model are int64.

    Each iteration over it, or over a `DataLoader` of it, continues with the next epochs. In a loader
    with workers, those of one iteration have the same seed from PyTorch; iterations that are given the
    same seed, as by `torch.manual_seed` before each, have the same order.
    """

    def __init__(
        self,
        batches: Callable[..., BatchIterator],
        options: OrderOptions,
    ):
        """Use `Dataset.torch`; `batches` takes options, a worker's number, and that of all workers."""
        super().__init__()
        self._batches, self._options = batches, options
        self._iterations = _SharedIterations()
        self._of_process: int | None = None  # the last iteration in this process, a worker's
        self._current: BatchIterator | None = None
        self._loaded: _State | None = None
        batches(options)  # raises what it would raise in a worker

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        options, number = self._options, self._next_number()
        state, self._loaded = self._loaded, None
        if state is not None and number >= state.iterations:
            state = None  # earlier workers, with copies of this object, have continued from it
        if (number == 0 or state is not None) and _worker()[0] == 0:
            self._warn_of_ranks()
        with _errors_of_workers():
            if state is None:
                first_epoch = options.first_epoch + number * (options.epochs or 1)
                options = dataclasses.replace(options, first_epoch=first_epoch)
                self._current = self._batches(options, *_worker())
            else:
                self._current = self._resumed(state)
        return self._tensors(self._current)

    def __getstate__(self) -> dict[str, Any]:
        self._warn_of_ranks()  # a worker that is spawned does not know of them
        return self.__dict__

    def __repr__(self) -> str:
        """Returns the arguments that are not the defaults."""
        return f'TorchBatches({self._options.non_defaults()})'

    def state_dict(self) -> dict[str, Any]:
        """Returns where the last iteration is, as a value of JSON.

        In a `DataLoader` without workers it is exact. With workers each has a state: let
        torchdata's `StatefulDataLoader` collect and return them. A plain `DataLoader` with workers can
        be resumed after whole epochs only.

        Raises:
            InputError: the workers of a plain `DataLoader` are within an epoch.
        """
        worker, workers = _worker()
        batches = self._current.state() if self._current else None
        is_worker = torch.utils.data.get_worker_info() is not None
        if not is_worker and self._iterations.has_workers:
            raise InputError(
                'workers of a DataLoader are within an epoch, and this process does not know how much of it '
                "was used; take the state after the epoch, use torchdata's StatefulDataLoader or "
                'num_workers=0, or save batches().state()'
            )
        if self._loaded and (is_worker or self._iterations.count < self._loaded.iterations):
            worker, workers, batches = (
                self._loaded.worker, self._loaded.workers, self._loaded.batches
            )  # fmt: skip
        return {
            'iterations': self._iterations.count,
            'batches': batches,
            'worker': worker,
            'workers': workers,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Lets the next iteration continue where another one was, with the batch after its last.

        A state of a process without workers goes on with any number of them, and of readers.

        Raises:
            InputError: it is not a state of this dataset, or of batches with other arguments; when
                iterating, a state of another worker.
        """
        try:
            checked_state = checked(state, _State, 'the state')
        except WrongValue as error:
            raise InputError(
                f'this is not a state of batches ({error}); give what state_dict() returned'
            ) from error
        self._current = self._loaded = None
        if checked_state.batches is not None:
            self._batches_at(checked_state)  # raises what it would raise in a worker
            self._loaded = checked_state
        # The iteration that continues has been counted.
        self._iterations.count = checked_state.iterations - (checked_state.batches is not None)

    def _resumed(self, state: _State) -> BatchIterator:
        worker, workers = _worker()
        if state.workers > 1 and (state.worker, state.workers) != (worker, workers):
            raise InputError(
                f'the state is of worker {state.worker} of {state.workers}, and this is worker '
                f'{worker} of {workers}; go on with as many workers'
            )
        return self._batches_at(state)

    def _batches_at(self, state: _State) -> BatchIterator:
        """Returns the iterator of a state, which may have begun at another epoch than this one."""
        arguments = IteratorState.read(state.batches).arguments
        options = {**self._options.non_defaults(), 'first_epoch': arguments.get('first_epoch', 0)}
        worker, workers = _worker()
        iterator = self._batches(type(self._options).of(options), worker, workers)
        iterator.resume(state.batches, is_same_worker=state.workers == workers)
        return iterator

    def _next_number(self) -> int:
        """Returns the number of the iteration that begins."""
        worker = torch.utils.data.get_worker_info()
        if worker is None:
            return self._iterations.begin()
        self._iterations.enter(worker.id)
        if self._of_process is None:
            self._of_process = self._iterations.begin(worker.seed - worker.id)
        else:  # a persistent worker, whose seed stays
            self._of_process = self._iterations.begin_after(self._of_process)
        return self._of_process

    def _warn_of_ranks(self) -> None:
        """Warns if each rank of a distributed training is going to have all batches."""
        distributed = torch.distributed
        if not (distributed.is_available() and distributed.is_initialized()):
            return
        ranks = distributed.get_world_size()
        if ranks > 1 and self._options.num_readers == 1:
            warnings.warn(
                f'each of the {ranks} ranks reads the same batches; give dataset.torch num_readers='
                'torch.distributed.get_world_size(), reader_index=torch.distributed.get_rank(), unless '
                'the trainer divides batches among ranks, as Accelerate does',
                stacklevel=3,
            )

    def _tensors(self, iterator: BatchIterator) -> Iterator[dict[str, torch.Tensor]]:
        with _errors_of_workers():
            for batch in iterator:
                if LABELS in batch:  # PyTorch's losses take no other integers
                    batch[LABELS] = batch[LABELS].astype(np.int64)
                yield {name: torch.from_numpy(array) for name, array in batch.items()}
        if self._current is iterator:
            self._current = None
            self._iterations.leave(_worker()[0])


class WorkerInputError(InputError):
    """An `InputError` of a worker. Its loader raises it again, with the worker's traceback as the message.

    The last line of that is the sentence, which is the message here, as without workers.
    """

    def __init__(self, message: str):
        last = message.splitlines()[-1]
        super().__init__(last.removeprefix(f'{__name__}.{type(self).__name__}: '))


@contextlib.contextmanager
def _errors_of_workers() -> Iterator[None]:
    """Lets the loader of this worker, if it is one, raise the sentence of an error alone."""
    try:
        yield
    except InputError as error:
        if torch.utils.data.get_worker_info() is None:
            raise
        raise WorkerInputError(str(error)) from error


@dataclasses.dataclass(frozen=True)
class _State:
    """What `TorchBatches.state_dict` returns: iterations begun, and the state of an unfinished one."""

    iterations: Annotated[int, Within(0, (1 << 63) - 1)]
    batches: dict[str, object] | None
    worker: Annotated[int, Within(0, (1 << 31) - 1)]
    workers: Annotated[int, Within(1, (1 << 31) - 1)]


def _worker() -> tuple[int, int]:
    """Returns this process's number among the workers of a loader, and their number."""
    worker = torch.utils.data.get_worker_info()
    return (worker.id, worker.num_workers) if worker else (0, 1)


class _SharedIterations:
    """Counts iterations that begin in any process; the workers of one have the same number.

    The values are the count, the seeds of the last iterations, and the processes that are within one.
    """

    def __init__(self, values: list[int] | None = None):
        values = (values or [0] + [_NO_SEED] * _REMEMBERED) + [0] * _REMEMBERED
        # Locks of this context go to processes however they are started.
        self._values = multiprocessing.get_context('spawn').Array('q', values)

    @property
    def count(self) -> int:
        """How many have begun."""
        return self._values[0]

    @count.setter
    def count(self, count: int) -> None:
        with self._values:
            self._values[:_PROCESSES] = [count] + [_NO_SEED] * _REMEMBERED

    def begin(self, seed: int = _NO_SEED) -> int:
        """Returns the number of the iteration of a loader's seed; without one, of a new iteration."""
        with self._values:
            count = self._values[0]
            for number in range(max(0, count - _REMEMBERED), count):
                if seed != _NO_SEED and self._values[1 + number % _REMEMBERED] == seed:
                    return number
            self._values[0] = count + 1
            self._values[1 + count % _REMEMBERED] = seed
            return count

    def begin_after(self, number: int) -> int:
        """Returns the number of the next iteration of workers that stay."""
        with self._values:
            self._values[0] = max(self._values[0], number + 2)
        return number + 1

    @property
    def has_workers(self) -> bool:
        """Whether workers of this process are within an iteration."""
        processes = {child.pid for child in multiprocessing.active_children()}
        return not processes.isdisjoint(self._values[_PROCESSES:])

    def enter(self, worker: int) -> None:
        """Notes that this process, a worker, is within an iteration."""
        self._values[_PROCESSES + worker % _REMEMBERED] = os.getpid()

    def leave(self, worker: int) -> None:
        """Notes that this process, if it is this worker, has given all batches of its iteration."""
        number = _PROCESSES + worker % _REMEMBERED
        with self._values:
            if self._values[number] == os.getpid():
                self._values[number] = 0

    def __getstate__(self) -> object:
        # Shared memory goes to a process that is being started, and to nothing else.
        if multiprocessing.context.get_spawning_popen() is None:
            return self._values[:_PROCESSES]
        return self._values

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, list):
            self.__init__(state)  # type: ignore[misc]
        else:
            self._values = state
