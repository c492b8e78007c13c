"""Byte pair encoding learned on Beam, in the rounds of `tokcore.bpe.cutting`.

The words are in files, one for each part of the counts. A round is two jobs: workers make the last
merges in the words and count the pairs; and they cut the words at rare pairs. Sums of pairs and of
fragments are packed tables, in partitions. The driver merges in the fragments.

    merges, words ──▶ words with these made, counts of pairs ──▶ threshold
    words, frequent pairs ──▶ fragments ──▶ more merges

The merges are all that the next round needs, and they do not depend on thresholds, workers or
memory. So a new run goes on from the merges of one that was killed, with whatever words are there.
"""

import contextlib
import dataclasses
import functools
import logging
import os
import queue
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import apache_beam as beam

from pipelines.artifacts.counts import CountedSize, CountsPart, counts_parts, read_new_batches
from pipelines.engines.engine import RunPipeline
from pipelines.engines.machine import peak_bytes
from pipelines.engines.pool import BundleOutput, OrderedPool, in_global_window, with_output_types
from pipelines.engines.progress import ON_BAR
from pipelines.files import filesystem
from pipelines.files.attempts import read_checked, write_checked
from pipelines.learning.rounds import (
    ClaimedRun,
    MergeFiles,
    read_json,
    read_json_if_there,
    write_json,
)
from pipelines.learning.search import VocabularySearch, predicted_bytes
from pipelines.transforms.count_tokens import MergeTablesFn, TableOrPath, pack_or_spill
from pipelines.transforms.read import CreateReshuffled, MapToStats
from pipelines.transforms.stats import STATS, WriteStats, read_stats
from tokcore.bpe.cutting import (
    MORE_FRAGMENTS,
    NewMerges,
    Round,
    add_fragments,
    add_pair_counts,
    ambiguous_word,
    cells_within,
    cut_to_limit,
    frequent_pairs,
    learn_in_rounds,
    merge_words,
    refuse_ambiguous,
)
from tokcore.bpe.extension import old_merges, symbols_of_pieces
from tokcore.bpe.options import BpeOptions, BpeRules
from tokcore.bpe.scheme import BpeScheme, reported_merges
from tokcore.bpe.trainer import (
    FirstSymbols,
    Learning,
    characters_from,
    count_cells,
    count_characters,
    symbols_of_bytes,
    symbols_of_characters,
)
from tokcore.bpe.vocabulary import BpeVocabulary
from tokcore.counts.counting import TokenAccumulator
from tokcore.counts.tables import COUNT_PARTITIONS, concatenate_tables, partition_table
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.scheme import Learned
from tokcore.errors import InputError
from tokcore.learning.size_search import Progress
from tokcore.warm_up import compile_cutting_kernels

_LOGGER = logging.getLogger(__name__)

METRICS = 'tokbeam.merges'

_ROWS_IN_PART = 1 << 20
"""Distinct tokens in a file of words: with 10 bytes each some 20 MB in memory, twice while merges
are made. Files of counts have row groups of as many."""

_FLUSH_BYTES = 256 << 20
"""What a worker's sums may take before they are sent on, as for tokens that are counted."""


