"""The transforms of the packed learner: suffixes are counted by prefix group, then selected.

A substring that starts at a cut is a prefix of the suffix that starts there, so tables of suffixes
hold the counts of all substrings in linear space. Workers merge their tables before they send them.
Each transform takes and gives a *signal*, a collection of one element: what follows begins when the
files are whole. So iterations can be chained in one pipeline, or run each as a job.
"""

import functools
import queue
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam
import numpy as np
from apache_beam.metrics import Metrics

from pipelines.artifacts.counts import TokenArrays, read_batches
from pipelines.engines.pool import (
    MOST_BUNDLE_BYTES,
    BundleOutput,
    OrderedPool,
    PackedCoder,
    ThreadedMap,
    in_global_window,
)
from pipelines.learning.rounds import GroupFiles, RoundFiles
from pipelines.transforms.stats import GatherToDriver, WriteStats
from tokcore.errors import InputError
from tokcore.subword.partitioned.segmenting import Segmenter, escaped_batches, pack_all_suffixes
from tokcore.subword.partitioned.suffix_tables import (
    PrefixPartitions,
    SuffixTable,
    SuffixTableMerger,
    merge_suffix_tables,
)
from tokcore.subword.partitioned.sweep import PartitionSelection, merge_selections, select_partition

HEAVY_NODES = 1 << 23
"""Of the trie that cuts, where it also knows the frequent suffixes: 128 to 256 MB in each process, and
as much again for weights. Beyond, suffixes are sent in full."""

SELECTION_METRICS = 'tokbeam.claims'

METRICS = 'tokbeam.learner'
SENT_TABLES = 'sent_tables'


@dataclass(frozen=True)
class SelectionPlan:
    """What deciding on groups needs to know in every iteration of a round."""

    round: RoundFiles
    groups: PrefixPartitions
    alphabet: str
    min_count: int
    workers: int = 1
    frequent_nodes: int = HEAVY_NODES


@dataclass(eq=False)
class SelectFromStored(beam.PTransform):
    """The first iteration, from stored tables: signal to signal.

    Writes the vocabulary, the tables without what is too light for this min-count, and one file of
    all of those, if they are few enough to cut by.

    Attributes:
        selecting: what is decided on.
        stored: where the groups' tables are, of this min-count or a lower one.
        numbers: the groups that have one.
    """

    selecting: SelectionPlan
    stored: GroupFiles
    numbers: Sequence[int]

    def expand(self, signal: beam.PCollection) -> beam.PCollection:
        select = functools.partial(_select_stored, self.selecting, self.stored)
        selected = (
            signal
            | 'Groups' >> beam.FlatMap(_each, self.numbers)
            | 'Share' >> beam.Reshuffle()
            | 'Claim' >> ThreadedMap(select, self.selecting.workers)  # _Selected
        )
        every = ((0, len(self.selecting.groups)),)
        finish = _FinishIteration(self.selecting, 1, 0, every)
        return (signal, selected) | 'Finish' >> finish


@dataclass(eq=False)
class CountSubstrings(beam.PTransform):
    """Cuts tokens and counts what starts at the cuts: paths of count files to (group, table).

    A group's table has every suffix, up to `longest` characters, that starts at a cut of some
    token, with its weight: the sum of the counts of those tokens.

    Attributes:
        round: files of the round; its vocabulary cuts. None for the first iteration, which cuts
            before every character.
        iteration: which vocabulary of the round counts, from 2 on.
        groups: the prefix groups, which are the keys.
        group_range: [first, last) of the groups to count.
        longest: the longest substring counted, in characters.
        workers: batches in flight in a worker.
        most_bundle_bytes: what a bundle may put out.
    """

    round: RoundFiles | None
    iteration: int
    groups: PrefixPartitions
    group_range: tuple[int, int]
    longest: int
    workers: int = 1
    most_bundle_bytes: int = MOST_BUNDLE_BYTES

    def __post_init__(self):
        first, last = self.group_range
        if not 0 <= first < last <= len(self.groups):
            raise ValueError(f'there are no groups {first} to {last} of {len(self.groups)}')

    def expand(self, paths: beam.PCollection) -> beam.PCollection:
        return (
            paths
            | 'Cut' >> beam.ParDo(_CutTokensFn(self)).with_output_types(tuple[int, SuffixTable])
            | 'Merge' >> beam.CombinePerKey(MergeSuffixTablesFn())  # (group, table)
        )


