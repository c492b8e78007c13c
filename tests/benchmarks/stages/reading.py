"""Batches of what was written, and a dataset opened."""

import time
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from ..outcome import Outcome

BATCH_SIZE = 64
LONGEST = 100


def batches(ready: Callable[[], None], *, folder: str, shared: str) -> Outcome:
    """Batches by NMT's rule as NumPy arrays."""
    from tokcore import open_dataset

    dataset = open_dataset(folder)
    next(dataset.batches('train', **_asked()))
    ready()
    started = time.perf_counter()
    iterator = dataset.batches('train', **_asked())
    facts = tally(iterator)
    seconds = time.perf_counter() - started
    return Outcome(seconds, {**facts, 'padding': round(iterator.padding_share, 4)})


def by_tensorflow(ready: Callable[[], None], *, folder: str, shared: str) -> Outcome:
    """The same as a `tf.data.Dataset`."""
    from tokcore import open_dataset

    made = open_dataset(folder).tensorflow('train', **_asked())
    next(made.as_numpy_iterator())
    ready()
    started = time.perf_counter()
    facts = tally(made.as_numpy_iterator())
    return Outcome(time.perf_counter() - started, facts)


def budget(ready: Callable[[], None], *, folder: str, shared: str) -> Outcome:
    """Batches by a budget of tokens."""
    from tokcore import open_dataset

    dataset = open_dataset(folder)
    next(dataset.batches('train', tokens_per_batch=4096, pad=0))
    ready()
    started = time.perf_counter()
    iterator = dataset.batches('train', tokens_per_batch=4096, pad=0)
    rows = sum(len(batch['targets']) for batch in iterator)
    seconds = time.perf_counter() - started
    return Outcome(seconds, {'rows': rows, 'padding': round(iterator.padding_share, 4)})


def tally(found: Iterable[Mapping[str, np.ndarray]]) -> dict[str, object]:
    """Returns what batches hold, whatever their order: rows, and a digest of their ids."""
    rows, sums = 0, np.zeros(3, np.int64)
    for batch in found:
        rows += len(batch['source'])
        sums += [
            int(batch['source_sequence_length'].sum()),
            int(batch['target_sequence_length'].sum()),
            int(batch['target_input'][:, :1].sum()),
        ]
    return {'rows': rows, 'digest': '-'.join(map(str, [rows, *sums.tolist()]))}


def _asked() -> dict[str, object]:
    return {
        'batch_size': BATCH_SIZE, 'source_max_length': LONGEST, 'target_max_length': LONGEST,
        'pad': 2,
    }  # fmt: skip


def opened(ready: Callable[[], None], *, folder: str) -> Outcome:
    """A dataset opened in a new process, imports and all."""
    ready()
    started = time.perf_counter()
    from tokcore import open_dataset

    dataset = open_dataset(folder)
    seconds = time.perf_counter() - started
    return Outcome(seconds, {'rows': dataset.splits['train'].examples})
