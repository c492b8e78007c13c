"""WordPiece vocabularies of one token table, for any min-count, and the search for a size.

The results are, file for file, those of TensorFlow Text's `wordpiece_tokenizer_learner_lib.learn`
2.21 for the same counts and parameters. That tool counts every substring of every word and, from the
longest on, subtracts each count from all prefixes. What is left of a string is how often a word
*ends* with it, from a place on where a piece may begin. So only words and endings are counted:

    words      walking 10   walked 10            first iteration: a piece may begin anywhere
    endings    alking 10  ing 10  ng 10  g 10  alked 10  ed 10  d 10   each a node of a trie
    min-count  endings counted as often are pieces, `walking`, `##alking`, and so is each character
    next       words are cut into the longest pieces, endings are counted at cuts only

Workers of a distributed learner give the weights of words and endings as tables.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.kernels.hash_tables import child_or_new, empty_edges
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.learning.size_search import Progress, search_vocabulary
from tokcore.wordpiece.learner_kernels import (
    Pieces,
    PieceTrie,
    Words,
    fitting_words,
    kept_pieces,
    learned_words,
    mark_cuts,
    piece_trie,
    weigh_cuts,
    words_of,
)
from tokcore.wordpiece.options import WordPieceOptions

WORD_MARK, ENDING_MARK = b'W', b'E'
"""What tokens of a table of weights begin with: whole words, and endings of words."""


def in_order(
    weights: Mapping[str, int], characters: Sequence[str], options: WordPieceOptions
) -> tuple[str, ...]:
    """Returns the pieces by id: special tokens, characters, and pieces by weight and code point.

    Args:
        weights: of the pieces that are kept, as they are spelt.
        characters: of all words, ascending; each is a piece, alone and behind the joiner.
        options: the special tokens and the joiner.
    """
    weights = dict(weights)
    for character in characters:
        weights.setdefault(character, 1)
        weights.setdefault(options.joiner + character, 1)
    ranked = sorted(weights, key=lambda piece: (-weights[piece], piece))
    return tuple(dict.fromkeys([*options.first_entries, *characters, *ranked]))


@dataclass(frozen=True)
class LearnedPieces:
    """A vocabulary's pieces by id, and how they were found, as `Learned` has it."""

    pieces: tuple[str, ...]
    min_count: int
    tried: tuple[tuple[int, int], ...]
    reachable: tuple[tuple[int, int], ...]
    smallest_size: int


