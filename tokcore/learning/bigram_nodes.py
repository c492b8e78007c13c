"""Kernels that make nodes of pairs of characters, where the suffixes that begin with them start.

The lists of single characters are the longest, longer than any cache; to part them by the second
one, a table of the weights of pairs is cheaper. Half of it has a slot for each pair of the heaviest
characters. All others share the other half, whose sums still tell which pairs are too light.
"""

import numpy as np

from tokcore.compiled.compilation import kernel_in_place

# 2^64 divided by the golden ratio.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@kernel_in_place
def slot_of_pair(first, second, pair_of, width, slots):
    """Returns the slot of a pair of characters: its own in the lower half, or one that is shared.

    Args:
      pair_of: int32[letters], numbers the heaviest characters from 0; others have -1.
      width: how many are numbered; its square is at most half of the slots.
      slots: a power of two, at least 2.
    """
    row, column = np.int64(pair_of[np.uintp(first)]), np.int64(pair_of[np.uintp(second)])
    pair = (np.uint64(first) << np.uint64(32)) | np.uint64(second)
    half = slots // 2
    shared = half + np.int64(((pair * _SPREAD) >> np.uint64(32)) & np.uint64(half - 1))
    return np.uintp(shared if (row | column) < 0 else row * width + column)


@kernel_in_place
def weigh_pairs(ranks, starts, counts, end_rank, runs, pair_of, width, sums):
    """Sums up the weights of the suffixes that begin with two different characters, by these."""
    for token in range(len(counts)):
        count = counts[token]
        for place in range(starts[token], starts[token + 1]):
            if runs[place] == 1 and ranks[place] != end_rank:
                slot = slot_of_pair(ranks[place], ranks[place + 1], pair_of, width, len(sums))
                sums[slot] += count


@kernel_in_place
def plant_pairs(numbered, width, sums, least, nodes, names, parents, depths, totals):
    """Makes nodes, from `nodes` on, of the pairs that have slots of their own and weigh enough.

    Args:
      numbered: int64[at most width], the numbered characters.
      names: int[width * width], zeros; gets the nodes of the slots.

    Returns:
      The nodes there are then. Their places are still to be told.
    """
    for row in range(len(numbered)):
        for column in range(len(numbered)):
            slot = row * width + column
            if sums[slot] >= least:
                names[slot] = nodes
                parents[nodes] = numbered[row]
                depths[nodes] = 2
                totals[nodes] = sums[slot]
                nodes += 1
    return nodes
