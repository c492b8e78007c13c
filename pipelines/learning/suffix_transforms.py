"""The transforms of the packed learner: count suffixes by prefix group, then select strings.

A substring that starts at a segment is a prefix of the suffix that starts there, so tables of
suffixes have the counts of all substrings in linear space. Workers merge their tables before they
send them. Each iteration takes and returns a *signal*, a collection of one element that is there
when the files of the iteration are whole. So iterations can be chained in one pipeline.
"""

import functools
import itertools
import queue
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from pipelines.learning.rounds import (
    EmitElements,
    GatherResults,
    GroupFiles,
    RoundFiles,
    read_json,
    write_json,
)
from pipelines.transforms.stats import WriteStats
from tokcore.errors import InputError
from tokcore.subword.segmenting import (
    EscapedBatch,
    Segmenter,
    escaped_batches,
    pack_all_suffixes,
)
from tokcore.subword.suffix_tables import (
    PrefixPartitions,
    SuffixTable,
    SuffixTableMerger,
    merge_suffix_tables,
)
from tokcore.subword.sweep import PartitionSelection, merge_selections, select_partition

FREQUENT_NODES = 1 << 23
"""Most nodes of frequent suffixes in the trie that segments: 128 to 256 MB in each process, and as
much again for weights. If there are more, workers send suffixes in full."""

SELECTION_METRICS = 'tokbeam.selection'

METRICS = 'tokbeam.learner'
SENT_TABLES = 'sent_tables'


beam.coders.registry.register_coder(SuffixTable, PackedCoder)


@dataclass(eq=False)
class CountSubstrings(beam.PTransform):
    """Counts the substrings that start at segments: paths of count files to (group, suffix table).

    A group's table has every suffix, up to `longest` characters, that starts at a segment of some
    token, with its weight: the sum of the counts of those tokens.

    Attributes:
        rounds: the files of each round, with the vocabulary to segment by. There is none in the
            first iteration, in which every character is a segment. The keys of the nth round, from
            0, are n times the number of groups larger.
        iteration: the number of the iteration; from 2 on, the vocabulary is that of the one before.
        groups: the prefix groups, which are the keys.
        group_range: [first, last) of the groups to count.
        longest: of the substrings counted, in characters.
        workers: batches at a time in a worker.
        most_bundle_bytes: most bytes of the output of a bundle.
    """

    rounds: tuple[RoundFiles, ...]
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
            | 'Count' >> beam.ParDo(_CountFn(self)).with_output_types(tuple[int, SuffixTable])
            | 'MergeTables' >> beam.CombinePerKey(_MergeSuffixTablesFn())  # (group, table)
        )


