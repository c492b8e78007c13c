"""What the WordPiece learner counts: its words, their greedy cuts, and the documented rule.

Words are chosen as TensorFlow Text chooses them. By the documented rule (`--selection kept`) a
count is subtracted from prefixes that are kept pieces only, so stems are pieces too. All substrings
from places where pieces may begin stand in a trie of two roots, and the rule is one walk upward:
what the pieces below a node have is subtracted from its count.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from tokcore.counts.token_table import TokenTable
from tokcore.kernels.hash_tables import ABSENT, Edges, child_of, child_or_new, empty_edges
from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.text.unicode import CODE_POINTS, next_character

WORD_ROOT, REST_ROOT = 0, 1
"""Where pieces begin that a word begins with, as they are spelt, and what follows a joiner."""


class Words(NamedTuple):
    """Words as code points: word i is codes[starts[i]:starts[i + 1]], counted counts[i] times."""

    codes: np.ndarray  # uint32
    starts: np.ndarray  # int64[words + 1]
    counts: np.ndarray  # int64[words]

    def text(self, begin: int, length: int) -> str:
        """Returns some of the characters."""
        return self.codes[begin : begin + length].tobytes().decode('utf-32-le', 'surrogatepass')

    def pick(self, chosen: np.ndarray) -> 'Words':
        """Returns the words of these numbers, in this order."""
        lengths = np.diff(self.starts)[chosen]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        codes = np.empty(int(starts[-1]), np.uint32)
        _copy_words(self.codes, read_only(self.starts[chosen]), read_only(starts), codes)
        return Words(read_only(codes), read_only(starts), read_only(self.counts[chosen]))


class Pieces(NamedTuple):
    """Pieces as parts of the words' code points: codes[begins[i]:begins[i] + lengths[i]]."""

    begins: np.ndarray  # int64
    lengths: np.ndarray  # int64
    weights: np.ndarray  # int64
    are_rest: np.ndarray  # bool: with a joiner before them


def kept_pieces(words: Words, is_begin: np.ndarray, min_count: int) -> Pieces:
    """Returns the pieces of two characters or more, and of one, that are counted often enough.

    It takes some 60 bytes for each distinct substring; of a word with n characters there are up to
    n² / 2.

    Args:
        words: to learn from.
        is_begin: bool[code points], where pieces may begin behind a word's first character.
        min_count: that is to be left of a piece's count.
    """
    most = _count_substrings(words, is_begin)
    begins, lengths = np.empty(most + 2, np.int64), np.empty(most + 2, np.int32)
    parents, counts = np.empty(most + 2, np.int32), np.zeros(most + 2, np.int64)
    edges = empty_edges(most)
    nodes = _add_substrings(words, is_begin, edges, begins, lengths, parents, counts)
    kept = _take_off(parents[:nodes], counts[:nodes], min_count)
    kept = kept[kept > REST_ROOT]
    return Pieces(
        begins[kept], lengths[kept].astype(np.int64), counts[kept], _are_rest(parents, kept)
    )


