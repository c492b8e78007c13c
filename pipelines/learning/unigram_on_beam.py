"""SentencePiece's Unigram pieces learned on Beam, in the steps of `tokcore.unigram.learner`.

SentencePiece deals words to N threads in the order of their counts, and each adds up its words in this
order. Here a thread is a shard of the words in files. A step is a job in which workers sum shards; the
driver adds up the N sums in their order, and improves or prunes the pieces. So the result depends on N
alone, and a new run continues with the pieces that a killed one has left.

    counts ──▶ characters ──▶ words in letters ──▶ ranges of their order ──▶ shards
    words in letters, by first letters of suffixes ──▶ candidates ──▶ the first pieces
    shards, pieces ──▶ sums ──▶ fewer pieces
"""

import dataclasses
import functools
import logging
import os
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.artifacts.counts import CountsPart, counts_parts, read_new_batches
from pipelines.engines.engine import RunPipeline
from pipelines.engines.pool import ThreadedMap
from pipelines.engines.progress import ON_BAR
from pipelines.files import filesystem
from pipelines.files.attempts import read_checked, write_checked
from pipelines.learning.rounds import (
    ClaimedRun,
    PieceFiles,
    read_json,
    read_packed,
    write_json,
)
from pipelines.learning.search import VocabularySearch
from pipelines.learning.wordpiece_on_beam import SumTables
from pipelines.transforms.read import CreateReshuffled, MapToStats
from pipelines.transforms.stats import WriteStats, read_stats
from tokcore.counts.tables import concatenate_tables
from tokcore.counts.token_table import TokenTable, distinct_table
from tokcore.encoding.scheme import Learned
from tokcore.kernels.bytes import row_offsets
from tokcore.kernels.jit import read_only
from tokcore.learning.size_search import Progress
from tokcore.text.unicode import CODE_POINTS
from tokcore.unigram.learner import (
    LearnedPieces,
    PieceRules,
    learn_from_seeds,
    strings_of,
    sum_kernel,
    unknown_score,
)
from tokcore.unigram.numbers import number_tables
from tokcore.unigram.seeds import (
    Candidates,
    Pieces,
    choose_pieces,
    cut_suffixes,
    find_candidates,
    letters_of_alphabet,
    partitions,
)
from tokcore.unigram.string_sorting import entries_of, pick_strings
from tokcore.unigram.trie import PieceTrie
from tokcore.unigram.words import Alphabet, RankedWords, Words, choose_alphabet, count_characters
from tokcore.warm_up import compile_learning

_LOGGER = logging.getLogger(__name__)

_ROWS_IN_PART = 1 << 20
"""Distinct tokens that a worker turns into words at a time, as those of a row group."""


@dataclass(frozen=True)
class PieceLimits:
    """How work is divided, which no byte of the result depends on.

    Attributes:
        words: of a range of their order, which a worker sorts: some 60 bytes each.
        suffixes: of a group by first letters, or a single letter: some 90 bytes each in a thread.
    """

    words: int = 1 << 20
    suffixes: int = 1 << 21


def search_on_beam(search: VocabularySearch, report: Progress) -> tuple[Learned, int]:
    """Learns on the workers; returns the result, and 0 as this process keeps no words.

    Raises:
        InputError: as `VocabularySearch.run`.
    """
    scheme: Any = search.scheme
    rules, limits = scheme.piece_rules(search.options), PieceLimits()
    parts = counts_parts(search.parquet_paths(), _ROWS_IN_PART)
    rounds = search.search_rounds(
        scheme=scheme.name,
        parts=[part.rows for part in parts],
        rules=rules._asdict(),
        limits=dataclasses.asdict(limits),
    )
    with rounds.claimed() as claim:
        search.engine.compile_first(functools.partial(compile_learning, scheme))
        learner = BeamPieces(
            CountedWords(tuple(parts), scheme, search.counts.last_word),
            PieceFiles(rounds.folder),
            search.work,
            ClaimedRun(claim, search.engine.run),
            rules,
            search.engine.workers,
            search.label,
            limits,
        )
        return scheme.learned_from(learner.learn(), search.options), 0


@dataclass(frozen=True)
class CountedWords:
    """The words of counts.

    Attributes:
        parts: of Parquet files of token counts; a token may be in several of them.
        scheme: has `words_of`, which returns the words of a table of tokens.
        last_word: that ends the corpus; None if it is not known.
    """

    parts: tuple[CountsPart, ...]
    scheme: Any
    last_word: bytes | None

    def tables(self, number: int) -> Iterator[Words]:
        """Yields the words of a part; a word may be in several tables."""
        part = self.parts[number]
        groups = range(part.first, part.last)
        for data, offsets, counts in read_new_batches(part.path, self.scheme.unstorable, groups):
            tokens = TokenTable(data[offsets[0] : offsets[-1]], offsets - offsets[0], counts)
            yield self.scheme.words_of(dataclasses.replace(tokens, last_word=self.last_word))


