"""Kernels that make nodes of bigrams, where the suffixes that begin with them start.

The lists of single characters are the longest, longer than any cache; instead of splitting them by
the second one, a table of bigram weights is filled in a pass over the text. Half of it has a slot for
each pair of the most frequent characters. All others are hashed into the other half, whose sums are
upper bounds and still tell which bigrams are too light.
"""

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation

# 2^64 divided by the golden ratio.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@kernel_without_allocation
def bigram_slot(first, second, bigrams):
    """Returns the slot of a pair of characters: its own in the lower half, or a shared one."""
    row = np.int64(bigrams.number_of[np.uintp(first)])
    column = np.int64(bigrams.number_of[np.uintp(second)])
    pair = (np.uint64(first) << np.uint64(32)) | np.uint64(second)
    half = len(bigrams.weights) // 2
    shared = half + np.int64(((pair * _SPREAD) >> np.uint64(32)) & np.uint64(half - 1))
    return np.uintp(shared if (row | column) < 0 else row * bigrams.width + column)


@kernel_without_allocation
def weigh_bigrams(text, repeats, bigrams):
    """Sums up the weights of the suffixes that begin with two different characters, by these.

    Args:
      repeats: uint16[characters], how often each suffix repeats its first character.
    """
    for token in range(len(text.counts)):
        count = text.counts[token]
        for position in range(text.starts[token], text.starts[token + 1]):
            rank = text.ranks[position]
            if repeats[position] == 1 and rank != text.end_rank:
                bigrams.weights[bigram_slot(rank, text.ranks[position + 1], bigrams)] += count


@kernel_without_allocation
def add_bigram_nodes(numbered, bigrams, min_weight, trie):
    """Makes nodes of the pairs that have slots of their own and weigh enough.

    Their positions are set by `start_suffixes`.

    Args:
      numbered: int64[at most width], the numbered characters.
    """
    nodes = trie.cursor[0]['nodes']
    for row in range(len(numbered)):
        for column in range(len(numbered)):
            slot = row * bigrams.width + column
            if bigrams.weights[slot] >= min_weight:
                bigrams.names[slot] = nodes
                trie.parents[nodes] = numbered[row]
                trie.depths[nodes] = 2
                trie.totals[nodes] = bigrams.weights[slot]
                nodes += 1
    trie.cursor[0]['nodes'] = nodes
