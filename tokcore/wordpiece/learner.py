"""The WordPiece learner: the vocabulary of any min-count from a token table, and the search for a size.

The results are those of TensorFlow Text's `wordpiece_tokenizer_learner_lib.learn` 2.21 for the same
counts and parameters, file for file. That tool counts every substring of every word and subtracts
each count from those of all prefixes, from the longest on. What is left of a substring's count is
how often a word *ends* with it. So only words and their endings are counted:

    words      walking 10   walked 10            first iteration: a piece may start anywhere
    endings    alking 10  ing 10  ng 10  g 10  alked 10  ed 10  d 10   each a node of a trie
    pieces     the words and endings with min-count, `walking`, `##alking`, and all characters
    next       words are segmented into the longest pieces, endings are counted where pieces start

The learner on Beam counts words and endings of partitions as tables, and adds them up.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.counts.tables import concatenate_tables
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.scheme import Learned
from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets
from tokcore.kernels.hash_tables import ABSENT, Edges, child_of, child_or_new, empty_edges
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.learning.size_search import Progress, SearchResult, search_vocabulary
from tokcore.text.unicode import CODE_POINTS, next_character
from tokcore.wordpiece.model import JOINED_ROOT, WORD_ROOT
from tokcore.wordpiece.options import WordPieceOptions
from tokcore.wordpiece.vocabulary import WordPieceVocabulary

_WORD, _ENDING = b'W', b'E'
"""The first byte of tokens in the tables of the learner on Beam: whether a word or an ending follows."""


def learn_wordpieces(
    table: TokenTable, options: WordPieceOptions, report: Progress
) -> Learned[WordPieceVocabulary]:
    """Learns a vocabulary of about a size.

    Args:
        table: the words of BERT's pre-tokenizer, with their counts.
        options: the size, and how it is searched for.
        report: is called with (min-count, size, target size) of each vocabulary.

    Raises:
        InputError: the table is empty, or no vocabulary is small enough for `at-most`.
    """
    if not len(table):
        raise InputError('there is no word to learn from; check the text and its counts')
    learner = PieceLearner(table, options)
    low, high = options.min_count_range
    bounds = max(low, int(table.counts.min())), min(high, int(table.counts.max()))
    result = search_pieces(learner.build, bounds, options, report)
    vocabulary = WordPieceVocabulary(result.subtokens, options.joiner)
    return Learned.by_search(vocabulary, result, learner.smallest_size)


def search_pieces(
    build: Callable[[int], tuple[str, ...]],
    bounds: tuple[int, int],
    options: WordPieceOptions,
    report: Progress,
) -> SearchResult:
    """Searches for a size with any learner, whose `build` returns the pieces of a min-count.

    Bounds are the lowest and the highest min-count; the highest may be lower.
    """
    target = options.vocab_size
    if options.search == 'tensorflow-text':
        return _follow_tensorflow_text(build, bounds, options, report)
    low, high = bounds[0], max(bounds)
    built: dict[int, tuple[str, ...]] = {}

    def build_and_keep(min_count: int) -> Sequence[str]:
        built[min_count] = build(min_count)
        return built[min_count]

    result = search_vocabulary(
        build_and_keep,
        target,
        strategy='closest',
        min_count_range=(low, high),
        smallest_size=0,
        largest_count=high,
        report=report,
    )
    if options.search == 'closest':
        return result
    fitting = [(len(pieces), -count) for count, pieces in built.items() if len(pieces) <= target]
    if not fitting:
        raise InputError(
            f'no vocabulary of at most {target} pieces was found: the smallest one has '
            f'{min(map(len, built.values()))}; give a larger --vocab-size or a higher '
            '--min-count-range'
        )
    min_count = -max(fitting)[1]
    return SearchResult(built[min_count], min_count, result.tried, _nearest(result.tried, target))


def _follow_tensorflow_text(
    build: Callable[[int], tuple[str, ...]],
    bounds: tuple[int, int],
    options: WordPieceOptions,
    report: Progress,
) -> SearchResult:
    """That tool's bisection: it returns the last vocabulary, even if an earlier one is nearer."""
    low, high = bounds
    tried: list[tuple[int, int]] = []
    while True:
        min_count = (high + low) // 2
        pieces = build(min_count)
        tried.append((min_count, len(pieces)))
        report(min_count, len(pieces), options.vocab_size)
        missing = options.vocab_size - len(pieces)
        if 0 <= missing <= options.slack * options.vocab_size or low >= high or min_count <= 1:
            nearest = _nearest(tried, options.vocab_size)
            return SearchResult(pieces, min_count, tuple(tried), nearest)
        if missing < 0:
            low = min_count + 1
        else:
            high = min_count - 1