class _CountFn(beam.DoFn):
    """Counts batches in threads, and merges the tables of a bundle before it sends them."""

    def __init__(self, options: CountSubstrings):
        self._options = options
        self._output = BundleOutput(METRICS, options.most_bundle_bytes)
        self._sent = Metrics.counter(METRICS, SENT_TABLES)

    def setup(self) -> None:
        self._calls: OrderedPool[list[tuple[int, SuffixTable]]] = OrderedPool(self._options.workers)

    def start_bundle(self) -> None:
        self._output.begin()
        self._mergers: dict[int, SuffixTableMerger] = {}
        self._merged_bytes = 0
        self._segmenters: list[_CountingSegmenter] | None = None

    def process(self, element: str) -> None:
        if self._segmenters is None:
            # Not in `setup`, which may come before the vocabulary is written.
            segmenters = load_segmenters(self._options.rounds, self._options.iteration)
            self._segmenters = [
                _CountingSegmenter(segmenter, number, self._options)
                for number, segmenter in enumerate(segmenters)
                # With frequent suffixes, all groups are counted in the first pass.
                if not (segmenter.has_frequent and self._options.group_range[0] > 0)
            ]
        if self._options.rounds and not self._segmenters:
            return
        for arrays in read_batches(element):
            for tables in self._calls.submit(self._count, arrays, self._segmenters):
                self._merge(tables)

    def finish_bundle(self) -> Iterator:
        for counted in self._calls.drain():
            self._merge(counted)
        merged = ((key, merger.merged()) for key, merger in self._mergers.items())
        weighed = (segmenter.weighed_tables() for segmenter in self._segmenters or ())
        for key, table in itertools.chain(merged, *weighed):
            self._output.add(table.nbytes)
            self._sent.inc()
            yield in_global_window((key, table))
        self._output.end()
        self._mergers, self._segmenters = {}, None

    def teardown(self) -> None:
        self._calls.close()

    def _count(
        self, arrays: TokenArrays, segmenters: 'Sequence[_CountingSegmenter]'
    ) -> list[tuple[int, SuffixTable]]:
        tables: list[tuple[int, SuffixTable]] = []
        options = self._options
        for batch in escaped_batches(*arrays, options.longest):
            if not options.rounds:
                tables += pack_all_suffixes(
                    batch, options.longest, options.groups, options.group_range
                )
            for segmenter in segmenters:
                tables += segmenter.count(batch)
        return tables

    def _merge(self, tables: list[tuple[int, SuffixTable]]) -> None:
        for key, table in tables:
            merger = self._mergers.setdefault(key, SuffixTableMerger())
            self._merged_bytes -= merger.nbytes
            merger.add(table)
            self._merged_bytes += merger.nbytes
        if self._merged_bytes > 2 * self._options.most_bundle_bytes:
            merged = sum(merger.merged().nbytes for merger in self._mergers.values())
            self._output.refuse_excess(merged)


class _CountingSegmenter:
    """Counts by the segmenter of one of the rounds; several threads may call it."""

    def __init__(self, segmenter: Segmenter, number: int, options: CountSubstrings):
        self._segmenter, self._options = segmenter, options
        self._first_key = number * len(options.groups)
        # One array for each call that is running, as threads must not add to the same numbers.
        self._weights: queue.SimpleQueue[np.ndarray] = queue.SimpleQueue()

    def count(self, batch: EscapedBatch) -> list[tuple[int, SuffixTable]]:
        """Returns (key, table); frequent suffixes are kept for the bundle's end."""
        segmenter, options = self._segmenter, self._options
        if not segmenter.has_frequent:
            tables = segmenter.pack(batch, options.longest, options.groups, options.group_range)
            return [(self._first_key + group, table) for group, table in tables]
        try:
            weights = self._weights.get_nowait()
        except queue.Empty:
            weights = segmenter.empty_weights()
        segmenter.weigh(batch, weights)
        self._weights.put(weights)
        return []

    def weighed_tables(self) -> Iterator[tuple[int, SuffixTable]]:
        """Yields (key, table) of the frequent suffixes."""
        if not self._segmenter.has_frequent:
            return
        total = self._segmenter.empty_weights()
        while not self._weights.empty():
            total += self._weights.get()
        for group, table in self._segmenter.tables(total):
            yield self._first_key + group, table


# All bundles of a stage use the same ones.
@functools.lru_cache(maxsize=1)
def load_segmenters(rounds: tuple[RoundFiles, ...], iteration: int) -> list[Segmenter]:
    """Returns the rounds' segmenters of an iteration, loaded once in each process."""
    return [
        Segmenter(
            files.read_vocabulary(iteration - 1),
            read_json(files.reserved_path),
            files.read_frequent(),
        )
        for files in rounds
    ]


class _MergeSuffixTablesFn(beam.CombineFn):
    """Adds up packed tables."""

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


@dataclass(eq=False)
class StoreGroups(beam.PTransform):
    """Writes groups' tables of frequent suffixes, and a list of their sizes.

    Attributes:
        files: the tables' files.
        sizes_path: the file of the list of (group, bytes of its table), written when all tables are.
        groups: the prefix groups.
        min_weight: the weight of a frequent suffix; others are cut to their frequent prefixes.
    """

    files: GroupFiles
    sizes_path: str
    groups: PrefixPartitions
    min_weight: int

    def expand(self, group_to_table: beam.PCollection) -> beam.PCollection:
        sizes = group_to_table | 'Write' >> beam.Map(_store, self)  # (group, bytes)
        return sizes | 'List' >> WriteStats(self.sizes_path)