@dataclass(eq=False)
class CountAndSelect(beam.PTransform):
    """A later iteration, or one of its passes over ranges of groups: signal to signal.

    The last pass writes the vocabulary.

    Attributes:
        selecting: what is decided on.
        counting: how substrings are counted.
        paths: files of token counts.
        part: which of the passes it is.
        ranges: the groups of each pass, [first, last).
    """

    selecting: SelectionPlan
    counting: CountSubstrings
    paths: Sequence[str]
    part: int
    ranges: Sequence[tuple[int, int]]

    def expand(self, signal: beam.PCollection) -> beam.PCollection:
        select = functools.partial(_select_counted, self.selecting)
        selected = (
            signal
            | 'Paths' >> beam.FlatMap(_each, self.paths)
            | 'Share' >> beam.Reshuffle()
            | 'CountSubstrings' >> self.counting  # (group, table)
            | 'Claim' >> ThreadedMap(select, self.selecting.workers)  # _Selected
        )
        finish = _FinishIteration(self.selecting, self.counting.iteration, self.part, self.ranges)
        return (signal, selected) | 'Finish' >> finish


@dataclass(frozen=True)
class StoredGroup:
    """A group's table as it was stored."""

    group: int
    bytes: int


@dataclass(eq=False)
class StoreGroups(beam.PTransform):
    """Writes groups' tables, without what weighs less than `min_weight`, and a list of their sizes.

    Attributes:
        files: where the tables go.
        sizes_path: gets the list, of `StoredGroup`s, when all are written.
        groups: the prefix groups.
        min_weight: what a string must weigh to be stored; its weight stays in what begins it.
    """

    files: GroupFiles
    sizes_path: str
    groups: PrefixPartitions
    min_weight: int

    def expand(self, group_to_table: beam.PCollection) -> beam.PCollection:
        sizes = group_to_table | 'Write' >> beam.Map(_store, self)  # StoredGroup
        return sizes | 'List' >> WriteStats(self.sizes_path)


def _each(signal: object, elements: Sequence) -> Sequence:
    return elements


def _store(element: tuple[int, SuffixTable], storing: StoreGroups) -> StoredGroup:
    group, table = element
    least = storing.min_weight
    if least > 1:
        _, table = select_partition(table, *storing.groups.bounds(group), least, least)
    storing.files.write(group, table)
    return StoredGroup(group, table.nbytes)


@dataclass(frozen=True)
class _Selected:
    """What a group selects, packed, and what its table takes without what is too light."""

    group: int
    kept: bytes
    shared: tuple
    nbytes: int
    added: int


def _select_stored(plan: SelectionPlan, stored: GroupFiles, group: int) -> _Selected:
    """Selects from a group's table as it was stored, and stores what is not too light."""
    bounds = plan.groups.bounds(group)
    table = stored.read(group)
    selected, frequent = select_partition(table, *bounds, plan.min_count, plan.min_count)
    plan.round.groups.write(group, frequent)
    kept = selected.strings.to_bytes()
    return _Selected(group, kept, selected.shared, frequent.nbytes, frequent.added)


def _select_counted(plan: SelectionPlan, element: tuple[int, SuffixTable]) -> _Selected:
    group, table = element
    selected, _ = select_partition(table, *plan.groups.bounds(group), plan.min_count, 0)
    return _Selected(group, selected.strings.to_bytes(), selected.shared, 0, 0)