def _nearest(tried: Sequence[tuple[int, int]], target: int) -> tuple[tuple[int, int], ...]:
    """Returns the (min-count, size) of the nearest sizes above and below a target."""
    above = sorted((item for item in tried if item[1] > target), key=lambda item: item[1])
    below = sorted((item for item in tried if item[1] <= target), key=lambda item: -item[1])
    return (*above[:1], *below[:1])


class PieceLearner:
    """Learns the pieces of one token table, for any number of min-counts.

    Args:
        table: distinct words and their counts.
        options: all but the size and the search for it are used.
    """

    def __init__(self, table: TokenTable, options: WordPieceOptions):
        self._options = options
        self._joiner = _code_points(options.joiner)
        # As TensorFlow Text selects them: by count, then code points.
        all_words = WordFilter(frozenset(options.first_entries), options.max_learned_word_length)
        words = all_words.select(table)
        characters = most_frequent_characters(character_counts(words), options.max_characters)
        words = dataclasses.replace(all_words, characters=characters).pick(words)
        words = words.pick(np.argsort(-words.counts, kind='stable')[: options.max_words])
        self._words = words
        self._endings = _endings_of(words)
        self._codes = read_only(np.unique(self._words.codes))
        self._characters = [chr(code) for code in self._codes.tolist()]

    @property
    def smallest_size(self) -> int:
        """The smallest vocabulary: special tokens, and characters with and without the joiner."""
        return len(pieces_by_id({}, self._characters, self._options))

    def build(self, min_count: int) -> tuple[str, ...]:
        """Returns the pieces of a min-count by id."""
        pieces = self._select(None, min_count)
        for _ in range(self._options.iterations - 1):
            pieces = self._select(pieces, min_count)
        return self._by_id(pieces)

    def _select(self, pieces: Pieces | None, min_count: int) -> Pieces:
        """Returns the pieces that are frequent where the last pieces start; None: anywhere."""
        words, endings = self._words, self._endings
        counts = endings.counts
        if pieces is not None:
            counts = np.zeros(len(counts), np.int64)
            trie = piece_trie(words.codes, pieces, self._codes, self._joiner)
            count_endings(words, trie, endings.numbers, counts)
        frequent = np.flatnonzero(words.counts >= min_count)
        joined = np.flatnonzero(counts >= min_count)
        joined = joined[joined > 0]  # 0 is the empty ending
        return Pieces(
            read_only(np.concatenate([words.starts[frequent], endings.starts[joined]])),
            read_only(np.concatenate([np.diff(words.starts)[frequent], endings.lengths[joined]])),
            read_only(np.concatenate([words.counts[frequent], counts[joined]])),
            read_only(np.repeat([False, True], [len(frequent), len(joined)])),
        )

    def _by_id(self, pieces: Pieces) -> tuple[str, ...]:
        """Returns the pieces by id; if a word and an ending are one piece, the ending's count is used."""
        counts: dict[str, int] = {}
        order = np.argsort(pieces.are_joined, kind='stable')
        columns = (pieces.starts, pieces.lengths, pieces.counts, pieces.are_joined)
        for start, length, count, is_joined in zip(*(column[order].tolist() for column in columns)):
            prefix = self._options.joiner if is_joined else ''
            counts[prefix + self._words.text(start, length)] = count
        return pieces_by_id(counts, self._characters, self._options)


def pieces_by_id(
    counts: Mapping[str, int], characters: Sequence[str], options: WordPieceOptions
) -> tuple[str, ...]:
    """Returns the pieces by id: special tokens, characters, then pieces by count and code points.

    `counts` are of the selected pieces, with the joiner. Each of the characters, which ascend, is a piece
    with and without the joiner.
    """
    counts = dict(counts)
    for character in characters:
        counts.setdefault(character, 1)
        counts.setdefault(options.joiner + character, 1)
    ranked = sorted(counts, key=lambda piece: (-counts[piece], piece))
    return tuple(dict.fromkeys([*options.first_entries, *characters, *ranked]))


