"""Run items to sorted runs: blocks encoded by threads in input order, parts written at the same time.

While one part is sorted and written by one of the threads, the next is filled by the others, and
the blocks of the next run item follow at once; so no thread waits for the end of anything. At the end
the last part is split, and each thread sorts and writes a share. Where a signal ends the process, what
is in memory becomes a part that is smaller than others.
"""

import collections
import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.engines.pool import Call, OrderedPool
from pipelines.engines.progress import advance
from pipelines.files import filesystem
from pipelines.shuffle.plan import RunItem, ShufflePlan, run_name
from pipelines.transforms.encode_blocks import LoadedBlockEncoder
from pipelines.transforms.read import READING, read_items
from pipelines.transforms.stats import RejectionBudget
from tokcore.corpus.block_batches import BATCH_BYTES, Batch, BlockBatches
from tokcore.errors import FullDiskError
from tokcore.process_end import (
    allow_end,
    delay_end,
    hold_if_interrupted,
    is_interrupted,
    keep_text,
)
from tokcore.records.examples import EncodedBlock
from tokcore.records.sorted_runs import (
    RunBuffer,
    RunHead,
    RunStats,
    read_run_stats,
    write_run,
)


@dataclass(frozen=True)
class WrittenPart:
    """A whole run file: its name in the plan's folder, its size and what was read for it."""

    split: int
    run: int
    part: int
    name: str
    size: int
    stats: RunStats

    @property
    def text_bytes(self) -> int:
        """The bytes of text that were read for it."""
        return sum(checksum.length for checksum in self.stats.checksums)


@contextlib.contextmanager
def full_disk_as_error(plan: ShufflePlan) -> Iterator[None]:
    """Turns the error of a full disk into a sentence that says how much is needed.

    Raises:
        FullDiskError: there was no room.
    """
    try:
        yield
    except FullDiskError as error:
        raise FullDiskError(
            f'no room for the shuffle and its result ({str(error).partition(";")[0]}); about '
            f'{-(-plan.needed_bytes >> 20)} MiB are needed in {plan.folder} and the output together, '
            'so make room and run again: what is finished is kept'
        ) from error


@dataclass
class _OpenRun:
    """A run in the making."""

    item: RunItem
    part: int
    first: int  # block of this part
    buffer: RunBuffer | None = None


@dataclass
class _EncodedStep:
    """The rows of a batch of blocks in the order of input, or with None the end of a run item."""

    making: _OpenRun
    encoded: EncodedBlock | None
    blocks: int = 0


def _rest(batches: BlockBatches) -> Iterator[Batch]:
    yield from batches.rest()


