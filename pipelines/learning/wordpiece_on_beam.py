"""The WordPiece learner on Beam: each iteration is a pipeline over the partitions of the words.

The words are partitioned once. The first iteration's counts serve all min-counts; each later
iteration of a min-count is a pipeline of its own, which reads the pieces so far from a file. The
results are tables of counts, which are added up like those of tokens, without pieces below the
min-count.
"""

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import apache_beam as beam
import pyarrow.parquet as parquet

from pipelines.engines.engine import RunPipeline
from pipelines.engines.pool import MOST_BUNDLE_BYTES, BundleOutput, with_output_types
from pipelines.files import filesystem
from pipelines.learning.search import VocabularySearch, predicted_bytes
from pipelines.transforms.count_tokens import (
    MergeTablesFn,
    TableOrPath,
    WriteCounts,
    WrittenCounts,
    pack_or_spill,
)
from pipelines.transforms.read import CreateReshuffled, MapToStats
from pipelines.transforms.stats import WriteStats, read_stats
from tokcore.counts.tables import COUNT_PARTITIONS, partition_table
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.scheme import Learned, Scheme
from tokcore.errors import InputError
from tokcore.learning.size_search import Progress
from tokcore.wordpiece.learner import (
    WordFilter,
    first_counts,
    later_counts,
    pieces_by_id,
    search_pieces,
    split_counts,
)
from tokcore.wordpiece.learner_kernels import character_counts, most_frequent_characters
from tokcore.wordpiece.options import WordPieceOptions
from tokcore.wordpiece.vocabulary import WordPieceVocabulary

_METRICS = 'tokbeam.wordpiece'


def search_on_beam(
    search: VocabularySearch[WordPieceOptions], report: Progress
) -> tuple[Learned, int]:
    """Learns on the workers; returns the result and the predicted memory of learning in memory.

    Raises:
        InputError: as `VocabularySearch.run`.
    """
    options, size = search.options, search.counts.size()
    paths = search.parquet_paths()
    learner = BeamPieceLearner(paths, search.work, search.engine.run, search.scheme, options)
    result = search_pieces(learner.build, learner.smallest_size, learner.bounds, options, report)
    learned = Learned(
        WordPieceVocabulary(result.pieces, options.joiner),
        result.min_count,
        result.tried,
        result.reachable,
        result.smallest_size,
    )
    return learned, predicted_bytes(size, search.scheme.learner_bytes_per_character)


