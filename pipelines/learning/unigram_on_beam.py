"""SentencePiece's Unigram pieces learned on Beam, in the steps of `tokcore.unigram.learner`.

SentencePiece deals words to N threads in the order of their counts, and each adds up its words in this
order. Here a thread is a shard of words in files. A step is a job in which workers sum shards; the driver
adds up the N sums in their order, and improves or prunes the pieces. So the result depends on N alone, and
a new run continues with the pieces that a killed one has left.

    counts ──▶ alphabet ──▶ words, added up ──▶ ranges of their order ──▶ shards
    counts ──▶ suffixes by first letters ──▶ candidates ──▶ the first pieces
    shards, pieces ──▶ sums ──▶ fewer pieces
"""

import dataclasses
import functools
import itertools
import logging
import operator
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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
from pipelines.learning.rounds import ClaimedRun, WordFiles, read_json, read_packed, write_json
from pipelines.learning.search import VocabularySearch
from pipelines.learning.wordpiece_on_beam import SumTables
from pipelines.transforms.read import CreateReshuffled, MapToStats
from pipelines.transforms.stats import WriteStats, read_stats
from tokcore.counts.tables import concatenate_tables
from tokcore.counts.token_table import TokenTable, distinct_table
from tokcore.encoding.scheme import Learned
from tokcore.foreign_tokenizers.sentences import check_words
from tokcore.kernels.jit import read_only
from tokcore.learning.size_search import Progress
from tokcore.text.unicode import CODE_POINTS
from tokcore.unigram import learner, seeds
from tokcore.unigram.numbers import number_tables
from tokcore.unigram.strings import Strings, pick_strings, starts_of
from tokcore.unigram.trie import PieceTrie
from tokcore.unigram.words import Alphabet, choose_alphabet, count_characters
from tokcore.warm_up import compile_learning

_LOGGER = logging.getLogger(__name__)

_ROWS_IN_PART = 1 << 20
"""Distinct tokens that a worker turns into words at a time, as those of a row group."""

_WORDS_IN_RANGE = 1 << 20
"""Words that a worker sorts at a time."""

_SUFFIXES_IN_GROUP = 1 << 21
"""Suffixes that a thread sorts, of some 90 bytes each; those with one first letter may be more."""


def search_on_beam(search: VocabularySearch, report: Progress) -> tuple[Learned, int]:
    """Learns on the workers; returns the result, and 0 as this process keeps no words.

    Raises:
        InputError: as `VocabularySearch.run`.
    """
    scheme: Any = search.scheme
    rules = scheme.piece_rules(search.options)
    parts = counts_parts(search.parquet_paths(), _ROWS_IN_PART)
    rounds = search.search_rounds(
        scheme=scheme.name,
        parts=[part.rows for part in parts],
        rules=rules._asdict(),
        limits=[_WORDS_IN_RANGE, _SUFFIXES_IN_GROUP],
    )
    with rounds.claimed() as claim:
        search.engine.compile_first(functools.partial(compile_learning, scheme))
        files = WordFiles(rounds.folder)
        words = BeamWords(tuple(parts), search.counts.last_word, rules, files)
        run = ClaimedRun(claim, search.engine.run)
        said = search.label, functools.partial(report, 0)
        learned = learn_on_beam(words, search.work, run, search.engine.workers, *said)
    return scheme.learned_from(learned, search.options), 0