class RunWriter:
    """Makes sorted runs of run items, one after another; parts come out when they are whole."""

    def __init__(
        self,
        plan: ShufflePlan,
        encoder: LoadedBlockEncoder,
        workers: int,
        budget: RejectionBudget | None = None,
    ):
        self._plan = plan
        self._budget = budget
        self._encoder = encoder
        self._calls: OrderedPool[_EncodedStep] = OrderedPool(workers)
        self._workers, self._is_ending = workers, False
        self._most_buffers = min(2, workers)
        self._buffers: list[RunBuffer] = []
        self._writing: collections.deque[tuple[Call[WrittenPart], RunBuffer]] = collections.deque()

    def take(self, item: RunItem) -> Iterator[WrittenPart]:
        """Takes a run item, and yields parts of it and of earlier ones, finished ones at once."""
        done, is_whole = self._finished_parts(item)
        if self._budget is not None:
            for part in done:
                self._budget.spend(part.stats)
        keep_text(sum(part.text_bytes for part in done))
        yield from done
        if is_whole:
            advance(READING, sum(work_item.stored_bytes for work_item in item.items))
            return
        blocks = read_items(item.items, self._plan.block_bytes, self._plan.max_line_bytes)
        # The blocks of which the finished parts were made are only read.
        skipped = done[-1].stats.blocks if done else 0
        collections.deque(itertools.islice(blocks, skipped), maxlen=0)
        making = _OpenRun(item, len(done), skipped)
        delay_end(self)
        # Parts end where batches do, so that the rest of a run has the same batches in a rerun.
        batches = BlockBatches(self._encoder.splits, min(BATCH_BYTES, self._plan.block_bytes))
        complete = (batch for block in blocks for batch in batches.add(block))
        for batch in itertools.chain(complete, _rest(batches)):
            if is_interrupted():
                self._write_all(making)
            yield from self._collect(self._calls.submit(self._encode, making, batch))
        yield from self._collect(self._calls.submit(_EncodedStep, making, None))

    def finish(self) -> Iterator[WrittenPart]:
        """Yields all parts that are still in the making, and lets the memory go."""
        self._is_ending = True
        yield from self._collect(self._calls.drain())
        while self._writing:
            yield self._written()
        self._buffers, self._is_ending = [], False
        allow_end(self)
        hold_if_interrupted()

    def close(self) -> None:
        allow_end(self)
        self._calls.close()

    def _write_all(self, making: _OpenRun) -> None:
        """Writes what is in memory, and then ends as `hold_if_interrupted` does."""
        try:
            collections.deque(self._collect(self._calls.drain()), maxlen=0)
            if making.buffer is not None:
                collections.deque(self._close_part(making, last=False), maxlen=0)
            while self._writing:
                self._written()
        finally:
            allow_end(self)
        hold_if_interrupted()

    def _encode(self, making: _OpenRun, batch: Batch) -> _EncodedStep:
        return _EncodedStep(making, self._encoder.encode(*batch), len(batch))

    def _collect(self, steps: Iterator[_EncodedStep]) -> Iterator[WrittenPart]:
        for step in steps:
            making, encoded = step.making, step.encoded
            if making.buffer is None:
                making.buffer = self._free_buffer()
            if encoded is None:
                yield from self._close_part(making, last=True)
                continue
            if self._budget is not None:
                # Not a part at a time: a part of nothing but lines left out would never be full.
                self._budget.spend(encoded.stats)
            if not making.buffer.fits(encoded):
                yield from self._close_part(making, last=False)
                making.buffer = self._free_buffer()
            making.buffer.add(encoded, step.blocks)

    def _free_buffer(self) -> RunBuffer:
        return self._buffers.pop() if self._buffers else RunBuffer(self._plan.run_bytes)

    def _close_part(self, making: _OpenRun, last: bool) -> Iterator[WrittenPart]:
        buffer = making.buffer
        assert buffer is not None  # `_collect` gives each part one
        shares = buffer.split(self._workers) if last and self._is_ending else [buffer]
        making.buffer = None
        for share in shares:
            head = self._head(making.item, making.part, last and share is shares[-1])
            blocks = making.first + share.blocks
            writing = self._calls.submit_detached(
                self._write, head, making.item.split, share, making.first, blocks
            )
            self._writing.append((writing, share))
            making.part += 1
            making.first = blocks
        while len(self._writing) >= self._most_buffers:
            yield self._written()

    def _written(self) -> WrittenPart:
        writing, buffer = self._writing.popleft()
        for younger, _ in self._writing:
            # While another thread is at it, the next part need not wait for that thread.
            if not writing.is_done:
                younger.run()
        part = writing.result()
        keep_text(part.text_bytes)
        if not self._is_ending:  # else it may be a share of a buffer
            buffer.clear()
            self._buffers.append(buffer)
        return part

    def _write(
        self, head: RunHead, split: int, buffer: RunBuffer, first: int, blocks: int
    ) -> WrittenPart:
        # A part may have been finished before an earlier one, by an attempt that ended then.
        there = self._existing_part(split, head)
        if there is not None:
            part, last = there
            if (part.stats.first, part.stats.blocks, last) == (first, blocks, head.last):
                return part
        stats = buffer.stats(self._plan.layout[split].split, first, blocks)
        name = run_name(head.run, head.part)
        with full_disk_as_error(self._plan), filesystem.create(self._plan.run_path(name)) as stream:
            size, stats = write_run(stream, head, buffer.sorted_rows(), stats, buffer.rejected)
        return WrittenPart(split, head.run, head.part, name, size, stats)

    def _head(self, item: RunItem, part: int, last: bool) -> RunHead:
        buckets = self._plan.layout[item.split].buckets
        return RunHead(self._plan.fingerprint, item.run, part, last, buckets)

    def _finished_parts(self, item: RunItem) -> tuple[list[WrittenPart], bool]:
        """The parts of a run that earlier attempts made whole, and whether these are all.

        Each begins where the one before ends: an attempt may have ended with a part in the middle of
        what an earlier attempt had in one, or before it had written an earlier part.
        """
        done: list[WrittenPart] = []
        blocks = 0
        while existing := self._existing_part(item.split, self._head(item, len(done), last=False)):
            part, last = existing
            if part.stats.first != blocks:
                break
            blocks = part.stats.blocks
            done.append(part)
            if last:
                return done, True
        return done, False

    def _existing_part(self, split: int, head: RunHead) -> tuple[WrittenPart, bool] | None:
        """A part under its final name and whether it is its run's last, if it is whole."""
        name = run_name(head.run, head.part)
        size = filesystem.stored_size(self._plan.run_path(name))
        if size is None:
            return None
        with filesystem.open_binary(self._plan.run_path(name)) as stream:
            parsed = read_run_stats(stream, size, head)
        if parsed is None:
            return None
        stats, last = parsed
        return WrittenPart(split, head.run, head.part, name, size, stats), last
