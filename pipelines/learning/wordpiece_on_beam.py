"""The WordPiece learner on Beam: a job for the words, one for the first iteration, and one a min-count.

The words are partitioned once. The first iteration's counts serve all min-counts; the later
iterations of a min-count are steps of one job, each of which segments the words by the pieces that the
one before has written. Counts are tables, which are added up like those of tokens, without pieces
below the min-count. Of few words a job learns several min-counts. Finished work is in a folder, where a
new run of the driver continues.
"""

import dataclasses
import functools
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from pipelines.artifacts.counts import read_parquet_counts
from pipelines.engines.engine import RunPipeline
from pipelines.engines.pool import MOST_BUNDLE_BYTES, BundleOutput, with_output_types
from pipelines.files import filesystem
from pipelines.files.attempts import write_checked
from pipelines.learning.rounds import (
    ClaimedRun,
    EmitElements,
    GatherResults,
    WordFiles,
    build_chain,
    read_json_if_there,
    read_packed,
    write_json,
)
from pipelines.learning.search import (
    RoundsAhead,
    VocabularySearch,
    predicted_bytes,
    rounds_at_once,
)
from pipelines.transforms.count_tokens import MergeTablesFn, TableOrPath, pack_or_spill
from pipelines.transforms.read import CreateReshuffled, MapToStats
from pipelines.transforms.stats import WriteStats, read_stats
from tokcore.counts.tables import (
    COUNT_PARTITIONS,
    concatenate_tables,
    partition_table,
    refuse_unstorable,
)
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.scheme import Learned
from tokcore.errors import InputError
from tokcore.learning.size_search import Progress, min_counts_ahead
from tokcore.warm_up import compile_learning
from tokcore.wordpiece.learner import (
    WordFilter,
    Words,
    character_counts,
    first_counts,
    later_counts,
    most_frequent_characters,
    pieces_by_id,
    search_pieces,
    split_counts,
    words_of_counts,
)
from tokcore.wordpiece.options import WordPieceOptions
from tokcore.wordpiece.vocabulary import WordPieceVocabulary

_METRICS = 'tokbeam.wordpiece'

_MOST_AT_ONCE = 7
"""Most min-counts in one job: each has tables of its own in all partitions, so that 31 took four times as
long as 6."""

_ENDINGS_SIZE = 4
"""All endings of a word are some four times as long as it is."""


def search_on_beam(
    search: VocabularySearch[WordPieceOptions], report: Progress
) -> tuple[Learned, int]:
    """Learns on the workers; returns the result and the predicted memory of learning in memory.

    Raises:
        InputError: as `VocabularySearch.run`.
    """
    options, size = search.options, search.counts.size()
    paths = search.parquet_paths()
    rounds = search.search_rounds(
        scheme=search.scheme.name,
        partitions=COUNT_PARTITIONS,
        options={**dataclasses.asdict(options), 'learner': 'beam'},
    )
    with rounds.claimed() as claim:
        search.engine.compile_first(functools.partial(compile_learning, search.scheme))
        learner = BeamPieceLearner(
            paths,
            WordFiles(rounds.folder),
            search.work,
            ClaimedRun(claim, search.engine.run),
            options,
            search.label,
            ClaimedRun(claim, search.engine.near(_ENDINGS_SIZE * size.bytes).run),
            # On this machine there is nobody else to learn what may not be needed.
            looks_ahead=not search.engine.runner.is_local,
            unstorable=search.scheme.unstorable,
        )
        result = search_pieces(learner.build, learner.bounds, options, report)
    vocabulary = WordPieceVocabulary(result.subtokens, options.joiner)
    learned = Learned.by_search(vocabulary, result, learner.smallest_size)
    return learned, predicted_bytes(size, search.scheme.learner_bytes_per_character)


