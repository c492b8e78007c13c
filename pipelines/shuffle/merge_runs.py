"""The shuffle through files: an external merge sort with Beam as its scheduler.

Run items become sorted runs, and each shard is merged from its slice of all of them. Only names and
sizes cross Beam, so neither its memory nor that of an engine's shuffle sees a record. Several
threads write one shard in turns.
"""

import contextlib
import functools
import itertools
import json
import math
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import NamedTuple

import apache_beam as beam
import google_crc32c
import numpy as np

from pipelines.engines.pool import OrderedPool, in_global_window
from pipelines.engines.progress import advance, set_total, track_work
from pipelines.engines.work_reports import work_reports
from pipelines.files import filesystem
from pipelines.files.attempts import WorkFolder
from pipelines.jobs.job import EncodeOptions, Execution
from pipelines.jobs.reading import (
    ReadPlan,
    write_read_stats,
    write_rejected_stats,
    write_shard_stats,
)
from pipelines.shuffle.encoded_sample import DiskNeed
from pipelines.shuffle.plan import RunItem, ShufflePlan, begun_shuffle, fit_memory
from pipelines.shuffle.write_runs import RunWriter, WrittenPart, full_disk_as_error
from pipelines.transforms.encode_blocks import BlockEncoder, SplitShards
from pipelines.transforms.read import CreateReshuffled
from pipelines.transforms.stats import (
    REJECTED,
    STATS,
    GatherToDriver,
    RejectionBudget,
    SummedFile,
    WrittenFile,
    rejected_name,
)
from pipelines.transforms.write_shards import IndexFile
from tokcore.corpus.corpus import OpenBinary
from tokcore.corpus.stats import BlockStats
from tokcore.errors import InputError
from tokcore.kernels.sorting import SortedRows
from tokcore.process_end import expect_text, keep
from tokcore.reading.record_index import Addresses
from tokcore.records.manifest import shard_name
from tokcore.records.sorted_runs import (
    RejectedSection,
    RunFile,
    RunSlice,
    bucket_groups,
    damaged,
    merge_buckets,
    read_slices,
    record_pieces,
)

RUNS = 'runs'
SHARDS = 'shards'

MERGING = 'merging'
"""The work of which each group of buckets is a part, of its examples."""

_COPY_BYTES = 8 << 20

_LEAST_SHARE = 4 << 20
"""Buckets of a shard that threads share are read in groups of at least this size: less takes a thread
a few milliseconds, and each group is a read of every run."""


def encode_through_files(
    read_plan: ReadPlan,
    encoder: BlockEncoder,
    need: DiskNeed,
    layout: Sequence[SplitShards],
    options: EncodeOptions,
    execution: Execution,
    path: str,
    output: str,
) -> None:
    """Encodes what is read into shards in a folder, and writes their stats.

    Args:
        read_plan: what is read, as work items.
        encoder: of its blocks.
        need: what the job takes on disk.
        layout: for each split its shards and buckets.
        options: the dataset's name, and whether its shards have indexes.
        execution: how that is run.
        path: an attempt's folder, for shards and stats.
        output: the folder that the shards are for at last.

    Raises:
        InputError: a line that cannot be used, or too little memory or room on the disk.
    """
    corpus = read_plan.reading.corpus
    vocabularies = len({feature.vocabulary for feature in encoder.features})
    if execution.engine.runner.in_process:
        expect_text(sum(map(corpus.text_bytes, corpus.split_names)))
    else:
        keep('the runs that are finished')
    longest_line = read_plan.reading.longest_line
    memory = fit_memory(execution, longest_line, vocabularies, corpus.may_have_parts)
    work = WorkFolder(execution.work, output).path
    with begun_shuffle(read_plan, encoder, layout, memory, need, work, output) as (plan, items):

        def build(pipeline: beam.Pipeline) -> None:
            written = pipeline | 'WriteRuns' >> WriteRuns(
                plan, items, encoder, memory.workers, read_plan.budget
            )
            merged = written[RUNS] | 'MergeRuns' >> MergeRuns(
                plan, options.name, path, memory.group_bytes, memory.workers
            )
            write_read_stats(written[STATS], path)
            write_rejected_stats(merged[REJECTED], path)
            write_shard_stats(merged[SHARDS], path)

        with track_work('write shards', MERGING, None, 'examples'):
            execution.engine.run(build, path)


