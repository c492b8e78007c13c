"""WordPiece vocabularies of one token table, for any min-count, and the search for a size.

The results are, file for file, those of TensorFlow Text's `wordpiece_tokenizer_learner_lib.learn`
2.21 for the same counts and parameters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.learning.size_search import Report, search_vocabulary
from tokcore.wordpiece.learning.greedy_cutting import (
    Pieces,
    PieceTrie,
    mark_cuts,
    piece_trie,
    weigh_cuts,
)
from tokcore.wordpiece.learning.kept_substrings import kept_pieces
from tokcore.wordpiece.learning.word_endings import endings_of
from tokcore.wordpiece.learning.wordpiece_options import WordPieceOptions
from tokcore.wordpiece.learning.words import learned_words, words_of


@dataclass(frozen=True)
class LearnedPieces:
    """A vocabulary's pieces by id, and how they were found, as `Learned` has it."""

    pieces: tuple[str, ...]
    min_count: int
    tried: tuple[tuple[int, int], ...]
    reachable: tuple[tuple[int, int], ...]
    smallest_size: int


class PieceLearner:
    """Learns the pieces of one token table, for any number of min-counts.

    Args:
        table: distinct words and their counts.
        options: all but the size and the search for it.
    """

    def __init__(self, table: TokenTable, options: WordPieceOptions):
        self._options = options
        self._special_tokens = options.first_entries
        self._joiner = read_only(np.frombuffer(options.joiner.encode('utf-32-le'), np.uint32))
        self._words = learned_words(
            words_of(table),
            frozenset(self._special_tokens),
            options.max_learned_word_length,
            options.max_characters,
            options.max_words,
        )
        self._endings = endings_of(self._words) if options.selection == 'endings' else None
        self._codes = read_only(np.unique(self._words.codes))
        self._characters = [chr(code) for code in self._codes.tolist()]

    @property
    def smallest_size(self) -> int:
        """The size that no min-count gets below: special tokens, and characters in two forms."""
        joined = (self._options.joiner + each for each in self._characters)
        return len({*self._special_tokens, *self._characters, *joined})

    def build(self, min_count: int) -> tuple[str, ...]:
        """Returns the pieces by id."""
        pieces = None
        for _ in range(self._options.iterations):
            select = self._words_and_endings if self._endings else self._kept_substrings
            pieces = select(pieces, min_count)
        return self._in_order(pieces)

    def _trie(self, pieces: Pieces) -> PieceTrie:
        return piece_trie(self._words.codes, pieces, self._codes, self._joiner)

    def _kept_substrings(self, pieces: Pieces | None, min_count: int) -> Pieces:
        """The substrings that are kept, where the last pieces begin; None: anywhere."""
        is_begin = np.full(len(self._words.codes), pieces is None)
        if pieces is not None:
            mark_cuts(self._words, self._trie(pieces), is_begin)
        return kept_pieces(self._words, read_only(is_begin), min_count)

    def _words_and_endings(self, pieces: Pieces | None, min_count: int) -> Pieces:
        """The words and endings counted often enough where the last pieces begin; None: anywhere."""
        words, endings = self._words, self._endings
        weights = endings.first_weights
        if pieces is not None:
            weights = np.zeros(len(weights), np.int64)
            weigh_cuts(words, self._trie(pieces), endings.numbers, weights)
        whole, rest = (np.flatnonzero(each >= min_count) for each in (words.counts, weights))
        rest = rest[rest > 0]  # 0 is the empty ending
        return Pieces(
            read_only(np.concatenate([words.starts[whole], endings.begins[rest]])),
            read_only(np.concatenate([np.diff(words.starts)[whole], endings.lengths[rest]])),
            read_only(np.concatenate([words.counts[whole], weights[rest]])),
            read_only(np.repeat([False, True], [len(whole), len(rest)])),
        )

    def _in_order(self, pieces: Pieces) -> tuple[str, ...]:
        """Special tokens, characters by code point, pieces by weight and then by code point.

        Of a piece that is a word and an ending with its joiner, the ending's weight counts.
        """
        weights: dict[str, int] = {}
        order = np.argsort(pieces.are_rest, kind='stable').tolist()
        columns = (pieces.begins, pieces.lengths, pieces.weights, pieces.are_rest)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        for begin, length, weight, is_rest in (rows[each] for each in order):
            mark = self._options.joiner if is_rest else ''
            weights[mark + self._words.text(begin, length)] = weight
        for character in self._characters:
            weights.setdefault(character, 1)
            weights.setdefault(self._options.joiner + character, 1)
        ranked = sorted(weights, key=lambda piece: (-weights[piece], piece))
        return tuple(dict.fromkeys([*self._special_tokens, *self._characters, *ranked]))