@dataclass(frozen=True)
class BeamWords:
    """The words that are learned from, on the workers.

    `files` are in a folder that driver and workers reach: the words that a shard gets of a range, the first
    candidates of groups, and the pieces that each step begins with. They are functions of the other fields,
    so those of any run are good. Letters are stored from the highest byte on, and the 0 behind each word
    too, so that the order of bytes is that of letters.
    """

    parts: tuple[CountsPart, ...]  # of Parquet files of token counts; a token may be in several
    last_word: bytes | None
    rules: learner.PieceRules
    files: WordFiles

    @property
    def known(self) -> '_Survey':
        return _read_survey(self.files.survey_path, self.rules)

    def tables(self, number: int) -> Iterator[TokenTable]:
        """Yields the words of a part; a word may be in several tables."""
        part = self.parts[number]
        groups = range(part.first, part.last)
        for data, offsets, counts in read_new_batches(part.path, '', groups):
            data, offsets = data[offsets[0] : offsets[-1]], offsets - offsets[0]
            table = TokenTable(data, offsets, counts, last_word=self.last_word)
            check_words(table)
            yield table

    def survey(self, number: int) -> Iterator[list]:
        """Yields the characters of a part, with both counts, and a sample of its words."""
        totals, sample = np.zeros((2, CODE_POINTS), np.int64), []
        for table in self.tables(number):
            totals[0] += count_characters(table)
            once = dataclasses.replace(table, counts=np.ones_like(table.counts))
            totals[1] += count_characters(once)
            sampled = table.pick(np.arange(0, len(table), max(1, _WORDS_IN_RANGE >> 8)))
            sample += [[-count, token[:-1]] for token, count in sampled.items()]
        found = totals[0].nonzero()[0]
        yield [''.join(map(chr, found.tolist())), *totals[:, found].tolist(), sample]

    def merged(self, number: int) -> list[TokenTable]:
        """Returns the words of a part in letters."""
        words_of = self.known.alphabet.words_of
        table = concatenate_tables(
            [_table(words.letters, words.counts) for words in map(words_of, self.tables(number))]
        )
        # Empty sentences are the token that is only a 0.
        is_word = np.diff(table.offsets) > self.known.stored_type.itemsize
        table = table.pick(is_word.nonzero()[0])
        return [distinct_table(table.data, table.offsets, table.counts)]

    def by_ranges(self, table: TokenTable) -> list[tuple[int, TokenTable]]:
        """Divides words by the ranges of their order: count, descending, and then letters."""
        tokens, ranges = table.tokens(), np.zeros(len(table), np.int64)
        for count, word in self.known.borders:
            letters = self.known.alphabet.letters_of_word(word.encode())
            border = letters.astype(self.known.stored_type).tobytes()
            is_after = np.asarray(pc.greater_equal(tokens, pa.scalar(border, tokens.type)))
            ranges += (table.counts < -count) | ((table.counts == -count) & is_after)
        return [(each, table.pick((ranges == each).nonzero()[0])) for each in set(ranges.tolist())]

    def write_range(self, element: tuple[int, TokenTable]) -> list[int]:
        """Deals the words of a range in their order; returns its number, and how many they are."""
        number, table = element
        table = table.sorted()
        order, shards = np.argsort(-table.counts, kind='stable'), self.rules.num_threads
        for turn in range(shards):
            path = self.files.words_path(number * shards + turn)
            write_checked(path, table.pick(order[turn::shards]).to_bytes())
        return [number, len(table)]

    def letters(self, table: TokenTable) -> np.ndarray:
        """Returns the letters of words, which are in their stored form."""
        return read_only(table.data.view(self.known.stored_type).astype(self.known.alphabet.dtype))

    def write_candidates(self, element: tuple[int, tuple[int, int]]) -> None:
        """Writes the best strings that begin with some letters, in their order, with their counts."""
        (group, bounds), rules = element, self.rules
        tables = itertools.chain.from_iterable(map(self.tables, range(len(self.parts))))
        alphabet, longest = self.known.alphabet, rules.max_sentencepiece_length
        text, best = seeds.find_among(tables, alphabet, longest, *bounds, rules.most_seeds)
        table = _table(pick_strings(text, best.positions, best.lengths + 1), best.counts)
        write_checked(self.files.first_counts_path(group), table.to_bytes())

    def write_sums(self, folder: str, step: int, shard: int) -> None:
        """Writes the sums of a shard in a step, float32[pieces]."""
        with _READING:
            pieces, trie = _read_pieces(self, step)
        sums, before, shards = np.zeros(len(pieces.scores), np.float32), 0, self.rules.num_threads
        for range_, size in read_json(self.files.first_path):
            path = self.files.words_path(range_ * shards + (shard - before) % shards)
            table = read_packed(TokenTable, path)
            letters, counts = self.letters(table), table.counts.astype(np.float32)
            self.rules.kernel(step)(
                Strings.of(letters, starts_of(letters)[:-1], counts), trie.nodes, pieces.unknown_score,
                self.rules.max_sentencepiece_length, number_tables(), sums,
            )  # fmt: skip
            before += size
        write_checked(os.path.join(folder, f'{shard}'), sums.astype('<f4').tobytes())


