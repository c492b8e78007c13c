"""Kernels that fill the frontier, the suffixes still active, from the text, and write back from it.

Each node of the frontier has a list. An entry is a suffix's position, its weight and as many of its
next characters as a word holds.
"""

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.compiled.wide_loads import prefetch

# numba compiles no check for an index from the end where it is unsigned.
_index = np.uintp
# In suffixes: three cache lines of words, one and a half of positions.
_AHEAD = _index(24)

NEXT_BITS = np.uint64(16)
"""A stop is packed into a uint64: node << 16 | min(weight of the next extension, 2^15 - 1)."""

_NEXT_MASK = np.uint64(2**16 - 1)


@kernel_without_allocation
def count_active(next_weight_bounds, node_of, reached, sizes):
    """Counts by nodes the active suffixes: those whose next string could be heavy enough."""
    for position in range(len(node_of)):
        if next_weight_bounds[position] >= reached:
            sizes[node_of[position]] += 1


@kernel_without_allocation
def mark_active(next_weight_bounds, node_of, reached, mark_of):
    """Marks the active suffixes, by nodes, in place of the bounds of their next strings."""
    for position in range(len(node_of)):
        if next_weight_bounds[position] >= reached:
            next_weight_bounds[position] = mark_of[node_of[position]]


@kernel_without_allocation
def next_characters(ranks, position, bits, packed):
    """Packs so many characters from a position on; behind the last character of all stand zeros."""
    word = np.uint64(0)
    for i in range(position, min(position + packed, len(ranks))):
        word = (word << np.uint64(bits)) | np.uint64(ranks[_index(i)])
    return word << np.uint64(bits * max(0, position + packed - len(ranks)))


@kernel_without_allocation
def write_suffix(positions, weights, words, slot, position, weight, word):
    """Appends a suffix to a list, and prefetches the lines that the next ones will go to.

    So many lists grow in turn that the hardware prefetcher follows none of them, and a store that
    waits for memory holds up all behind it.
    """
    positions[slot], weights[slot], words[slot] = position, weight, word
    prefetch(positions, slot + _AHEAD)
    prefetch(weights, slot + _AHEAD)
    prefetch(words, slot + _AHEAD)


@kernel_without_allocation
def fill_frontier(
    ranks, starts, counts, next_weight_bounds, mark, node_of, depths, first, free, bits, picked, positions,
    weights, words, region_bits, regions,
):  # fmt: skip
    """Appends the suffixes with a mark to their nodes' lists, from `first` on where `free` says.

    This then has the lists' ends. A suffix comes with as many of its next characters as a word
    holds: in the order of the text they are at hand. Counts suffixes by regions of the text of
    2^region_bits positions, in int64[...]. They are picked first, without a branch, and listed when
    `picked`, int64[2, ...], is full.
    """
    found = 0
    for token in range(len(counts)):
        begin, end, count = starts[token], starts[token + 1], counts[token]
        while begin < end:
            if found == picked.shape[1]:
                _list_picked(
                    ranks, node_of, depths, first, free, bits, picked, positions, weights, words,
                    region_bits, regions,
                )  # fmt: skip
                found = 0
            until = min(end, begin + picked.shape[1] - found)
            for position in range(begin, until):
                picked[0, _index(found)], picked[1, _index(found)] = position, count
                found += next_weight_bounds[_index(position)] == mark
            begin = until
    _list_picked(
        ranks, node_of, depths, first, free, bits, picked[:, :found], positions, weights, words,
        region_bits, regions,
    )  # fmt: skip


@kernel_without_allocation
def _list_picked(
    ranks, node_of, depths, first, free, bits, picked, positions, weights, words, region_bits,
    regions,
):  # fmt: skip
    for i in range(picked.shape[1]):
        position = picked[0, i]
        node = np.int64(node_of[_index(position)])
        slot = _index(free[_index(node - first)])
        free[_index(node - first)] += 1
        word = next_characters(ranks, position + depths[_index(node)], bits, 64 // bits)
        write_suffix(positions, weights, words, slot, position, picked[1, i], word)
        regions[_index(position >> region_bits)] += 1


@kernel_without_allocation
def write_back(positions, leaf_words, region_bits, regions, node_of, next_weight_bounds):
    """Writes back where suffixes stop, and what the next string would weigh.

    They are partitioned by regions of the text first: written as they come, they would miss every
    cache.

    Args:
      positions, leaf_words: [2, suffixes], the first rows as `split_frontier` leaves them; the second are
        room.
      regions: where the suffixes of each region begin.
    """
    for i in range(positions.shape[1]):
        position, stop = positions[0, i], leaf_words[0, i]
        region = _index(position >> region_bits)
        slot = _index(regions[region])
        regions[region] += 1
        positions[1, slot], leaf_words[1, slot] = position, stop
        prefetch(positions[1], slot + _AHEAD)
        prefetch(leaf_words[1], slot + _AHEAD)
    for i in range(positions.shape[1]):
        position = _index(positions[1, i])
        node_of[position] = leaf_words[1, i] >> NEXT_BITS
        next_weight_bounds[position] = leaf_words[1, i] & _NEXT_MASK
