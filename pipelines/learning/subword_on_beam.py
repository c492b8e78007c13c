"""The subword learner on Beam, with packed tables of suffixes.

A survey of the token counts chooses the borders of the prefix groups. A round learns the vocabulary
of one min-count, in four iterations. In the first, every character is a segment, so its tables do
not depend on the min-count: they are made once, and the frequent suffixes of one round serve all
rounds of a higher min-count. Finished work is in a folder, where a new run of the driver continues.
"""

import functools
import logging
import math
import pickle
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.artifacts.counts import ROWS_AT_ONCE, read_new_batches, stored_rows
from pipelines.engines.engine import RunPipeline
from pipelines.engines.pool import MOST_BUNDLE_BYTES, OversizedBundleError
from pipelines.files import filesystem
from pipelines.learning.rounds import (
    ClaimedRun,
    GroupFiles,
    LearnerFiles,
    RoundFiles,
    TokenStats,
    build_chain,
    read_json_if_there,
    write_json,
)
from pipelines.learning.search import (
    TOKENS_AT_ONCE,
    RoundsAhead,
    VocabularySearch,
    rounds_at_once,
)
from pipelines.learning.suffix_transforms import (
    FREQUENT_NODES,
    CountAndSelect,
    CountSubstrings,
    PlannedRound,
    SelectFromStored,
    SelectionPlan,
    StoreGroups,
)
from pipelines.transforms.read import CreateReshuffled
from pipelines.transforms.stats import GatherToDriver, read_stats
from tokcore.encoding.scheme import Learned
from tokcore.errors import InputError
from tokcore.learning.size_search import Progress, min_counts_ahead, search_vocabulary
from tokcore.subword.learner import (
    ITERATIONS,
    RESERVED_TOKENS,
    longest_candidate,
)
from tokcore.subword.scheme import SubwordOptions, search_subwords
from tokcore.subword.segmenting import Surveyor, add_surveys
from tokcore.subword.suffix_tables import choose_groups, pass_ranges
from tokcore.subword.sweep import order_subtokens
from tokcore.subword.text_encoder import UNSTORABLE
from tokcore.text.t2t import alphabet_of, escape_token
from tokcore.warm_up import compile_learner_kernels

_LOGGER = logging.getLogger(__name__)

_LARGEST = 2**63 - 1

_BYTES_OF_PROCESS = 400 << 20
"""Python, Beam, pyarrow, compiled kernels."""

_BYTES_PER_CHARACTER = 40
"""Of a batch in memory: its suffixes while they are sorted, and packed."""

_COPIES = 4
"""Of the merged tables, if one process is runner and worker: in the worker, as bytes sent, as bytes
grouped, and as values."""

GROUP_BYTES = 4 << 20
"""Intended size of a group's table: it is swept in a tenth of a second, and a cluster has some
hundred groups per GB to share. With half of it, a batch gives twice as many small tables to merge."""

MAX_GROUPS = 4096
"""A group is a file, and two elements in every iteration; beyond this number, groups get larger."""


def search_on_beam(
    search: VocabularySearch[SubwordOptions], report: Progress
) -> tuple[Learned, int]:
    """Learns on the workers; returns the result and the predicted memory of this process, in bytes.

    Raises:
        InputError, OverflowError: as `VocabularySearch.run`.
    """
    options = search.options
    search.counts.let_go(*search.counts.files)  # the workers read them
    rounds = search.search_rounds(
        longest=longest_candidate(options.max_subtoken_length),
        reserved=RESERVED_TOKENS + options.reserved_tokens,
        lowest=options.lowest_min_count,
        group_bytes=LearnerLimits().group_bytes,
        vocab_size=options.vocab_size,
        search=options.search,
        min_count_range=options.min_count_range,
    )
    with rounds.claimed() as claim:
        search.engine.compile_first(compile_learner_kernels)
        packed = PackedLearner(
            search.parquet_paths(),
            rounds.folder,
            ClaimedRun(claim, search.engine.run),
            max_subtoken_length=options.max_subtoken_length,
            reserved_tokens=options.reserved_tokens,
            lowest=options.lowest_min_count,
            workers=search.engine.workers,
            label=search.label,
            run_near=ClaimedRun(claim, search.engine.near(search.counts.size().bytes).run),
            # On this machine there is nobody else to learn what may not be needed.
            ahead=None if search.engine.runner.is_local else functools.partial(_ahead, options),
        )
        learned = search_subwords(packed, packed.largest_count, options, report)
        return learned, packed.predicted_peak