def learn_on_beam(
    words: BeamWords,
    work: str,
    run: RunPipeline,
    workers: int = 1,
    label: str = 'vocab',
    report: learner.Report = lambda done, total: None,
) -> list[tuple[str, np.float32]]:
    """Learns the pieces of `learn_pieces`; what an earlier run has finished is not repeated.

    Args:
        work: a folder that driver and workers reach, of this run alone.
        run: runs a pipeline that a function builds, and waits for its end.
        workers: threads of a worker process.

    Raises:
        InputError: as `learn_pieces`, or a file is not one of counts of such words.
    """
    files, rules = words.files, words.rules
    work = os.path.join(work, f'pieces-{uuid.uuid4().hex}')

    def run_each(plan: Sequence, function: Callable) -> None:
        each = ThreadedMap(function, workers)
        run(lambda pipeline: pipeline | CreateReshuffled(plan) | each)

    def sum_step(step: int, pieces: seeds.Pieces, trie: PieceTrie) -> np.ndarray:
        began = time.monotonic()
        bits = pieces.scores.view(np.uint32).astype(np.int64)
        stored = TokenTable(pieces.letters, starts_of(pieces.letters), bits)
        write_checked(files.pieces_path(0, step), stored.to_bytes())
        run_each(range(rules.num_threads), functools.partial(words.write_sums, work, step))
        total = np.zeros(len(pieces.scores), np.float32)
        for shard in range(rules.num_threads):
            total += np.frombuffer(read_checked(os.path.join(work, f'{shard}')), '<f4')
        filesystem.delete_known(work, lambda name: True)
        values = label, step + 1, len(total), time.monotonic() - began
        _LOGGER.info('%s: round %d: %d pieces in %.1f s', *values, extra={ON_BAR: True})
        return total

    if not filesystem.exists(files.survey_path):
        files.clear()  # the remains of a deletion that was killed
        write_json(files.survey_path, _survey(words, os.path.join(work, 'survey'), run))
    alphabet = words.known.alphabet
    rules.check_size(len(alphabet.required))
    if not filesystem.exists(files.first_path):
        write_json(files.first_path, _write_shards(words, work, run))
    step = 0
    while filesystem.exists(files.pieces_path(0, step + 1)):
        step += 1
    if filesystem.exists(files.pieces_path(0, step)):
        _LOGGER.info('%s: %d rounds were finished by an earlier run', label, step)
        pieces, _ = _read_pieces(words, step)
    else:
        pieces = _find_seeds(words, run_each)
    return learner.learn_from_seeds(pieces, alphabet, rules, sum_step, step, report)