class BeamPieceLearner:
    """Learns the same pieces as `PieceLearner` by endings, on the workers.

    Args:
        paths: Parquet files of token counts; a word may occur in several.
        work: a folder reached by driver and workers, where the learner leaves its files.
        run: runs a pipeline, which it builds by the function that it is given, and waits for its
          end.
        scheme: the scheme of the counts.
        options: of learning; size and search are not used.

    Raises:
        InputError: there is no word, or more than `max_words`.
    """

    def __init__(
        self,
        paths: Sequence[str],
        work: str,
        run: RunPipeline,
        scheme: Scheme,
        options: WordPieceOptions,
    ):
        self._work = filesystem.join(work, f'wordpiece-{uuid.uuid4().hex}')
        self._run, self._options = run, options
        self._paths = self._partition_words(paths, scheme)
        word_filter = WordFilter(frozenset(options.first_entries), options.max_learned_word_length)
        surveys = self._survey_words(word_filter, 'survey')
        words = sum(survey.words for survey in surveys)
        if not words:
            raise InputError('there is no word to learn from; check the text and its counts')
        if options.max_words is not None and words > options.max_words:
            raise InputError(
                f'{words} words are more than the {options.max_words} of --max-words, among which '
                'the learner on Beam does not choose; give --max-words none, or --learner memory'
            )
        low, high = options.min_count_range
        self.bounds = (
            max(low, min(survey.smallest_count for survey in surveys if survey.words)),
            min(high, max(survey.largest_count for survey in surveys)),
        )
        character_sums: dict[str, int] = {}
        for survey in surveys:
            for character, count in survey.characters.items():
                character_sums[character] = character_sums.get(character, 0) + count
        alphabet = most_frequent_characters(character_sums, options.max_characters)
        self._filter = WordFilter(word_filter.special_tokens, word_filter.max_length, alphabet)
        # The least min-count that a search can try.
        min_count = max(1, min(self.bounds[0], sum(self.bounds) // 2))
        tables = self._sum_frequent('first', _CountFirst(self._filter), min_count)
        self._words, self._first_endings = split_counts(tables)
        surveys = self._survey_words(self._filter, 'characters')
        self._characters = sorted(set().union(*(survey.characters for survey in surveys)))

    @property
    def smallest_size(self) -> int:
        """The size of the smallest vocabulary."""
        return len(pieces_by_id({}, self._characters, self._options))

    def build(self, min_count: int) -> tuple[str, ...]:
        """Returns the pieces by id, as `PieceLearner.build`."""
        endings = self._first_endings
        for iteration in range(1, self._options.iterations):
            pieces = self._frequent_pieces(endings, min_count)
            endings = self._count_endings(pieces, min_count, iteration)
        pieces = self._frequent_pieces(endings, min_count)
        return pieces_by_id(pieces, self._characters, self._options)

    def _partition_words(self, paths: Sequence[str], scheme: Scheme) -> list[str]:
        """Writes the words to files, each word to that of its partition; returns the paths."""
        folder, stats_path = (filesystem.join(self._work, name) for name in ('words', 'partitions'))

        def build(pipeline: beam.Pipeline) -> None:
            (
                pipeline
                | CreateReshuffled(list(paths))  # path
                | 'ReadCounts' >> beam.ParDo(_PartitionTableFn(_read_table, self._work))
                | with_output_types(tuple[int, TableOrPath])
                | 'MergeTables' >> beam.CombinePerKey(MergeTablesFn())  # (partition, table)
                | 'WriteWords' >> WriteCounts([folder], 1, scheme)  # WrittenCounts
                | 'WriteStats' >> WriteStats(stats_path)
            )

        self._run(build)
        written = read_stats(stats_path, WrittenCounts)
        return sorted(filesystem.join(folder, file.name) for file in written)

    def _survey_words(self, word_filter: WordFilter, name: str) -> list['_WordSurvey']:
        stats_path = filesystem.join(self._work, name)
        survey = _SurveyWords(word_filter)
        self._run(lambda pipeline: pipeline | MapToStats(self._paths, survey, stats_path))
        return list(read_stats(stats_path, _WordSurvey))

    def _frequent_pieces(self, endings: dict[str, int], min_count: int) -> dict[str, int]:
        """Returns the counts of the frequent words and of the frequent endings, with joiners."""
        joiner = self._options.joiner
        words = {word: count for word, count in self._words.items() if count >= min_count}
        return words | {
            joiner + ending: count for ending, count in endings.items() if count >= min_count
        }

    def _count_endings(
        self, frequent_pieces: dict[str, int], min_count: int, iteration: int
    ) -> dict[str, int]:
        """Segments the words by the pieces so far, and returns the counts of frequent endings."""
        joiner = self._options.joiner
        joined = (joiner + character for character in self._characters)
        pieces = [*dict.fromkeys([*frequent_pieces, *self._characters, *joined])]
        name = f'{min_count}-{iteration}'
        path = filesystem.join(self._work, f'pieces-{name}.json')
        filesystem.write_bytes(path, json.dumps(pieces).encode())
        count = _CountLater(self._filter, path, joiner)
        _, endings = split_counts(self._sum_frequent(name, count, min_count))
        return endings

    def _sum_frequent(
        self, name: str, count: Callable[[str], TokenTable], min_count: int
    ) -> list[TokenTable]:
        """Adds up the tables that a function makes of paths, without counts below `min_count`."""
        folder = filesystem.join(self._work, f'counts-{name}')
        stats_path = filesystem.join(self._work, f'counted-{name}')

        def build(pipeline: beam.Pipeline) -> None:
            (
                pipeline
                | CreateReshuffled(self._paths)  # path
                | 'Count' >> beam.ParDo(_PartitionTableFn(count, self._work))
                | with_output_types(tuple[int, TableOrPath])
                | 'MergeTables' >> beam.CombinePerKey(MergeTablesFn())  # (partition, table)
                | 'WriteFrequent' >> beam.Map(_write_frequent, folder, min_count)  # _WrittenTable
                | 'WriteStats' >> WriteStats(stats_path)
            )

        self._run(build)
        names = sorted(file.name for file in read_stats(stats_path, _WrittenTable))
        return [
            TokenTable.from_bytes(filesystem.read_bytes(filesystem.join(folder, name)))
            for name in names
        ]


@dataclass(frozen=True)
class _WordSurvey:
    """A survey of the words of a partition."""

    words: int
    smallest_count: int
    largest_count: int
    characters: dict[str, int]  # counts of the characters of the words to learn from


@dataclass(frozen=True)
class _WrittenTable:
    """A file of a packed table."""

    name: str


def _write_frequent(element: tuple[int, TokenTable], folder: str, min_count: int) -> _WrittenTable:
    partition, table = element
    frequent = table.pick((table.counts >= min_count).nonzero()[0])
    name = f'counts-{partition:05d}'
    filesystem.write_bytes(filesystem.join(folder, name), frequent.to_bytes())
    return _WrittenTable(name)


def _read_table(path: str) -> TokenTable:
    with filesystem.open_binary(path) as stream:
        return TokenTable.from_arrow(parquet.read_table(stream, columns=['token', 'count']))


@dataclass(frozen=True)
class _SurveyWords:
    word_filter: WordFilter

    def __call__(self, path: str) -> list[_WordSurvey]:
        table = _read_table(path)
        characters = character_counts(self.word_filter.select(table))
        smallest = int(table.counts.min()) if len(table) else 0
        largest = int(table.counts.max()) if len(table) else 0
        return [_WordSurvey(len(table), smallest, largest, characters)]


@dataclass(frozen=True)
class _CountFirst:
    word_filter: WordFilter

    def __call__(self, path: str) -> TokenTable:
        return first_counts(self.word_filter.select(_read_table(path)))


@dataclass(frozen=True)
class _CountLater:
    word_filter: WordFilter
    pieces_path: str
    joiner: str

    def __call__(self, path: str) -> TokenTable:
        pieces = json.loads(filesystem.read_bytes(self.pieces_path))
        return later_counts(self.word_filter.select(_read_table(path)), pieces, self.joiner)


class _PartitionTableFn(beam.DoFn):
    """Emits the partitions of the table that a function makes of each path."""

    def __init__(self, make: Callable[[str], TokenTable], spill_folder: str):
        self._make, self._spill_folder = make, spill_folder
        self._output = BundleOutput(_METRICS, MOST_BUNDLE_BYTES)

    def start_bundle(self) -> None:
        self._output.begin()

    def process(self, element: str):
        for partition, table in partition_table(self._make(element), COUNT_PARTITIONS):
            yield partition, pack_or_spill(table.to_bytes(), self._output, self._spill_folder)

    def finish_bundle(self) -> None:
        self._output.end()
