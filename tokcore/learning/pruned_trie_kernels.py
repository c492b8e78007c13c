"""Kernels that expand a suffix trie: a node's suffixes are split by the next character.

The first nodes are the characters, the repeats of one character (rulers and borders of tables are
tokens too), and frequent bigrams, by a table of bigram weights: half of it has a slot for each pair
of the most frequent characters, the other half is hashed, and its sums are upper bounds.

The rest is an MSD radix partition: the suffixes of a node are one list, read in order and scattered
into the lists of its children. A child that weighs too little is not made, and its suffixes stop at
the node. Children are split depth first, while their lists are in cache; the slots of suffixes that
stop are reused for their results. Arrays are allocated before, in tuples that `tokcore.learning`
draws; what a kernel changes beside arrays is a field of a record.
"""

from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation
from tokcore.kernels.simd import prefetch
from tokcore.learning.ranked_text import EscapedText, remaining_length

# numba compiles no check for an index from the end where it is unsigned.
_index = np.uintp
# In suffixes: three cache lines of words, one and a half of positions.
_AHEAD = _index(24)

NEXT_BITS = np.uint64(16)
"""A stop is packed into a uint64: node << 16 | min(weight of the next extension, 2^15 - 1)."""

_NEXT_MASK = np.uint64(2**16 - 1)

TRIE_CURSOR = np.dtype([('nodes', np.int64)], align=True)

LARGEST_NEXT = 2**15 - 1
"""Bounds of next weights are kept up to here; a larger one counts as this.

Values above it, in 16 bits, mark active suffixes."""

# 2^64 divided by the golden ratio.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


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
        top, stopped = _name_children(parent, found, continuations, text, trie, limits, stack, top)
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


class RankedText(NamedTuple):
    """An `EscapedText` with the counts of its tokens."""

    ranks: np.ndarray  # uint16 or int32[characters]
    starts: np.ndarray  # int64[tokens + 1]
    counts: np.ndarray  # int64[tokens]
    letters: int
    end_rank: int
    bits: int  # that a rank takes where several are packed

    @classmethod
    def of(cls, text: EscapedText, counts: np.ndarray) -> 'RankedText':
        letters = len(text.alphabet)
        bits = max(1, (letters - 1).bit_length())
        return cls(text.ranks, text.starts, counts, letters, text.end_rank, bits)


class Trie(NamedTuple):
    """The nodes made, as `SuffixTrie` has them, with room for all that there could be."""

    parents: np.ndarray
    depths: np.ndarray
    positions: np.ndarray
    totals: np.ndarray
    cursor: np.ndarray  # TRIE_CURSOR[1]: how many nodes are made


class SuffixEnds(NamedTuple):
    """How far each suffix has been followed down."""

    node_of: np.ndarray  # int[characters]
    next_weight_bounds: np.ndarray
    """uint16[characters]: upper bound of the weight of the next, longer string at a position; 0 if
    there is none. It tells whether a smaller min-count makes the suffix active again."""


class Limits(NamedTuple):
    """What strings of a trie there are."""

    longest: int  # characters
    min_weight: int


class Repeats(NamedTuple):
    """The repeats of each character, one after another: once, twice, up to the most there are."""

    begins: np.ndarray  # int64[letters]: where each character's are
    most: np.ndarray  # int64[letters]: how many there are
    weights: np.ndarray  # int64[repeats]
    positions: np.ndarray  # int[repeats]: a position in the text where each stands
    names: np.ndarray  # int[repeats]: the node that each begins at


class Bigrams(NamedTuple):
    """A table of pairs of characters, see `bigram_slot`."""

    number_of: np.ndarray  # int32[letters]: the most frequent characters from 0 on; others have -1
    width: int  # how many are numbered; its square is at most half of the slots
    weights: np.ndarray  # int64[slots]: a power of two, at least 2
    names: np.ndarray  # int[width * width]: the nodes of the pairs of numbered characters, or 0


class NodeLists(NamedTuple):
    """The lists of the frontier, one after another: those of the nodes from `first` on."""

    first: int
    ends: np.ndarray  # int64[nodes]


class SuffixList(NamedTuple):
    """A list to be split."""

    begin: int
    end: int
    node: int
    side: int  # which of the two buffers it is in
    held: int  # how many of the packed characters are still to come


class Frontier(NamedTuple):
    """The suffixes still active, in lists by nodes, and a second buffer to scatter them to."""

    positions: np.ndarray  # int[2, suffixes]
    weights: np.ndarray  # uint32 or int64[2, suffixes]
    words: np.ndarray  # uint64[2, suffixes]: packed characters, later where the suffix stops
    stack: np.ndarray  # int64[suffixes / 2 + 2, 5]: lists to be split, each a `SuffixList`
    picked: np.ndarray  # int64[2, ...]: positions and weights on their way to the lists