def search_on_beam(search: VocabularySearch[BpeOptions], report: Progress) -> tuple[Learned, int]:
    """Learns on the workers; returns the result and the predicted memory of this process, in bytes.

    Raises:
        InputError: as `VocabularySearch.run`, or the merges cannot be learned in rounds.
        OverflowError: a pair occurs more than 2^63 - 1 times.
    """
    scheme, options = search.scheme, search.options
    assert isinstance(scheme, BpeScheme)
    reason = scheme.reason_against_rounds(options)
    if reason is not None:
        raise InputError(f'merges cannot be learned on Beam: {reason}; or give --learner memory')
    rules = scheme.rules_in_rounds(options)
    parts = counts_parts(search.parquet_paths(), _ROWS_IN_PART)
    rounds = search.search_rounds(
        scheme=scheme.name,
        parts=[part.rows for part in parts],
        rules=dataclasses.asdict(rules),
        extend=options.for_manifest().get('extend'),
    )
    with rounds.claimed() as claim, reported_merges(rules, report) as on_merges:
        files = MergeFiles(rounds.folder)
        if options.extend is not None:
            begin_with(scheme.old_vocabulary(options), files)
        search.engine.compile_first(compile_cutting_kernels)
        learner = BeamMerges(
            parts,
            files,
            search.work,
            ClaimedRun(claim, search.engine.run),
            rules,
            scheme.unstorable,
            search.engine.workers,
            search.label,
        )
        most_cells = cells_within(search.available_bytes(), scheme.learner_bytes_per_character)
        learner.learn(most_cells, on_merges)
        _LOGGER.info(
            '%s: %d rounds, fragments of at most %d bytes; %d bytes shuffled; this process has held up '
            'to %d MB',
            search.label,
            len(learner.rounds),
            learner.largest_cells,
            learner.shuffled_bytes,
            peak_bytes() >> 20,
        )
        learned = learner.learning.learned()
    predicted = predicted_bytes(
        CountedSize(0, learner.largest_cells, False), scheme.learner_bytes_per_character
    )
    return scheme.learned_from(learned, options), predicted


def begin_with(old: BpeVocabulary, files: MergeFiles) -> None:
    """Writes a vocabulary's pieces and merges as what an earlier run has learned, if none has."""
    if not filesystem.exists(files.pieces_path):
        write_json(files.pieces_path, old.pieces)
    if not filesystem.exists(files.merges_path):
        files.write_merges(*old_merges(old))


