"""Counting substrings in the packed form: suffixes at cuts, as front-coded tables by prefix group.

A substring that starts at a cut is a prefix of the suffix that starts there, so the suffixes hold
the counts of all substrings, in linear space. Workers merge what they cut before anything is sent.
"""

import functools
import queue
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import apache_beam as beam
import numpy as np
from apache_beam.metrics import Metrics

from pipelines.artifacts.count_batches import TokenArrays, read_batches
from pipelines.engines.bundle_bound import MOST_BUNDLE_BYTES, BundleOutput
from pipelines.engines.ordered_calls import OrderedPool, in_global_window
from pipelines.learning.learner_files import RoundFiles
from pipelines.transport.packed_coder import PackedCoder
from tokcore.subword.partitioned.prefix_partitions import PrefixPartitions
from tokcore.subword.partitioned.segmenting import Segmenter, escaped_batches, pack_all_suffixes
from tokcore.subword.partitioned.suffix_table import SuffixTable, SuffixTableMerger

METRICS = 'tokbeam.learner'
SENT_TABLES = 'sent_tables'


beam.coders.registry.register_coder(SuffixTable, PackedCoder)


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
