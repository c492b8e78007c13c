"""Kernels that grow a tree: the suffixes of a node are parted by the character that follows.

The suffixes at one node stand in one list, each with its weight and its next few characters packed
in a word, so that lists are read and written in order. A part that weighs too little stops there;
the others are new nodes with lists of their own, done before anything else: they are in the cache.
Where suffixes stop is noted by regions of the text, for it would be written all over memory.
"""

import numpy as np

from tokcore.compilation import kernel_in_place
from tokcore.intrinsics.word_loads import fetch_ahead
from tokcore.subword.escaped_text import rest_length
from tokcore.subword.run_planting import LARGEST_NEXT

# numba need not look whether an unsigned index counts from the end.
_index = np.uintp
# In suffixes: three cache lines of words, one and a half of places.
_AHEAD = _index(24)


@kernel_in_place
def count_alive(next_weights, node_of, reached, sizes):
    """Counts by nodes the suffixes whose next step could be heavy enough."""
    for place in range(len(node_of)):
        if next_weights[place] >= reached:
            sizes[node_of[place]] += 1


@kernel_in_place
def _next_characters(ranks, place, bits, packed):
    """Packs so many characters from a place on; behind the last character of all stand zeros."""
    word = np.uint64(0)
    for i in range(place, min(place + packed, len(ranks))):
        word = (word << np.uint64(bits)) | np.uint64(ranks[_index(i)])
    return word << np.uint64(bits * max(0, place + packed - len(ranks)))


