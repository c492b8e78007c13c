"""What an encoding job takes of the memory: buffers and threads that fit, or a refusal."""

from dataclasses import dataclass

from pipelines.jobs.job import CorpusReading, Execution
from pipelines.transforms.read import MOST_AHEAD
from tokcore.encoding.encoder import DEFAULT_CACHE_BYTES
from tokcore.encoding.kernels import cache_memory
from tokcore.errors import InputError

_LEAST_RUN_BYTES = 4 << 20
"""Less memory than for this is refused: the merge of that many runs would do nothing but seek."""

_LARGEST_GROUP = 32 << 20
"""Buckets that are read together from each run. Twice as much takes twice the time to merge, because
from there on the allocator returns pages each time and gets them again."""

_BLOCK_FACTOR = 8
"""Memory of a thread for a block, as a multiple of its text: normalized text, ids, records, and what
the allocator keeps; measured."""

_LINE_FACTOR = 16
"""Memory of a thread for a line much longer than an item, at most, as a multiple of its text; measured
with 16 MiB. It is more only for characters that no vocabulary has, which are spelled in digits."""


@dataclass(frozen=True)
class ShuffleMemory:
    """Sizes that keep every process of a job below its share of the memory."""

    run_bytes: int  # of a part of a run, in memory
    group_bytes: int  # of the buckets merged at once
    workers: int  # threads in a process
    processes: int


def fit_memory(
    execution: Execution, longest_line: int, vocabularies: int, reads_ahead: bool = False
) -> ShuffleMemory:
    """Returns the largest buffers, and with them the most threads, that fit.

    Args:
        execution: the requested threads, the limit, and the sizes of buffers and work items.
        longest_line: the most bytes that a line can have; one line at a time has that many.
        vocabularies: how many; each thread caches tokens of each.
        reads_ahead: whether parts of compressed files may be read ahead.

    Raises:
        InputError: not even one thread with the least buffer fits.
    """
    runner, item_bytes = execution.engine.runner, execution.item_bytes
    share = runner.memory_share(execution.memory_bytes)
    least = min(_LEAST_RUN_BYTES, execution.buffer_bytes // 2)
    # The memory of the longest line, beyond that of the block in its place.
    line = max(0, _LINE_FACTOR * longest_line - _BLOCK_FACTOR * item_bytes)
    needed = 0
    for workers in range(execution.engine.workers, 0, -1):
        # A block for each thread, one that is being read and one that waits.
        threads = workers * vocabularies * cache_memory(DEFAULT_CACHE_BYTES)
        blocks = (workers + 2) * item_bytes * _BLOCK_FACTOR // 2
        if reads_ahead and workers > 1:
            blocks += (workers + 1) * MOST_AHEAD * item_bytes
        needed = threads + blocks + line + 2 * least
        if share is None or needed <= share:
            buffers = execution.buffer_bytes
            if share is not None:
                buffers = min(buffers, share - threads - blocks - line)
            # Each thread, and the reader, holds a group as it was read and as it is written.
            group = min(_LARGEST_GROUP, max(1, buffers // (2 * (workers + 1))))
            return ShuffleMemory(max(1, buffers // 2), group, workers, runner.processes)
    assert share is not None
    raise InputError(
        f'encoding takes at least {_mib(needed)} MiB of memory beside the program, and '
        f'{_mib(share)} are left of --memory or free; give more'
        + (', or a smaller --max-line-size' if line > blocks else '')
    )


def refuse_too_little_memory(
    reading: CorpusReading, execution: Execution, vocabularies: int
) -> None:
    """Refuses a shuffle through files whose least buffers do not fit, before anything is read for it.

    Raises:
        InputError: they would not fit.
    """
    if execution.through_files:
        fit_memory(execution, reading.longest_line, vocabularies, reading.corpus.may_have_parts)


def _mib(size: int) -> int:
    return -(-size >> 20)