def _survey(words: BeamWords, path: str, run: RunPipeline) -> list:
    """Returns the characters with both counts, and the borders of ranges of words, by a sample."""
    numbers = range(len(words.parts))
    run(lambda pipeline: pipeline | MapToStats(numbers, words.survey, path))
    totals = np.zeros((2, CODE_POINTS), np.int64)
    samples: list[list] = []
    for characters, *counts, sample in read_stats(path):
        totals[:, [*map(ord, characters)]] += counts
        samples += sample
    samples.sort()
    ranges = -(-sum(part.rows for part in words.parts) // _WORDS_IN_RANGE)
    borders = [samples[len(samples) * border // ranges] for border in range(1, ranges)]
    found = totals[0].nonzero()[0]
    return [''.join(map(chr, found.tolist())), *totals[:, found].tolist(), borders]


def _write_shards(words: BeamWords, work: str, run: RunPipeline) -> list:
    """Writes the words in their order; returns the ranges, and how many words each has."""
    path = os.path.join(work, 'ranges')

    def build(pipeline: beam.Pipeline) -> None:
        (
            pipeline
            | CreateReshuffled(range(len(words.parts)))  # number of a part
            | 'Merge' >> SumTables(words.merged, work)  # (partition, table)
            | 'Divide' >> SumTables(operator.itemgetter(slice(1, 2)), work, words.by_ranges)
            # (range, table)
            | 'WriteRange' >> beam.Map(words.write_range)  # [range, words]
            | 'WriteStats' >> WriteStats(path)
        )

    run(build)
    return sorted(read_stats(path))


def _find_seeds(words: BeamWords, run_each: Callable) -> seeds.Pieces:
    """Returns the pieces to begin with: the best of the candidates of all groups."""
    known, most = words.known, words.rules.most_seeds
    groups = [*enumerate(seeds.partitions(known.totals[1], _SUFFIXES_IN_GROUP))]
    paths = [words.files.first_counts_path(group) for group, _ in groups]
    missing = [each for each in groups if not filesystem.exists(paths[each[0]])]
    run_each(missing, words.write_candidates)
    size_of = seeds.letters_of_alphabet(known.alphabet.code_points).sizes.astype(np.int16)
    table = TokenTable.from_items([])
    for path in paths:
        table = concatenate_tables([table, read_packed(TokenTable, path)])
        text = words.letters(table)
        starts = starts_of(text)
        lengths = (np.diff(starts) - 1).astype(np.int16)
        byte_lengths = np.add.reduceat(size_of[text], starts[:-1]) - 1
        numbers = np.arange(len(table))
        found = seeds.Candidates(numbers, lengths, byte_lengths, table.counts).best(most)
        table = table.pick(found.positions)
    text = words.letters(table)
    found = found._replace(positions=starts_of(text)[:-1])
    return seeds.choose_pieces(text, known.alphabet.code_points, known.totals[0], found, most)


class _Survey(NamedTuple):
    alphabet: Alphabet
    totals: np.ndarray  # int64[2, letters]: occurrences in the text, and in distinct words
    borders: list[tuple[int, str]]  # of ranges of words: counts, negative, and words

    @property
    def stored_type(self) -> np.dtype:
        return self.alphabet.dtype.newbyteorder('>')


# All bundles use the same ones.
@functools.lru_cache(maxsize=1)
def _read_survey(path: str, rules: learner.PieceRules) -> _Survey:
    characters, *counts, borders = read_json(path)
    totals = np.zeros((2, CODE_POINTS), np.int64)
    totals[:, [*map(ord, characters)]] = counts
    alphabet = choose_alphabet(totals[0], rules.character_coverage)
    return _Survey(alphabet, totals[:, alphabet.code_points], borders)


_READING = threading.Lock()  # so that threads do not read the same pieces at once


@functools.lru_cache(maxsize=1)
def _read_pieces(words: BeamWords, step: int) -> tuple[seeds.Pieces, PieceTrie]:
    table = read_packed(TokenTable, words.files.pieces_path(0, step))
    pieces = seeds.Pieces(table.data, table.counts.astype(np.uint32).view(np.float32))
    return pieces, PieceTrie.of(pieces)


def _table(letters: np.ndarray, counts: np.ndarray) -> TokenTable:
    """Returns words with counts, in their stored form."""
    stored, starts = letters.astype(letters.dtype.newbyteorder('>')), starts_of(letters)
    return TokenTable(stored.view(np.uint8), starts * stored.itemsize, counts.astype(np.int64))
