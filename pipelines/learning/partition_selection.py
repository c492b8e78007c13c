"""What groups keep, from their tables, and one iteration's vocabulary from what all of them keep.

Each transform takes and gives a *signal*, a collection of one element: what follows it begins when
its files are whole. So iterations can be chained in one pipeline, or run each as a job.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.engines.bundle_bound import BundleOutput
from pipelines.engines.ordered_calls import OrderedPool, in_global_window
from pipelines.learning.count_suffixes import CountSubstrings
from pipelines.learning.learner_files import GroupFiles, RoundFiles
from pipelines.transforms.write_report import GatherOnOne, WriteReport
from tokcore.errors import InputError
from tokcore.subword.partitioned.partition_sweep import (
    PartitionSelection,
    merge_selections,
    select_partition,
)
from tokcore.subword.partitioned.prefix_partitions import PrefixPartitions
from tokcore.subword.partitioned.suffix_table import SuffixTable, merge_suffix_tables

HEAVY_NODES = 1 << 23
"""Of the trie that cuts, where it also knows the frequent suffixes: 128 to 256 MB in each process, and
as much again for weights. Beyond, suffixes are sent in full."""

SELECTION_METRICS = 'tokbeam.claims'


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
        group_to_selection = (
            signal
            | 'Groups' >> beam.ParDo(_EachFn(self.numbers))
            | 'Share' >> beam.Reshuffle()
            | 'Claim' >> beam.ParDo(_SelectFn(self.selecting, self.stored))
        )
        every = ((0, len(self.selecting.groups)),)
        finish = _FinishIteration(self.selecting, 1, 0, every)
        return (signal, group_to_selection) | 'Finish' >> finish


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
        group_to_selection = (
            signal
            | 'Paths' >> beam.ParDo(_EachFn(self.paths))
            | 'Share' >> beam.Reshuffle()
            | 'CountSubstrings' >> self.counting  # (group, table)
            | 'Claim' >> beam.ParDo(_SelectFn(self.selecting, None))
        )
        finish = _FinishIteration(
            self.selecting, self.counting.iteration, self.part, self.ranges
        )
        return (signal, group_to_selection) | 'Finish' >> finish


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
        sizes = group_to_table | 'Write' >> beam.ParDo(
            _StoreGroupsFn(self.files, self.groups, self.min_weight)
        )  # StoredGroup
        return sizes | 'List' >> WriteReport(self.sizes_path)


class _EachFn(beam.DoFn):
    def __init__(self, elements: Sequence):
        self._elements = tuple(elements)

    def process(self, element: object) -> Iterator:
        yield from self._elements


class _StoreGroupsFn(beam.DoFn):
    def __init__(self, files: GroupFiles, groups: PrefixPartitions, min_weight: int):
        self._files, self._groups, self._min_weight = files, groups, min_weight

    def process(self, element: tuple[int, SuffixTable]) -> Iterator[StoredGroup]:
        group, table = element
        if self._min_weight > 1:
            _, table = select_partition(table, *self._groups.bounds(group), self._min_weight, self._min_weight)
        self._files.write(group, table)
        yield StoredGroup(group, table.nbytes)


class _SelectFn(beam.DoFn):
    """(group, table), or the number of a stored group, to (group, selected)."""

    def __init__(self, selecting: SelectionPlan, stored: GroupFiles | None):
        self._selecting, self._stored = selecting, stored
        self._output = BundleOutput(SELECTION_METRICS)

    def setup(self) -> None:
        self._calls: OrderedPool = OrderedPool(self._selecting.workers)

    def start_bundle(self) -> None:
        self._output.begin()

    def process(self, element) -> Iterator[tuple[int, tuple]]:
        yield from map(self._counted, self._calls.submit(self._claim, element))

    def finish_bundle(self) -> Iterator:
        for result in self._calls.drain():
            yield in_global_window(self._counted(result))
        self._output.end()

    def teardown(self) -> None:
        self._calls.close()

    def _counted(self, result: tuple[int, tuple]) -> tuple[int, tuple]:
        size = len(result[1][0])
        if not self._output.fits(size):
            # Passes over fewer groups would not help: one worker gathers what all of them keep.
            raise InputError(
                f'at min-count {self._claiming.min_count} a vocabulary would be larger than a '
                'worker may send; ask for fewer entries, or for a higher --min-count-range'
            )
        self._output.add(size)
        return result

    def _claim(self, element) -> tuple[int, tuple]:
        selecting = self._selecting
        if self._stored is None:
            group, table = element
            min_weight = 0
        else:
            group, min_weight = element, selecting.min_count
            table = self._stored.read(group)
        bounds = selecting.groups.bounds(group)
        selected, frequent = select_partition(table, *bounds, selecting.min_count, min_weight)
        if min_weight:
            selecting.round.groups.write(group, frequent)
        return group, (selected.kept.to_bytes(), selected.shared, frequent.nbytes, frequent.added)


@dataclass(eq=False)
class _FinishIteration(beam.PTransform):
    """(signal, selected) to signal: gathers what the groups select, and at the end what all keep."""

    selecting: SelectionPlan
    iteration: int
    part: int
    ranges: Sequence[tuple[int, int]]

    def expand(self, inputs) -> beam.PCollection:
        signal, group_to_selection = inputs
        # The signal comes along: a pass whose groups are all empty ends all the same.
        begun = signal | 'Begun' >> beam.Map(_nothing)
        return (
            (begun, group_to_selection)
            | beam.Flatten()
            | 'Gather' >> GatherOnOne()  # [(group, selected)]
            | 'Decide' >> beam.ParDo(_FinishIterationFn(self))
        )


def _nothing(signal: object) -> None:
    return None


class _FinishIterationFn(beam.DoFn):
    def __init__(self, finishing: _FinishIteration):
        self._selecting, self._iteration = finishing.selecting, finishing.iteration
        self._part, self._ranges = finishing.part, tuple(finishing.ranges)

    def process(self, element: Iterable) -> Iterator[int]:
        selecting, files = self._selecting, self._selecting.round
        found = sorted(each for each in element if each is not None)
        kept = merge_suffix_tables(SuffixTable.from_bytes(each[1][0]) for each in found)
        shared = tuple(tuple(each) for _, selected in found for each in selected[1])
        group_range = self._ranges[self._part]
        files.write_selection(self._iteration, group_range, PartitionSelection(kept, shared))
        if self._part + 1 < len(self._ranges):
            yield self._part
            return
        if self._iteration == 1:
            self._write_frequent({group: selected[2:] for group, selected in found})
        selected = (files.read_selection(self._iteration, each) for each in self._ranges)
        vocabulary = merge_selections(
            selected, selecting.groups.borders, selecting.alphabet, selecting.min_count
        )
        files.write_vocabulary(self._iteration, vocabulary)
        yield self._part

    def _write_frequent(self, sizes: dict[int, tuple[int, int]]) -> None:
        files = self._selecting.round
        tables = None
        if sum(added for _, added in sizes.values()) <= self._selecting.frequent_nodes:
            tables = [
                files.groups.read(group) if group in sizes else SuffixTable.empty()
                for group in range(len(self._selecting.groups))
            ]
        files.write_heavy(tables)
        files.write_sizes({group: size for group, (size, _) in sizes.items()})
