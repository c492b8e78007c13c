"""Kernels that grow a tree: the suffixes of a node are parted by the character that follows.

The suffixes at one node stand in one list, so lists are read and written in order. A part that
weighs too little stops there; the others are new nodes with lists of their own, done before
anything else: they are in the cache. Where suffixes stop is noted in the room of their lists.
"""

import numpy as np

from tokcore.compiled.compilation import kernel_in_place
from tokcore.learning.frontier_lists import NEXT_BITS, next_characters, write_suffix
from tokcore.learning.ranked_text import rest_length
from tokcore.learning.repeat_nodes import LARGEST_NEXT

# numba need not look whether an unsigned index counts from the end.
_index = np.uintp


@kernel_in_place
def _pack_next(ranks, places, depth, bits, packed, words):
    for i in range(len(places)):
        words[i] = next_characters(ranks, np.int64(places[i]) + depth, bits, packed)


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
        write_suffix(new_places, new_weights, new_words, slot, places[i], weights[i], word)


@kernel_in_place
def _note_stops(places, words, shift, mask, sums, ends, stop_places, stops):
    """Notes where suffixes stop, and what the next step would weigh."""
    for i in range(len(words)):
        letter = _index((words[i] >> shift) & mask)
        stop_places[i] = places[i]
        next_weight = np.uint64(min(sums[letter], LARGEST_NEXT))
        stops[i] = (np.uint64(ends[letter]) << NEXT_BITS) | next_weight


@kernel_in_place
def part_lists(
    list_ends, first, places, weights, words, waiting, letter_rows, ranks, starts, end_rank, bits,
    letters, longest, least, nodes, parents, depths, node_places, totals,
):  # fmt: skip
    """Leads lists down until nothing in them is heavy enough; returns the nodes.

    Args:
      list_ends: where the list of each node ends, from the node `first` on.
      places, weights, words: [2, suffixes], the lists as `list_suffixes` makes them, and room to
        part them in. Afterwards the first rows of places and words tell where each suffix stops,
        as `settle` takes it.
      waiting: int64[suffixes / 2 + 1, 5], for lists to be parted: begin, end, node, which of the
        two rooms, and how many of the packed characters are still to come.
      letter_rows: int64[6, letters], the first two zeros, which they are again afterwards.
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
                places[0, stopped:high], words[0, stopped:high],
            )  # fmt: skip
            for j in range(found):
                sums[_index(letter_rows[5, j])] = 0
    return nodes
