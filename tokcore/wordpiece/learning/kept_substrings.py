"""Pieces by the documented rule: a kept piece's count is taken from its prefixes, others' is not.

All substrings from places on where pieces may begin stand in a trie of two roots. In it the rule is
one walk upward: of a node's count is taken what pieces below it have, and what is left keeps it.
"""

import numpy as np

from tokcore.compiled.compilation import kernel, kernel_without_allocation
from tokcore.wordpiece.learning.greedy_cutting import REST_ROOT, WORD_ROOT, Pieces
from tokcore.wordpiece.learning.hashed_trie import child_or_new, empty_edges
from tokcore.wordpiece.learning.words import Words


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
