"""Words cut greedily into the longest pieces there are, and where these cuts are."""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.wordpiece.learning.hashed_trie import (
    ABSENT,
    Edges,
    child_of,
    child_or_new,
    empty_edges,
)

WORD_ROOT, REST_ROOT = 0, 1
"""Where pieces begin that a word begins with, as they are spelt, and what follows a joiner."""


class Pieces(NamedTuple):
    """Pieces as parts of the words' code points: codes[begins[i]:begins[i] + lengths[i]]."""

    begins: np.ndarray  # int64
    lengths: np.ndarray  # int64
    weights: np.ndarray  # int64
    are_rest: np.ndarray  # bool: with a joiner before them


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