def _store(element: tuple[int, SuffixTable], options: StoreGroups) -> tuple[int, int]:
    group, table = element
    min_weight = options.min_weight
    if min_weight > 1:
        bounds = options.groups.bounds(group)
        _, table = select_partition(table, *bounds, min_weight, min_weight)
    options.files.write(group, table)
    return group, table.nbytes


@dataclass(frozen=True)
class PlannedRound:
    """A round that is to be learned.

    Attributes:
        files: of the round.
        min_count: of the round.
        stored: the groups' tables that it begins from, of this min-count or a lower one.
        sizes: the bytes of these tables, by group; other groups have none.
    """

    files: RoundFiles
    min_count: int
    stored: GroupFiles
    sizes: Mapping[int, int]


@dataclass(frozen=True)
class SelectionPlan:
    """The inputs of selection that are the same in all iterations of rounds learned at once."""

    rounds: Sequence[PlannedRound]
    groups: PrefixPartitions
    alphabet: str
    workers: int = 1
    frequent_nodes: int = FREQUENT_NODES


@dataclass(eq=False)
class SelectFromStored(beam.PTransform):
    """The first iteration, from stored tables: signal to signal.

    Writes the vocabulary of each round, the tables of its frequent suffixes, and one file of all
    of them, if they are few enough to segment by.
    """

    plan: SelectionPlan

    def expand(self, signal: beam.PCollection) -> beam.PCollection:
        groups = [
            (number, group)
            for number, planned_round in enumerate(self.plan.rounds)
            for group in sorted(planned_round.sizes)
        ]
        selections = (
            signal
            | 'CreateGroups' >> EmitElements(groups)  # (number of the round, group)
            | 'Select'
            >> ThreadedMap(functools.partial(_select_stored, self.plan), self.plan.workers)
        )  # _GroupSelection
        all_groups = ((0, len(self.plan.groups)),)
        return (signal, selections) | 'Finish' >> _FinishIteration(self.plan, 1, 0, all_groups)


@dataclass(eq=False)
class CountAndSelect(beam.PTransform):
    """A later iteration, or one of its passes over ranges of groups: signal to signal.

    The last pass writes the vocabulary.

    Attributes:
        plan: of the rounds.
        count_substrings: the transform that counts.
        paths: files of token counts.
        part: the number of the pass.
        ranges: the groups of each pass, [first, last).
    """

    plan: SelectionPlan
    count_substrings: CountSubstrings
    paths: Sequence[str]
    part: int
    ranges: Sequence[tuple[int, int]]

    def expand(self, signal: beam.PCollection) -> beam.PCollection:
        select = functools.partial(_select_counted, self.plan)
        selections = (
            signal
            | 'CreatePaths' >> EmitElements(self.paths)  # path
            | 'CountSubstrings' >> self.count_substrings  # (group of a round, table)
            | 'Select' >> ThreadedMap(select, self.plan.workers)  # _GroupSelection
        )
        iteration = self.count_substrings.iteration
        finish = _FinishIteration(self.plan, iteration, self.part, self.ranges)
        return (signal, selections) | 'Finish' >> finish


@dataclass(frozen=True)
class _GroupSelection:
    """The selection of a group, packed, and the size of its table of frequent suffixes."""

    round: int  # its number in the plan
    group: int
    strings: bytes
    shared: tuple
    nbytes: int = 0
    added: int = 0


