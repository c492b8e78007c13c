"""MosaicML's streaming over its own shards (MDS); not in the extra `bench`, since it brings PyTorch."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from streaming import MDSWriter, StreamingDataset

from ..outcome import Outcome
from ..stages.reading import budget_facts
from . import python_budget


def budget(ready: Callable[[], None], *, folder: str, shared: str) -> Outcome:
    """An epoch of shuffled rows in batches."""
    rows = StreamingDataset(
        local=_written(folder), shuffle=True, shuffle_seed=1, batch_size=1, num_canonical_nodes=1
    )
    rows[0]
    ready()
    started = time.perf_counter()
    facts = budget_facts(python_budget.batches(iter(rows)))
    return Outcome(time.perf_counter() - started, facts)


def _written(folder: str) -> str:
    path = Path(f'{folder}.mds')
    if not path.exists():
        part = path.with_suffix('.part')
        shutil.rmtree(part, ignore_errors=True)  # of a benchmark that was killed
        columns = dict.fromkeys(('inputs', 'targets'), 'ndarray:int32')
        with MDSWriter(out=str(part), columns=columns) as writer:
            for row in python_budget.rows_of(folder):
                writer.write({name: np.asarray(ids) for name, ids in row.items()})
        part.rename(path)
    return str(path)