class _Endings(NamedTuple):
    """The endings of words: ending i is codes[starts[i]:starts[i] + lengths[i]]; 0 is empty."""

    starts: np.ndarray  # int64[endings]
    lengths: np.ndarray  # int32[endings]
    numbers: np.ndarray  # int32[code points]: the ending that starts here, or 0 at a word's start
    counts: np.ndarray  # int64[endings], as if a piece might start at every character


def _endings_of(words: Words) -> _Endings:
    """Returns the endings of all words that start after the word's first character.

    Raises InputError if one occurs more than 2^63 - 1 times.
    """
    most = len(words.codes)
    starts, lengths = np.empty(most + 1, np.int64), np.empty(most + 1, np.int32)
    numbers, counts = np.zeros(most, np.int32), np.zeros(most + 1, np.int64)
    size = _add_endings(words, empty_edges(most), starts, lengths, numbers, counts)
    if words.counts.sum(dtype=np.float64) > 2**62:
        # A sum that has wrapped differs from that of floats by 2^64 or more.
        sums = np.bincount(numbers, np.repeat(words.counts, np.diff(words.starts)), size)
        for wrapped in np.flatnonzero(np.abs(sums - counts[:size])[1:] > 2**62).tolist():
            ending = words.text(int(starts[wrapped + 1]), int(lengths[wrapped + 1]))
            raise InputError(
                f'the ending {ending!r} occurs more than 2^63 - 1 times; make the counts smaller'
            )
    starts, lengths, counts = (read_only(a[:size].copy()) for a in (starts, lengths, counts))
    return _Endings(starts, lengths, read_only(numbers), counts)


@kernel_without_allocation
def _add_endings(words, edges, starts, lengths, numbers, counts):
    """Fills the arrays of `_Endings`, as a trie of reversed words; returns how many endings."""
    size = 1
    starts[0] = lengths[0] = 0
    for word in range(len(words.counts)):
        node = np.int64(0)
        for position in range(words.starts[word + 1] - 1, words.starts[word], -1):
            node = child_or_new(edges, node, words.codes[position], size)
            if node == size:
                starts[node] = position
                lengths[node] = words.starts[word + 1] - position
                size += 1
            numbers[position] = node
            counts[node] += words.counts[word]
    return size


def first_counts(words: Words) -> TokenTable:
    """Returns the counts of words and of all endings, for the first iteration."""
    endings = _endings_of(words)
    starts, lengths, counts = endings.starts[1:], endings.lengths[1:], endings.counts[1:]
    of_words = _count_table(words, _WORD, words.starts[:-1], np.diff(words.starts), words.counts)
    return concatenate_tables([of_words, _count_table(words, _ENDING, starts, lengths, counts)])


def later_counts(words: Words, pieces: Sequence[str], joiner: str) -> TokenTable:
    """Returns the counts of endings that start where the longest of these pieces start."""
    endings = _endings_of(words)
    counts = np.zeros(len(endings.counts), np.int64)
    if len(words.counts):
        lengths = np.array([len(piece) for piece in pieces], np.int64)
        strings = Pieces(
            read_only(np.cumsum(lengths) - lengths),
            lengths,
            np.zeros_like(lengths),
            np.zeros(len(lengths), np.bool_),
        )
        characters = read_only(np.unique(words.codes))
        trie = piece_trie(_code_points(''.join(pieces)), strings, characters, _code_points(joiner))
        count_endings(words, trie, endings.numbers, counts)
    occurring = np.flatnonzero(counts)
    return _count_table(
        words, _ENDING, endings.starts[occurring], endings.lengths[occurring], counts[occurring]
    )


def split_counts(table: TokenTable) -> tuple[dict[str, int], dict[str, int]]:
    """Returns the counts of words, and those of endings."""
    counts: Mapping[str, dict[str, int]] = {'W': {}, 'E': {}}
    for token, count in table.items():
        counts[token[0]][token[1:]] = count
    return counts['W'], counts['E']


def words_of_counts(table: TokenTable) -> TokenTable:
    """Returns the words of a table of counts, without the endings."""
    return table.pick(np.flatnonzero(table.data[table.offsets[:-1]] == _WORD[0]))


def _code_points(text: str) -> np.ndarray:
    return read_only(np.frombuffer(text.encode('utf-32-le', 'surrogatepass'), np.uint32))


