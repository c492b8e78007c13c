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
def bigram_slot(first, second, pair_of, width, slots):
    """Returns the slot of a pair of characters: its own in the lower half, or one that is shared.

    Args:
      pair_of: int32[letters], numbers the most frequent characters from 0; others have -1.
      width: how many are numbered; its square is at most half of the slots.
      slots: a power of two, at least 2.
    """
    row, column = np.int64(pair_of[np.uintp(first)]), np.int64(pair_of[np.uintp(second)])
    pair = (np.uint64(first) << np.uint64(32)) | np.uint64(second)
    half = slots // 2
    shared = half + np.int64(((pair * _SPREAD) >> np.uint64(32)) & np.uint64(half - 1))
    return np.uintp(shared if (row | column) < 0 else row * width + column)


@kernel_without_allocation
def weigh_bigrams(ranks, starts, counts, end_rank, repeats, pair_of, width, sums):
    """Sums up the weights of the suffixes that begin with two different characters, by these."""
    for token in range(len(counts)):
        count = counts[token]
        for position in range(starts[token], starts[token + 1]):
            if repeats[position] == 1 and ranks[position] != end_rank:
                slot = bigram_slot(ranks[position], ranks[position + 1], pair_of, width, len(sums))
                sums[slot] += count


@kernel_without_allocation
def add_bigram_nodes(numbered, width, sums, min_weight, nodes, names, parents, depths, totals):
    """Makes nodes, from `nodes` on, of the pairs that have slots of their own and weigh enough.

    Args:
      numbered: int64[at most width], the numbered characters.
      names: int[width * width], zeros; gets the nodes of the slots.

    Returns:
      The nodes there are then. Their positions are set by `start_suffixes`.
    """
    for row in range(len(numbered)):
        for column in range(len(numbered)):
            slot = row * width + column
            if sums[slot] >= min_weight:
                names[slot] = nodes
                parents[nodes] = numbered[row]
                depths[nodes] = 2
                totals[nodes] = sums[slot]
                nodes += 1
    return nodes