@dataclass(eq=False)
class WriteRuns(beam.PTransform):
    """Encodes run items and writes them as sorted runs; gives `runs`, a `WrittenPart` each.

    `stats` has the rows that `CountTokens` gives.

    Attributes:
        plan: what the runs' bytes depend on.
        items: the run items.
        encoder: of blocks.
        workers: blocks in flight in a worker.
        budget: what may be left out, if not any number of rows.
    """

    plan: ShufflePlan
    items: Sequence[RunItem]
    encoder: BlockEncoder
    workers: int = 1
    budget: RejectionBudget | None = None

    def expand(self, root: beam.pvalue.PBegin):
        written = (
            root
            | CreateReshuffled(self.items)  # RunItem
            | 'Write' >> beam.ParDo(_WriteRunsFn(self)).with_outputs(STATS, main=RUNS)
        )
        return {RUNS: written[RUNS], STATS: written[STATS]}


class _WriteRunsFn(beam.DoFn):
    def __init__(self, transform: WriteRuns):
        self._plan, self._encoder = transform.plan, transform.encoder
        self._workers, self._budget = transform.workers, transform.budget
        self._reports = work_reports()

    def setup(self) -> None:
        self._reports.begin()
        loaded = self._encoder.load()
        self._writer = RunWriter(self._plan, loaded, self._workers, self._budget)

    def process(self, element: RunItem) -> Iterator:
        for part in self._writer.take(element):
            yield from self._outputs(part)

    def finish_bundle(self) -> Iterator:
        for part in self._writer.finish():
            for output in self._outputs(part):
                yield in_global_window(output)

    def teardown(self) -> None:
        self._writer.close()

    def _outputs(self, part: WrittenPart) -> Iterator:
        yield part
        stats = BlockStats(part.stats.tally, part.stats.checksums, ())
        yield beam.pvalue.TaggedOutput(STATS, stats)


@dataclass(eq=False)
class MergeRuns(beam.PTransform):
    """Merges runs to shards; takes what `WriteRuns` gives as `runs`.

    Gives as `WrittenFile`s the `shards` that have examples, perhaps with their indexes, and the
    `rejected` lines' files.

    Attributes:
        plan: that of the runs.
        name: of the dataset, in the files' names.
        folder: where the shards go.
        group_bytes: buckets read at once by each of the workers.
        workers: groups in flight in a worker.
    """

    plan: ShufflePlan
    name: str
    folder: str
    group_bytes: int
    workers: int = 1

    def expand(self, parts: beam.PCollection):
        listing = os.path.join(self.folder, 'runs')
        listed = (
            parts
            | 'Gather' >> GatherToDriver()  # (0, [WrittenPart])
            | 'List'
            >> beam.ParDo(_ListRunsFn(self.plan, listing)).with_outputs(REJECTED, main=SHARDS)
        )
        shards = (
            listed[SHARDS]
            | 'ShareOutShards' >> beam.Reshuffle()  # (split number, shard)
            | 'MergeShards' >> beam.ParDo(_MergeShardFn(self, listing))
        )
        rejected = (
            listed[REJECTED]
            | 'ShareOutRejected' >> beam.Reshuffle()  # (split number, reason)
            | 'JoinRejected' >> beam.Map(_join_rejected, self, listing)
        )
        return {SHARDS: shards, REJECTED: rejected}


class _ListedRun(NamedTuple):
    """What readers need to know of a run file."""

    split: int
    name: str
    size: int
    rejected: Sequence[RejectedSection]