def learn_wordpieces(
    table: TokenTable, options: WordPieceOptions, report: Progress
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
    report: Progress,
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
        """The pieces by id; of one that is a word and an ending, the ending's weight counts."""
        weights: dict[str, int] = {}
        order = np.argsort(pieces.are_rest, kind='stable').tolist()
        columns = (pieces.begins, pieces.lengths, pieces.weights, pieces.are_rest)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        for begin, length, weight, is_rest in (rows[each] for each in order):
            mark = self._options.joiner if is_rest else ''
            weights[mark + self._words.text(begin, length)] = weight
        return in_order(weights, self._characters, self._options)


def _follow_tensorflow_text(
    build: Callable[[int], tuple[str, ...]],
    bounds: tuple[int, int],
    options: WordPieceOptions,
    report: Progress,
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


@dataclass(frozen=True)
class ChosenWords:
    """Which words a vocabulary is learned from.

    Attributes:
        special_tokens: are not learned from.
        max_length: of a word, in characters.
        characters: words with others are left out; None before they are known.
    """

    special_tokens: frozenset[str]
    max_length: int
    characters: str | None = None

    def of(self, table: TokenTable) -> Words:
        """Returns those of a table."""
        words = words_of(table)
        return fitting_words(words, self.special_tokens, self.max_length, self.characters)


def first_weights(words: Words) -> TokenTable:
    """Returns whole words, and the endings that begin behind a word's first character."""
    endings = endings_of(words)
    whole = _table(words, WORD_MARK, words.starts[:-1], np.diff(words.starts), words.counts)
    rest = _table(
        words, ENDING_MARK, endings.begins[1:], endings.lengths[1:], endings.first_weights[1:]
    )
    return _joined([whole, rest])


def later_weights(words: Words, pieces: Sequence[str], joiner: str) -> TokenTable:
    """Returns the endings that begin where words are cut into the longest of these pieces."""
    endings = endings_of(words)
    weights = np.zeros(len(endings.first_weights), np.int64)
    if len(words.counts):
        text = ''.join(pieces)
        codes = read_only(np.frombuffer(text.encode('utf-32-le', 'surrogatepass'), np.uint32))
        lengths = np.array([len(piece) for piece in pieces], np.int64)
        begins = read_only(np.cumsum(lengths) - lengths)
        spelt = Pieces(begins, lengths, np.zeros_like(lengths), np.zeros(len(lengths), np.bool_))
        mark = read_only(np.frombuffer(joiner.encode('utf-32-le'), np.uint32))
        trie = piece_trie(codes, spelt, read_only(np.unique(words.codes)), mark)
        weigh_cuts(words, trie, endings.numbers, weights)
    kept = np.flatnonzero(weights)
    return _table(words, ENDING_MARK, endings.begins[kept], endings.lengths[kept], weights[kept])


def split_weights(tables: Iterable[TokenTable]) -> tuple[dict[str, int], dict[str, int]]:
    """Returns the weights of whole words, and those of endings."""
    found: Mapping[str, dict[str, int]] = {'W': {}, 'E': {}}
    for table in tables:
        for token, weight in table.items():
            found[token[0]][token[1:]] = weight
    return found['W'], found['E']


def _table(
    words: Words, mark: bytes, begins: np.ndarray, lengths: np.ndarray, weights: np.ndarray
) -> TokenTable:
    """A table of parts of the words' code points, each behind a mark."""
    room = int(np.sum(lengths)) * 4 + len(begins)
    data, offsets = np.empty(room, np.uint8), np.zeros(len(begins) + 1, np.int64)
    size = _spell(
        words.codes, read_only(np.ascontiguousarray(begins)),
        read_only(lengths.astype(np.int64)), mark[0], data, offsets,
    )  # fmt: skip
    return TokenTable(data[:size], offsets, np.ascontiguousarray(weights))


def _joined(tables: Sequence[TokenTable]) -> TokenTable:
    sizes = np.cumsum([0, *(len(table.data) for table in tables)])
    offsets = [table.offsets[:-1] + size for table, size in zip(tables, sizes.tolist())]
    return TokenTable(
        np.concatenate([table.data for table in tables]),
        np.concatenate([*offsets, sizes[-1:]]),
        np.concatenate([table.counts for table in tables]),
    )


@kernel_without_allocation
def _spell(codes, begins, lengths, mark, data, offsets):
    """Writes parts of code points as UTF-8, each behind a mark; returns how many bytes they are."""
    size = 0
    for part in range(len(begins)):
        data[size] = mark
        size += 1
        for place in range(begins[part], begins[part] + lengths[part]):
            code = np.int64(codes[place])
            if code < 0x80:
                data[size] = code
                size += 1
                continue
            if code < 0x800:
                data[size] = 0xC0 | code >> 6
                size += 1
            else:
                if code < 0x10000:
                    data[size] = 0xE0 | code >> 12
                else:
                    data[size] = 0xF0 | code >> 18
                    size += 1
                    data[size] = 0x80 | (code >> 12 & 0x3F)
                size += 1
                data[size] = 0x80 | (code >> 6 & 0x3F)
                size += 1
            data[size] = 0x80 | (code & 0x3F)
            size += 1
        offsets[part + 1] = size
    return size


class Endings(NamedTuple):
    """Ending i is codes[begins[i]:begins[i] + lengths[i]] of the words' code points."""

    begins: np.ndarray  # int64[endings]
    lengths: np.ndarray  # int32[endings]
    numbers: np.ndarray  # int32[code points]: which ending a word has from this place on
    first_weights: np.ndarray  # int64[endings]: of the first iteration, with places in words alone


def endings_of(words: Words) -> Endings:
    """Returns the endings of all words that begin behind a word's first character."""
    size = len(words.codes)
    begins, lengths = np.empty(size + 1, np.int64), np.empty(size + 1, np.int32)
    numbers, weights = np.zeros(size, np.int32), np.zeros(size + 1, np.int64)
    count = _number_endings(words, empty_edges(size), begins, lengths, numbers, weights)
    kept = [read_only(each[:count].copy()) for each in (begins, lengths)]
    return Endings(*kept, read_only(numbers), read_only(weights[:count].copy()))


@kernel_without_allocation
def _number_endings(words, edges, begins, lengths, numbers, weights):
    """Fills in what `Endings` has; ending 0 is the empty one. Returns how many there are."""
    count = 1
    begins[0] = lengths[0] = 0
    for word in range(len(words.counts)):
        node = np.int64(0)
        for place in range(words.starts[word + 1] - 1, words.starts[word], -1):
            depth = words.starts[word + 1] - place
            node = child_or_new(edges, node, words.codes[place], count)
            if node == count:
                begins[node] = place
                lengths[node] = depth
                count += 1
            numbers[place] = node
            weights[node] += words.counts[word]
    return count