def _are_rest(parents: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Below which root nodes are: bool[...], whether it is that of what follows a joiner."""
    above = nodes.copy()
    while (below := above > REST_ROOT).any():
        above[below] = parents[above[below]]
    return above == REST_ROOT


@kernel_without_allocation
def _count_substrings(words, is_begin):
    count = 0
    for word in range(len(words.counts)):
        start, end = words.starts[word], words.starts[word + 1]
        for place in range(start, end):
            if place == start or is_begin[place]:
                count += end - place
    return count


@kernel_without_allocation
def _add_substrings(words, is_begin, edges, begins, lengths, parents, counts):
    """Fills in the nodes, parents before their children; returns how many there are."""
    nodes = 2
    for word in range(len(words.counts)):
        start, end = words.starts[word], words.starts[word + 1]
        for first in range(start, end):
            if first > start and not is_begin[first]:
                continue
            node = np.int64(WORD_ROOT if first == start else REST_ROOT)
            for place in range(first, end):
                parent = node
                node = child_or_new(edges, parent, words.codes[place], nodes)
                if node == nodes:
                    begins[node], lengths[node], parents[node] = first, place + 1 - first, parent
                    nodes += 1
                counts[node] += words.counts[word]
    return nodes


@kernel
def _take_off(parents, counts, min_count):
    """Leaves in `counts` what is left of each; returns the nodes that are kept."""
    below = np.zeros(len(counts), np.int64)
    kept = np.empty(len(counts), np.int64)
    size = 0
    for node in range(len(counts) - 1, REST_ROOT, -1):
        counts[node] -= below[node]
        if counts[node] >= min_count:
            below[node] += counts[node]
            kept[size] = node
            size += 1
        below[parents[node]] += below[node]
    return kept[:size]


class PieceTrie(NamedTuple):
    """All pieces, below two roots."""

    edges: Edges
    is_piece: np.ndarray  # bool[nodes]


def piece_trie(
    codes: np.ndarray, pieces: Pieces, characters: np.ndarray, joiner: np.ndarray
) -> PieceTrie:
    """Returns the trie of pieces, and of characters at a word's begin and behind it.

    A piece is the string that it is spelt as: `##a`, be it a word or what follows a joiner, is found
    in both ways.

    Args:
        codes: uint32[...], what the pieces are parts of.
        pieces: those of two characters or more, or of one.
        characters: uint32[...], each a piece besides.
        joiner: uint32[...], its code points.
    """
    # Each once below either root, and once with the joiner before it.
    edges = int(pieces.lengths.sum()) * 2 + len(joiner) * (len(pieces.begins) + 1)
    edges += 4 * len(characters) + 2
    trie = PieceTrie(empty_edges(edges), np.zeros(edges + 2, np.bool_))
    _add_pieces(codes, pieces, characters, joiner, trie)
    return trie


@kernel_without_allocation
def mark_cuts(words, trie, is_begin):
    """Sets is_begin (bool[code points], all False) where pieces begin behind a word's first."""
    for word in range(len(words.counts)):
        end = words.starts[word + 1]
        place, root = words.starts[word], WORD_ROOT
        while True:
            place = _longest_piece(words.codes, place, end, root, trie)
            if place >= end:
                break
            is_begin[place] = True
            root = REST_ROOT


@kernel_without_allocation
def weigh_cuts(words, trie, numbers, weights):
    """Adds words' counts to weights (int64[...]) by numbers[place] where pieces begin in them."""
    for word in range(len(words.counts)):
        end = words.starts[word + 1]
        place, root = words.starts[word], WORD_ROOT
        while True:
            place = _longest_piece(words.codes, place, end, root, trie)
            if place >= end:
                break
            weights[numbers[place]] += words.counts[word]
            root = REST_ROOT


@kernel_without_allocation
def _add_codes(codes, begin, length, node, trie, count):
    """Adds some code points below a node; returns the last node, and the number of nodes."""
    for place in range(begin, begin + length):
        node = child_or_new(trie.edges, node, codes[place], count)
        count += node == count
    return node, count


@kernel_without_allocation
def _add_pieces(codes, pieces, characters, joiner, trie):
    """Adds all pieces and characters as they are spelt, and without a joiner they begin with."""
    joined, count = _add_codes(joiner, 0, len(joiner), np.int64(WORD_ROOT), trie, 2)
    for piece in range(len(pieces.begins)):
        begin, length = pieces.begins[piece], pieces.lengths[piece]
        if pieces.are_rest[piece]:
            node, count = _add_codes(codes, begin, length, np.int64(REST_ROOT), trie, count)
            trie.is_piece[node] = True
            node, count = _add_codes(codes, begin, length, joined, trie, count)
            trie.is_piece[node] = True
            continue
        node, count = _add_codes(codes, begin, length, np.int64(WORD_ROOT), trie, count)
        trie.is_piece[node] = True
        same = length > len(joiner)
        for k in range(len(joiner)):
            same = same and codes[begin + k] == joiner[k]
        if same:
            begin, length = begin + len(joiner), length - len(joiner)
            node, count = _add_codes(codes, begin, length, np.int64(REST_ROOT), trie, count)
            trie.is_piece[node] = True
    for character in range(len(characters)):
        for root in (np.int64(WORD_ROOT), np.int64(REST_ROOT), joined):
            node, count = _add_codes(characters, character, 1, root, trie, count)
            trie.is_piece[node] = True


@kernel_without_allocation
def _longest_piece(codes, place, end, root, trie):
    """Where the longest piece ends that begins at a place; each character is one."""
    node, found = np.int64(root), place + 1
    while place < end:
        node = child_of(trie.edges, node, codes[place])
        if node == ABSENT:
            break
        place += 1
        if trie.is_piece[node]:
            found = place
    return found


def words_of(table: TokenTable) -> Words:
    """Returns all words of a table, ascending by code point."""
    table = table.sorted()
    lengths = np.empty(len(table), np.int64)
    codes = np.empty(len(table.data), np.uint32)
    size = _decode(read_only(table.data), read_only(table.offsets), codes, lengths)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return Words(read_only(codes[:size]), read_only(starts), read_only(table.counts))


def learned_words(
    words: Words,
    special_tokens: Collection[str],
    max_length: int,
    max_characters: int,
    max_words: int | None,
) -> Words:
    """Returns the words to learn from, by their counts, of equal ones by code point.

    Args:
        words: all, ascending by code point.
        special_tokens: are not learned from.
        max_length: longer ones are left out.
        max_characters: those with other characters than so many of the commonest are left out.
        max_words: as many at most, by their counts; None for all.
    """
    words = fitting_words(words, special_tokens, max_length)
    characters = commonest_characters(character_weights(words), max_characters)
    words = fitting_words(words, special_tokens, max_length, characters)
    order = np.argsort(-words.counts, kind='stable')
    return words.pick(order if max_words is None else order[:max_words])


def fitting_words(
    words: Words,
    special_tokens: Collection[str],
    max_length: int,
    characters: str | None = None,
) -> Words:
    """Returns the words that are no special tokens, and not longer, and have no other characters."""
    lengths = np.diff(words.starts)
    kept = lengths <= max_length
    for word in np.flatnonzero(_first_letters(words, special_tokens)).tolist():
        if words.text(int(words.starts[word]), int(lengths[word])) in special_tokens:
            kept[word] = False
    if characters is not None:
        is_strange = np.ones(CODE_POINTS, np.bool_)
        is_strange[[ord(each) for each in characters]] = False
        strange = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_strange[words.codes])])
        kept &= strange[words.starts[1:]] == strange[words.starts[:-1]]
    return words.pick(np.flatnonzero(kept))