class _ListRunsFn(beam.DoFn):
    """Lists all runs in one file, and names the shards and files that are to be made of them."""

    def __init__(self, plan: ShufflePlan, listing: str):
        self._plan = plan
        self._listing = listing
        self._reports = work_reports()

    def setup(self) -> None:
        self._reports.begin()

    def process(self, element: tuple[int, Iterable[WrittenPart]]) -> Iterator:
        parts = sorted(element[1], key=lambda part: (part.run, part.part))
        runs = [_ListedRun(part.split, part.name, part.size, part.stats.rejected) for part in parts]
        lines = ''.join(
            json.dumps([*run[:3], [*map(astuple, run.rejected)]]) + '\n' for run in runs
        )
        filesystem.write_bytes(self._listing, lines.encode())
        set_total(MERGING, sum(part.stats.tally.examples for part in parts))
        for number in sorted({run.split for run in runs}):
            for shard in range(self._plan.layout[number].shards):
                yield number, shard
        reasons = {(run.split, section.reason) for run in runs for section in run.rejected}
        for output in sorted(reasons):
            yield beam.pvalue.TaggedOutput(REJECTED, output)


@functools.lru_cache(maxsize=1)
def _read_listing(path: str) -> tuple[_ListedRun, ...]:
    # An attempt's path is its own and its listing written once.
    runs = []
    for line in filesystem.read_bytes(path).splitlines():
        split, name, size, rejected = json.loads(line)
        sections = [RejectedSection(*section) for section in rejected]
        runs.append(_ListedRun(split, name, size, sections))
    return tuple(runs)


class OrderedShardWriter:
    """A shard whose parts are made by several threads at once, and written one after another, and its index.

    The files appear when the last part is written; if a part fails, nothing is left. Parts must be begun in
    their order, or a thread would wait for ever.

    Args:
        folder: where the shard goes.
        name: of its file.
        parts: how many there are.
        gathers_first: whether a thread gathers a part's records before its turn to write. That is
            faster where threads wait for each other's turns; otherwise records are gathered, hashed
            and written piece by piece while they are in the processor's cache.
    """

    def __init__(
        self,
        folder: str,
        name: str,
        parts: int,
        gathers_first: bool = False,
    ):
        self._folder, self._name = folder, name
        self._gathers_first = gathers_first
        self._parts = parts
        self._turn, self._failed = 0, math.inf
        self._changed = threading.Condition()
        self._stack = contextlib.ExitStack()
        self._examples = 0

    @contextlib.contextmanager
    def part(self, place: int) -> Iterator[None]:
        """Around what makes and writes a part: if it fails, those that wait for it fail too."""
        try:
            yield
        except BaseException:
            with self._changed:
                self._failed = min(self._failed, place)
                self._changed.notify_all()
                self._drop_if_over()
            raise

    def write(self, place: int, merged: SortedRows) -> list[WrittenFile]:
        """Writes a part after those before it.

        Returns the shard and its index if that was its last, else nothing.

        Raises:
            FullDiskError: there is no room for it.
            InputError: it cannot be written otherwise.
            RuntimeError: a part before it failed.
        """
        pieces: Iterable[np.ndarray] = record_pieces(merged, 0, len(merged))
        if self._gathers_first:
            pieces = list(pieces)
        with self._changed:
            self._changed.wait_for(lambda: self._turn == place or self._failed < place)
            if self._failed < place:
                raise RuntimeError(f'part {self._failed} of {self._name} was not written')
        if place == 0:
            self._shard = self._stack.enter_context(SummedFile(self._folder, self._name))
            index = IndexFile(self._folder, self._name, merged.sizes.shape[1] - 1)
            self._index = self._stack.enter_context(index)
        for piece in pieces:
            self._shard.write(piece)
        self._examples += len(merged)
        self._index.add(Addresses(merged.lengths, merged.keys, merged.sizes))
        if place + 1 == self._parts:
            shard = self._shard.written(self._examples)
            files = [shard, self._index.end(shard)]
            self._stack.close()
            return files
        with self._changed:
            self._turn += 1
            self._changed.notify_all()
            self._drop_if_over()
        return []

    def _drop_if_over(self) -> None:
        """Deletes the half file if the part that is next has failed: on a full disk it takes room."""
        if self._turn == self._failed:
            with contextlib.suppress(_DroppedError, InputError), self._stack.pop_all():
                raise _DroppedError


