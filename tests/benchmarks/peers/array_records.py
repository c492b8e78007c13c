"""ArrayRecord, by its own data source and in grain; its records are bare int32s, which cost no parsing."""

import time
from collections.abc import Callable
from pathlib import Path

import grain
from array_record.python import array_record_module

from ..outcome import Outcome
from ..stages.reading import AT_ONCE, budget_facts, random_numbers, row_facts
from . import python_budget
from .python_budget import record_of, row_of

_OPTIONS = 'group_size:1,zstd:3,window_log:20'
"""A record is compressed by itself, as grain asks for."""


def budget(ready: Callable[[], None], *, folder: str, shared: str) -> Outcome:
    """An epoch of shuffled rows in batches."""
    source = grain.sources.ArrayRecordDataSource(_written(folder))
    rows = grain.MapDataset.source(source).shuffle(seed=1).map(row_of)
    # On one core threads that read ahead are in the way.
    reading = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    row_of(source[0])
    ready()
    started = time.perf_counter()
    facts = budget_facts(python_budget.batches(iter(rows.to_iter_dataset(reading))))
    return Outcome(time.perf_counter() - started, facts)


def one_by_one(ready: Callable[[], None], *, folder: str, shared: str) -> Outcome:
    """Random rows, each by itself."""
    source = grain.sources.ArrayRecordDataSource(_written(folder))
    numbers = random_numbers(len(source))
    row_of(source[0])
    ready()
    started = time.perf_counter()
    facts = row_facts(row_of(source[number]) for number in numbers.tolist())
    return Outcome(time.perf_counter() - started, facts)


def many_at_once(ready: Callable[[], None], *, folder: str, shared: str) -> Outcome:
    """Random rows, many in one call."""
    source = grain.sources.ArrayRecordDataSource(_written(folder))
    numbers = random_numbers(len(source))
    row_of(source[0])
    ready()
    started = time.perf_counter()
    facts = row_facts(
        row_of(record)
        for first in range(0, len(numbers), AT_ONCE)
        for record in source.__getitems__(numbers[first : first + AT_ONCE].tolist())
    )
    return Outcome(time.perf_counter() - started, facts)


def _written(folder: str) -> str:
    path = Path(f'{folder}.array_record')
    if not path.exists():
        part = path.with_suffix('.part')
        writer = array_record_module.ArrayRecordWriter(str(part), _OPTIONS)
        for row in python_budget.rows_of(folder):
            writer.write(record_of(row))
        writer.close()
        part.rename(path)
    return str(path)