class BeamMerges:
    """Learns the merges of `trainer.learn_merges`, with the words on the workers.

    Args:
        parts: of Parquet files of token counts; a token may be in several of them.
        files: in a folder that driver and workers reach. Learning continues from the merges that a
            learner of the same parts and rules has made there, or from an extended vocabulary's.
        work: another such folder, of this run alone.
        run: runs a pipeline that a function builds, and waits for its end.
        rules: which pair is merged next, and when training ends.
        unstorable: characters that no token may have; see `Scheme.unstorable`.
        workers: threads of a worker process.
        label: begins log messages.

    Attributes:
        learning: the merges so far.
        rounds: what the rounds of this learner did.
        largest_cells: of the fragments of a round.
        shuffled_bytes: of the sums that workers sent, before those of several bundles were added up.

    Raises:
        InputError: a file is not a Parquet file of counts, there is no token, one cannot be stored,
            or one has the end-of-word suffix inside.
    """

    def __init__(
        self,
        parts: Sequence[CountsPart],
        files: MergeFiles,
        work: str,
        run: RunPipeline,
        rules: BpeRules,
        unstorable: str = '',
        workers: int = 1,
        label: str = 'vocab',
    ):
        if not parts:
            raise InputError('no token in the counts; there is nothing to learn from')
        self._files, self._run, self._label = files, run, label
        self._work = os.path.join(work, f'merges-{uuid.uuid4().hex}')
        self._words = _Words(tuple(parts), unstorable, files, rules)
        self._sum = functools.partial(
            _SumTables, workers=workers, spill_folder=os.path.join(self._work, 'spilled')
        )
        if not rules.byte_level and not filesystem.exists(files.characters_path):
            self._survey_characters(rules)
        self.learning = Learning(_first_symbols(files, rules), rules)
        self.learning.resume(*files.read_merges())
        self.rounds: list[Round] = []
        self.largest_cells = self.shuffled_bytes = self._shuffled_before = 0
        if len(self.learning.pairs):
            _LOGGER.info(
                '%s: %d merges were made by an earlier run', label, len(self.learning.pairs)
            )
        self._pairs: list[_WrittenTable] = []

    def learn(
        self,
        most_cells: int,
        on_merges: Callable[[int], None] | None = None,
        choose_threshold: Callable[[int, int], int] | None = None,
    ) -> None:
        """Makes the merges that are missing; see `learn_in_rounds`."""
        self._began = time.monotonic()
        learn_in_rounds(
            self, self.learning, most_cells, on_merges, self._end_round, choose_threshold
        )

    def merge_and_count(self, learning: Learning) -> tuple[int, int]:
        """As of `cutting.Words`."""
        merges = len(learning.pairs)
        made = self._files.numbers_of_merges()
        made_before = tuple(number for number in made if number <= merges)
        count = functools.partial(_count_pairs, self._words, merges, made_before)
        numbers = range(len(self._words.parts))
        self._pairs = self._sum_tables(f'pairs-{merges}', numbers, count, learning.min_count)
        for number in made:
            if number != merges:
                self._files.delete_words(number)
        largest = max((table.largest_count for table in self._pairs), default=0)
        return sum(table.distinct for table in self._pairs), largest

    def cut(self, threshold: int, most_cells: int) -> tuple[TokenTable, int]:
        """As of `cutting.Words`."""
        merges = len(self.learning.pairs)
        frequent = concatenate_tables(
            [frequent_pairs(_read_table(table.path), threshold) for table in self._pairs]
        )
        largest = int(frequent.counts.max())
        parts = range(len(self._words.parts))
        paths = [self._files.words_path(merges, part) for part in parts]
        while True:
            name = f'{merges}-{threshold}'
            frequent_path = os.path.join(self._work, f'frequent-{name}')
            write_checked(frequent_path, frequent.to_bytes())
            cut = functools.partial(_cut_words, frequent_path)
            written = self._sum_tables(f'fragments-{name}', paths, cut, 0, count_cells)
            cells = sum(table.cells for table in written)
            if cells <= MORE_FRAGMENTS * most_cells or threshold >= largest:
                break
            threshold = min(2 * threshold, largest)
            frequent = frequent_pairs(frequent, threshold)
            paths = [table.path for table in written]
        fragments = concatenate_tables([_read_table(table.path) for table in written])
        return cut_to_limit(fragments, frequent, threshold, most_cells)

    def _end_round(self, ended: Round) -> None:
        learning = self.learning
        self._files.write_merges(learning.pairs, learning.counts)
        filesystem.delete_known(self._work, lambda name: True)  # sums of this round
        self.rounds.append(ended)
        self.largest_cells = max(self.largest_cells, ended.cells)
        now = time.monotonic()
        _LOGGER.info(
            '%s: round %d: %d merges of pairs that occur %d times or more, from %d fragments of %d bytes; '
            '%d bytes shuffled; in %.1f s',
            self._label,
            len(self.rounds),
            len(learning.pairs),
            ended.threshold,
            ended.fragments,
            ended.cells,
            self.shuffled_bytes - self._shuffled_before,
            now - self._began,
            extra={ON_BAR: True},
        )
        self._began, self._shuffled_before = now, self.shuffled_bytes

    def _survey_characters(self, rules: BpeRules) -> None:
        stats_path = os.path.join(self._work, 'characters')
        numbers = range(len(self._words.parts))
        self._run(lambda pipeline: pipeline | MapToStats(numbers, self._words.survey, stats_path))
        *characters, ambiguous = zip(*read_stats(stats_path), strict=True)
        for word in ambiguous:
            refuse_ambiguous(word, rules)
        within, at_ends = (''.join(sorted({*''.join(texts)})) for texts in characters)
        write_json(self._files.characters_path, [within, at_ends])

    def _sum_tables(
        self,
        name: str,
        elements: Sequence,
        add: '_AddTokens',
        least_count: int,
        count_cells: Callable[[TokenTable], int] | None = None,
    ) -> list['_WrittenTable']:
        """Adds up what a function adds for each element; returns the files of the partitions."""
        folder, stats_path = (os.path.join(self._work, entry) for entry in (name, f'{name}.json'))
        write = functools.partial(_write_table, folder, least_count, count_cells)

        def build(pipeline: beam.Pipeline) -> None:
            sums, sent = pipeline | CreateReshuffled(elements) | self._sum(add)
            written = sums | 'Write' >> beam.Map(write)  # _WrittenTable
            (written, sent) | 'Flatten' >> beam.Flatten() | 'WriteStats' >> WriteStats(stats_path)

        self._run(build)
        rows = list(read_stats(stats_path))  # [path, …] of a partition, or the bytes of a bundle
        self.shuffled_bytes += sum(row for row in rows if isinstance(row, int))
        return [_WrittenTable(*row) for row in sorted(row for row in rows if isinstance(row, list))]