def _ahead(
    options: SubwordOptions, largest_count: int, tried: Mapping[int, int], most: int
) -> list[int]:
    search = functools.partial(
        search_vocabulary,
        target_size=options.vocab_size,
        strategy=options.search,
        min_count_range=options.min_count_range,
        smallest_size=0,
        largest_count=largest_count,
    )
    return min_counts_ahead(search, tried, options.vocab_size, most)


@dataclass(frozen=True)
class LearnerLimits:
    """How much a learner does at a time; the results do not depend on it."""

    sampled_tokens: int = 200_000
    """Their suffixes take some 10 MB in a worker, and suffice for the borders of 4,096 groups."""
    group_bytes: int = GROUP_BYTES
    bundle_bytes: int = MOST_BUNDLE_BYTES
    frequent_nodes: int = FREQUENT_NODES
    tokens_at_once: int = TOKENS_AT_ONCE


class PackedLearner:
    """Learns the same vocabularies as `MemoryLearner`, each round in a Beam pipeline.

    Of few tokens a pipeline costs more than what it does, so rounds that a search may come to are
    learned in the pipeline of the round that it has come to.

    Args:
        paths: Parquet files of token counts; a token may occur in several.
        folder: reached by driver and workers. Work that a learner of the same counts and options
            has finished there is used.
        run: runs a pipeline that a function builds, and waits for its end.
        max_subtoken_length: as for `MemoryLearner`.
        reserved_tokens: as for `MemoryLearner`.
        lowest: the lowest min-count that `build` will be called with.
        workers: batches at a time in a worker.
        label: begins log messages.
        limits: how much is done at a time.
        run_near: as `run`, for light work before the first round; None: as `run`.
        ahead: takes the largest count, the sizes of the vocabularies built so far by min-count, and a
            number; returns at most so many min-counts that may be built next, by how soon. None:
            that is not known.

    Raises:
        ValueError: `max_subtoken_length` is below 1.
        OverflowError: count times escaped length, summed over the tokens, exceeds 2^63 - 1.
        InputError: a file is not a Parquet file of counts, there is no token, or a token cannot be
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
        limits: LearnerLimits = LearnerLimits(),
        run_near: RunPipeline | None = None,
        ahead: Callable[[int, Mapping[int, int], int], Sequence[int]] | None = None,
    ):
        self._paths, self._run_near, self._ahead = tuple(paths), run_near or run, ahead
        self._run, self._workers, self._label, self._limits = run, workers, label, limits
        self._longest = longest_candidate(max_subtoken_length)
        self._lowest = max(1, lowest)
        self._pass_bytes = limits.bundle_bytes
        self._files = LearnerFiles(folder)
        self._stats = self._survey()
        self._reserved, self._alphabet = fixed_subtokens(reserved_tokens, self._stats.alphabet)
        if self._stats.weight > _LARGEST:
            raise OverflowError('count times length, summed over all tokens, exceeds 2^63 - 1')
        write_json(self._files.reserved_path, self._reserved)
        self._stored: dict[int, tuple[GroupFiles, dict[int, int]]] = {}
        self._rounds = RoundsAhead(
            label,
            rounds_at_once(self._stats.tokens, limits.tokens_at_once),
            lambda min_count: self._files.round(min_count).has_vocabulary(ITERATIONS),
            None if ahead is None else self._min_counts_ahead,
        )

    @property
    def smallest_size(self) -> int:
        """The size of the smallest vocabulary: the reserved tokens and the alphabet."""
        return len(self._reserved) + len(self._alphabet)

    @property
    def largest_count(self) -> int:
        """An upper bound of the count of any substring."""
        return self._stats.largest_count

    @property
    def predicted_peak(self) -> int:
        """The predicted memory of a process that is runner, driver and worker, in bytes."""
        stats = self._stats
        share = min(1, ROWS_AT_ONCE / max(1, stats.tokens))
        batches = _BYTES_PER_CHARACTER * stats.characters * share * self._workers
        tables = min(stats.predicted_bytes, self._pass_bytes)
        return round(_BYTES_OF_PROCESS + batches + _COPIES * tables)

    def build(self, min_count: int) -> tuple[str, ...]:
        """Returns the subtokens by id, as `MemoryLearner.build`."""
        asked, min_count = min_count, self._learned_for(min_count)
        if min_count < self._lowest:
            raise ValueError(f'min-count {min_count} is below {self._lowest}, the lowest allowed')
        if self._longest < 1:
            return self._reserved + tuple(reversed(self._alphabet))
        if min_counts := self._rounds.begin_round(min_count):
            self._learn_rounds(min_counts)
        files = self._files.round(min_count)
        # The tables of its frequent suffixes, if there are any, serve later rounds.
        sizes = read_json_if_there(files.sizes_path) if files.has_vocabulary(1) else None
        if sizes is not None:
            self._stored[min_count] = files.groups, dict(sizes)
        learned = self._reserved + order_subtokens(files.read_vocabulary(ITERATIONS))
        self._rounds.end_round(asked, len(learned))
        return learned

    def _learned_for(self, min_count: int) -> int:
        return min(max(1, min_count), _LARGEST)

    def _min_counts_ahead(self, sizes: Mapping[int, int], most: int) -> list[int]:
        assert self._ahead is not None
        ahead = map(self._learned_for, self._ahead(self.largest_count, sizes, most))
        return [min_count for min_count in ahead if min_count >= self._lowest]

    def _survey(self) -> TokenStats:
        path = self._files.survey_path
        if not filesystem.exists(path):
            self._files.clear()  # the remains of a deletion that was killed
            rows = stored_rows(self._paths)
            if rows == 0:
                raise InputError(
                    f'no token in {", ".join(self._paths)}; there is nothing to learn from'
                )
            started = time.monotonic()
            bits = (rows // self._limits.sampled_tokens).bit_length()
            survey_tokens = SurveyTokens(path, bits, self._longest, self._limits.group_bytes)
            self._run_near(
                lambda pipeline: pipeline | CreateReshuffled(self._paths) | survey_tokens
            )
            _LOGGER.info(
                '%s: %d tokens surveyed in %.1f s', self._label, rows, time.monotonic() - started
            )
        return TokenStats.read(path)

    def _store_first(self, min_count: int) -> None:
        """Makes the first iteration's tables, in as many passes as they need.

        They are not needed after a round of this min-count or a lower one, which leaves the tables
        of its frequent suffixes.
        """
        if any(min_weight <= min_count for min_weight in self._stored):
            return
        groups = self._stats.groups
        sizes: dict[int, int] = {}
        first = 0
        started = time.monotonic()
        predicted = max(1, self._stats.predicted_bytes // len(groups))
        while first < len(groups):
            finished = read_json_if_there(self._files.pass_path(first))
            if finished is not None:
                first, pass_sizes = finished
                sizes.update(pass_sizes)
                continue
            ranges = pass_ranges([predicted] * (len(groups) - first), self._pass_bytes)
            last = first + next(ranges)[1]
            self._run_bounded(functools.partial(self._store_pass, first, last))
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
        count_substrings = self._count_substrings((), 1, (first, last))
        store_groups = StoreGroups(self._files.first, sizes_path, self._stats.groups, self._lowest)
        self._run_near(
            lambda pipeline: (
                pipeline
                | CreateReshuffled(self._paths)  # path
                | count_substrings  # (group, table)
                | store_groups
            )
        )
        write_json(self._files.pass_path(first), [last, list(read_stats(sizes_path))])
        filesystem.delete_file(sizes_path)

    def _learn_rounds(self, min_counts: Sequence[int]) -> None:
        self._store_first(min(min_counts))
        planned = [self._planned(min_count) for min_count in min_counts]
        while not all(planned_round.files.has_vocabulary(ITERATIONS) for planned_round in planned):
            self._run_bounded(functools.partial(self._run_rounds, planned))

    def _planned(self, min_count: int) -> PlannedRound:
        min_weight = max(min_weight for min_weight in self._stored if min_weight <= min_count)
        stored, sizes = self._stored[min_weight]
        return PlannedRound(self._files.round(min_count), min_count, stored, sizes)

    def _run_rounds(self, planned: Sequence[PlannedRound]) -> None:
        done = min(planned_round.files.iterations_done() for planned_round in planned)
        rounds = tuple(planned_round.files for planned_round in planned)
        numbers = range(len(self._stats.groups))
        plan = SelectionPlan(
            planned, self._stats.groups, self._alphabet, self._workers,
            self._limits.frequent_nodes,
        )  # fmt: skip
        steps: dict[str, beam.PTransform] = {}
        if done == 0:
            steps['Iteration1'] = SelectFromStored(plan)
        group_bytes = [
            sum(planned_round.sizes.get(group, 0) for planned_round in planned) for group in numbers
        ]
        ranges = list(pass_ranges(group_bytes, self._pass_bytes))
        for iteration in range(max(2, done + 1), ITERATIONS + 1):
            for part, group_range in enumerate(ranges):
                count_substrings = self._count_substrings(rounds, iteration, group_range)
                steps[f'Iteration{iteration}Part{part}'] = CountAndSelect(
                    plan, count_substrings, self._paths, part, ranges
                )
        self._run(functools.partial(build_chain, steps))

    def _count_substrings(
        self, rounds: tuple[RoundFiles, ...], iteration: int, group_range: tuple[int, int]
    ) -> CountSubstrings:
        return CountSubstrings(
            rounds,
            iteration,
            self._stats.groups,
            group_range,
            self._longest,
            self._workers,
            self._limits.bundle_bytes,
        )

    def _run_bounded(self, run: Callable[[], None]) -> None:
        """Runs a job; if a bundle's output would be too large, halves the passes for a retry."""
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