def _select_stored(plan: SelectionPlan, element: tuple[int, int]) -> _GroupSelection:
    """Selects from a stored table, and writes the table of the frequent suffixes."""
    number, group = element
    planned = plan.rounds[number]
    table = planned.stored.read(group)
    min_count = planned.min_count
    selection, frequent = select_partition(table, *plan.groups.bounds(group), min_count, min_count)
    planned.files.groups.write(group, frequent)
    strings = selection.strings.to_bytes()
    return _GroupSelection(
        number, group, strings, selection.shared, frequent.nbytes, frequent.added
    )


def _select_counted(plan: SelectionPlan, element: tuple[int, SuffixTable]) -> _GroupSelection:
    key, table = element
    number, group = divmod(key, len(plan.groups))
    min_count = plan.rounds[number].min_count
    selection, _ = select_partition(table, *plan.groups.bounds(group), min_count, 0)
    return _GroupSelection(number, group, selection.strings.to_bytes(), selection.shared)


@dataclass(eq=False)
class _FinishIteration(beam.PTransform):
    """Writes the selections of a pass, and after the last pass the vocabularies.

    Takes (signal, selections) and returns a signal.
    """

    plan: SelectionPlan
    iteration: int
    part: int
    ranges: Sequence[tuple[int, int]]

    def expand(self, inputs) -> beam.PCollection:
        signal, selections = inputs
        limited = selections | 'LimitOutput' >> beam.ParDo(_LimitOutputFn(self.plan))
        return (
            (signal, limited)
            | 'Gather' >> GatherResults()  # (0, [_GroupSelection | None])
            | 'Write' >> beam.Map(_finish_iteration, self)  # signal
        )


class _LimitOutputFn(beam.DoFn):
    """Passes selections on, and refuses more of them than a bundle may put out."""

    def __init__(self, plan: SelectionPlan):
        self._min_counts = [planned_round.min_count for planned_round in plan.rounds]
        self._output = BundleOutput(SELECTION_METRICS)

    def start_bundle(self) -> None:
        self._output.begin()

    def process(self, element: _GroupSelection) -> Iterator[_GroupSelection]:
        size = len(element.strings)
        if not self._output.fits(size):
            # Passes over fewer groups would not help: one worker gathers the selections of all.
            raise InputError(
                f'at min-count {self._min_counts[element.round]} a vocabulary would be larger than a worker may '
                'send; ask for fewer entries, or for a higher --min-count-range'
            )
        self._output.add(size)
        yield element

    def finish_bundle(self) -> None:
        self._output.end()


def _finish_iteration(
    gathered: tuple[int, Iterable[_GroupSelection | None]], finish: _FinishIteration
) -> int:
    found = (selection for selection in gathered[1] if selection is not None)
    selections = sorted(found, key=lambda selection: (selection.round, selection.group))
    for number, planned in enumerate(finish.plan.rounds):
        of_round = [selection for selection in selections if selection.round == number]
        _finish_round(finish, planned, of_round)
    return finish.part


def _finish_round(
    finish: _FinishIteration, planned: PlannedRound, selections: Sequence[_GroupSelection]
) -> None:
    files, plan, iteration, ranges = planned.files, finish.plan, finish.iteration, finish.ranges
    strings = merge_suffix_tables(
        SuffixTable.from_bytes(selection.strings) for selection in selections
    )
    shared = tuple(tuple(sums) for selection in selections for sums in selection.shared)
    files.write_selection(iteration, ranges[finish.part], PartitionSelection(strings, shared))
    if finish.part + 1 < len(ranges):
        return
    if iteration == 1:
        sizes = {selection.group: selection.nbytes for selection in selections}
        tables = None
        if sum(selection.added for selection in selections) <= plan.frequent_nodes:
            tables = [
                files.groups.read(group) if group in sizes else SuffixTable.empty()
                for group in range(len(plan.groups))
            ]
        files.write_frequent(tables)
        write_json(files.sizes_path, sorted(sizes.items()))
    parts = (files.read_selection(iteration, part) for part in ranges)
    vocabulary = merge_selections(parts, plan.groups.borders, plan.alphabet, planned.min_count)
    files.write_vocabulary(iteration, vocabulary)
