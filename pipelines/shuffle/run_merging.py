"""The shuffle through files: an external merge sort with Beam as its scheduler.

Run items become sorted runs, and each shard is merged from its slice of all of them. Only names and
sizes cross Beam, so neither its memory nor that of an engine's shuffle sees a record.
"""

import functools
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

import apache_beam as beam
import google_crc32c

from pipelines.engines.ordered_calls import OrderedPool, in_global_window
from pipelines.engines.progress import advance, expect
from pipelines.files import filesystem
from pipelines.shuffle.open_shard import OrderedShardWriter
from pipelines.shuffle.plan import RunItem, ShufflePlan
from pipelines.shuffle.run_writing import RunWriter, WrittenPart, full_disk_as_error
from pipelines.transforms.count_tokens import FACTS, REJECTED
from pipelines.transforms.encode_blocks import BlockEncoder
from pipelines.transforms.rejection_budget import RejectionBudget
from pipelines.transforms.share_out import ShareOut
from pipelines.transforms.write_rejected import rejected_name
from pipelines.transforms.write_report import GatherOnOne, WrittenFile
from pipelines.transforms.write_shards import shard_name
from tokcore.shuffle.run_file import RejectedSection
from tokcore.shuffle.run_index import RunFile, damaged
from tokcore.shuffle.run_merging import RunSlice, bucket_groups, merge_buckets, read_slices

RUNS = 'runs'
SHARDS = 'shards'

MERGING = 'merging'
"""The work of which each group of buckets is a part, of its examples."""

_COPY_BYTES = 8 << 20


@dataclass(eq=False)
class WriteRuns(beam.PTransform):
    """Encodes run items and writes them as sorted runs; gives `runs`, a `WrittenPart` each.

    `facts` has the rows that `CountTokens` gives.

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
        writing = beam.ParDo(_WriteRunsFn(self.plan, self.encoder, self.workers, self.budget))
        written = (
            root
            | ShareOut(self.items)  # RunItem
            | 'Write' >> writing.with_outputs(FACTS, main=RUNS)
        )
        return {RUNS: written[RUNS], FACTS: written[FACTS]}


class _WriteRunsFn(beam.DoFn):
    def __init__(
        self,
        plan: ShufflePlan,
        encoder: BlockEncoder,
        workers: int,
        budget: RejectionBudget | None,
    ):
        self._plan = plan
        self._budget = budget
        self._encoder = encoder
        self._workers = workers

    def setup(self) -> None:
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
        for each in (part.facts.tally, *part.facts.receipts):
            yield beam.pvalue.TaggedOutput(FACTS, each)


@dataclass(eq=False)
class MergeRuns(beam.PTransform):
    """Merges runs to shards; takes what `WriteRuns` gives as `runs`.

    Gives as `WrittenFile`s the `shards` that have examples, and the `rejected` lines' files.

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
        listing = filesystem.join(self.folder, 'runs')
        listed = (
            parts
            | 'Gather' >> GatherOnOne()  # (0, [WrittenPart])
            | 'List' >> beam.ParDo(_ListRunsFn(self.plan, listing)).with_outputs(
                REJECTED, main=SHARDS
            )
        )
        shards = (
            listed[SHARDS]
            | 'ShareOutShards' >> beam.Reshuffle()  # (split number, shard)
            | 'MergeShards' >> beam.ParDo(_MergeShardFn(self, listing))
        )
        rejected = (
            listed[REJECTED]
            | 'ShareOutRejected' >> beam.Reshuffle()  # (split number, reason)
            | 'JoinRejected' >> beam.ParDo(_JoinRejectedFn(self, listing))
        )
        return {SHARDS: shards, REJECTED: rejected}


@dataclass(frozen=True)
class _ListedRun:
    """What readers need to know of a run file."""

    split: int
    name: str
    size: int
    rejected: tuple[RejectedSection, ...]

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: bytes) -> '_ListedRun':
        fields = json.loads(line)
        sections = tuple(RejectedSection(**each) for each in fields['rejected'])
        return cls(**{**fields, 'rejected': sections})