class BeamPieceLearner:
    """Learns the same pieces as `PieceLearner` by endings, on the workers.

    Args:
        paths: Parquet files of token counts; a word may occur in several.
        files: in a folder reached by driver and workers. What a learner of the same counts and
            options has finished there is taken up.
        work: another such folder, of this run alone.
        run: runs a pipeline that a function builds, and waits for its end.
        options: of learning; the search for the size is looked ahead in, and else not used.
        label: begins log messages.
        run_near: as `run`, for light work before the first round; None: as `run`.
        looks_ahead: whether a pipeline may learn min-counts that the search may come to.
        unstorable: characters that no token may have; see `Scheme.unstorable`.

    Raises:
        InputError: there is no word, or more than `max_words`, or a file cannot be used.
    """

    def __init__(
        self,
        paths: Sequence[str],
        files: WordFiles,
        work: str,
        run: RunPipeline,
        options: WordPieceOptions,
        label: str = 'vocab',
        run_near: RunPipeline | None = None,
        looks_ahead: bool = False,
        unstorable: str = '',
    ):
        self._files, self._run, self._run_near = files, run, run_near or run
        self._options = options
        self._work = os.path.join(work, f'wordpiece-{uuid.uuid4().hex}')
        all_words = WordFilter(frozenset(options.first_entries), options.max_learned_word_length)
        survey = self._survey(paths, all_words, unstorable)
        if not survey.words:
            raise InputError('there is no word to learn from; check the text and its counts')
        if options.max_words is not None and survey.words > options.max_words:
            raise InputError(
                f'{survey.words} words are more than {options.max_words}, and the learner on Beam does not '
                'choose the commonest of them; give --learner memory'
            )
        low, high = options.min_count_range
        self.bounds = max(low, survey.smallest_count), min(high, survey.largest_count)
        alphabet = most_frequent_characters(survey.characters, options.max_characters)
        self._filter = dataclasses.replace(all_words, characters=alphabet)
        self._partitions = survey.partitions
        # The least min-count that a search can try: the bisection of TensorFlow Text may end one below
        # its lower bound.
        min_count = max(1, min(self.bounds[0] - 1, sum(self.bounds) // 2))
        self._first, characters = self._count_first(min_count)
        self._characters = tuple(characters)  # one object, which a job of many rounds has once
        self._rounds = RoundsAhead(
            label,
            min(_MOST_AT_ONCE, rounds_at_once(survey.words)),
            lambda min_count: filesystem.exists(
                self._files.pieces_path(min_count, options.iterations)
            ),
            self._min_counts_ahead if looks_ahead else None,
        )

    @property
    def smallest_size(self) -> int:
        """The size of the smallest vocabulary."""
        return len(pieces_by_id({}, self._characters, self._options))

    def build(self, min_count: int) -> tuple[str, ...]:
        """Returns the pieces by id, as `PieceLearner.build`."""
        if min_counts := self._rounds.begin_round(min_count):
            self._learn_rounds(min_counts)
        path = self._files.pieces_path(min_count, self._options.iterations)
        words, endings = split_counts(read_packed(TokenTable, path))
        joined = {self._options.joiner + ending: count for ending, count in endings.items()}
        # If a word and an ending are one piece, the ending's count is used.
        pieces = pieces_by_id(words | joined, self._characters, self._options)
        self._rounds.end_round(min_count, len(pieces))
        return pieces

    def _min_counts_ahead(self, sizes: Mapping[int, int], most: int) -> list[int]:
        def search(build: Callable) -> None:
            search_pieces(build, self.bounds, self._options, lambda *_: None)

        return min_counts_ahead(search, sizes, self._options.vocab_size, most)

    def _learn_rounds(self, min_counts: Sequence[int]) -> None:
        for min_count in min_counts:
            path = self._files.pieces_path(min_count, 1)
            if not filesystem.exists(path):
                write_checked(path, _frequent(self._first, min_count).to_bytes())
        done = min(map(self._iterations_done, min_counts))
        steps = {
            f'Iteration{number + 1}': _SelectPieces(
                self._words_paths(),
                self._filter,
                self._characters,
                self._options.joiner,
                self._files,
                min_counts,
                number,
                os.path.join(self._work, f'counts-{min_counts[0]}-{number}'),
            )
            for number in range(done, self._options.iterations)
        }
        if steps:
            self._run(functools.partial(build_chain, steps))

    def _iterations_done(self, min_count: int) -> int:
        """Returns how many iterations have left their pieces; they are written in their order."""
        numbers = range(1, self._options.iterations + 1)
        return sum(
            filesystem.exists(self._files.pieces_path(min_count, number)) for number in numbers
        )

    def _words_paths(self) -> list[str]:
        return [self._files.words_path(partition) for partition in self._partitions]

    def _survey(self, paths: Sequence[str], word_filter: WordFilter, unstorable: str) -> '_Survey':
        """Writes the words to files, each word to that of its partition, and surveys them."""
        files = self._files
        stored = read_json_if_there(files.survey_path)
        if stored is not None:
            return _Survey(*stored)
        files.clear()  # the remains of a deletion that was killed
        stats_path = os.path.join(self._work, 'survey')

        def build(pipeline: beam.Pipeline) -> None:
            (
                pipeline
                | CreateReshuffled(list(paths))  # path
                | 'SumTables' >> SumTables(functools.partial(_read_counts, unstorable), self._work)
                # (partition, table)
                | 'WriteWords' >> beam.Map(_survey_words, files, word_filter)  # _Survey
                | 'WriteStats' >> WriteStats(stats_path)
            )

        self._run_near(build)
        survey = _Survey.of_all(list(read_stats(stats_path, _Survey)))
        write_json(files.survey_path, dataclasses.astuple(survey))
        return survey

    def _count_first(self, min_count: int) -> tuple[TokenTable, list[str]]:
        """Returns the counts of words and all endings, and the characters of the words."""
        files = self._files
        stored = read_json_if_there(files.first_path)
        if stored is None:
            stored = self._run_first(min_count)
            write_json(files.first_path, stored)
        partitions, characters = stored
        tables = [read_packed(TokenTable, files.first_counts_path(number)) for number in partitions]
        return concatenate_tables([TokenTable.from_items([]), *tables]), characters

    def _run_first(self, min_count: int) -> tuple[list[int], list[str]]:
        files = self._files
        counted, surveyed = (os.path.join(self._work, name) for name in ('first', 'characters'))

        def build(pipeline: beam.Pipeline) -> None:
            (
                pipeline
                | 'Words' >> CreateReshuffled(self._words_paths())
                | 'SumTables'
                >> SumTables(functools.partial(_count_first, self._filter), self._work)
                | 'WriteFrequent' >> beam.Map(_write_frequent, files.first_counts_path, min_count)
                | 'WriteStats' >> WriteStats(counted)
            )
            survey = functools.partial(_survey_characters, self._filter)
            pipeline | 'Characters' >> MapToStats(self._words_paths(), survey, surveyed)

        self._run_near(build)
        return sorted(read_stats(counted)), sorted({*''.join(read_stats(surveyed))})


@dataclass(frozen=True)
class _Survey:
    """A survey of the words of some partitions, none of them empty."""

    partitions: list[int]
    words: int
    smallest_count: int
    largest_count: int
    characters: dict[str, int]  # counts of the characters of the words to learn from

    @classmethod
    def of_all(cls, surveys: Sequence['_Survey']) -> '_Survey':
        sums: dict[str, int] = {}
        for survey in surveys:
            for character, count in survey.characters.items():
                sums[character] = sums.get(character, 0) + count
        return cls(
            sorted(number for survey in surveys for number in survey.partitions),
            sum(survey.words for survey in surveys),
            min((survey.smallest_count for survey in surveys), default=0),
            max((survey.largest_count for survey in surveys), default=0),
            sums,
        )


def _survey_words(
    element: tuple[int, TokenTable], files: WordFiles, word_filter: WordFilter
) -> _Survey:
    partition, table = element
    write_checked(files.words_path(partition), table.to_bytes())
    characters = character_counts(word_filter.select(table))
    counts = table.counts
    return _Survey([partition], len(table), int(counts.min()), int(counts.max()), characters)


def _write_frequent(
    element: tuple[int, TokenTable], path_of: Callable[[int], str], min_count: int
) -> int:
    """Writes the counts of a partition that are frequent; returns the partition."""
    partition, table = element
    write_checked(path_of(partition), _frequent(table, min_count).to_bytes())
    return partition


def _frequent(table: TokenTable, min_count: int) -> TokenTable:
    return table.pick((table.counts >= min_count).nonzero()[0])


def _read_counts(unstorable: str, path: str) -> list[TokenTable]:
    try:
        table = read_parquet_counts(path)
    except OverflowError as error:
        raise InputError(f'{error}; make the counts smaller') from error
    refuse_unstorable(path, table.data, table.offsets, unstorable)
    return [table]


def _survey_characters(word_filter: WordFilter, path: str) -> list[str]:
    words = word_filter.select(read_packed(TokenTable, path))
    return [''.join(character_counts(words))]


def _count_first(word_filter: WordFilter, path: str) -> list[TokenTable]:
    return [first_counts(word_filter.select(read_packed(TokenTable, path)))]


@dataclass(eq=False)
class _SelectPieces(beam.PTransform):
    """A later iteration of some min-counts: signal to signal. Writes the pieces that are frequent.

    Attributes:
        paths: the files of the words.
        word_filter: selects the words to learn from.
        characters: of these words.
        joiner: begins the pieces of endings.
        files: of the pieces.
        min_counts: whose pieces are selected.
        number: of the iteration before, from 1.
        folder: gets the counts of the partitions.
    """

    paths: Sequence[str]
    word_filter: WordFilter
    characters: tuple[str, ...]
    joiner: str
    files: WordFiles
    min_counts: Sequence[int]
    number: int
    folder: str

    def expand(self, signal: beam.PCollection) -> beam.PCollection:
        counted = (
            signal
            | 'EmitPaths' >> EmitElements(self.paths)  # path
            | 'SumTables' >> SumTables(self._count, self.folder)  # (partition, table)
            | 'WriteFrequent' >> beam.Map(self._write_frequent)
        )
        return (
            (signal, counted)
            | 'Gather' >> GatherResults()  # (0, [partition | None])
            | 'WritePieces' >> beam.Map(self._write_pieces)  # signal
        )

    def _count(self, path: str) -> list[TokenTable]:
        words = self.word_filter.select(read_packed(TokenTable, path))
        return [self._count_endings(words, min_count) for min_count in self.min_counts]

    def _pieces_before(self, min_count: int) -> TokenTable:
        return read_packed(TokenTable, self.files.pieces_path(min_count, self.number))

    def _count_endings(self, words: Words, min_count: int) -> TokenTable:
        """Segments words by the pieces before, and counts the endings."""
        known, endings = split_counts(self._pieces_before(min_count))
        joined = (self.joiner + text for text in (*endings, *self.characters))
        pieces = [*dict.fromkeys([*known, *self.characters, *joined])]
        return later_counts(words, pieces, self.joiner)

    def _write_frequent(self, element: tuple[int, TokenTable]) -> int:
        min_count = self.min_counts[element[0] // COUNT_PARTITIONS]
        return _write_frequent(element, self._part_path, min_count)

    def _write_pieces(self, gathered: tuple[int, Iterable[int | None]]) -> int:
        """Writes the frequent endings that are gathered, and the words, which stay the same."""
        partitions = sorted(number for number in gathered[1] if number is not None)
        for index, min_count in enumerate(self.min_counts):
            tables = [
                read_packed(TokenTable, self._part_path(partition))
                for partition in partitions
                if partition // COUNT_PARTITIONS == index
            ]
            words = words_of_counts(self._pieces_before(min_count))
            path = self.files.pieces_path(min_count, self.number + 1)
            write_checked(path, concatenate_tables([words, *tables]).to_bytes())
        return gathered[0]

    def _part_path(self, partition: int) -> str:
        return os.path.join(self.folder, f'part-{partition:05d}')


@dataclass(eq=False)
class SumTables(beam.PTransform):
    """Adds up the tables that a function makes of elements; returns (partition, `TokenTable`).

    Attributes:
        make: makes tables of an element. Those of all elements are added up one by one; partitions of
            the nth, from 0, have numbers from n times `COUNT_PARTITIONS` on.
        spill_folder: a folder that all workers reach, for tables that exceed a bundle's bound.
        partition: divides a table into partitions with their numbers.
    """

    make: Callable[[Any], Sequence[TokenTable]]
    spill_folder: str
    partition: Callable[[TokenTable], Iterable[tuple[int, TokenTable]]] = functools.partial(
        partition_table, partitions=COUNT_PARTITIONS
    )

    def expand(self, paths: beam.PCollection) -> beam.PCollection:
        return (
            paths
            | 'Make' >> beam.ParDo(_PartitionTableFn(self))
            | with_output_types(tuple[int, TableOrPath])
            | 'Merge' >> beam.CombinePerKey(MergeTablesFn())  # (partition, table)
        )


class _PartitionTableFn(beam.DoFn):
    """Emits the partitions of the tables that a function makes of each element."""

    def __init__(self, transform: SumTables):
        self._make, self._spill_folder = transform.make, transform.spill_folder
        self._partition = transform.partition
        self._output = BundleOutput(_METRICS, MOST_BUNDLE_BYTES)

    def start_bundle(self) -> None:
        self._output.begin()

    def process(self, element: Any) -> Iterator[tuple[int, TableOrPath]]:
        for number, made in enumerate(self._make(element)):
            first = number * COUNT_PARTITIONS
            for partition, table in self._partition(made):
                packed = pack_or_spill(table.to_bytes(), self._output, self._spill_folder)
                yield first + partition, packed

    def finish_bundle(self) -> None:
        self._output.end()
