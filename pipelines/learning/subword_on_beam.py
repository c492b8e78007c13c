"""The subword learner on Beam in the packed form: one min-count a round, four iterations a round.

A survey of the token counts chooses the borders of the prefix groups. The first iteration cuts
before every character, so its tables are the same for every min-count: they are made once, and
what one round finds frequent enough serves all rounds of a higher min-count. All that is finished
lies in a folder, and a driver that is started again goes on from there.
"""

import functools
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.artifacts.counts import ROWS_AT_ONCE, read_counts, read_new_batches, stored_rows
from pipelines.engines.pool import MOST_BUNDLE_BYTES, OversizedBundleError
from pipelines.files import filesystem
from pipelines.files.claims import Claim
from pipelines.learning.plain_learner import BeamLearner, FixedSubtokens
from pipelines.learning.rounds import GroupFiles, KeptRounds, LearnerFiles, RoundFiles, TokenStats
from pipelines.learning.search import VocabularySearch, predicted_bytes
from pipelines.learning.suffix_transforms import (
    HEAVY_NODES,
    CountAndSelect,
    CountSubstrings,
    SelectFromStored,
    SelectionPlan,
    StoredGroup,
    StoreGroups,
)
from pipelines.transforms.count_tokens import write_counts_file
from pipelines.transforms.read import CreateReshuffled
from pipelines.transforms.stats import GatherToDriver, read_stats
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.scheme import Learned
from tokcore.errors import InputError
from tokcore.learning.size_search import Progress
from tokcore.subword.learner import (
    ITERATIONS,
    RESERVED_TOKENS,
    largest_count,
    longest_candidate,
    search_subwords,
)
from tokcore.subword.partitioned.suffix_tables import SuffixTable, choose_groups, pass_ranges
from tokcore.subword.partitioned.survey import Surveyor, TokenSurvey, add_surveys
from tokcore.subword.partitioned.sweep import order_subtokens
from tokcore.subword.text_encoder import UNSTORABLE
from tokcore.text.unicode import UNICODE_VERSION
from tokcore.warm_up import compile_learner_kernels

_LOGGER = logging.getLogger(__name__)

RunPipeline = Callable[[Callable[[beam.Pipeline], None]], None]

_LARGEST = 2**63 - 1

_UNLIMITED_BYTES = 2**31 - 1

_BYTES_OF_PROCESS = 400 << 20
"""Python, Beam, pyarrow, compiled kernels."""

_BYTES_PER_CHARACTER = 40
"""Of a batch in flight: its suffixes while they are sorted, and packed."""

_COPIES = 4
"""Of the merged tables, where one process is runner and worker: those in the worker, as bytes sent,
as bytes grouped, and as values."""

GROUP_BYTES = 4 << 20
"""What a group's table is to take: streamed through in a tenth of a second, and a cluster has some
hundred to share out for each GB. With half, twice as many small tables are merged for each
batch."""

MOST_GROUPS = 4096
"""Each is a file and two elements in every iteration; beyond, groups get larger instead."""


def search_on_beam(search: VocabularySearch, report: Progress) -> tuple[Learned, int]:
    """Learns on the workers; returns the memory too that was predicted of this process, in bytes.

    Raises:
        InputError, OverflowError: as `VocabularySearch.run`.
    """
    options = search.options
    if options.substring_counting != 'packed':
        table = read_counts(search.counts, search.scheme.unstorable)
        paths = _parquet_paths(search, table)
        learner = BeamLearner(paths, search.work, search.engine.run, **options.learned)
        learned = search_subwords(learner, largest_count(table), options, report)
        return learned, predicted_bytes(
            search.counts.size(), search.scheme.learner_bytes_per_character
        )
    search.counts.let_go(*search.counts.files)  # the workers read them
    kept = _kept_rounds(search)
    with kept.claimed() as claim:
        search.engine.compile_first(compile_learner_kernels)
        packed = PackedLearner(
            _parquet_paths(search),
            kept.folder,
            search.engine.run,
            **options.learned,
            lowest=options.lowest_min_count,
            workers=search.engine.workers,
            label=search.label,
        )
        learner = _Claimed(packed, claim)
        return search_subwords(
            learner, packed.largest_count, options, report
        ), packed.predicted_peak