@dataclass(eq=False)
class SurveyTokens(beam.PTransform):
    """Surveys the tokens of count files (paths), and writes `TokenStats` with the prefix groups.

    Attributes:
        survey_path: the file to be written.
        bits: one token in 2^bits is sampled.
        longest: of the substrings counted, in characters.
        group_bytes: intended size of a group's table.
    """

    survey_path: str
    bits: int
    longest: int
    group_bytes: int = GROUP_BYTES

    def expand(self, paths: beam.PCollection) -> beam.PCollection:
        return (
            paths
            | 'Survey' >> beam.Map(_survey, self.bits, self.longest)  # packed survey
            | 'Gather' >> GatherToDriver()  # (0, [packed survey])
            | 'Write' >> beam.Map(_write_stats, self)
        )


def _survey(path: str, bits: int, longest: int) -> bytes:
    surveyor = Surveyor(bits, longest)
    for arrays in read_new_batches(path, UNSTORABLE):
        surveyor.add(*arrays)
    return pickle.dumps(surveyor.result())


def _write_stats(gathered: tuple[int, Iterable[bytes]], options: SurveyTokens) -> None:
    survey = add_surveys(map(pickle.loads, gathered[1]))
    predicted = survey.predicted_bytes(options.bits)
    groups = min(MAX_GROUPS, math.ceil(predicted / options.group_bytes))
    stats = TokenStats(
        survey.alphabet,
        survey.tokens,
        survey.characters,
        survey.weight,
        survey.largest_count,
        predicted,
        choose_groups(survey.sample, groups).borders,
    )
    stats.write(options.survey_path)


def fixed_subtokens(
    reserved_tokens: Sequence[str], characters: Iterable[str]
) -> tuple[tuple[str, ...], str]:
    """Returns the subtokens that are in every vocabulary of a learner.

    These are the reserved ones, escaped, in the order of their ids; and every character of all tokens, and
    of escaping, ascending.

    Args:
        reserved_tokens: reserved tokens after `RESERVED_TOKENS`.
        characters: of the tokens to learn from.
    """
    reserved = RESERVED_TOKENS + tuple(reserved_tokens)
    alphabet = alphabet_of([*reserved, *characters])
    escaped = tuple(escape_token(token, alphabet) for token in reserved)
    return escaped, ''.join(sorted(alphabet))
