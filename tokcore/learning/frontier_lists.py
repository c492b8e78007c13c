"""Kernels from the text to lists of the suffixes that go on, and back to it from where they stop.

A list has a suffix's place, its weight and as many of its next characters as a word holds.
"""

import numpy as np

from tokcore.compiled.compilation import kernel_in_place
from tokcore.compiled.wide_loads import fetch_ahead

# numba need not look whether an unsigned index counts from the end.
_index = np.uintp
# In suffixes: three cache lines of words, one and a half of places.
_AHEAD = _index(24)

NEXT_BITS = np.uint64(16)
"""Where a suffix stops is a word: its node, and in so many low bits what the next step weighs."""

_NEXT_MASK = np.uint64(2**16 - 1)


@kernel_in_place
def count_alive(next_weights, node_of, reached, sizes):
    """Counts by nodes the suffixes whose next step could be heavy enough."""
    for place in range(len(node_of)):
        if next_weights[place] >= reached:
            sizes[node_of[place]] += 1


@kernel_in_place
def mark_alive(next_weights, node_of, reached, mark_of):
    """Marks these suffixes, by nodes, in place of the weights of their next steps."""
    for place in range(len(node_of)):
        if next_weights[place] >= reached:
            next_weights[place] = mark_of[node_of[place]]


@kernel_in_place
def next_characters(ranks, place, bits, packed):
    """Packs so many characters from a place on; behind the last character of all stand zeros."""
    word = np.uint64(0)
    for i in range(place, min(place + packed, len(ranks))):
        word = (word << np.uint64(bits)) | np.uint64(ranks[_index(i)])
    return word << np.uint64(bits * max(0, place + packed - len(ranks)))


@kernel_in_place
def write_suffix(places, weights, words, slot, place, weight, word):
    """Writes a suffix into a list that grows, and has memory ready for those that follow.

    So many lists grow in turn that the processor does not foresee where it will write, and a write
    that has to wait for memory holds up all behind it.
    """
    places[slot], weights[slot], words[slot] = place, weight, word
    fetch_ahead(places, slot + _AHEAD)
    fetch_ahead(weights, slot + _AHEAD)
    fetch_ahead(words, slot + _AHEAD)


@kernel_in_place
def list_suffixes(
    ranks, starts, counts, next_weights, mark, node_of, depths, first, free, bits, picked, places,
    weights, words, region_bits, regions,
):  # fmt: skip
    """Lists the suffixes with a mark, those of each node from `first` on where `free` says.

    This then tells the lists' ends. A suffix comes with as many of its next characters as a word
    holds: in the order of the text they are at hand. Counts suffixes by regions of the text of
    2^region_bits places, in int64[...]. They are picked first, without a branch, and listed when
    `picked`, int64[2, ...], is full.
    """
    found = 0
    for token in range(len(counts)):
        begin, end, count = starts[token], starts[token + 1], counts[token]
        while begin < end:
            if found == picked.shape[1]:
                _list_picked(
                    ranks, node_of, depths, first, free, bits, picked, places, weights, words,
                    region_bits, regions,
                )  # fmt: skip
                found = 0
            until = min(end, begin + picked.shape[1] - found)
            for place in range(begin, until):
                picked[0, _index(found)], picked[1, _index(found)] = place, count
                found += next_weights[_index(place)] == mark
            begin = until
    _list_picked(
        ranks, node_of, depths, first, free, bits, picked[:, :found], places, weights, words,
        region_bits, regions,
    )  # fmt: skip


@kernel_in_place
def _list_picked(
    ranks, node_of, depths, first, free, bits, picked, places, weights, words, region_bits,
    regions,
):  # fmt: skip
    for i in range(picked.shape[1]):
        place = picked[0, i]
        node = np.int64(node_of[_index(place)])
        slot = _index(free[_index(node - first)])
        free[_index(node - first)] += 1
        word = next_characters(ranks, place + depths[_index(node)], bits, 64 // bits)
        write_suffix(places, weights, words, slot, place, picked[1, i], word)
        regions[_index(place >> region_bits)] += 1


@kernel_in_place
def settle(places, stops, region_bits, regions, node_of, next_weights):
    """Writes where suffixes stop, and what the next step would weigh.

    They are put in order by regions of the text first, for they would be written all over memory.

    Args:
      places, stops: [2, suffixes], the first rows as `part_lists` leaves them; the second are
        room.
      regions: where the suffixes of each region begin.
    """
    for i in range(places.shape[1]):
        place, stop = places[0, i], stops[0, i]
        region = _index(place >> region_bits)
        slot = _index(regions[region])
        regions[region] += 1
        places[1, slot], stops[1, slot] = place, stop
        fetch_ahead(places[1], slot + _AHEAD)
        fetch_ahead(stops[1], slot + _AHEAD)
    for i in range(places.shape[1]):
        place = _index(places[1, i])
        node_of[place] = stops[1, i] >> NEXT_BITS
        next_weights[place] = stops[1, i] & _NEXT_MASK
