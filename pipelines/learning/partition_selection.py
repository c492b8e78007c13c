"""What groups keep, from their tables, and one iteration's vocabulary from what all of them keep.

Each transform takes and gives a *signal*, a collection of one element: what follows it begins when
its files are whole. So iterations can be chained in one pipeline, or run each as a job.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.engines.bundle_bound import BundleOutput
from pipelines.learning.count_suffixes import CountSubstrings
from pipelines.learning.learner_files import GroupFiles, RoundFiles
from pipelines.transforms.write_report import GatherOnOne, WriteReport
from pipelines.transport.threaded_map import ThreadedMap
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
        finish = _FinishIteration(
            self.selecting, self.counting.iteration, self.part, self.ranges
        )
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
        return sizes | 'List' >> WriteReport(self.sizes_path)


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
    kept = selected.kept.to_bytes()
    return _Selected(group, kept, selected.shared, frequent.nbytes, frequent.added)


def _select_counted(plan: SelectionPlan, element: tuple[int, SuffixTable]) -> _Selected:
    group, table = element
    selected, _ = select_partition(table, *plan.groups.bounds(group), plan.min_count, 0)
    return _Selected(group, selected.kept.to_bytes(), selected.shared, 0, 0)


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
            | 'Gather' >> GatherOnOne()  # (0, [_Selected])
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
