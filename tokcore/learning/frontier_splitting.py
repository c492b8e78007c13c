"""Kernels that expand nodes: the suffixes of a node are split by the character that follows.

An MSD radix partition: the suffixes of a node are one list, read in order and scattered into the
lists of its children. A child that weighs too little is not made, and its suffixes stop at the node.
Children are split depth first, while their lists are in cache; the slots of suffixes that stop are
reused for their results.
"""

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.learning.frontier_lists import NEXT_BITS, next_characters, write_suffix
from tokcore.learning.ranked_text import remaining_length
from tokcore.learning.repeat_nodes import LARGEST_NEXT

# numba need not look whether an unsigned index counts from the end.
_index = np.uintp


@kernel_without_allocation
def _pack_next(ranks, positions, depth, bits, packed, words):
    for i in range(len(positions)):
        words[i] = next_characters(ranks, np.int64(positions[i]) + depth, bits, packed)


@kernel_without_allocation
def _weigh_continuations(
    words, weights, positions, shift, mask, sums, sizes, found_positions, found
):
    """Sums up weights and counts suffixes by their next character; returns how many differ."""
    letters = 0
    for i in range(len(words)):
        letter = _index((words[i] >> shift) & mask)
        if sizes[letter] == 0:
            found[letters] = letter
            found_positions[letter] = positions[i]
            letters += 1
        sizes[letter] += 1
        sums[letter] += weights[i]
    return letters


@kernel_without_allocation
def _name_children(
    node, low, high, found, letter_rows, ranks, starts, end_rank, letters, longest, min_weight, nodes,
    parents, depths, node_positions, totals, stack, top,
):  # fmt: skip
    """Decides what becomes of the suffixes of a node by their next characters.

    `destinations[c]` is where suffixes that continue with c are written: active ones fill the range
    from `low` upwards, stopped ones from `high` downwards, with the node that they stop at in `ends`;
    `sums` keeps what was too light. A node all of whose weight goes on to one child becomes that
    child (path compression). Returns the nodes, the top of the stack, and where the suffixes that
    stop begin.
    """
    sums, sizes, destinations, ends = letter_rows[0], letter_rows[1], letter_rows[2], letter_rows[3]
    found_positions, found_letters = letter_rows[4], letter_rows[5]
    depth = np.int64(depths[node])
    for i in range(found):
        letter = _index(found_letters[i])
        weight, size = sums[letter], sizes[letter]
        sizes[letter] = 0
        if weight < min_weight:
            high -= size
            destinations[letter], ends[letter] = high, node
            continue
        sums[letter] = 0
        child = node
        if weight < totals[node] or node < letters:
            child = nodes
            nodes += 1
            parents[child] = node
            totals[child] = weight
            node_positions[child] = found_positions[letter]
        depths[child] = depth + 1
        if size > 1 and depth + 1 < longest and letter != end_rank:
            destinations[letter] = low
            top += 1
            stack[top, 0], stack[top, 1], stack[top, 2] = low, low + size, child
            low += size
            continue
        high -= size
        destinations[letter], ends[letter] = high, child
        if size == 1:
            rest = remaining_length(ranks, starts, end_rank, found_positions[letter] + depth)
            depths[child] = min(depth + rest, longest)
    return nodes, top, high


@kernel_without_allocation
def _scatter(
    positions, weights, words, shift, mask, destinations, new_positions, new_weights, new_words
):  # fmt: skip
    """Scatters suffixes into their new lists, without a branch: it would be mispredicted."""
    for i in range(len(words)):
        word = words[i]
        letter = _index((word >> shift) & mask)
        slot = _index(destinations[letter])
        destinations[letter] += 1
        write_suffix(new_positions, new_weights, new_words, slot, positions[i], weights[i], word)


@kernel_without_allocation
def _write_leaves(positions, words, shift, mask, sums, ends, leaf_positions, leaf_words):
    """Packs where suffixes stop, and what the next string would weigh."""
    for i in range(len(words)):
        letter = _index((words[i] >> shift) & mask)
        leaf_positions[i] = positions[i]
        next_weight = np.uint64(min(sums[letter], LARGEST_NEXT))
        leaf_words[i] = (np.uint64(ends[letter]) << NEXT_BITS) | next_weight


@kernel_without_allocation
def split_frontier(
    list_ends, first, positions, weights, words, stack, letter_rows, ranks, starts, end_rank, bits,
    letters, longest, min_weight, nodes, parents, depths, node_positions, totals,
):  # fmt: skip
    """Expands lists until nothing in them is heavy enough; returns the nodes.

    Args:
      list_ends: where the list of each node ends, from the node `first` on.
      positions, weights, words: [2, suffixes], the lists as `fill_frontier` makes them, and a second
        buffer to scatter to. Afterwards the first rows of positions and words tell where each suffix
        stops, as `write_back` takes it.
      stack: int64[suffixes / 2 + 1, 5], lists to be split: begin, end, node, which of the two buffers,
        and how many of the packed characters are still to come.
      letter_rows: int64[6, letters], the first two zeros, which they are again afterwards.
    """
    sums, sizes, destinations, ends = letter_rows[0], letter_rows[1], letter_rows[2], letter_rows[3]
    packed = 64 // bits
    mask = np.uint64((1 << bits) - 1)
    begin = 0
    for i in range(len(list_ends)):
        top = -1
        if begin < list_ends[i]:
            top = 0
            stack[0, 0], stack[0, 1], stack[0, 2] = begin, list_ends[i], first + i
            stack[0, 3], stack[0, 4] = 0, packed
            begin = list_ends[i]
        while top >= 0:
            low, high, node = stack[top, 0], stack[top, 1], stack[top, 2]
            side, held = stack[top, 3], stack[top, 4]
            top -= 1
            old_positions, old_weights = positions[side, low:high], weights[side, low:high]
            old_words = words[side, low:high]
            if held == 0:
                _pack_next(ranks, old_positions, np.int64(depths[node]), bits, packed, old_words)
                held = packed
            held -= 1
            shift = np.uint64(bits * held)
            found = _weigh_continuations(
                old_words, old_weights, old_positions, shift, mask, sums, sizes, letter_rows[4],
                letter_rows[5],
            )  # fmt: skip
            below = top
            nodes, top, stopped = _name_children(
                node, low, high, found, letter_rows, ranks, starts, end_rank, letters, longest,
                min_weight, nodes, parents, depths, node_positions, totals, stack, top,
            )  # fmt: skip
            stays = found == 1 and top > below
            stack[below + 1 : top + 1, 3] = side if stays else 1 - side
            stack[below + 1 : top + 1, 4] = held
            if stays:
                continue
            new = 1 - side
            _scatter(
                old_positions, old_weights, old_words, shift, mask, destinations, positions[new], weights[new],
                words[new],
            )  # fmt: skip
            _write_leaves(
                positions[new, stopped:high], words[new, stopped:high], shift, mask, sums, ends,
                positions[0, stopped:high], words[0, stopped:high],
            )  # fmt: skip
            for j in range(found):
                sums[_index(letter_rows[5, j])] = 0
    return nodes
