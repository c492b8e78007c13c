"""Rows measured side by side, each on a core of its own.

Half of the table is Tensor2Tensor at work on one core. A row that compares contenders on one core
has a neighbour, which its contenders, taking turns, have alike; all other rows have the machine to
themselves.
"""

import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from .comparing import RowResult, measure, prepare
from .contenders import Row
from .inputs import Materials


def measure_rows(
    rows: Sequence[Row], materials: Materials, runs: int, lanes: int
) -> Iterator[RowResult]:
    """Yields the rows' results as they come, those of one core first, up to `lanes` at a time."""
    narrow = [row for row in rows if lanes > 1 and _compares_on_one_core(row)]
    for row in narrow:
        prepare(row, materials)  # what is made beside a run slows it down
    free: queue.SimpleQueue[int] = queue.SimpleQueue()
    for lane in range(lanes):
        free.put(lane)

    def measured(row: Row) -> RowResult:
        lane = free.get()
        try:
            return measure(row, materials, runs, lane)
        finally:
            free.put(lane)

    with ThreadPoolExecutor(lanes) as pool:
        calls = [pool.submit(measured, row) for row in narrow]
        try:
            for call in as_completed(calls):
                yield call.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    for row in rows:
        if row not in narrow:
            yield measure(row, materials, runs)


def _compares_on_one_core(row: Row) -> bool:
    return bool(row.peers) and all(each.cores == 1 for each in (row.ours, *row.peers))