class _BoundFn(beam.DoFn):
    """Refuses what a bundle must not put out."""

    def __init__(self, min_count: int):
        self._min_count = min_count
        self._output = BundleOutput(SELECTION_METRICS)

    def start_bundle(self) -> None:
        self._output.begin()

    def process(self, element: _Selected) -> Iterator[_Selected]:
        size = len(element.kept)
        if not self._output.fits(size):
            # Passes over fewer groups would not help: one worker gathers what all of them keep.
            raise InputError(
                f'at min-count {self._min_count} a vocabulary would be larger than a worker may '
                'send; ask for fewer entries, or for a higher --min-count-range'
            )
        self._output.add(size)
        yield element

    def finish_bundle(self) -> None:
        self._output.end()


@dataclass(eq=False)
class _FinishIteration(beam.PTransform):
    """(signal, selected) to signal: gathers what the groups select, and at the end what all keep."""

    selecting: SelectionPlan
    iteration: int
    part: int
    ranges: Sequence[tuple[int, int]]

    def expand(self, inputs) -> beam.PCollection:
        signal, selected = inputs
        bounded = selected | 'Bound' >> beam.ParDo(_BoundFn(self.selecting.min_count))
        # The signal comes along: a pass whose groups are all empty ends all the same.
        begun = signal | 'Begun' >> beam.Map(_nothing)
        return (
            (begun, bounded)
            | beam.Flatten()
            | 'Gather' >> GatherToDriver()  # (0, [_Selected])
            | 'Decide' >> beam.ParDo(_FinishIterationFn(self))
        )


def _nothing(signal: object) -> None:
    return None


class _FinishIterationFn(beam.DoFn):
    def __init__(self, finishing: _FinishIteration):
        self._selecting, self._iteration = finishing.selecting, finishing.iteration
        self._part, self._ranges = finishing.part, tuple(finishing.ranges)

    def process(self, element: tuple[int, Iterable[_Selected | None]]) -> Iterator[int]:
        selecting, files = self._selecting, self._selecting.round
        gathered = (each for each in element[1] if each is not None)
        found = sorted(gathered, key=lambda each: each.group)
        kept = merge_suffix_tables(SuffixTable.from_bytes(each.kept) for each in found)
        shared = tuple(tuple(each) for selected in found for each in selected.shared)
        group_range = self._ranges[self._part]
        files.write_selection(self._iteration, group_range, PartitionSelection(kept, shared))
        if self._part + 1 < len(self._ranges):
            yield self._part
            return
        if self._iteration == 1:
            self._write_frequent(found)
        selected = (files.read_selection(self._iteration, each) for each in self._ranges)
        vocabulary = merge_selections(
            selected, selecting.groups.borders, selecting.alphabet, selecting.min_count
        )
        files.write_vocabulary(self._iteration, vocabulary)
        yield self._part

    def _write_frequent(self, found: Sequence[_Selected]) -> None:
        files = self._selecting.round
        sizes = {each.group: each.nbytes for each in found}
        tables = None
        if sum(each.added for each in found) <= self._selecting.frequent_nodes:
            tables = [
                files.groups.read(group) if group in sizes else SuffixTable.empty()
                for group in range(len(self._selecting.groups))
            ]
        files.write_heavy(tables)
        files.write_sizes(sizes)


beam.coders.registry.register_coder(SuffixTable, PackedCoder)


