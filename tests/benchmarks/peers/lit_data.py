"""litdata over its own chunks; not in the extra `bench`, since it brings PyTorch."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from litdata import StreamingDataset
from litdata.streaming.writer import BinaryWriter

from ..outcome import Outcome
from ..stages.reading import budget_facts
from . import python_budget
from .python_budget import record_of, row_of


def budget(ready: Callable[[], None], *, folder: str, shared: str) -> Outcome:
    """An epoch of shuffled rows in batches."""
    rows = StreamingDataset(_written(folder), shuffle=True, seed=1)
    row_of(rows[0])
    ready()
    started = time.perf_counter()
    facts = budget_facts(python_budget.batches(map(row_of, rows)))
    return Outcome(time.perf_counter() - started, facts)


def _written(folder: str) -> str:
    path = Path(f'{folder}.litdata')
    if not path.exists():
        part = path.with_suffix('.part')
        shutil.rmtree(part, ignore_errors=True)  # of a benchmark that was killed
        part.mkdir()
        writer = BinaryWriter(str(part), chunk_bytes='64MB')
        for number, row in enumerate(python_budget.rows_of(folder)):
            writer[number] = record_of(row)
        writer.done()
        writer.merge()
        part.rename(path)
    return str(path)