def character_weights(words: Words) -> dict[str, int]:
    """Returns how often each character occurs in words, by their counts; exact at any size."""
    characters, places = np.unique(words.codes, return_inverse=True)
    counts = np.repeat(words.counts, np.diff(words.starts))
    high, low = (np.zeros(len(characters), np.int64) for _ in range(2))
    np.add.at(high, places, counts >> 32)
    np.add.at(low, places, counts & 0xFFFFFFFF)
    return {
        chr(character): (int(above) << 32) + int(below)
        for character, above, below in zip(characters.tolist(), high, low, strict=True)
    }


def commonest_characters(weights: Mapping[str, int], most: int) -> str:
    """Returns so many characters of the largest weights, of equal ones the first by code point."""
    return ''.join(sorted(weights, key=lambda each: (-weights[each], each))[:most])


def _first_letters(words: Words, tokens: Collection[str]) -> np.ndarray:
    """Which words begin as one of the tokens does: bool[words]."""
    codes = np.array([ord(token[0]) for token in tokens if token], np.uint32)
    begins = words.starts[:-1]
    return np.isin(words.codes[np.minimum(begins, max(0, len(words.codes) - 1))], codes) & (
        np.diff(words.starts) > 0
    )


@kernel_without_allocation
def _decode(data, offsets, codes, lengths):
    """Writes tokens of UTF-8 as code points; returns how many these are."""
    size = 0
    for token in range(len(offsets) - 1):
        place, first = offsets[token], size
        while place < offsets[token + 1]:
            code, place = next_character(data, place)
            codes[size] = code
            size += 1
        lengths[token] = size - first
    return size


@kernel_without_allocation
def _copy_words(codes, begins, starts, copy):
    """Copies words that begin at these places one after another, to `starts`."""
    for word in range(len(begins)):
        for k in range(starts[word + 1] - starts[word]):
            copy[starts[word] + k] = codes[begins[word] + k]