def _count_table(
    words: Words, kind: bytes, starts: np.ndarray, lengths: np.ndarray, counts: np.ndarray
) -> TokenTable:
    """Returns a table of substrings of the words' code points, each after the byte of its kind."""
    room = int(np.sum(lengths)) * 4 + len(starts)
    data, offsets = np.empty(room, np.uint8), np.zeros(len(starts) + 1, np.int64)
    size = _encode(
        words.codes, read_only(np.ascontiguousarray(starts)),
        read_only(lengths.astype(np.int64)), kind[0], data, offsets,
    )  # fmt: skip
    return TokenTable(data[:size], offsets, np.ascontiguousarray(counts))


@kernel_without_allocation
def _encode(codes, starts, lengths, kind, data, offsets):
    """Writes substrings in UTF-8, each after the byte of its kind; returns the number of bytes."""
    size = 0
    for part in range(len(starts)):
        data[size] = kind
        size += 1
        for position in range(starts[part], starts[part] + lengths[part]):
            code = np.int64(codes[position])
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


class Words(NamedTuple):
    """Words as code points: word i is codes[starts[i]:starts[i + 1]] and occurs counts[i] times."""

    codes: np.ndarray  # uint32
    starts: np.ndarray  # int64[words + 1]
    counts: np.ndarray  # int64[words]

    def text(self, start: int, length: int) -> str:
        """Returns a substring of the code points of all words."""
        return self.codes[start : start + length].tobytes().decode('utf-32-le', 'surrogatepass')

    def pick(self, indices: np.ndarray) -> Words:
        """Returns the words of these indices, in this order."""
        lengths = np.diff(self.starts)[indices]
        starts = row_offsets(lengths)
        codes = np.empty(int(starts[-1]), np.uint32)
        _copy_words(self.codes, read_only(self.starts[indices]), read_only(starts), codes)
        return Words(read_only(codes), read_only(starts), read_only(self.counts[indices]))


class Pieces(NamedTuple):
    """Pieces as substrings of code points: codes[starts[i]:starts[i] + lengths[i]]."""

    starts: np.ndarray  # int64
    lengths: np.ndarray  # int64
    counts: np.ndarray  # int64
    are_joined: np.ndarray  # bool: after a joiner


@dataclass(frozen=True)
class WordFilter:
    """Selects the words up to a length that are not special tokens and have no other characters."""

    special_tokens: Collection[str]
    max_length: int
    characters: str | None = None

    def select(self, table: TokenTable) -> Words:
        """Returns the words of a table that are learned from, ascending by code points."""
        table = table.sorted()
        lengths = np.empty(len(table), np.int64)
        codes = np.empty(len(table.data), np.uint32)
        size = _decode(table.data, table.offsets, codes, lengths)
        starts = row_offsets(lengths)
        return self.pick(Words(read_only(codes[:size]), read_only(starts), table.counts))

    def pick(self, words: Words) -> Words:
        """Returns those of some words."""
        lengths = np.diff(words.starts)
        selected = lengths <= self.max_length
        first_codes = np.array([ord(token[0]) for token in self.special_tokens if token], np.uint32)
        has_text = np.flatnonzero(lengths)
        may_be_token = np.isin(words.codes[words.starts[has_text]], first_codes)
        for word in has_text[may_be_token].tolist():
            if words.text(int(words.starts[word]), int(lengths[word])) in self.special_tokens:
                selected[word] = False
        if self.characters is not None:
            is_other = np.ones(CODE_POINTS, np.bool_)
            is_other[[ord(character) for character in self.characters]] = False
            others = row_offsets(is_other[words.codes])
            selected &= others[words.starts[1:]] == others[words.starts[:-1]]
        return words.pick(np.flatnonzero(selected))


def character_counts(words: Words) -> dict[str, int]:
    """Returns how often each character occurs in words, by their counts; sums may exceed 2^63."""
    characters, indices = np.unique(words.codes, return_inverse=True)
    counts = np.repeat(words.counts, np.diff(words.starts))
    high, low = (np.zeros(len(characters), np.int64) for _ in range(2))
    np.add.at(high, indices, counts >> 32)
    np.add.at(low, indices, counts & 0xFFFFFFFF)
    return {
        chr(code): (int(upper) << 32) + int(lower)
        for code, upper, lower in zip(characters.tolist(), high, low, strict=True)
    }