def learn_wordpieces(
    table: TokenTable, options: WordPieceOptions, report: Report
) -> LearnedPieces:
    """Learns a vocabulary of about a size.

    Args:
        table: the words that BERT's pre-tokenizer cuts, with their counts.
        options: the size, and how it is searched for.
        report: is told (min-count, size, size asked for) of each vocabulary looked at.

    Raises:
        InputError: the table is empty, or `at-most` cannot be reached.
    """
    if not len(table):
        raise InputError('there is no word to learn from; check the text and its counts')
    learner = PieceLearner(table, options)
    low, high = options.min_count_range
    bounds = max(low, int(table.counts.min())), min(high, int(table.counts.max()))
    return search_pieces(learner.build, learner.smallest_size, bounds, options, report)


def search_pieces(
    build: Callable[[int], tuple[str, ...]],
    smallest_size: int,
    bounds: tuple[int, int],
    options: WordPieceOptions,
    report: Report,
) -> LearnedPieces:
    """Searches for a size with any learner; see `learn_wordpieces`.

    Args:
        build: gives the pieces at a min-count.
        smallest_size: that no min-count gets below.
        bounds: the lowest min-count, and the highest, which may be below.
        options: the size, and how it is searched for.
        report: is told of each vocabulary.
    """
    target = options.vocab_size
    if options.search == 'tensorflow-text':
        pieces, min_count, tried = _follow_tensorflow_text(build, bounds, options, report)
        return LearnedPieces(pieces, min_count, tried, _around(tried, target), smallest_size)
    low, high = bounds[0], max(bounds)
    built: dict[int, tuple[str, ...]] = {}

    def build_and_keep(min_count: int) -> Sequence[str]:
        built[min_count] = build(min_count)
        return built[min_count]

    found = search_vocabulary(
        build_and_keep,
        target,
        strategy='closest',
        min_count_range=(low, high),
        smallest_size=smallest_size,
        largest_count=high,
        report=report,
    )
    if options.search == 'closest':
        return LearnedPieces(
            found.subtokens, found.min_count, found.tried, found.reachable, smallest_size
        )
    fitting = [(len(pieces), -count) for count, pieces in built.items() if len(pieces) <= target]
    if not fitting:
        raise InputError(
            f'no vocabulary of at most {target} pieces can be had: the smallest that was found has '
            f'{min(map(len, built.values()))}; give a larger --vocab-size or a higher '
            '--min-count-range'
        )
    min_count = -max(fitting)[1]
    return LearnedPieces(
        built[min_count], min_count, found.tried, _around(found.tried, target), smallest_size
    )


def _follow_tensorflow_text(
    build: Callable[[int], tuple[str, ...]],
    bounds: tuple[int, int],
    options: WordPieceOptions,
    report: Report,
) -> tuple[tuple[str, ...], int, tuple[tuple[int, int], ...]]:
    """That tool's bisection: it takes the last vocabulary that it built, be it the nearest or not."""
    low, high = bounds
    tried: list[tuple[int, int]] = []
    while True:
        min_count = (high + low) // 2
        pieces = build(min_count)
        tried.append((min_count, len(pieces)))
        report(min_count, len(pieces), options.vocab_size)
        missing = options.vocab_size - len(pieces)
        if 0 <= missing <= options.slack * options.vocab_size or low >= high or min_count <= 1:
            return pieces, min_count, tuple(tried)
        if missing < 0:
            low = min_count + 1
        else:
            high = min_count - 1


def _around(tried: Sequence[tuple[int, int]], target: int) -> tuple[tuple[int, int], ...]:
    """The nearest sizes above and below a target, as far as they were tried."""
    above = sorted((each for each in tried if each[1] > target), key=lambda each: each[1])
    below = sorted((each for each in tried if each[1] <= target), key=lambda each: -each[1])
    return (*above[:1], *below[:1])