class _ListRunsFn(beam.DoFn):
    """Lists all runs in one file, and names the shards and files that are to be made of them."""

    def __init__(self, plan: ShufflePlan, listing: str):
        self._plan = plan
        self._listing = listing

    def process(self, element: tuple[int, Iterable[WrittenPart]]) -> Iterator:
        parts = sorted(element[1], key=lambda part: (part.run, part.part))
        runs = [_ListedRun(each.split, each.name, each.size, each.facts.rejected) for each in parts]
        lines = ''.join(run.to_json() + '\n' for run in runs)
        filesystem.write_bytes(self._listing, lines.encode())
        expect(MERGING, sum(each.facts.tally.examples for each in parts))
        for number in sorted({run.split for run in runs}):
            for shard in range(self._plan.layout[number].shards):
                yield number, shard
        reasons = {(run.split, section.reason) for run in runs for section in run.rejected}
        for output in sorted(reasons):
            yield beam.pvalue.TaggedOutput(REJECTED, output)


@functools.lru_cache(maxsize=1)
def _read_listing(path: str) -> tuple[_ListedRun, ...]:
    # An attempt's path is its own and its listing written once.
    return tuple(map(_ListedRun.from_json, filesystem.read_bytes(path).splitlines()))


class _MergeShardFn(beam.DoFn):
    """Merges as many shards at once as there are threads, so that each may write to its own."""

    def __init__(self, transform: MergeRuns, listing: str):
        self._plan = transform.plan
        self._name = transform.name
        self._folder = transform.folder
        self._group_bytes = transform.group_bytes
        self._workers = transform.workers
        self._listing = listing

    def setup(self) -> None:
        self._calls: OrderedPool = OrderedPool(self._workers)

    def start_bundle(self) -> None:
        self._waiting: list[tuple[int, int]] = []

    def process(self, element: tuple[int, int]) -> Iterator[WrittenFile]:
        self._waiting.append(element)
        if len(self._waiting) == self._workers:
            yield from self._merge_waiting()

    def finish_bundle(self) -> Iterator:
        for written in (*self._merge_waiting(), *self._calls.drain()):
            if written is not None:
                yield in_global_window(written)

    def teardown(self) -> None:
        self._calls.close()

    def _merge_waiting(self) -> Iterator[WrittenFile]:
        """Starts the groups of all waiting shards in turns; yields the shards that are whole."""
        shards, self._waiting = [self._groups(*each) for each in self._waiting], []
        for calls in itertools.zip_longest(*shards):
            for arguments in filter(None, calls):
                for written in self._calls.submit(self._merge, *arguments):
                    if written is not None:
                        yield written

    def _groups(self, number: int, shard: int) -> list[tuple[OrderedShardWriter, int, list[RunSlice]]]:
        """Returns what `_merge` is to be called with for each group of a shard's buckets."""
        layout = self._plan.layout[number]
        first = shard * layout.buckets_per_shard
        end = first + layout.buckets_per_shard
        runs = [
            RunFile(self._plan.run_path(run.name), run.size)
            for run in _read_listing(self._listing)
            if run.split == number
        ]
        slices = read_slices(
            runs, self._plan.fingerprint, layout.buckets, first, end, filesystem.open_binary
        )
        groups = bucket_groups(slices, first, end, self._group_bytes)
        name = shard_name(self._name, layout.split, shard, layout.shards)
        out = OrderedShardWriter(self._folder, name, len(groups))
        return [
            (out, place, [each.part(*group) for each in slices])
            for place, group in enumerate(groups)
        ]

    def _merge(
        self, out: OrderedShardWriter, place: int, slices: Sequence[RunSlice]
    ) -> WrittenFile | None:
        with out.part(place), full_disk_as_error(self._plan):
            merged = merge_buckets(slices, filesystem.open_binary)
            written = out.write(place, merged)
        advance(MERGING, merged.rows)
        return written


class _JoinRejectedFn(beam.DoFn):
    """Joins the rejected lines of one split and reason, which the runs have in identity order."""

    def __init__(self, transform: MergeRuns, listing: str):
        self._plan = transform.plan
        self._folder = transform.folder
        self._listing = listing

    def process(self, element: tuple[int, str]) -> Iterator[WrittenFile]:
        number, reason = element
        name = rejected_name(self._plan.layout[number].split, reason)
        path = filesystem.join(self._folder, *name.split('/'))
        size = crc32c = lines = 0
        with full_disk_as_error(self._plan), filesystem.create(path) as file:
            for run in _read_listing(self._listing):
                for section in run.rejected:
                    if (run.split, section.reason) != (number, reason):
                        continue
                    for piece in self._pieces(run, section):
                        file.write(piece)
                        crc32c = google_crc32c.extend(crc32c, piece)
                    size += section.bytes
                    lines += section.lines
        yield WrittenFile(name, size, crc32c, lines)

    def _pieces(self, run: _ListedRun, section: RejectedSection) -> Iterator[bytes]:
        path = self._plan.run_path(run.name)
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