def most_frequent_characters(counts: Mapping[str, int], most: int) -> str:
    """Returns this many characters, the most frequent first, then by code point."""
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    return ''.join(ranked[:most])


class PieceTrie(NamedTuple):
    """A trie of code points with two roots."""

    edges: Edges
    is_piece: np.ndarray  # bool[nodes]


def piece_trie(
    codes: np.ndarray, pieces: Pieces, characters: np.ndarray, joiner: np.ndarray
) -> PieceTrie:
    """Returns the trie of pieces, and of all characters with and without a joiner.

    A piece is a string: `##a` is found at the start of a word as it is, and after a joiner as `a`. Arrays are
    code points, uint32; pieces are substrings of `codes`.
    """
    # Each piece is added below both roots, and once with the joiner before it.
    most = int(pieces.lengths.sum()) * 2 + len(joiner) * (len(pieces.starts) + 1)
    most += 4 * len(characters) + 2
    trie = PieceTrie(empty_edges(most), np.zeros(most + 2, np.bool_))
    _add_pieces(codes, pieces, characters, joiner, trie)
    return trie


@kernel_without_allocation
def count_endings(words, trie, ending_of, counts):
    """Counts the endings of words (ending_of[position]) that start where pieces start."""
    for word in range(len(words.counts)):
        end = words.starts[word + 1]
        position, root = words.starts[word], WORD_ROOT
        while True:
            position = _longest_piece(words.codes, position, end, root, trie)
            if position >= end:
                break
            counts[ending_of[position]] += words.counts[word]
            root = JOINED_ROOT


@kernel_without_allocation
def _longest_piece(codes, position, end, root, trie):
    """Returns the end of the longest piece at a position; every character is a piece."""
    node, piece_end = np.int64(root), position + 1
    while position < end:
        node = child_of(trie.edges, node, codes[position])
        if node == ABSENT:
            break
        position += 1
        if trie.is_piece[node]:
            piece_end = position
    return piece_end


@kernel_without_allocation
def _add_pieces(codes, pieces, characters, joiner, trie):
    """Adds all pieces and characters as strings, and below `JOINED_ROOT` without the joiner."""
    joined, size = _add_codes(joiner, 0, len(joiner), np.int64(WORD_ROOT), trie, 2)
    for piece in range(len(pieces.starts)):
        start, length = pieces.starts[piece], pieces.lengths[piece]
        if pieces.are_joined[piece]:
            node, size = _add_codes(codes, start, length, np.int64(JOINED_ROOT), trie, size)
            trie.is_piece[node] = True
            node, size = _add_codes(codes, start, length, joined, trie, size)
            trie.is_piece[node] = True
            continue
        node, size = _add_codes(codes, start, length, np.int64(WORD_ROOT), trie, size)
        trie.is_piece[node] = True
        has_joiner = length > len(joiner)
        for k in range(len(joiner)):
            has_joiner = has_joiner and codes[start + k] == joiner[k]
        if has_joiner:
            start, length = start + len(joiner), length - len(joiner)
            node, size = _add_codes(codes, start, length, np.int64(JOINED_ROOT), trie, size)
            trie.is_piece[node] = True
    for character in range(len(characters)):
        for root in (np.int64(WORD_ROOT), np.int64(JOINED_ROOT), joined):
            node, size = _add_codes(characters, character, 1, root, trie, size)
            trie.is_piece[node] = True


@kernel_without_allocation
def _add_codes(codes, start, length, node, trie, size):
    """Adds a path of code points below a node; returns the last node, and the number of nodes."""
    for position in range(start, start + length):
        node = child_or_new(trie.edges, node, codes[position], size)
        size += node == size
    return node, size


@kernel_without_allocation
def _decode(data, offsets, codes, lengths):
    """Decodes tokens of UTF-8; returns the number of code points."""
    size = 0
    for token in range(len(offsets) - 1):
        byte, first = offsets[token], size
        while byte < offsets[token + 1]:
            code, byte = next_character(data, byte)
            codes[size] = code
            size += 1
        lengths[token] = size - first
    return size


@kernel_without_allocation
def _copy_words(codes, sources, starts, copy):
    """Copies the words that start at `sources` to `starts`."""
    for word in range(len(sources)):
        for k in range(starts[word + 1] - starts[word]):
            copy[starts[word] + k] = codes[sources[word] + k]
