"""litdata over its own chunks; not in the extra `bench`, since it brings PyTorch."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from litdata import StreamingDataset
from litdata.streaming.writer import BinaryWriter

from ..outcome import Outcome
from ..stages.reading import budget_facts
from . import python_budget


def budget(ready: Callable[[], None], *, folder: str, shared: str) -> Outcome:
    """An epoch of shuffled rows in batches."""
    rows = StreamingDataset(_written(folder), shuffle=True, seed=1)
    _row(rows[0])
    ready()
    started = time.perf_counter()
    facts = budget_facts(python_budget.batches(map(_row, rows)))
    return Outcome(time.perf_counter() - started, facts)


def _row(record: bytes) -> python_budget.Row:
    ids = np.frombuffer(record, np.int32)
    return {'inputs': ids[1 : 1 + ids[0]], 'targets': ids[1 + ids[0] :]}


def _written(folder: str) -> str:
    path = Path(f'{folder}.litdata')
    if not path.exists():
        part = path.with_suffix('.part')
        shutil.rmtree(part, ignore_errors=True)  # of a benchmark that was killed
        part.mkdir()
        writer = BinaryWriter(str(part), chunk_bytes='64MB')
        for number, row in enumerate(python_budget.rows_of(folder)):
            head = np.array([len(row['inputs'])], np.int32)
            writer[number] = np.concatenate([head, row['inputs'], row['targets']]).tobytes()
        writer.done()
        writer.merge()
        part.rename(path)
    return str(path)
