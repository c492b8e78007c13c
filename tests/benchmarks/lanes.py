"""Rows measured at the same time, each on its own core.

A row whose contenders all run on one core shares the machine with another such row; that slows all
of its contenders alike, because they take turns. All other rows have the machine to themselves.
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
    """Yields the rows' results as they finish: first those of one core, up to `lanes` at a time."""
    one_core = [row for row in rows if lanes > 1 and _runs_on_one_core(row)]
    for row in one_core:
        prepare(row, materials)  # in advance: making inputs would slow down the row next to it
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
        calls = [pool.submit(measured, row) for row in one_core]
        try:
            for call in as_completed(calls):
                yield call.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    for row in rows:
        if row not in one_core:
            yield measure(row, materials, runs)


def _runs_on_one_core(row: Row) -> bool:
    return bool(row.peers) and all(each.cores == 1 for each in (row.ours, *row.peers))
