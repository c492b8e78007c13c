"""How encoded rows reach their shards, and how much memory that may take: no byte depends on it.

There are two forms of the shuffle: through files, sorted runs that are merged (`shuffle.run_merging`),
and through the runner's `GroupByKey` (`transforms.write_shards`).
"""

from dataclasses import dataclass

from apache_beam.options.pipeline_options import DirectOptions

from pipelines.engines.engine import Engine
from pipelines.engines.process_memory import available_bytes, resident_bytes
from pipelines.engines.processors import usable_cores
from tokcore.encoding.block_encoder import DEFAULT_CACHE_BYTES
from tokcore.errors import InputError

BUFFER_BYTES = 256 << 20
"""Two runs of half of it are in memory at once, one that is filled and one that is written. With
half there are twice as many range reads; twice as much sorts no faster."""

_LEAST_RUN_BYTES = 4 << 20
"""A memory that is too small for this is refused: more runs than that would be all seeking."""

_LARGEST_GROUP = 32 << 20
"""Buckets joined for one range read of each run. Twice as much takes twice the time to merge, since
from there on the allocator gives pages back each time and gets them anew."""

_BLOCK_FACTOR = 8
"""What a thread takes for a block, over its text: the cleaned text, ids, their growth, records;
measured, with what the allocator keeps."""

_LINE_FACTOR = 16
"""What a thread takes for a line that is much longer than an item, at most, over its text; measured
with 16 MiB. Only of characters that no vocabulary has seen, each spelled in digits, it is more."""

_PROCESS_BYTES = 320 << 20
"""A worker process before its first block: imports, kernels, a vocabulary."""

_STILL_TO_COME = 96 << 20
"""What this process grows by before its first block: kernels that are loaded, Beam's plan."""


@dataclass(frozen=True)
class ShuffleOptions:
    """What the command line says of the shuffle; `memory_bytes` None is what is free."""

    form: str = 'auto'
    buffer_bytes: int = BUFFER_BYTES
    memory_bytes: int | None = None

    def through_files(self, engine: Engine) -> bool:
        """Tells whether runs in files are to be used: by default locally and on Flink."""
        if self.form == 'auto':
            return engine.is_local or engine.flink_slots is not None
        return self.form == 'files'


@dataclass(frozen=True)
class ShuffleMemory:
    """Sizes that keep every process of a job below its share of the memory."""

    run_bytes: int  # of a part of a run, in memory
    group_bytes: int  # of the buckets merged at once
    workers: int  # threads in a process


def processes_of(engine: Engine) -> int:
    """Returns how many worker processes an engine runs at once, as far as its options tell."""
    if engine.flink_slots is not None:
        return engine.flink_slots
    asked = engine.options().view_as(DirectOptions).direct_num_workers
    return 1 if engine.in_process else (asked or usable_cores())


def fit_memory(
    options: ShuffleOptions, engine: Engine, item_bytes: int, vocabularies: int, longest_line: int
) -> ShuffleMemory:
    """Returns the largest buffers, and with them the most threads, that fit.

    Args:
        options: the buffer wanted and the limit.
        engine: gives the threads wanted and the number of processes.
        item_bytes: of a work item.
        vocabularies: how many there are; each thread remembers tokens of each.
        longest_line: the most bytes that a line can have; one at a time has so many.

    Raises:
        InputError: not even one thread with the least buffer fits.
    """
    share = _share(options, engine)
    least = min(_LEAST_RUN_BYTES, options.buffer_bytes // 2)
    # What the longest line takes beyond the block that it stands for.
    line = max(0, _LINE_FACTOR * longest_line - _BLOCK_FACTOR * item_bytes)
    needed = 0
    for workers in range(engine.workers, 0, -1):
        # A block of each thread, one that is read and one that waits.
        threads = workers * vocabularies * DEFAULT_CACHE_BYTES
        blocks = (workers + 2) * item_bytes * _BLOCK_FACTOR // 2
        needed = threads + blocks + line + 2 * least
        if share is None or needed <= share:
            free = options.buffer_bytes if share is None else share - threads - blocks - line
            buffers = min(options.buffer_bytes, free)
            # A group is held as it was read and as it is written, by each thread and once more.
            group = min(_LARGEST_GROUP, max(1, buffers // (2 * (workers + 1))))
            return ShuffleMemory(max(1, buffers // 2), group, workers)
    raise InputError(
        f'encoding takes at least {_mib(needed)} MiB of memory beside the program, and '
        f'{_mib(share)} are left of --memory or free; give more, or a smaller '
        + ('--max-line-size' if line > blocks else '--item-size')
    )


def _share(options: ShuffleOptions, engine: Engine) -> int | None:
    """What a process has for buffers, or None on a cluster whose memory nobody here knows."""
    processes = processes_of(engine)
    if options.memory_bytes is None:
        if not engine.is_local:
            return None
        free = available_bytes()
        return (free if engine.in_process else free - processes * _PROCESS_BYTES) // processes
    taken = resident_bytes()
    if engine.in_process:
        return max(0, options.memory_bytes - taken - _STILL_TO_COME)
    if engine.is_local:
        return max(0, options.memory_bytes - taken - processes * _PROCESS_BYTES) // processes
    return max(0, options.memory_bytes // processes - _PROCESS_BYTES)


def _mib(size: int) -> int:
    return -(-size >> 20)