@dataclass(frozen=True)
class Limits:
    """How much a learner takes at once; nothing that it gives depends on it."""

    sampled_tokens: int = 200_000
    """Their suffixes take some 10 MB in a worker; the borders of 4,096 groups need no more."""
    group_bytes: int = GROUP_BYTES
    bundle_bytes: int = MOST_BUNDLE_BYTES
    frequent_nodes: int = HEAVY_NODES


class PackedLearner:
    """Learns what `MemoryLearner` learns, with every round a Beam pipeline.

    Args:
        paths: Parquet files of token counts; a token may stand in several.
        folder: one that driver and workers reach; what an earlier learner of the same counts and
            the same options, but for the next three, has finished there is taken up.
        run: builds a pipeline by the function it is given, runs it and waits for its end.
        max_subtoken_length: as `MemoryLearner`'s.
        reserved_tokens: as `MemoryLearner`'s.
        lowest: no lower min-count will be asked for.
        workers: batches in flight in a worker.
        label: begins the lines that tell of progress.
        limits: how much is done at once.

    Raises:
        ValueError: `max_subtoken_length` is below 1.
        OverflowError: the counts could sum up to more than 2^63 - 1.
        InputError: a file that is no Parquet file of counts, no token in any, or one that cannot be
            stored in a vocabulary.
    """

    def __init__(
        self,
        paths: Sequence[str],
        folder: str,
        run: RunPipeline,
        *,
        max_subtoken_length: int | None = 200,
        reserved_tokens: Sequence[str] = (),
        lowest: int = 1,
        workers: int = 1,
        label: str = 'vocab',
        limits: Limits = Limits(),
    ):
        self._paths = tuple(paths)
        self._run, self._workers, self._label, self._limits = run, workers, label, limits
        self._longest = longest_candidate(max_subtoken_length)
        self._lowest = max(1, lowest)
        self._pass_bytes = limits.bundle_bytes
        self._rounds = 0
        self._files = LearnerFiles(folder)
        self._stats = self._survey()
        self._fixed = FixedSubtokens.of(reserved_tokens, self._stats.alphabet)
        if self._stats.weight > _LARGEST:
            raise OverflowError('count times length, summed over all tokens, exceeds 2^63 - 1')
        self._files.write_reserved(self._fixed.reserved)
        self._stored: dict[int, tuple[GroupFiles, dict[int, int]]] = {}

    @property
    def smallest_size(self) -> int:
        """The size that no min-count gets below: reserved tokens and alphabet."""
        return len(self._fixed)

    @property
    def largest_count(self) -> int:
        """No substring is counted more often."""
        return self._stats.most

    @property
    def predicted_peak(self) -> int:
        """The bytes that a process with runner, driver and worker in it is predicted to take."""
        stats = self._stats
        share = min(1, ROWS_AT_ONCE / max(1, stats.tokens))
        batches = _BYTES_PER_CHARACTER * stats.characters * share * self._workers
        held = min(stats.predicted_bytes, self._pass_bytes)
        return round(_BYTES_OF_PROCESS + batches + _COPIES * held)

    def build(self, min_count: int) -> tuple[str, ...]:
        """Returns the subtokens in the order of their ids, as `MemoryLearner.build` does."""
        min_count = min(max(1, min_count), _LARGEST)
        if min_count < self._lowest:
            raise ValueError(f'min-count {min_count} is below {self._lowest}, the lowest allowed')
        if self._longest < 1:
            return self._fixed.reserved + tuple(reversed(self._fixed.alphabet))
        self._rounds += 1
        files = self._files.round(min_count)
        if files.has_vocabulary(ITERATIONS):
            _LOGGER.info(
                '%s: round %d at min-count %d was finished by an earlier run',
                self._label,
                self._rounds,
                min_count,
            )
        else:
            self._store_first(min_count)
            self._learn_round(files, min_count)
        if files.has_vocabulary(1) and filesystem.exists(files.sizes_path):
            self._stored[min_count] = files.groups, files.read_sizes()
        return self._fixed.reserved + order_subtokens(files.read_vocabulary(ITERATIONS))

    def _survey(self) -> TokenStats:
        path = self._files.stats_path
        if not filesystem.exists(path):
            self._files.clear()  # what was left when all was to be deleted
            rows = stored_rows(self._paths)
            if rows == 0:
                raise InputError(
                    f'no token in {", ".join(self._paths)}; there is nothing to learn from'
                )
            started = time.monotonic()
            bits = max(0, (rows // self._limits.sampled_tokens).bit_length())
            surveying = SurveyTokens(path, bits, self._longest, self._limits.group_bytes)
            self._run(lambda pipeline: pipeline | CreateReshuffled(self._paths) | surveying)
            _LOGGER.info(
                '%s: %d tokens surveyed in %.1f s', self._label, rows, time.monotonic() - started
            )
        return TokenStats.read(path)

    def _store_first(self, min_count: int) -> None:
        """Makes the first iteration's tables, in as many passes as they need.

        A round of this min-count or a lower one has left all of them that count.
        """
        if any(min_weight <= min_count for min_weight in self._stored):
            return
        groups = self._stats.groups
        sizes: dict[int, int] = {}
        first = 0
        started = time.monotonic()
        predicted = max(1, self._stats.predicted_bytes // len(groups))
        while first < len(groups):
            done = self._files.finished_pass(first)
            if done is None:
                ranges = pass_ranges([predicted] * (len(groups) - first), self._pass_bytes)
                last = first + next(ranges)[1]
                self._run_bounded(functools.partial(self._store_pass, first, last))
                done = self._files.finished_pass(first)
                if done is None:
                    continue  # in smaller passes
            first, found = done
            sizes.update(found)
        self._stored[self._lowest] = self._files.first, sizes
        _LOGGER.info(
            '%s: first tables of %d groups take %d MB, predicted %d MB, in %.1f s',
            self._label,
            len(sizes),
            sum(sizes.values()) >> 20,
            self._stats.predicted_bytes >> 20,
            time.monotonic() - started,
        )

    def _store_pass(self, first: int, last: int) -> None:
        sizes_path = self._files.pass_sizes_path(first, last)
        filesystem.delete_file(sizes_path)
        counting = self._counting(None, 1, (first, last))
        storing = StoreGroups(self._files.first, sizes_path, self._stats.groups, self._lowest)
        self._run(lambda pipeline: pipeline | CreateReshuffled(self._paths) | counting | storing)
        stored = read_stats(sizes_path, StoredGroup)
        self._files.finish_pass(first, last, [(each.group, each.bytes) for each in stored])
        filesystem.delete_file(sizes_path)

    def _learn_round(self, files: RoundFiles, min_count: int) -> None:
        while not files.has_vocabulary(ITERATIONS):
            self._run_bounded(functools.partial(self._run_round, files, min_count))

    def _run_round(self, files: RoundFiles, min_count: int) -> None:
        done = 0
        while files.has_vocabulary(done + 1):
            done += 1
        min_weight = max(min_weight for min_weight in self._stored if min_weight <= min_count)
        stored, sizes = self._stored[min_weight]
        selecting = SelectionPlan(
            files, self._stats.groups, self._fixed.alphabet, min_count, self._workers,
            self._limits.frequent_nodes,
        )  # fmt: skip
        steps: dict[str, beam.PTransform] = {}
        if done == 0:
            steps['Iteration1'] = SelectFromStored(selecting, stored, sorted(sizes))
        every = [sizes.get(group, 0) for group in range(len(self._stats.groups))]
        ranges = list(pass_ranges(every, self._pass_bytes))
        for iteration in range(max(2, done + 1), ITERATIONS + 1):
            for part, each in enumerate(ranges):
                counting = self._counting(files, iteration, each)
                steps[f'Iteration{iteration}Part{part}'] = CountAndSelect(
                    selecting, counting, self._paths, part, ranges
                )
        self._run(functools.partial(_build_chain, steps))

    def _counting(
        self, files: RoundFiles | None, iteration: int, group_range: tuple[int, int]
    ) -> CountSubstrings:
        return CountSubstrings(
            files,
            iteration,
            self._stats.groups,
            group_range,
            min(self._longest, _UNLIMITED_BYTES),
            self._workers,
            self._limits.bundle_bytes,
        )

    def _run_bounded(self, run: Callable[[], None]) -> None:
        """Runs jobs; where a bundle would put out too much, passes are halved for the next try."""
        try:
            run()
        except Exception as error:
            if OversizedBundleError.__name__ not in f'{type(error).__name__}: {error}':
                raise
            if self._pass_bytes < 2:
                raise
            self._pass_bytes //= 2
            _LOGGER.info(
                '%s: a worker had more than %d MB to send; taking fewer groups at once',
                self._label,
                self._limits.bundle_bytes >> 20,
            )


class _Claimed:
    """A learner that looks before each round whether its rounds are still its own."""

    def __init__(self, learner: PackedLearner, claim: Claim):
        self._learner, self._claim = learner, claim
        self.smallest_size = learner.smallest_size

    def build(self, min_count: int) -> Sequence[str]:
        self._claim.check()
        return self._learner.build(min_count)


def _kept_rounds(search: VocabularySearch) -> KeptRounds:
    options = search.options
    content = {
        'unicode': UNICODE_VERSION,
        'counts': [
            (text.bytes, text.crc32c)
            for text in (each.checksum() for each in search.counts.wanted_inputs())
        ],
        'longest': longest_candidate(options.max_subtoken_length),
        'reserved': RESERVED_TOKENS + options.reserved_tokens,
        'lowest': options.lowest_min_count,
        'group_bytes': Limits().group_bytes,
        'vocab_size': options.vocab_size,
        'search': options.search,
        'min_count_range': options.min_count_range,
    }
    return KeptRounds(search.place, content)


def _parquet_paths(search: VocabularySearch, table: TokenTable | None = None) -> list[str]:
    """The count files as Parquet, which is what workers read."""
    counts = search.counts
    if counts.size().all_parquet:
        return [file.path for file in counts.files]
    if table is None:
        table = read_counts(counts, search.scheme.unstorable)
    written = write_counts_file(search.work, 0, table, search.scheme.rules)
    return [filesystem.join(search.work, written.name)]


def _build_chain(steps: Mapping[str, beam.PTransform], pipeline: beam.Pipeline) -> None:
    """Builds iterations, or passes of one, each after the one before."""
    signal = pipeline | 'Begin' >> beam.Create([0], reshuffle=False)
    for label, step in steps.items():
        signal = signal | label >> step


@dataclass(eq=False)
class SurveyTokens(beam.PTransform):
    """Writes the stats about all tokens of count files, and chooses the prefix groups.

    Attributes:
        stats_path: gets the stats.
        bits: one token in 2^bits is sampled.
        longest: the longest substring counted, in characters.
        group_bytes: what a group's table is to take.
    """

    stats_path: str
    bits: int
    longest: int
    group_bytes: int = GROUP_BYTES

    def expand(self, paths: beam.PCollection) -> beam.PCollection:
        return (
            paths
            | 'Survey' >> beam.Map(_survey, self.bits, self.longest)
            | 'Gather' >> GatherToDriver()  # (0, [packed survey])
            | 'Finish' >> beam.Map(_finish, self)
        )


def _survey(path: str, bits: int, longest: int) -> tuple:
    surveyor = Surveyor(bits, longest)
    for arrays in read_new_batches(path, UNSTORABLE):
        surveyor.add(*arrays)
    survey = surveyor.result()
    sums = (survey.tokens, survey.characters, str(survey.weight), str(survey.largest_count))
    return (survey.alphabet, *sums, survey.sample.to_bytes(), survey.smaller_sample.to_bytes())


def _finish(gathered: tuple[int, Iterable[tuple]], surveying: SurveyTokens) -> None:
    survey = add_surveys(map(_unpacked, gathered[1]))
    predicted = survey.predicted_bytes(surveying.bits)
    groups = min(MOST_GROUPS, math.ceil(predicted / surveying.group_bytes))
    stats = TokenStats(
        survey.alphabet,
        survey.tokens,
        survey.characters,
        survey.weight,
        survey.largest_count,
        predicted,
        choose_groups(survey.sample, groups).borders,
    )
    stats.write(surveying.stats_path)


def _unpacked(packed: Sequence) -> TokenSurvey:
    alphabet, tokens, characters, weight, most, sample, smaller = packed
    return TokenSurvey(
        alphabet, tokens, characters, int(weight), int(most),
        SuffixTable.from_bytes(sample), SuffixTable.from_bytes(smaller),
    )  # fmt: skip