@dataclass(frozen=True)
class _Words:
    """The tokens of each part of the counts, and the words that they become by merges."""

    parts: tuple[CountsPart, ...]
    unstorable: str
    files: MergeFiles
    rules: BpeRules

    def tokens(self, number: int) -> Iterator[TokenTable]:
        """Yields the tokens of a part, in tables of some hundred thousand."""
        part = self.parts[number]
        groups = range(part.first, part.last)
        for data, offsets, counts in read_new_batches(part.path, self.unstorable, groups):
            yield TokenTable(data[offsets[0] : offsets[-1]], offsets - offsets[0], counts)

    def survey(self, number: int) -> list[tuple[str, str, str | None]]:
        """Returns the characters in a part's tokens, those at their ends, and an ambiguous token."""
        ambiguous: list[str] = []

        def tables() -> Iterator[TokenTable]:
            for table in self.tokens(number):
                word = ambiguous_word(table, self.rules)
                ambiguous.extend([] if word is None else [word])
                yield table

        occur, _ = count_characters(tables())
        within, at_ends = (''.join(map(chr, row.nonzero()[0].tolist())) for row in occur)
        return [(within, at_ends, min(ambiguous, default=None))]

    def merged(self, part: int, merges: int, made: Iterable[int]) -> TokenTable:
        """Makes merges in the words of a part, stores and returns them.

        Args:
            part: its number.
            merges: how many are made then.
            made: with how many there may be files of words, the largest number first.
        """
        path = self.files.words_path(merges, part)
        learning = _learning(self.files, self.rules, merges)
        for number in made:
            earlier = self.files.words_path(number, part)
            if filesystem.exists(earlier):
                words = _read_table(earlier)
                if number < merges:
                    words = merge_words(words, NewMerges.since(number, learning))
                break
        else:
            number = None
            all_merges = NewMerges.since(0, learning)
            first = _first_symbols(self.files, self.rules)
            words = concatenate_tables(
                [merge_words(first.words(table), all_merges) for table in self.tokens(part)]
            )
        if number != merges:
            write_checked(path, words.to_bytes())
        return words


# All bundles of a job use the same one.
@functools.lru_cache(maxsize=1)
def _learning(files: MergeFiles, rules: BpeRules, merges: int) -> Learning:
    """Returns the symbols and so many of the merges."""
    learning = Learning(_first_symbols(files, rules), rules)
    learning.resume(*(array[:merges] for array in files.read_merges()))
    return learning


@functools.lru_cache(maxsize=1)
def _first_symbols(files: MergeFiles, rules: BpeRules) -> FirstSymbols:
    pieces = read_json_if_there(files.pieces_path)
    if pieces is not None:
        return symbols_of_pieces(tuple(pieces), rules)
    if rules.byte_level:
        return symbols_of_bytes(rules)
    return symbols_of_characters(*characters_from(*read_json(files.characters_path)), rules)


_AddTokens = Callable[..., None]
"""Takes an element and a `TokenAccumulator`, to which it adds tokens with counts."""


def _count_pairs(
    words: _Words, merges: int, made: Iterable[int], part: int, sums: TokenAccumulator
) -> None:
    """Makes merges in the words of a part, and counts their pairs."""
    merged = words.merged(part, merges, made)
    learning = _learning(words.files, words.rules, merges)
    add_pair_counts(merged, NewMerges.since(merges, learning), sums)


def _cut_words(frequent_path: str, path: str, sums: TokenAccumulator) -> None:
    """Cuts the words or fragments of a file at all pairs but the frequent ones."""
    add_fragments(_read_table(path), _read_frequent(frequent_path), sums)


_read_frequent = functools.lru_cache(maxsize=1)(lambda path: _read_table(path))