class Continuations(NamedTuple):
    """Of a list that is split, by the character that follows: each int64[letters]."""

    weights: np.ndarray  # zeros between two lists, as are the sizes
    sizes: np.ndarray
    positions: np.ndarray  # of one suffix
    destinations: np.ndarray  # where suffixes are written to
    nodes: np.ndarray  # where they stop
    found: np.ndarray  # the characters met, in their order


class Regions(NamedTuple):
    """The text in regions of 2^bits positions: what is written of one stays in a core's cache."""

    bits: int
    sizes: np.ndarray  # int64[regions]: suffixes of each; afterwards where they begin


class Entries(NamedTuple):
    """Suffixes of one list, or of one buffer of the frontier."""

    positions: np.ndarray
    weights: np.ndarray
    words: np.ndarray


@kernel_without_allocation
def measure_repeats(text, longest, repeats, most):
    """Writes how often each suffix repeats its first character, and the most for each character."""
    for token in range(len(text.counts)):
        repeat, last = 0, -1
        for position in range(text.starts[token + 1] - 1, text.starts[token] - 1, -1):
            rank = text.ranks[position]
            repeat = min(repeat + 1, longest) if rank == last else 1
            last = rank
            repeats[position] = repeat
            if repeat > most[rank]:
                most[rank] = repeat


@kernel_without_allocation
def weigh_repeats(text, repeat_of, repeats):
    """Sums up the weights of the suffixes by character and repetition, and notes positions.

    Args:
      repeat_of: uint16[characters], as `measure_repeats` writes it.
    """
    for token in range(len(text.counts)):
        count = text.counts[token]
        if count == 0:
            continue
        for position in range(text.starts[token], text.starts[token + 1]):
            repeat = repeats.begins[text.ranks[position]] + repeat_of[position] - 1
            repeats.weights[repeat] += count
            repeats.positions[repeat] = position


@kernel_without_allocation
def add_repeat_nodes(repeats, min_weight, trie):
    """Makes nodes of all characters, and of the repetitions that branch or end and weigh enough.

    Turns each repeat's weight into that of all that begin with it.
    """
    weights, names = repeats.weights, repeats.names
    nodes = len(repeats.begins)
    for letter in range(len(repeats.begins)):
        begin = repeats.begins[letter]
        for repeat in range(begin + repeats.most[letter] - 2, begin - 1, -1):
            weights[repeat] += weights[repeat + 1]
        names[begin] = letter
        trie.parents[letter] = letter
        trie.depths[letter] = 1
        trie.positions[letter] = repeats.positions[begin]
        trie.totals[letter] = weights[begin]
        end = begin + repeats.most[letter]
        for repeat in range(begin + 1, end):
            names[repeat] = names[repeat - 1]
            longer = weights[repeat + 1] if repeat + 1 < end else 0
            if weights[repeat] >= min_weight and weights[repeat] > longer:
                trie.parents[nodes] = names[repeat]
                trie.depths[nodes] = repeat - begin + 1
                trie.positions[nodes] = repeats.positions[repeat]
                trie.totals[nodes] = weights[repeat]
                names[repeat] = nodes
                nodes += 1
    trie.cursor[0]['nodes'] = nodes


@kernel_without_allocation
def start_suffixes(text, repeats, bigrams, longest, trie, ends):
    """Starts each suffix at its repeat or its bigram, or as far as these are heavy enough.

    The bounds of next weights hold how often each suffix repeats its first character before.
    """
    for token in range(len(text.counts)):
        count = text.counts[token]
        for position in range(text.starts[token], text.starts[token + 1]):
            rank = text.ranks[position]
            length = np.int64(ends.next_weight_bounds[position])
            node = rank if count == 0 else repeats.names[repeats.begins[rank] + length - 1]
            weight = np.int64(0)
            if count and rank != text.end_rank and trie.depths[node] < longest:
                if length == 1:
                    after = text.ranks[position + 1]
                    slot = bigram_slot(rank, after, bigrams)
                    weight = bigrams.weights[slot]
                    if slot < len(bigrams.names) and bigrams.names[slot]:
                        node = bigrams.names[slot]
                        trie.positions[node] = position
                        if after == text.end_rank or trie.depths[node] == longest:
                            weight = np.int64(0)
                else:
                    longer = min(length - 1, np.int64(trie.depths[node]))
                    weight = repeats.weights[repeats.begins[rank] + longer]
            ends.node_of[position] = node
            ends.next_weight_bounds[position] = min(weight, LARGEST_NEXT)


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


@kernel_without_allocation
def bigram_slot(first, second, bigrams):
    """Returns the slot of a pair of characters: its own in the lower half, or a shared one."""
    row = np.int64(bigrams.number_of[np.uintp(first)])
    column = np.int64(bigrams.number_of[np.uintp(second)])
    pair = (np.uint64(first) << np.uint64(32)) | np.uint64(second)
    half = len(bigrams.weights) // 2
    shared = half + np.int64(((pair * _SPREAD) >> np.uint64(32)) & np.uint64(half - 1))
    return np.uintp(shared if (row | column) < 0 else row * bigrams.width + column)
