"""Batches and rows of a dataset, and the time to open one."""

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..outcome import Outcome, Ready, timed

if TYPE_CHECKING:
    from tokcore.reading.ordered_rows import SplitRows

BATCH_SIZE = 64
LONGEST = 100
TOKENS = 4096
WINDOW = 1 << 16
"""Rows that are shuffled together; the default of `Dataset.batches`."""

AT_ONCE = 1024
"""Rows that are asked for in one call."""

_RANDOM_ROWS = 100_000

_NMT_OPTIONS = {
    'batch_size': BATCH_SIZE, 'source_max_length': LONGEST, 'target_max_length': LONGEST, 'pad': 2,
}  # fmt: skip


def batches(ready: Ready, *, folder: str, shared: str) -> Outcome:
    """Batches by NMT's rule as NumPy arrays."""
    from tokcore import open_dataset

    dataset = open_dataset(folder)
    return _iterated(ready, lambda: dataset.batches('train', **_NMT_OPTIONS), tally)


def by_tensorflow(ready: Ready, *, folder: str, shared: str) -> Outcome:
    """The same as a `tf.data.Dataset`."""
    from tokcore import open_dataset

    batches = open_dataset(folder).tensorflow('train', **_NMT_OPTIONS)
    next(batches.as_numpy_iterator())
    facts, seconds = timed(ready, lambda: tally(batches.as_numpy_iterator()))
    return Outcome(seconds, facts)


def budget(ready: Ready, *, folder: str, shared: str) -> Outcome:
    """Batches by a budget of tokens."""
    from tokcore import open_dataset

    dataset = open_dataset(folder)
    options = {'tokens_per_batch': TOKENS, 'pad': 0, 'window': WINDOW}
    return _iterated(ready, lambda: dataset.batches('train', **options), budget_facts)


def _iterated(ready: Ready, batches: Callable[[], Any], facts_of: Callable[..., dict]) -> Outcome:
    next(batches())

    def iterate() -> dict:
        iterator = batches()
        facts = facts_of(iterator)
        return {**facts, 'padding': round(iterator.padding_share, 4)}

    facts, seconds = timed(ready, iterate)
    return Outcome(seconds, facts)


def one_by_one(ready: Ready, *, folder: str, shared: str) -> Outcome:
    """Random rows, each by itself."""
    rows = _indexed_rows(folder)
    numbers = random_numbers(len(rows))
    facts, seconds = timed(ready, lambda: row_facts(rows[each] for each in numbers.tolist()))
    return Outcome(seconds, facts)


def many_at_once(ready: Ready, *, folder: str, shared: str) -> Outcome:
    """Random rows, many in one call."""
    rows = _indexed_rows(folder)
    numbers = random_numbers(len(rows))
    facts, seconds = timed(
        ready,
        lambda: row_facts(
            row
            for first in range(0, len(numbers), AT_ONCE)
            for row in rows.rows(numbers[first : first + AT_ONCE])
        ),
    )
    return Outcome(seconds, facts)


def random_numbers(rows: int) -> np.ndarray:
    """Returns numbers of rows, some more than once, the same for all contenders."""
    return np.random.default_rng(1).integers(rows, size=_RANDOM_ROWS)


def row_facts(rows: Iterable[Mapping[str, np.ndarray]]) -> dict[str, object]:
    """Returns the number of rows, and a digest of the number of their ids."""
    count = inputs = targets = 0
    for row in rows:
        count += 1
        inputs += len(row['inputs'])
        targets += len(row['targets'])
    return {'rows': count, 'digest': f'{count}-{inputs}-{targets}'}


def budget_facts(found: Iterable[Mapping[str, np.ndarray]]) -> dict[str, object]:
    """Returns the number of rows, and a digest of batches and ids that ignores their order."""
    batches = rows = ids = 0
    for batch in found:
        batches += 1
        rows += len(batch['targets'])
        ids += int(batch['targets'].sum()) + int(batch['inputs'].sum())
    return {'rows': rows, 'digest': f'{batches}-{rows}-{ids}'}


def _indexed_rows(folder: str) -> 'SplitRows':
    """Returns the rows of a dataset, with its index written and kernels compiled."""
    from tokcore import open_dataset

    dataset = open_dataset(folder)
    if not Path(folder, 'index').exists():
        dataset.write_index()
    rows = dataset['train']
    rows[0]
    rows.rows([0, 1])
    return rows


def tally(found: Iterable[Mapping[str, np.ndarray]]) -> dict[str, object]:
    """Returns the number of rows, and a digest of their ids that ignores the order of batches."""
    rows, sums = 0, np.zeros(3, np.int64)
    for batch in found:
        rows += len(batch['source'])
        sums += [
            int(batch['source_sequence_length'].sum()),
            int(batch['target_sequence_length'].sum()),
            int(batch['target_input'][:, :1].sum()),
        ]
    return {'rows': rows, 'digest': '-'.join(map(str, [rows, *sums.tolist()]))}


def opened(ready: Ready, *, folder: str) -> Outcome:
    """Opens a dataset in a new process, with imports."""
    ready()
    started = time.perf_counter()
    from tokcore import open_dataset

    imported = time.perf_counter()
    dataset = open_dataset(folder)
    ended = time.perf_counter()
    facts = {'rows': dataset.splits['train'].examples, 'open_seconds': ended - imported}
    return Outcome(ended - started, facts)