class _MergeShardFn(beam.DoFn):
    """Merges as many shards at once as there are threads, so that each may write to its own."""

    def __init__(self, transform: MergeRuns, listing: str):
        self._transform, self._listing = transform, listing
        self._reports = work_reports()

    def setup(self) -> None:
        self._reports.begin()
        self._calls: OrderedPool = OrderedPool(self._transform.workers)

    def start_bundle(self) -> None:
        self._waiting: list[tuple[int, int]] = []

    def process(self, element: tuple[int, int]) -> Iterator[WrittenFile]:
        self._waiting.append(element)
        if len(self._waiting) == self._transform.workers:
            yield from self._merge_waiting()

    def finish_bundle(self) -> Iterator:
        for written in (*self._merge_waiting(), *itertools.chain(*self._calls.drain())):
            yield in_global_window(written)

    def teardown(self) -> None:
        self._calls.close()

    def _merge_waiting(self) -> Iterator[WrittenFile]:
        """Starts the groups of all waiting shards in turns; yields the files that are whole."""
        gathers_first = len(self._waiting) < self._transform.workers
        shards = [self._groups(*shard, gathers_first) for shard in self._waiting]
        self._waiting = []
        for calls in itertools.zip_longest(*shards):
            for arguments in filter(None, calls):
                for written in self._calls.submit(self._merge, *arguments):
                    yield from written

    def _groups(
        self, number: int, shard: int, gathers_first: bool
    ) -> list[tuple[OrderedShardWriter, int, list[RunSlice]]]:
        """Returns what `_merge` is to be called with for each group of a shard's buckets."""
        merging, plan = self._transform, self._transform.plan
        layout = plan.layout[number]
        first = shard * layout.buckets_per_shard
        end = first + layout.buckets_per_shard
        runs = [
            RunFile(plan.run_path(run.name), run.size)
            for run in _read_listing(self._listing)
            if run.split == number
        ]
        slices = read_slices(runs, plan.fingerprint, layout.buckets, first, end, _opener(runs))
        group_bytes = merging.group_bytes
        if gathers_first:  # several threads share it, and should end together
            share = sum(slice_.bytes for slice_ in slices) // (2 * merging.workers)
            group_bytes = min(group_bytes, max(_LEAST_SHARE, share))
        groups = bucket_groups(slices, first, end, group_bytes)
        name = shard_name(merging.name, layout.split, shard, layout.shards)
        out = OrderedShardWriter(merging.folder, name, len(groups), gathers_first)
        return [
            (out, place, [slice_.part(*group) for slice_ in slices])
            for place, group in enumerate(groups)
        ]

    def _merge(
        self, out: OrderedShardWriter, place: int, slices: Sequence[RunSlice]
    ) -> list[WrittenFile]:
        with out.part(place), full_disk_as_error(self._transform.plan):
            merged = merge_buckets(slices, _opener(slice_.run for slice_ in slices))
            written = out.write(place, merged)
        advance(MERGING, len(merged))
        return written


def _opener(runs: Iterable[RunFile]) -> OpenBinary:
    return filesystem.opener({run.path: run.size for run in runs})


def _join_rejected(element: tuple[int, str], merging: MergeRuns, listing: str) -> WrittenFile:
    """Joins the rejected lines of one split and reason, which the runs have in identity order."""
    number, reason = element
    name = rejected_name(merging.plan.layout[number].split, reason)
    size = crc32c = lines = 0
    with (
        full_disk_as_error(merging.plan),
        filesystem.create(os.path.join(merging.folder, name)) as file,
    ):
        for run in _read_listing(listing):
            for section in run.rejected:
                if (run.split, section.reason) != (number, reason):
                    continue
                for piece in _section_pieces(merging.plan.run_path(run.name), section):
                    file.write(piece)
                    crc32c = google_crc32c.extend(crc32c, piece)
                size += section.bytes
                lines += section.lines
    return WrittenFile(name, size, crc32c, lines)


def _section_pieces(path: str, section: RejectedSection) -> Iterator[bytes]:
    crc32c = 0
    with filesystem.open_binary(path) as stream:
        stream.seek(section.offset)
        left = section.bytes
        while left and (piece := stream.read(min(left, _COPY_BYTES))):
            crc32c = google_crc32c.extend(crc32c, piece)
            left -= len(piece)
            yield piece
    if left or crc32c != section.crc32c:
        raise damaged(path, 'its rejected lines')


class _DroppedError(Exception):
    """Ends the writing of a file that is not to be whole."""
