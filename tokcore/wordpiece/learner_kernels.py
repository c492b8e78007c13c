"""What the WordPiece learner counts: words, their segmentation, and substrings by the documented rule.

All substrings from positions where pieces may start are nodes of a trie with two roots, one for
substrings at the start of a word and one for those after a joiner. The documented rule is then one
pass from the leaves up: the counts of selected nodes are subtracted from those of their ancestors.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from tokcore.counts.token_table import TokenTable
from tokcore.kernels.hash_tables import ABSENT, Edges, child_of, child_or_new, empty_edges
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.text.unicode import CODE_POINTS, next_character
from tokcore.wordpiece.model import JOINED_ROOT, WORD_ROOT


class Words(NamedTuple):
    """Words as code points: word i is codes[starts[i]:starts[i + 1]] and occurs counts[i] times."""

    codes: np.ndarray  # uint32
    starts: np.ndarray  # int64[words + 1]
    counts: np.ndarray  # int64[words]

    def text(self, start: int, length: int) -> str:
        """Returns a substring of the code points of all words."""
        return self.codes[start : start + length].tobytes().decode('utf-32-le', 'surrogatepass')

    def pick(self, indices: np.ndarray) -> 'Words':
        """Returns the words of these indices, in this order."""
        lengths = np.diff(self.starts)[indices]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        codes = np.empty(int(starts[-1]), np.uint32)
        _copy_words(self.codes, read_only(self.starts[indices]), read_only(starts), codes)
        return Words(read_only(codes), read_only(starts), read_only(self.counts[indices]))


class Pieces(NamedTuple):
    """Pieces as substrings of code points: codes[starts[i]:starts[i] + lengths[i]]."""

    starts: np.ndarray  # int64
    lengths: np.ndarray  # int64
    counts: np.ndarray  # int64
    are_joined: np.ndarray  # bool: after a joiner


def words_of(table: TokenTable) -> Words:
    """Returns all words of a table, ascending by code points."""
    table = table.sorted()
    lengths = np.empty(len(table), np.int64)
    codes = np.empty(len(table.data), np.uint32)
    size = _decode(table.data, table.offsets, codes, lengths)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return Words(read_only(codes[:size]), read_only(starts), table.counts)


def select_words(
    words: Words,
    special_tokens: Collection[str],
    max_length: int,
    max_characters: int,
    max_words: int | None,
) -> Words:
    """Returns the words to learn from, as TensorFlow Text selects them: by count, then code points.

    Args:
        words: ascending by code points.
        special_tokens: are not learned from.
        max_length: of a word, in characters.
        max_characters: words with characters other than this many most frequent ones are left out.
        max_words: only this many most frequent words; None for all.
    """
    words = filter_words(words, special_tokens, max_length)
    characters = most_frequent_characters(character_counts(words), max_characters)
    words = filter_words(words, special_tokens, max_length, characters)
    order = np.argsort(-words.counts, kind='stable')
    return words.pick(order if max_words is None else order[:max_words])


def filter_words(
    words: Words,
    special_tokens: Collection[str],
    max_length: int,
    characters: str | None = None,
) -> Words:
    """Returns the words up to a length that are not special tokens and have no other characters."""
    lengths = np.diff(words.starts)
    selected = lengths <= max_length
    for word in np.flatnonzero(_may_be_tokens(words, special_tokens)).tolist():
        if words.text(int(words.starts[word]), int(lengths[word])) in special_tokens:
            selected[word] = False
    if characters is not None:
        is_other = np.ones(CODE_POINTS, np.bool_)
        is_other[[ord(character) for character in characters]] = False
        others = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_other[words.codes])])
        selected &= others[words.starts[1:]] == others[words.starts[:-1]]
    return words.pick(np.flatnonzero(selected))


def _may_be_tokens(words: Words, tokens: Collection[str]) -> np.ndarray:
    """Returns which words start with the first character of a token: bool[words]."""
    codes = np.array([ord(token[0]) for token in tokens if token], np.uint32)
    starts = words.starts[:-1]
    return np.isin(words.codes[np.minimum(starts, max(0, len(words.codes) - 1))], codes) & (
        np.diff(words.starts) > 0
    )


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

    A piece is a string: `##a` is found at the start of a word as it is, and after a joiner as `a`.

    Args:
        codes: uint32[...], of which pieces are substrings.
        pieces: other than single characters, or any.
        characters: uint32[...].
        joiner: uint32[...], its code points.
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
