"""What groups keep, from their tables, and one iteration's vocabulary from what all of them keep.

Each transform takes and gives a *signal*, a collection of one element: what follows it begins when
its files are whole. So iterations can be chained in one pipeline, or run each as a job.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.engines.bundle_bound import BundleOutput
from pipelines.engines.ordered_calls import CallsInFlight, in_global_window
from pipelines.learning.count_suffixes import CountSubstrings
from pipelines.learning.learner_files import GroupFiles, RoundFiles
from pipelines.transforms.write_report import WriteReport
from tokcore.errors import InputError
from tokcore.subword.partitioned.partition_sweep import GroupClaims, claim_group, finish_claims
from tokcore.subword.partitioned.prefix_partitions import PrefixGroups
from tokcore.subword.partitioned.suffix_table import SuffixTable, merge_suffix_tables

HEAVY_NODES = 1 << 23
"""Of the trie that cuts, where it also knows the heavy suffixes: 128 to 256 MB in each process, and
as much again for weights. Beyond, suffixes are sent in full."""

CLAIM_METRICS = 'tokbeam.claims'


@dataclass(frozen=True)
class Claiming:
    """What deciding on groups needs to know in every iteration of a round."""

    round: RoundFiles
    groups: PrefixGroups
    alphabet: str
    min_count: int
    workers: int = 1
    heavy_nodes: int = HEAVY_NODES


@dataclass(eq=False)
class ClaimStoredGroups(beam.PTransform):
    """The first iteration, from stored tables: signal to signal.

    Writes the vocabulary, the tables without what is too light for this min-count, and one file of
    all of those, if they are few enough to cut by.

    Attributes:
        claiming: what is decided on.
        stored: where the groups' tables are, of this min-count or a lower one.
        numbers: the groups that have one.
    """

    claiming: Claiming
    stored: GroupFiles
    numbers: Sequence[int]

    def expand(self, signal: beam.PCollection) -> beam.PCollection:
        group_to_claims = (
            signal
            | 'Groups' >> beam.ParDo(_EachFn(self.numbers))
            | 'Share' >> beam.Reshuffle()
            | 'Claim' >> beam.ParDo(_ClaimGroupsFn(self.claiming, self.stored))
        )
        every = ((0, len(self.claiming.groups)),)
        finish = _FinishIteration(self.claiming, 1, 0, every)
        return (signal, group_to_claims) | 'Finish' >> finish


@dataclass(eq=False)
class CountAndClaim(beam.PTransform):
    """A later iteration, or one of its passes over ranges of groups: signal to signal.

    The last pass writes the vocabulary.

    Attributes:
        claiming: what is decided on.
        counting: how substrings are counted.
        paths: files of token counts.
        part: which of the passes it is.
        ranges: the groups of each pass, [first, last).
    """

    claiming: Claiming
    counting: CountSubstrings
    paths: Sequence[str]
    part: int
    ranges: Sequence[tuple[int, int]]

    def expand(self, signal: beam.PCollection) -> beam.PCollection:
        group_to_claims = (
            signal
            | 'Paths' >> beam.ParDo(_EachFn(self.paths))
            | 'Share' >> beam.Reshuffle()
            | 'CountSubstrings' >> self.counting  # (group, table)
            | 'Claim' >> beam.ParDo(_ClaimGroupsFn(self.claiming, None))
        )
        finish = _FinishIteration(
            self.claiming, self.counting.iteration, self.part, self.ranges
        )
        return (signal, group_to_claims) | 'Finish' >> finish


@dataclass(eq=False)
class StoreGroups(beam.PTransform):
    """Writes groups' tables, without what weighs less than `least`, and a list of their sizes.

    Attributes:
        files: where the tables go.
        sizes_path: gets the list, of (group, bytes), when all are written.
        groups: the prefix groups.
        least: what a string must weigh to be stored; its weight stays in what begins it.
    """

    files: GroupFiles
    sizes_path: str
    groups: PrefixGroups
    least: int

    def expand(self, group_to_table: beam.PCollection) -> beam.PCollection:
        sizes = group_to_table | 'Write' >> beam.ParDo(
            _StoreGroupsFn(self.files, self.groups, self.least)
        )  # (group, bytes)
        return sizes | 'List' >> WriteReport(self.sizes_path)


class _EachFn(beam.DoFn):
    def __init__(self, elements: Sequence):
        self._elements = tuple(elements)

    def process(self, element: object) -> Iterator:
        yield from self._elements


class _StoreGroupsFn(beam.DoFn):
    def __init__(self, files: GroupFiles, groups: PrefixGroups, least: int):
        self._files, self._groups, self._least = files, groups, least

    def process(self, element: tuple[int, SuffixTable]) -> Iterator[tuple[int, int]]:
        group, table = element
        if self._least > 1:
            _, table = claim_group(table, *self._groups.bounds(group), self._least, self._least)
        self._files.write(group, table)
        yield group, table.nbytes


class _ClaimGroupsFn(beam.DoFn):
    """(group, table), or the number of a stored group, to (group, claims)."""

    def __init__(self, claiming: Claiming, stored: GroupFiles | None):
        self._claiming, self._stored = claiming, stored
        self._output = BundleOutput(CLAIM_METRICS)

    def setup(self) -> None:
        self._calls: CallsInFlight = CallsInFlight(self._claiming.workers)

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
        claiming = self._claiming
        if self._stored is None:
            group, table = element
            least = 0
        else:
            group, least = element, claiming.min_count
            table = self._stored.read(group)
        bounds = claiming.groups.bounds(group)
        claims, heavy = claim_group(table, *bounds, claiming.min_count, least)
        if least:
            claiming.round.groups.write(group, heavy)
        return group, (claims.kept.to_bytes(), claims.shared, heavy.nbytes, heavy.added)


@dataclass(eq=False)
class _FinishIteration(beam.PTransform):
    """(signal, claims) to signal: gathers what the groups keep, and at the end what all keep."""

    claiming: Claiming
    iteration: int
    part: int
    ranges: Sequence[tuple[int, int]]

    def expand(self, inputs) -> beam.PCollection:
        signal, group_to_claims = inputs
        # The signal comes along: a pass whose groups are all empty ends all the same.
        begun = signal | 'Begun' >> beam.Map(_nothing)
        return (
            (begun, group_to_claims)
            | beam.Flatten()
            | 'Key' >> beam.Map(_keyed).with_output_types(tuple[int, object])
            | 'Gather' >> beam.GroupByKey()  # (0, [(group, claims)])
            | 'Decide' >> beam.ParDo(_FinishIterationFn(self))
        )


def _nothing(signal: object) -> None:
    return None


def _keyed(element: object) -> tuple[int, object]:
    return 0, element


class _FinishIterationFn(beam.DoFn):
    def __init__(self, finishing: _FinishIteration):
        self._claiming, self._iteration = finishing.claiming, finishing.iteration
        self._part, self._ranges = finishing.part, tuple(finishing.ranges)

    def process(self, element: tuple[int, Iterable]) -> Iterator[int]:
        claiming, files = self._claiming, self._claiming.round
        found = sorted(each for each in element[1] if each is not None)
        kept = merge_suffix_tables(SuffixTable.from_bytes(each[1][0]) for each in found)
        shared = tuple(tuple(each) for _, claims in found for each in claims[1])
        group_range = self._ranges[self._part]
        files.write_claims(self._iteration, group_range, GroupClaims(kept, shared))
        if self._part + 1 < len(self._ranges):
            yield self._part
            return
        if self._iteration == 1:
            self._write_heavy({group: claims[2:] for group, claims in found})
        claims = (files.read_claims(self._iteration, each) for each in self._ranges)
        vocabulary = finish_claims(
            claims, claiming.groups.borders, claiming.alphabet, claiming.min_count
        )
        files.write_vocabulary(self._iteration, vocabulary)
        yield self._part

    def _write_heavy(self, sizes: dict[int, tuple[int, int]]) -> None:
        files = self._claiming.round
        tables = None
        if sum(added for _, added in sizes.values()) <= self._claiming.heavy_nodes:
            tables = [
                files.groups.read(group) if group in sizes else SuffixTable.empty()
                for group in range(len(self._claiming.groups))
            ]
        files.write_heavy(tables)
        files.write_sizes({group: size for group, (size, _) in sizes.items()})