@kernel_in_place
def _write_suffix(places, weights, words, slot, place, weight, word):
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
    ranks, starts, counts, next_weights, node_of, depths, reached, first, free, bits, picked,
    places, weights, words, region_bits, regions,
):  # fmt: skip
    """Lists those of some nodes, where `free` says for each node; this then tells the lists' ends.

    A suffix comes with as many of its next characters as a word holds: in the order of the text
    they are at hand. Counts suffixes by regions of the text of 2^region_bits places, in int64[...].
    They are picked first, without a branch, and listed when `picked`, int64[2, ...], is full.
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
                node = np.int64(node_of[_index(place)]) - first
                picked[0, _index(found)], picked[1, _index(found)] = place, count
                found += (
                    (next_weights[_index(place)] >= reached) & (0 <= node) & (node < len(free))
                )
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
        word = _next_characters(ranks, place + depths[_index(node)], bits, 64 // bits)
        _write_suffix(places, weights, words, slot, place, picked[1, i], word)
        regions[_index(place >> region_bits)] += 1


@kernel_in_place
def settle(stops, stop_weights, node_of, next_weights):
    """Writes where suffixes stop: rows of (place, node), and what the next step would weigh."""
    for i in range(len(stops)):
        place = _index(stops[i, 0])
        node_of[place] = stops[i, 1]
        next_weights[place] = stop_weights[i]


@kernel_in_place
def _pack_next(ranks, places, depth, bits, packed, words):
    for i in range(len(places)):
        words[i] = _next_characters(ranks, np.int64(places[i]) + depth, bits, packed)


@kernel_in_place
def _weigh_letters(words, weights, places, shift, mask, sums, sizes, found_places, found):
    """Sums up weights and counts suffixes by their next character; returns how many there are."""
    letters = 0
    for i in range(len(words)):
        letter = _index((words[i] >> shift) & mask)
        if sizes[letter] == 0:
            found[letters] = letter
            found_places[letter] = places[i]
            letters += 1
        sizes[letter] += 1
        sums[letter] += weights[i]
    return letters


@kernel_in_place
def _name_children(
    node, low, high, found, letter_rows, ranks, starts, end_rank, letters, longest, least, nodes,
    parents, depths, node_places, totals, waiting, top,
):  # fmt: skip
    """Decides what becomes of the suffixes of a node by their next characters.

    `leads` gets the place in the new lists: from `low` on for those that go on, up to `high` for
    those that stop, with the node in `ends`; `sums` keeps what was too light. A node all of whose
    weight goes one way is moved there. Returns the nodes, the lists that wait, and where the
    suffixes that stop begin.
    """
    sums, sizes, leads, ends = letter_rows[0], letter_rows[1], letter_rows[2], letter_rows[3]
    found_places, found_letters = letter_rows[4], letter_rows[5]
    depth = np.int64(depths[node])
    for i in range(found):
        letter = _index(found_letters[i])
        weight, size = sums[letter], sizes[letter]
        sizes[letter] = 0
        if weight < least:
            high -= size
            leads[letter], ends[letter] = high, node
            continue
        sums[letter] = 0
        child = node
        if weight < totals[node] or node < letters:
            child = nodes
            nodes += 1
            parents[child] = node
            totals[child] = weight
            node_places[child] = found_places[letter]
        depths[child] = depth + 1
        if size > 1 and depth + 1 < longest and letter != end_rank:
            leads[letter] = low
            top += 1
            waiting[top, 0], waiting[top, 1], waiting[top, 2] = low, low + size, child
            low += size
            continue
        high -= size
        leads[letter], ends[letter] = high, child
        if size == 1:
            rest = rest_length(ranks, starts, end_rank, found_places[letter] + depth)
            depths[child] = min(depth + rest, longest)
    return nodes, top, high


@kernel_in_place
def _move_suffixes(
    places, weights, words, shift, mask, leads, new_places, new_weights, new_words
):  # fmt: skip
    """Moves suffixes to their new lists. There is no branch: which goes where nobody can guess."""
    for i in range(len(words)):
        word = words[i]
        letter = _index((word >> shift) & mask)
        slot = _index(leads[letter])
        leads[letter] += 1
        _write_suffix(new_places, new_weights, new_words, slot, places[i], weights[i], word)


@kernel_in_place
def _note_stops(
    places, words, shift, mask, sums, ends, region_bits, regions, stops, stop_weights
):  # fmt: skip
    """Notes where suffixes stop, and what the next step would weigh."""
    for i in range(len(words)):
        place, letter = places[i], _index((words[i] >> shift) & mask)
        region = _index(place >> region_bits)
        slot = _index(regions[region])
        regions[region] += 1
        stops[slot, 0], stops[slot, 1] = place, ends[letter]
        stop_weights[slot] = min(sums[letter], LARGEST_NEXT)
        fetch_ahead(stops, (slot + _AHEAD) * _index(2))
        fetch_ahead(stop_weights, slot + _AHEAD)


@kernel_in_place
def part_lists(
    list_ends, first, places, weights, words, waiting, letter_rows, ranks, starts, end_rank, bits,
    letters, longest, least, nodes, parents, depths, node_places, totals, region_bits, regions,
    stops, stop_weights,
):  # fmt: skip
    """Leads lists down until nothing in them is heavy enough; returns the nodes.

    Args:
      list_ends: where the list of each node ends, from the node `first` on.
      places, weights, words: [2, suffixes], the lists as `list_suffixes` makes them, and room to
        part them in.
      waiting: int64[suffixes / 2 + 1, 5], for lists to be parted: begin, end, node, which of the
        two rooms, and how many of the packed characters are still to come.
      letter_rows: int64[6, letters], the first two zeros, which they are again afterwards.
      regions: where the stops of each region of the text begin; afterwards where they end.
      stops, stop_weights: [suffixes, 2] and uint16[suffixes], get what `settle` takes.
    """
    sums, sizes, leads, ends = letter_rows[0], letter_rows[1], letter_rows[2], letter_rows[3]
    packed = 64 // bits
    mask = np.uint64((1 << bits) - 1)
    begin = 0
    for i in range(len(list_ends)):
        top = -1
        if begin < list_ends[i]:
            top = 0
            waiting[0, 0], waiting[0, 1], waiting[0, 2] = begin, list_ends[i], first + i
            waiting[0, 3], waiting[0, 4] = 0, packed
            begin = list_ends[i]
        while top >= 0:
            low, high, node = waiting[top, 0], waiting[top, 1], waiting[top, 2]
            side, held = waiting[top, 3], waiting[top, 4]
            top -= 1
            old_places, old_weights = places[side, low:high], weights[side, low:high]
            old_words = words[side, low:high]
            if held == 0:
                _pack_next(ranks, old_places, np.int64(depths[node]), bits, packed, old_words)
                held = packed
            held -= 1
            shift = np.uint64(bits * held)
            found = _weigh_letters(
                old_words, old_weights, old_places, shift, mask, sums, sizes, letter_rows[4],
                letter_rows[5],
            )  # fmt: skip
            below = top
            nodes, top, stopped = _name_children(
                node, low, high, found, letter_rows, ranks, starts, end_rank, letters, longest,
                least, nodes, parents, depths, node_places, totals, waiting, top,
            )  # fmt: skip
            stays = found == 1 and top > below
            waiting[below + 1 : top + 1, 3] = side if stays else 1 - side
            waiting[below + 1 : top + 1, 4] = held
            if stays:
                continue
            new = 1 - side
            _move_suffixes(
                old_places, old_weights, old_words, shift, mask, leads, places[new], weights[new],
                words[new],
            )  # fmt: skip
            _note_stops(
                places[new, stopped:high], words[new, stopped:high], shift, mask, sums, ends,
                region_bits, regions, stops, stop_weights,
            )  # fmt: skip
            for j in range(found):
                sums[_index(letter_rows[5, j])] = 0
    return nodes
