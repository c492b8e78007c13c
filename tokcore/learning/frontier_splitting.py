"""Kernels that expand nodes: the suffixes of a node are split by the character that follows.

An MSD radix partition: the suffixes of a node are one list, read in order and scattered into the
lists of its children. A child that weighs too little is not made, and its suffixes stop at the node.
Children are split depth first, while their lists are in cache; the slots of suffixes that stop are
reused for their results.
"""

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.learning.frontier_lists import NEXT_BITS, next_characters, write_suffix
from tokcore.learning.kernel_state import Entries, SuffixList
from tokcore.learning.ranked_text import remaining_length
from tokcore.learning.repeat_nodes import LARGEST_NEXT

# numba need not look whether an unsigned index counts from the end.
_index = np.uintp


@kernel_without_allocation
def _pack_next(ranks, positions, depth, bits, packed, words):
    for i in range(len(positions)):
        words[i] = next_characters(ranks, np.int64(positions[i]) + depth, bits, packed)


@kernel_without_allocation
def _weigh_continuations(entries, shift, mask, continuations):
    """Sums up weights and counts suffixes by their next character; returns how many differ."""
    weights, sizes = continuations.weights, continuations.sizes
    letters = 0
    for i in range(len(entries.words)):
        letter = _index((entries.words[i] >> shift) & mask)
        if sizes[letter] == 0:
            continuations.found[letters] = letter
            continuations.positions[letter] = entries.positions[i]
            letters += 1
        sizes[letter] += 1
        weights[letter] += entries.weights[i]
    return letters


@kernel_without_allocation
def _name_children(parent, found, continuations, text, trie, limits, stack, top):
    """Decides what becomes of the suffixes of a node by their next characters.

    Suffixes that go on are written from the beginning of the `parent` list upwards, those that stop
    from its end downwards; the weights of what was too light are kept. A node all of whose weight
    goes on to one child becomes that child (path compression). Puts new lists on the stack; returns
    its top, and where the suffixes that stop begin.
    """
    low, high, node = parent.begin, parent.end, parent.node
    nodes = trie.cursor[0]['nodes']
    depth = np.int64(trie.depths[node])
    for i in range(found):
        letter = _index(continuations.found[i])
        weight, size = continuations.weights[letter], continuations.sizes[letter]
        continuations.sizes[letter] = 0
        if weight < limits.min_weight:
            high -= size
            continuations.destinations[letter], continuations.nodes[letter] = high, node
            continue
        continuations.weights[letter] = 0
        child = node
        if weight < trie.totals[node] or node < text.letters:
            child = nodes
            nodes += 1
            trie.parents[child] = node
            trie.totals[child] = weight
            trie.positions[child] = continuations.positions[letter]
        trie.depths[child] = depth + 1
        if size > 1 and depth + 1 < limits.longest and letter != text.end_rank:
            continuations.destinations[letter] = low
            top += 1
            _push(stack, top, SuffixList(low, low + size, child, parent.side, parent.held))
            low += size
            continue
        high -= size
        continuations.destinations[letter], continuations.nodes[letter] = high, child
        if size == 1:
            position = continuations.positions[letter] + depth
            rest = remaining_length(text.ranks, text.starts, text.end_rank, position)
            trie.depths[child] = min(depth + rest, limits.longest)
    trie.cursor[0]['nodes'] = nodes
    return top, high


@kernel_without_allocation
def _push(stack, top, new):
    stack[top, 0], stack[top, 1], stack[top, 2] = new.begin, new.end, new.node
    stack[top, 3], stack[top, 4] = new.side, new.held


@kernel_without_allocation
def _scatter(entries, shift, mask, destinations, buffer):
    """Scatters suffixes into their new lists, without a branch: it would be mispredicted."""
    for i in range(len(entries.words)):
        word = entries.words[i]
        letter = _index((word >> shift) & mask)
        slot = _index(destinations[letter])
        destinations[letter] += 1
        write_suffix(buffer, slot, entries.positions[i], entries.weights[i], word)


@kernel_without_allocation
def _write_leaves(stopped, shift, mask, continuations, leaf_positions, leaf_words):
    """Packs where suffixes stop, and what the next string would weigh."""
    for i in range(len(stopped.words)):
        letter = _index((stopped.words[i] >> shift) & mask)
        leaf_positions[i] = stopped.positions[i]
        next_weight = np.uint64(min(continuations.weights[letter], LARGEST_NEXT))
        leaf_words[i] = (np.uint64(continuations.nodes[letter]) << NEXT_BITS) | next_weight


@kernel_without_allocation
def split_frontier(lists, frontier, continuations, text, trie, limits):
    """Makes nodes below those of the lists, until nothing in a list is heavy enough.

    Afterwards the first rows of the frontier's positions and words tell where each suffix stops, as
    `write_back` takes it.
    """
    begin = 0
    for i in range(len(lists.ends)):
        if begin < lists.ends[i]:
            first = SuffixList(begin, lists.ends[i], lists.first + i, 0, 64 // text.bits)
            _split_list(first, frontier, continuations, text, trie, limits)
            begin = lists.ends[i]


@kernel_without_allocation
def _split_list(first, frontier, continuations, text, trie, limits):
    """Splits a list, and depth first those that come of it."""
    stack = frontier.stack
    mask = np.uint64((1 << text.bits) - 1)
    _push(stack, 0, first)
    top = 0
    while top >= 0:
        low, high, node = stack[top, 0], stack[top, 1], stack[top, 2]
        side, held = stack[top, 3], stack[top, 4]
        top -= 1
        entries = Entries(
            frontier.positions[side, low:high],
            frontier.weights[side, low:high],
            frontier.words[side, low:high],
        )
        if held == 0:
            held = 64 // text.bits
            depth = np.int64(trie.depths[node])
            _pack_next(text.ranks, entries.positions, depth, text.bits, held, entries.words)
        held -= 1
        shift = np.uint64(text.bits * held)
        found = _weigh_continuations(entries, shift, mask, continuations)
        below = top
        parent = SuffixList(low, high, node, side, held)
        top, stopped = _name_children(
            parent, found, continuations, text, trie, limits, stack, top
        )
        if found == 1 and top > below:
            continue
        new = 1 - side
        stack[below + 1 : top + 1, 3] = new
        buffer = Entries(frontier.positions[new], frontier.weights[new], frontier.words[new])
        _scatter(entries, shift, mask, continuations.destinations, buffer)
        leaves = Entries(
            buffer.positions[stopped:high], buffer.weights[stopped:high], buffer.words[stopped:high]
        )
        _write_leaves(
            leaves, shift, mask, continuations,
            frontier.positions[0, stopped:high], frontier.words[0, stopped:high],
        )  # fmt: skip
        for j in range(found):
            continuations.weights[_index(continuations.found[j])] = 0
