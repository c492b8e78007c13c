"""Kernels that fill the frontier, the suffixes still active, from the text, and write back from it.

Each node of the frontier has a list. An entry is a suffix's position, its weight and as many of its
next characters as a word holds.
"""

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.compiled.wide_loads import prefetch
from tokcore.learning.kernel_state import Entries

# numba compiles no check for an index from the end where it is unsigned.
_index = np.uintp
# In suffixes: three cache lines of words, one and a half of positions.
_AHEAD = _index(24)

NEXT_BITS = np.uint64(16)
"""A stop is packed into a uint64: node << 16 | min(weight of the next extension, 2^15 - 1)."""

_NEXT_MASK = np.uint64(2**16 - 1)


@kernel_without_allocation
def count_active(ends, reached, sizes):
    """Counts by nodes the active suffixes: those whose next string could be heavy enough."""
    for position in range(len(ends.node_of)):
        if ends.next_weight_bounds[position] >= reached:
            sizes[ends.node_of[position]] += 1


@kernel_without_allocation
def mark_active(ends, reached, mark_of):
    """Marks the active suffixes, by nodes, in place of the bounds of their next strings."""
    for position in range(len(ends.node_of)):
        if ends.next_weight_bounds[position] >= reached:
            ends.next_weight_bounds[position] = mark_of[ends.node_of[position]]


@kernel_without_allocation
def next_characters(ranks, position, bits, packed):
    """Packs so many characters from a position on; behind the last character of all stand zeros."""
    word = np.uint64(0)
    for i in range(position, min(position + packed, len(ranks))):
        word = (word << np.uint64(bits)) | np.uint64(ranks[_index(i)])
    return word << np.uint64(bits * max(0, position + packed - len(ranks)))


@kernel_without_allocation
def write_suffix(entries, slot, position, weight, word):
    """Appends a suffix to a list, and prefetches the lines that the next ones will go to.

    So many lists grow in turn that the hardware prefetcher follows none of them, and a store that
    waits for memory holds up all behind it.
    """
    entries.positions[slot], entries.weights[slot], entries.words[slot] = position, weight, word
    prefetch(entries.positions, slot + _AHEAD)
    prefetch(entries.weights, slot + _AHEAD)
    prefetch(entries.words, slot + _AHEAD)


@kernel_without_allocation
def fill_frontier(text, ends, mark, depths, lists, frontier, regions):
    """Appends the suffixes with a mark to their nodes' lists, in the first buffer.

    `lists.ends` says where each list begins, and then where it ends. A suffix comes with as many of
    its next characters as a word holds: in the order of the text they are at hand. Counts the
    suffixes by regions. They are picked first, without a branch, and listed when `frontier.picked`
    is full.
    """
    picked = frontier.picked
    found = 0
    for token in range(len(text.counts)):
        begin, end, count = text.starts[token], text.starts[token + 1], text.counts[token]
        while begin < end:
            if found == picked.shape[1]:
                _list_picked(text, ends.node_of, depths, lists, frontier, found, regions)
                found = 0
            until = min(end, begin + picked.shape[1] - found)
            for position in range(begin, until):
                picked[0, _index(found)], picked[1, _index(found)] = position, count
                found += ends.next_weight_bounds[_index(position)] == mark
            begin = until
    _list_picked(text, ends.node_of, depths, lists, frontier, found, regions)


@kernel_without_allocation
def _list_picked(text, node_of, depths, lists, frontier, found, regions):
    """Appends the first so many of the picked suffixes."""
    buffer = Entries(frontier.positions[0], frontier.weights[0], frontier.words[0])
    for i in range(found):
        position = frontier.picked[0, i]
        node = np.int64(node_of[_index(position)])
        slot = _index(lists.ends[_index(node - lists.first)])
        lists.ends[_index(node - lists.first)] += 1
        characters = position + depths[_index(node)]
        word = next_characters(text.ranks, characters, text.bits, 64 // text.bits)
        write_suffix(buffer, slot, position, frontier.picked[1, i], word)
        regions.sizes[_index(position >> regions.bits)] += 1


@kernel_without_allocation
def write_back(positions, leaf_words, regions, ends):
    """Writes back where suffixes stop, and what the next string would weigh.

    They are partitioned by regions of the text first: written as they come, they would miss every
    cache.

    Args:
      positions, leaf_words: [2, suffixes], the first rows as `split_frontier` leaves them; the second are
        room.
      regions: their sizes are now where the suffixes of each begin.
    """
    for i in range(positions.shape[1]):
        position, stop = positions[0, i], leaf_words[0, i]
        region = _index(position >> regions.bits)
        slot = _index(regions.sizes[region])
        regions.sizes[region] += 1
        positions[1, slot], leaf_words[1, slot] = position, stop
        prefetch(positions[1], slot + _AHEAD)
        prefetch(leaf_words[1], slot + _AHEAD)
    for i in range(positions.shape[1]):
        position = _index(positions[1, i])
        ends.node_of[position] = leaf_words[1, i] >> NEXT_BITS
        ends.next_weight_bounds[position] = leaf_words[1, i] & _NEXT_MASK