class _WrittenTable(NamedTuple):
    """A file of the sums of a partition."""

    path: str
    distinct: int
    largest_count: int
    cells: int


def _write_table(
    folder: str,
    least_count: int,
    count_cells: Callable[[TokenTable], int] | None,
    element: tuple[int, TokenTable],
) -> _WrittenTable:
    partition, table = element
    path = os.path.join(folder, f'part-{partition:05d}')
    frequent = table.pick((table.counts >= least_count).nonzero()[0])
    write_checked(path, frequent.to_bytes())
    largest = int(table.counts.max(initial=0))
    return _WrittenTable(path, len(table), largest, count_cells(frequent) if count_cells else 0)


def _read_table(path: str) -> TokenTable:
    return TokenTable.from_bytes(read_checked(path))


@dataclass(eq=False)
class _SumTables(beam.PTransform):
    """Adds up the tokens that a function makes of elements.

    Returns (partition, `TokenTable`), and how many bytes each bundle has sent.

    Attributes:
        add: is called in several threads.
        workers: their number in a worker process.
        spill_folder: a folder that all workers reach, for tables that exceed a bundle's bound.
    """

    add: _AddTokens
    workers: int
    spill_folder: str

    def expand(self, elements: beam.PCollection):  # Beam warns of a hint that is a tuple
        added = elements | 'Add' >> beam.ParDo(_SumTablesFn(self)).with_outputs(STATS, main='sums')
        sums = (
            added.sums
            | with_output_types(tuple[int, TableOrPath])
            | 'MergeTables' >> beam.CombinePerKey(MergeTablesFn())  # (partition, table)
        )
        return sums, added[STATS]


class _SumTablesFn(beam.DoFn):
    """Adds up a bundle's tokens in threads that share a table; sends the sums on when full."""

    def __init__(self, transform: _SumTables):
        self._add, self._workers = transform.add, transform.workers
        self._spill_folder = transform.spill_folder
        self._output = BundleOutput(METRICS)

    def setup(self) -> None:
        self._pool: OrderedPool[None] = OrderedPool(self._workers)

    def start_bundle(self) -> None:
        self._output.begin()
        self._sent = 0
        self._begin_sums()

    def process(self, element) -> Iterator[tuple[int, TableOrPath]]:
        for _ in self._pool.submit(self._add_element, element):
            pass
        index = self._sums[0].index
        if index.nbytes + sum(sums.nbytes for sums in self._sums) >= _FLUSH_BYTES:
            yield from self._end_sums()
            self._begin_sums()

    def finish_bundle(self) -> Iterator:
        yield from map(in_global_window, self._end_sums())
        yield in_global_window(beam.pvalue.TaggedOutput(STATS, self._sent))
        del self._sums, self._idle
        self._output.end()

    def teardown(self) -> None:
        self._pool.close()

    def _begin_sums(self) -> None:
        first = TokenAccumulator()
        others = (TokenAccumulator(first.index) for _ in range(self._workers - 1))
        self._sums = [first, *others]
        self._idle: queue.SimpleQueue[TokenAccumulator] = queue.SimpleQueue()
        for sums in self._sums:
            self._idle.put(sums)

    def _add_element(self, element) -> None:
        sums = self._idle.get()
        try:
            with _refusing_overflow():
                self._add(element, sums)
        finally:
            self._idle.put(sums)

    def _end_sums(self) -> Iterator[tuple[int, TableOrPath]]:
        for _ in self._pool.drain():
            pass
        with _refusing_overflow():
            table = TokenTable(*self._sums[0].finish(self._sums[1:]))
        for partition, part in partition_table(table, COUNT_PARTITIONS):
            packed = part.to_bytes()
            self._sent += len(packed)
            yield partition, pack_or_spill(packed, self._output, self._spill_folder)


@contextlib.contextmanager
def _refusing_overflow() -> Iterator[None]:
    """Refuses counts that are too large. Fragments are not more frequent than their pairs."""
    try:
        yield
    except OverflowError as error:
        raise InputError(
            'a pair of symbols occurs more than 2^63 - 1 times; make the counts smaller'
        ) from error