class BeamPieces:
    """Learns the pieces of `learn_pieces`, with the words on the workers.

    Args:
        words: to learn from.
        files: in a folder that driver and workers reach. What a learner of the same words, rules and
            limits has finished there is not repeated.
        work: another such folder, of this run alone.
        run: runs a pipeline that a function builds, and waits for its end.
        rules: how pieces are learned.
        workers: threads of a worker process.
        label: begins log messages.
        limits: how work is divided.
    """

    def __init__(
        self,
        words: CountedWords,
        files: PieceFiles,
        work: str,
        run: RunPipeline,
        rules: PieceRules,
        workers: int = 1,
        label: str = 'vocab',
        limits: PieceLimits | None = None,
    ):
        self._words, self._files, self._run, self._rules = words, files, run, rules
        self._work = os.path.join(work, f'pieces-{uuid.uuid4().hex}')
        self._workers, self._label, self._limits = workers, label, limits or PieceLimits()

    def learn(self) -> LearnedPieces:
        """Returns the pieces.

        Raises:
            InputError: as `learn_pieces`, and if a file is not one of counts for such words.
        """
        files = self._files
        if not filesystem.exists(files.survey_path):
            self._survey()
        shards = _Shards(files, self._rules)
        alphabet = shards.alphabet
        self._rules.check_size(len(alphabet.required))
        if not filesystem.exists(files.ranges_path):
            self._write_shards(shards)
        done = max(files.rounds(), default=0)
        if done:
            _LOGGER.info('%s: %d rounds were finished by an earlier run', self._label, done)
        pieces = files.read_pieces(done) if files.rounds() else self._find_seeds(shards)
        return learn_from_seeds(
            Pieces(*pieces),
            alphabet.code_points,
            alphabet.required,
            self._rules,
            functools.partial(self._sum_step, shards),
            done,
        )

    def _survey(self) -> None:
        """Counts characters, and finds borders of ranges of words in a sample."""
        path = os.path.join(self._work, 'survey')
        every = max(1, self._limits.words >> 8)
        survey = functools.partial(_survey_words, self._words, every)
        numbers = range(len(self._words.parts))
        self._run(lambda pipeline: pipeline | MapToStats(numbers, survey, path))
        totals, samples, words = np.zeros((2, CODE_POINTS), np.int64), [], 0
        for characters, *counts, words_of_part, sample in read_stats(path):
            totals[:, [*map(ord, characters)]] += counts
            words, samples = words + words_of_part, samples + sample
        samples.sort(key=lambda each: (-each[0], each[1]))
        ranges = -(-words // self._limits.words)
        borders = [samples[len(samples) * number // ranges] for number in range(1, ranges)]
        found = totals[0].nonzero()[0]
        characters = ''.join(map(chr, found.tolist()))
        write_json(self._files.survey_path, [characters, *totals[:, found].tolist(), borders])

    def _write_shards(self, shards: '_Shards') -> None:
        """Writes the words in letters, in the parts of the counts and in the order of ranges."""
        path, numbers = os.path.join(self._work, 'ranges'), range(len(self._words.parts))

        def build(pipeline: beam.Pipeline) -> None:
            (
                pipeline
                | CreateReshuffled(numbers)  # number of a part
                | 'Merge'
                >> SumTables(functools.partial(_write_letters, self._words, shards), self._work)
                | 'Divide' >> SumTables(_table_of, self._work, shards.by_ranges)  # (range, table)
                | 'WriteRange' >> beam.Map(shards.write_range)  # [range, words]
                | 'WriteStats' >> WriteStats(path)
            )

        self._run(build)
        sizes = dict(read_stats(path))
        write_json(self._files.ranges_path, [sizes.get(each, 0) for each in range(max(sizes) + 1)])

    def _find_seeds(self, shards: '_Shards') -> tuple[np.ndarray, ...]:
        files, most = self._files, self._rules.most_seeds
        _, totals, distinct, _ = shards.survey
        alphabet = shards.alphabet
        groups = [*partitions(distinct[alphabet.code_points], self._limits.suffixes)]
        plan = [
            (group, bounds)
            for group, bounds in enumerate(groups)
            if not filesystem.exists(files.candidates_path(group))
        ]
        find = functools.partial(
            _write_candidates, shards, len(self._words.parts), self._words.last_word
        )
        self._run_each(plan, find)
        best: list[TokenTable] = []
        for group in range(len(groups)):
            best.append(read_packed(TokenTable, files.candidates_path(group)))
            if sum(map(len, best)) > most + most // 2:
                table = concatenate_tables(best)
                numbered = shards.candidates(table)._replace(positions=np.arange(len(table)))
                best = [table.pick(numbered.best(most).positions)]
        table = concatenate_tables(best)
        text, _ = shards.strings(table)
        totals = totals[alphabet.code_points]
        totals[0] = 0  # it ends words
        return choose_pieces(text, alphabet.code_points, totals, shards.candidates(table), most)

    def _sum_step(
        self, shards: '_Shards', step: int, pieces: Pieces, trie: PieceTrie
    ) -> np.ndarray:
        """As `SumStep`; the shards that an earlier run has summed are not summed again."""
        began, files = time.monotonic(), self._files
        if step not in files.rounds():
            files.write_pieces(step, pieces)
        for earlier in files.rounds():
            if earlier != step:
                files.delete_round(earlier)
        paths = [files.sums_path(step, shard) for shard in range(self._rules.num_threads)]
        missing = [shard for shard, path in enumerate(paths) if not filesystem.exists(path)]
        self._run_each(missing, functools.partial(_write_sums, shards, step))
        total, *others = (np.frombuffer(read_checked(path), '<f4') for path in paths)
        total = total.astype(np.float32)
        for sums in others:
            total += sums
        _LOGGER.info(
            '%s: round %d: sums of %d pieces in %.1f s',
            self._label,
            step + 1,
            len(total),
            time.monotonic() - began,
            extra={ON_BAR: True},
        )
        return total

    def _run_each(self, plan: Sequence, function) -> None:
        """Calls a function for each element of a plan, on the workers."""
        each = ThreadedMap(function, self._workers)
        if plan:
            self._run(lambda pipeline: pipeline | CreateReshuffled(plan) | each)


@dataclass(frozen=True)
class _Shards:
    """The words in letters: in the parts of the counts, and in ranges of their order.

    Letters are stored from the highest byte on, with the 0 behind each word, so that words are in the
    order of their bytes.
    """

    files: PieceFiles
    rules: PieceRules

    @property
    def survey(self) -> list:
        """The characters, their totals and how often they are in distinct words, and borders."""
        return _read_survey(self.files.survey_path)

    @property
    def alphabet(self) -> Alphabet:
        rules = self.rules
        return _choose_alphabet(
            self.files.survey_path, rules.character_coverage, rules.required_chars
        )

    def table(self, letters: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> TokenTable:
        """Returns words with counts."""
        stored = letters.astype(letters.dtype.newbyteorder('>'))
        return TokenTable(stored.view(np.uint8), starts * stored.itemsize, counts)

    def strings(self, table: TokenTable) -> tuple[np.ndarray, np.ndarray]:
        """Returns the letters and the starts of words."""
        dtype = self.alphabet.dtype
        letters = table.data.view(dtype.newbyteorder('>')).astype(dtype)
        return read_only(letters), read_only(table.offsets // dtype.itemsize)

    def by_ranges(self, table: TokenTable) -> list[tuple[int, TokenTable]]:
        """Divides words by the ranges of their order: count, descending, and then letters."""
        words = table.tokens()
        ranges = np.zeros(len(table), np.int64)
        for count, word in self.survey[-1]:
            letters = np.append(self.alphabet.letters_of_word(word.encode()), 0)
            border = letters.astype(self.alphabet.dtype.newbyteorder('>')).tobytes()
            is_after = np.asarray(pc.greater_equal(words, pa.scalar(border, words.type)))
            ranges += (table.counts < count) | (table.counts == count) & is_after
        return [
            (each, table.pick((ranges == each).nonzero()[0])) for each in np.unique(ranges).tolist()
        ]

    def write_range(self, element: tuple[int, TokenTable]) -> list[int]:
        """Deals the words of a range in their order; returns its number, and how many they are."""
        number, table = element
        table = table.sorted()
        order = np.argsort(-table.counts, kind='stable')
        for turn in range(self.rules.num_threads):
            words = table.pick(order[turn :: self.rules.num_threads])
            write_checked(self.files.words_path(turn, number), words.to_bytes())
        return [number, len(table)]

    def read_shard(self, shard: int) -> TokenTable:
        """Returns the words of a shard in their order."""
        tables, before = [TokenTable.from_items([])], 0
        for number, size in enumerate(read_json(self.files.ranges_path)):
            if size:
                turn = (shard - before) % self.rules.num_threads
                tables.append(read_packed(TokenTable, self.files.words_path(turn, number)))
            before += size
        return concatenate_tables(tables)

    def candidates(self, table: TokenTable) -> Candidates:
        """Returns the candidates whose strings and counts these are."""
        text, starts = self.strings(table)
        sizes = letters_of_alphabet(self.alphabet.code_points).sizes[text].astype(np.int32)
        byte_lengths = np.add.reduceat(sizes, starts[:-1]) - 1
        lengths = (np.diff(starts) - 1).astype(np.int32)
        return Candidates(starts[:-1], lengths, byte_lengths, table.counts)


# All bundles use the same ones.
@functools.lru_cache(maxsize=1)
def _read_survey(path: str) -> list:
    characters, *counts, borders = read_json(path)
    totals = np.zeros((2, CODE_POINTS), np.int64)
    totals[:, [*map(ord, characters)]] = counts
    return [characters, *totals, borders]


@functools.lru_cache(maxsize=1)
def _choose_alphabet(path: str, coverage: float, required_chars: str) -> Alphabet:
    _, totals, *_ = _read_survey(path)
    return choose_alphabet(totals.copy(), coverage, required_chars)


def _survey_words(words: CountedWords, every: int, number: int) -> Iterator[list]:
    """Yields the characters of a part with counts, the words in it, and a sample of them."""
    totals, sizes, sample = np.zeros((2, CODE_POINTS), np.int64), 0, []
    for table in words.tables(number):
        totals[0] += count_characters(table)
        totals[1] += count_characters(table._replace(counts=np.ones_like(table.counts)))
        sizes += len(table.counts)
        for index in range(0, len(table.counts), every):
            word = table.text[table.offsets[index] : table.offsets[index + 1]].tobytes().decode()
            sample.append([int(table.counts[index]), word])
    found = totals[0].nonzero()[0]
    yield [''.join(map(chr, found.tolist())), *totals[:, found].tolist(), sizes, sample]


def _write_letters(words: CountedWords, shards: _Shards, number: int) -> list[TokenTable]:
    """Writes the words of a part in letters; returns them, with the counts of equal ones added up."""
    tables = [*words.tables(number)]
    letters = [shards.table(*shards.alphabet.letters_of(each), each.counts) for each in tables]
    table = concatenate_tables(letters)
    ending = np.concatenate([each.ending for each in tables])
    shards.files.write_letters(number, table, ending)
    return [distinct_table(table.data, table.offsets, table.counts)]


def _table_of(element: tuple[int, TokenTable]) -> list[TokenTable]:
    return [element[1]]


def _write_candidates(
    shards: _Shards, parts: int, last_word: bytes, element: tuple[int, tuple[int, int]]
) -> None:
    """Writes the best candidates that begin with some letters, in their order."""
    (group, bounds), alphabet, longest = (
        element,
        shards.alphabet,
        shards.rules.max_sentencepiece_length,
    )
    letters, last = letters_of_alphabet(alphabet.code_points), alphabet.letters_of_word(last_word)
    found = []
    for number in range(parts):
        table, ending = shards.files.read_letters(number)
        words = RankedWords(
            *shards.strings(table),
            table.counts,
            ending,
            last,
            alphabet.code_points,
            alphabet.required,
        )
        found.append(cut_suffixes(words, letters, longest, *bounds))
    sizes = np.concatenate([np.diff(each.starts) for each in found])
    text, counts, ending = (
        read_only(np.concatenate([getattr(each, name) for each in found]))
        for name in ('letters', 'counts', 'ending')
    )
    starts = read_only(row_offsets(sizes))
    suffixes = words._replace(letters=text, starts=starts, counts=counts, ending=ending)
    best = find_candidates(suffixes, letters, longest, entries_of(starts[:-1]))
    best = best.best(shards.rules.most_seeds)
    strings = pick_strings(text, best.positions, best.lengths + 1)
    write_checked(
        shards.files.candidates_path(group), shards.table(*strings, best.counts).to_bytes()
    )


def _write_sums(shards: _Shards, step: int, shard: int) -> None:
    """Writes the sums of a shard in a step, float32[pieces]."""
    table, rules = shards.read_shard(shard), shards.rules
    strings = strings_of(*shards.strings(table), read_only(table.counts.astype(np.float32)))
    with _READING:
        pieces, trie = _read_pieces(shards.files, step)
    sums = np.zeros(len(pieces.scores), np.float32)
    sum_kernel(rules, step)(
        strings, 0, 1, trie.nodes, unknown_score(pieces), rules.max_sentencepiece_length,
        number_tables(), sums,
    )  # fmt: skip
    write_checked(shards.files.sums_path(step, shard), sums.astype('<f4').tobytes())


_READING = threading.Lock()  # so that threads do not read the same pieces at once


@functools.lru_cache(maxsize=1)
def _read_pieces(files: PieceFiles, step: int) -> tuple[Pieces, PieceTrie]:
    pieces = Pieces(*files.read_pieces(step))
    return pieces, PieceTrie.of(pieces)