class _CutTokensFn(beam.DoFn):
    """Cuts batches in threads, and merges a bundle's tables before anything leaves the worker."""

    def __init__(self, counting: CountSubstrings):
        self._round, self._iteration = counting.round, counting.iteration
        self._groups, self._range = counting.groups, counting.group_range
        self._longest, self._workers = counting.longest, counting.workers
        self._most = counting.most_bundle_bytes
        self._output = BundleOutput(METRICS, counting.most_bundle_bytes)
        self._sent = Metrics.counter(METRICS, SENT_TABLES)

    def setup(self) -> None:
        self._calls: OrderedPool[list[tuple[int, SuffixTable]]] = OrderedPool(self._workers)

    def start_bundle(self) -> None:
        self._output.begin()
        self._mergers: dict[int, SuffixTableMerger] = {}
        self._merged_bytes = 0
        # One for each call in flight: threads must not add to the same numbers.
        self._weights: queue.SimpleQueue[np.ndarray] = queue.SimpleQueue()
        self._segmenter: Segmenter | None = None

    def process(self, element: str) -> None:
        if self._round is not None and self._segmenter is None:
            # Not before: the round's vocabulary is written while this worker may already stand by.
            self._segmenter = load_segmenter(self._round, self._iteration)
        if self._knows_heavy and self._range[0] > 0:
            return  # the first pass counts all groups
        for arrays in read_batches(element):
            for tables in self._calls.submit(self._cut, arrays):
                self._take(tables)

    def finish_bundle(self) -> Iterator:
        for tables in self._calls.drain():
            self._take(tables)
        if self._knows_heavy:
            tables = self._weighed()
        else:
            tables = ((group, merger.merged()) for group, merger in self._mergers.items())
        for group, table in tables:
            self._output.add(table.nbytes)
            self._sent.inc()
            yield in_global_window((group, table))
        self._output.end()
        self._mergers, self._segmenter = {}, None

    def teardown(self) -> None:
        self._calls.close()

    @property
    def _knows_heavy(self) -> bool:
        return self._segmenter is not None and self._segmenter.has_frequent

    def _cut(self, arrays: TokenArrays) -> list[tuple[int, SuffixTable]]:
        tables: list[tuple[int, SuffixTable]] = []
        batches = escaped_batches(*arrays, self._longest)
        if self._segmenter is None:
            for batch in batches:
                tables += pack_all_suffixes(batch, self._longest, self._groups, self._range)
        elif self._segmenter.has_frequent:
            try:
                weights = self._weights.get_nowait()
            except queue.Empty:
                weights = self._segmenter.empty_weights()
            for batch in batches:
                self._segmenter.weigh(batch, weights)
            self._weights.put(weights)
        else:
            for batch in batches:
                tables += self._segmenter.pack(batch, self._longest, self._groups, self._range)
        return tables

    def _take(self, tables: list[tuple[int, SuffixTable]]) -> None:
        for group, table in tables:
            merger = self._mergers.setdefault(group, SuffixTableMerger())
            self._merged_bytes -= merger.nbytes
            merger.add(table)
            self._merged_bytes += merger.nbytes
        if self._merged_bytes > 2 * self._most:
            merged = sum(each.merged().nbytes for each in self._mergers.values())
            self._output.refuse_excess(merged)

    def _weighed(self) -> Iterator[tuple[int, SuffixTable]]:
        total = self._segmenter.empty_weights()
        while not self._weights.empty():
            total += self._weights.get()
        yield from self._segmenter.tables(total)


# The latest is kept: all bundles of a stage cut by the same one.
@functools.lru_cache(maxsize=1)
def load_segmenter(round_files: RoundFiles, iteration: int) -> Segmenter:
    """Loads what cuts in an iteration, once for each process."""
    return Segmenter(
        round_files.read_vocabulary(iteration - 1),
        round_files.read_reserved(),
        round_files.read_heavy(),
    )


class MergeSuffixTablesFn(beam.CombineFn):
    """Adds up packed tables; what waits to be merged never outweighs what is merged."""

    def create_accumulator(self) -> SuffixTableMerger:
        return SuffixTableMerger()

    def add_input(
        self, mutable_accumulator: SuffixTableMerger, element: SuffixTable
    ) -> SuffixTableMerger:
        mutable_accumulator.add(element)
        return mutable_accumulator

    def merge_accumulators(self, accumulators: Iterable[SuffixTableMerger]) -> SuffixTableMerger:
        merger = SuffixTableMerger()
        for accumulator in accumulators:
            merger.add(accumulator.merged())
        return merger

    def extract_output(self, accumulator: SuffixTableMerger) -> SuffixTable:
        return accumulator.merged()

    def get_accumulator_coder(self) -> beam.coders.Coder:
        return PackedCoder(SuffixTableMerger)
