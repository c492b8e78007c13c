"""WordPiece vocabularies on Beam: every iteration is a pipeline over the partitions of the words.

The words are partitioned once. One pipeline does the first iteration, whose weights hold for every
min-count, and one each later iteration of each min-count, with the pieces so far in a file. The
results are tables of weights, added up like tables of counts, without what is too rare to matter.
"""

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import apache_beam as beam
import pyarrow.parquet as parquet

from pipelines.artifacts.counts import read_counts
from pipelines.engines.pool import MOST_BUNDLE_BYTES, BundleOutput, with_output_types
from pipelines.files import filesystem
from pipelines.learning.search import VocabularySearch, predicted_bytes
from pipelines.transforms.count_tokens import (
    MergeTablesFn,
    TableMessage,
    WriteCounts,
    WrittenCounts,
    pack_or_spill,
    write_counts_file,
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

RunPipeline = Callable[[Callable[[beam.Pipeline], None]], None]

_METRICS = 'tokbeam.wordpiece'


def search_on_beam(search: VocabularySearch, report: Progress) -> tuple[Learned, int]:
    """Learns on the workers; returns the memory too that was predicted of one in this process.

    Raises:
        InputError: as `VocabularySearch.run`.
    """
    counts, options = search.counts, search.options
    size = counts.size()
    if size.all_parquet:
        paths = [file.path for file in counts.files]
        counts.let_go(*counts.files)  # the workers read them
    else:
        table = read_counts(counts, search.scheme.unstorable)
        written = write_counts_file(search.work, 0, table, search.scheme.rules)
        paths = [filesystem.join(search.work, written.name)]
    learner = BeamPieceLearner(paths, search.work, search.engine.run, search.scheme, options)
    found = search_pieces(learner.build, learner.smallest_size, learner.bounds, options, report)
    learned = Learned(
        WordPieceVocabulary(found.pieces, options.joiner),
        found.min_count,
        found.tried,
        found.reachable,
        found.smallest_size,
    )
    return learned, predicted_bytes(size, search.scheme.learner_bytes_per_character)


@dataclass(frozen=True)
class WordSurvey:
    """What a partition tells of its words."""

    words: int
    least: int
    largest: int
    characters: dict[str, int]  # by their weights, in words that are learned from


class BeamPieceLearner:
    """Learns what `PieceLearner` learns by endings, on the workers.

    Args:
        paths: Parquet files of token counts; a word may stand in several.
        work: a folder that driver and workers reach; it is left with the learner's files in it.
        run: builds a pipeline by the function it is given, runs it and waits for its end.
        scheme: whose words they are.
        options: what is asked for, all but the size and the search.

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
        self._paths = self._gathered(paths, scheme)
        chosen = WordFilter(frozenset(options.first_entries), options.max_learned_word_length)
        surveys = self._surveyed(chosen)
        words = sum(each.words for each in surveys)
        if not words:
            raise InputError('there is no word to learn from; check the text and its counts')
        if options.max_words is not None and words > options.max_words:
            raise InputError(
                f'{words} words are more than the {options.max_words} of --max-words, among which '
                'the learner on Beam does not choose; give --max-words none, or --learner memory'
            )
        low, high = options.min_count_range
        self.bounds = (
            max(low, min(each.least for each in surveys if each.words)),
            min(high, max(each.largest for each in surveys)),
        )
        weights: dict[str, int] = {}
        for each in surveys:
            for character, weight in each.characters.items():
                weights[character] = weights.get(character, 0) + weight
        commonest = most_frequent_characters(weights, options.max_characters)
        self._chosen = WordFilter(chosen.special_tokens, chosen.max_length, commonest)
        least = max(1, min(self.bounds[0], sum(self.bounds) // 2))
        self._words, self._first_endings, self._characters = self._first(least)

    def _gathered(self, paths: Sequence[str], scheme: Scheme) -> list[str]:
        """Puts each word into one file of a partition; returns their paths."""
        folder, report = (filesystem.join(self._work, name) for name in ('words', 'gathered'))

        def build(pipeline: beam.Pipeline) -> None:
            (
                pipeline
                | CreateReshuffled(list(paths))
                | 'ReadCounts' >> beam.ParDo(_TablesFn(_read_table, self._work))
                | with_output_types(tuple[int, TableMessage])
                | 'MergeTables' >> beam.CombinePerKey(MergeTablesFn())  # (partition, table)
                | 'WriteWords' >> WriteCounts([folder], 1, scheme)
                | 'Report' >> WriteStats(report)
            )

        self._run(build)
        written = read_stats(report, WrittenCounts)
        return sorted(filesystem.join(folder, each.name) for each in written)

    def _surveyed(self, chosen: WordFilter) -> list[WordSurvey]:
        report = filesystem.join(self._work, 'survey')
        self._run(lambda pipeline: pipeline | MapToStats(self._paths, _Survey(chosen), report))
        return list(read_stats(report, WordSurvey))

    def _first(self, least: int) -> tuple[dict[str, int], dict[str, int], list[str]]:
        """The weights of words and endings of the first iteration, and all characters of words."""
        words, endings = split_counts(self._weighed('first', _FirstWeights(self._chosen), least))
        report = filesystem.join(self._work, 'characters')
        chosen = self._chosen
        self._run(lambda pipeline: pipeline | MapToStats(self._paths, _Survey(chosen), report))
        found = {each for survey in read_stats(report, WordSurvey) for each in survey.characters}
        return words, endings, sorted(found)

    @property
    def smallest_size(self) -> int:
        """The size that no min-count gets below."""
        return len(pieces_by_id({}, self._characters, self._options))

    def build(self, min_count: int) -> tuple[str, ...]:
        """Returns the pieces by id, as `PieceLearner.build` does."""
        endings = self._first_endings
        for iteration in range(self._options.iterations):
            if iteration:
                endings = self._later(self._kept(endings, min_count), min_count, iteration)
        return pieces_by_id(self._kept(endings, min_count), self._characters, self._options)

    def _kept(self, endings: dict[str, int], min_count: int) -> dict[str, int]:
        kept = {word: weight for word, weight in self._words.items() if weight >= min_count}
        joiner = self._options.joiner
        return kept | {
            joiner + ending: weight for ending, weight in endings.items() if weight >= min_count
        }

    def _later(self, kept: dict[str, int], min_count: int, iteration: int) -> dict[str, int]:
        joiner = self._options.joiner
        joined = (joiner + each for each in self._characters)
        pieces = [*dict.fromkeys([*kept, *self._characters, *joined])]
        name = f'{min_count}-{iteration}'
        path = filesystem.join(self._work, f'pieces-{name}.json')
        filesystem.write_bytes(path, json.dumps(pieces).encode())
        weights = _LaterWeights(self._chosen, path, joiner)
        return split_counts(self._weighed(name, weights, min_count))[1]

    def _weighed(
        self, name: str, weigh: Callable[[str], TokenTable], least: int
    ) -> list[TokenTable]:
        """The sums of what a function gives for all partitions, of at least some weight."""
        folder = filesystem.join(self._work, f'weights-{name}')
        report = filesystem.join(self._work, f'weighed-{name}')

        def build(pipeline: beam.Pipeline) -> None:
            (
                pipeline
                | CreateReshuffled(self._paths)
                | 'Weigh' >> beam.ParDo(_TablesFn(weigh, self._work))
                | with_output_types(tuple[int, TableMessage])
                | 'MergeTables' >> beam.CombinePerKey(MergeTablesFn())  # (partition, table)
                | 'Write' >> beam.Map(_write_frequent, folder, least)
                | 'Report' >> WriteStats(report)
            )

        self._run(build)
        names = sorted(each.name for each in read_stats(report, WrittenWeights))
        return [
            TokenTable.from_bytes(filesystem.read_bytes(filesystem.join(folder, each)))
            for each in names
        ]


@dataclass(frozen=True)
class WrittenWeights:
    """A file of weights."""

    name: str


def _write_frequent(element: tuple[int, TokenTable], folder: str, least: int) -> WrittenWeights:
    partition, table = element
    kept = table.pick((table.counts >= least).nonzero()[0])
    name = f'weights-{partition:05d}'
    filesystem.write_bytes(filesystem.join(folder, name), kept.to_bytes())
    return WrittenWeights(name)


def _read_table(path: str) -> TokenTable:
    with filesystem.open_binary(path) as stream:
        return TokenTable.from_arrow(parquet.read_table(stream, columns=['token', 'count']))


@dataclass(frozen=True)
class _Survey:
    chosen: WordFilter

    def __call__(self, path: str) -> list[WordSurvey]:
        table = _read_table(path)
        words = self.chosen.select(table)
        least, largest = (
            (int(table.counts.min()), int(table.counts.max())) if len(table) else (0, 0)
        )
        return [WordSurvey(len(table), least, largest, character_counts(words))]


@dataclass(frozen=True)
class _FirstWeights:
    chosen: WordFilter

    def __call__(self, path: str) -> TokenTable:
        return first_counts(self.chosen.select(_read_table(path)))


@dataclass(frozen=True)
class _LaterWeights:
    chosen: WordFilter
    pieces_path: str
    joiner: str

    def __call__(self, path: str) -> TokenTable:
        pieces = json.loads(filesystem.read_bytes(self.pieces_path))
        return later_counts(self.chosen.select(_read_table(path)), pieces, self.joiner)


class _TablesFn(beam.DoFn):
    """Gives the partitions of the table that a function makes of each element."""

    def __init__(self, make: Callable[[str], TokenTable], overflow: str):
        self._make, self._overflow = make, overflow
        self._output = BundleOutput(_METRICS, MOST_BUNDLE_BYTES)

    def start_bundle(self) -> None:
        self._output.begin()

    def process(self, element: str):
        for partition, table in partition_table(self._make(element), COUNT_PARTITIONS):
            yield partition, pack_or_spill(table.to_bytes(), self._output, self._overflow)

    def finish_bundle(self) -> None:
        self._output.end()
