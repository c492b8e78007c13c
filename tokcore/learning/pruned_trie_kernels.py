"""Kernels that expand a suffix trie: a node's suffixes are split by the next character.

The first nodes are the characters, repeats of one character (tokens may be rulers or table
borders), and frequent bigrams. The table of bigram weights has a slot for each pair of the most
frequent characters in its lower half; the upper half is hashed, and its sums are upper bounds.

The rest is an MSD radix partition: the suffixes of a node are one list, read in order and scattered
to the lists of its children. A child that is too light is not created, and its suffixes stop at the
node. Children are split depth first, while their lists are in cache. All arrays are allocated by
the caller, in the tuples that `tokcore.learning` draws.
"""

from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation
from tokcore.kernels.simd import prefetch
from tokcore.learning.ranked_text import EscapedText, remaining_length

# numba compiles no check for an index from the end where it is unsigned.
_index = np.uintp
# Prefetch distance in suffixes: three cache lines of words, one and a half of positions.
_AHEAD = _index(24)

_NEXT_BITS = np.uint64(16)
"""Where a suffix stops is packed into a uint64: node << 16 | min(next weight, 2^15 - 1)."""

_NEXT_MASK = np.uint64(2**16 - 1)

TRIE_CURSOR = np.dtype([('nodes', np.int64)], align=True)

LARGEST_NEXT = 2**15 - 1
"""Upper bounds of next weights are capped here; larger 16-bit values mark active suffixes."""

# 2^64 divided by the golden ratio.
_GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)


class RankedText(NamedTuple):
    """An `EscapedText` with the counts of its tokens."""

    ranks: np.ndarray  # uint16 or int32[characters]
    starts: np.ndarray  # int64[tokens + 1]
    counts: np.ndarray  # int64[tokens]
    letters: int
    end_rank: int
    bits: int  # of a rank where several are packed into a word

    @classmethod
    def of(cls, text: EscapedText, counts: np.ndarray) -> 'RankedText':
        letters = len(text.alphabet)
        bits = max(1, (letters - 1).bit_length())
        return cls(text.ranks, text.starts, counts, letters, text.end_rank, bits)


class Trie(NamedTuple):
    """The nodes so far, as in `SuffixTrie`, in arrays with room for every possible node."""

    parents: np.ndarray
    depths: np.ndarray
    positions: np.ndarray
    totals: np.ndarray
    cursor: np.ndarray  # TRIE_CURSOR[1]: the number of nodes


class SuffixEnds(NamedTuple):
    """The node where each suffix stops, and what would have to be expanded to go on."""

    node_of: np.ndarray  # int[characters]
    next_weight_bounds: np.ndarray
    """uint16[characters]: an upper bound of the weight of the next, longer string, or 0.

    A min-count at or below it makes the suffix active again."""


class ExpansionLimits(NamedTuple):
    """A string gets a node only up to this length and from this weight on."""

    longest: int  # characters
    min_weight: int


class Repeats(NamedTuple):
    """The strings `a`, `aa`, `aaa`, ... of each character, up to the longest in the text."""

    begins: np.ndarray  # int64[letters]: the index of each character's first repeat
    longest: np.ndarray  # int64[letters]: the length of its longest repeat
    weights: np.ndarray  # int64[repeats]
    positions: np.ndarray  # int[repeats]: a position in the text where the repeat occurs
    node_of: np.ndarray  # int[repeats]: the deepest node on the way to the repeat


class Bigrams(NamedTuple):
    """A table of pairs of different characters; `_bigram_slot` has the slot of a pair."""

    number_of: np.ndarray  # int32[letters]: the most frequent characters from 0 on; others have -1
    width: int  # how many characters are numbered; its square is at most half of the slots
    weights: np.ndarray  # int64[slots]: a power of two, at least 2
    node_of: np.ndarray  # int[width * width]: the nodes of the pairs of numbered characters, or 0


class NodeLists(NamedTuple):
    """The suffix lists of consecutive nodes, one after another in the frontier."""

    first: int  # node
    ends: np.ndarray  # int64[nodes]: where each node's list ends


class SuffixList(NamedTuple):
    """The suffixes of a node, still to be split."""

    begin: int
    end: int
    node: int
    side: int  # 0 or 1: the buffer of the list
    unread: int  # packed characters not yet used


class Frontier(NamedTuple):
    """The active suffixes in lists by node, and a second buffer to scatter them to."""

    positions: np.ndarray  # int[2, suffixes]
    weights: np.ndarray  # uint32 or int64[2, suffixes]
    words: np.ndarray  # uint64[2, suffixes]: packed characters, later where the suffix stops
    stack: np.ndarray  # int64[suffixes / 2 + 2, 5]: lists still to be split, each a `SuffixList`
    batch: np.ndarray  # int64[2, ...]: positions and weights not yet appended to lists


class Continuations(NamedTuple):
    """Sums over one list by the next character: each int64[letters], indexed by rank."""

    weights: np.ndarray  # all 0 between two lists, as are the sizes
    sizes: np.ndarray  # suffixes
    positions: np.ndarray  # of one of the suffixes
    destinations: np.ndarray  # where the suffixes are written to
    nodes: np.ndarray  # where they stop
    letters: np.ndarray  # the next characters, in order of first occurrence


class Entries(NamedTuple):
    """The suffixes of one list, or of one buffer of the frontier."""

    positions: np.ndarray
    weights: np.ndarray
    words: np.ndarray


class Regions(NamedTuple):
    """The text in regions of 2^bits positions, so small that writes to one stay in cache."""

    bits: int
    sizes: np.ndarray  # int64[regions]: suffixes in each region; `write_back` takes their begins


@kernel_without_allocation
def measure_repeats(text, longest, repeat_of, longest_of):
    """Writes how often each suffix repeats its first character, and the maximum by character."""
    for token in range(len(text.counts)):
        repeat, last = 0, -1
        for position in range(text.starts[token + 1] - 1, text.starts[token] - 1, -1):
            rank = text.ranks[position]
            repeat = min(repeat + 1, longest) if rank == last else 1
            last = rank
            repeat_of[position] = repeat
            if repeat > longest_of[rank]:
                longest_of[rank] = repeat


@kernel_without_allocation
def weigh_repeats(text, repeat_of, repeats):
    """Sums up the weights of the suffixes by character and repetition, and sets positions.

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
    """Creates the nodes of all characters, and of repeats that branch or end and are heavy enough.

    Afterwards the weight of a repeat is that of all suffixes that begin with it.
    """
    weights, node_of = repeats.weights, repeats.node_of
    nodes = len(repeats.begins)
    for letter in range(len(repeats.begins)):
        begin = repeats.begins[letter]
        for repeat in range(begin + repeats.longest[letter] - 2, begin - 1, -1):
            weights[repeat] += weights[repeat + 1]
        node_of[begin] = letter
        trie.parents[letter] = letter
        trie.depths[letter] = 1
        trie.positions[letter] = repeats.positions[begin]
        trie.totals[letter] = weights[begin]
        end = begin + repeats.longest[letter]
        for repeat in range(begin + 1, end):
            node_of[repeat] = node_of[repeat - 1]
            longer = weights[repeat + 1] if repeat + 1 < end else 0
            if weights[repeat] >= min_weight and weights[repeat] > longer:
                trie.parents[nodes] = node_of[repeat]
                trie.depths[nodes] = repeat - begin + 1
                trie.positions[nodes] = repeats.positions[repeat]
                trie.totals[nodes] = weights[repeat]
                node_of[repeat] = nodes
                nodes += 1
    trie.cursor[0]['nodes'] = nodes


@kernel_without_allocation
def weigh_bigrams(text, repeat_of, bigrams):
    """Sums up the weights of the suffixes that begin with two different characters, by bigram.

    Args:
      repeat_of: uint16[characters], as `measure_repeats` writes it.
    """
    for token in range(len(text.counts)):
        count = text.counts[token]
        for position in range(text.starts[token], text.starts[token + 1]):
            rank = text.ranks[position]
            if repeat_of[position] == 1 and rank != text.end_rank:
                bigrams.weights[_bigram_slot(rank, text.ranks[position + 1], bigrams)] += count


@kernel_without_allocation
def add_bigram_nodes(frequent, bigrams, min_weight, trie):
    """Creates the nodes of the bigrams that have slots of their own and are heavy enough.

    Their positions are set by `start_suffixes`.

    Args:
      frequent: int64[at most width], the numbered characters.
    """
    nodes = trie.cursor[0]['nodes']
    for row in range(len(frequent)):
        for column in range(len(frequent)):
            slot = row * bigrams.width + column
            if bigrams.weights[slot] >= min_weight:
                bigrams.node_of[slot] = nodes
                trie.parents[nodes] = frequent[row]
                trie.depths[nodes] = 2
                trie.totals[nodes] = bigrams.weights[slot]
                nodes += 1
    trie.cursor[0]['nodes'] = nodes


@kernel_without_allocation
def _bigram_slot(first, second, bigrams):
    """Returns the slot of a bigram: its own in the lower half, or one in the hashed half."""
    row = np.int64(bigrams.number_of[np.uintp(first)])
    column = np.int64(bigrams.number_of[np.uintp(second)])
    pair = (np.uint64(first) << np.uint64(32)) | np.uint64(second)
    half = len(bigrams.weights) // 2
    shared = half + np.int64(((pair * _GOLDEN_RATIO) >> np.uint64(32)) & np.uint64(half - 1))
    return np.uintp(shared if (row | column) < 0 else row * bigrams.width + column)


@kernel_without_allocation
def start_suffixes(text, repeats, bigrams, longest, trie, ends):
    """Sets the first node of each suffix: its repeat or bigram, or the deepest node on the path.

    Before, the next weight bounds hold how often each suffix repeats its first character.
    """
    for token in range(len(text.counts)):
        count = text.counts[token]
        for position in range(text.starts[token], text.starts[token + 1]):
            rank = text.ranks[position]
            length = np.int64(ends.next_weight_bounds[position])
            node = rank if count == 0 else repeats.node_of[repeats.begins[rank] + length - 1]
            weight = np.int64(0)
            if count and rank != text.end_rank and trie.depths[node] < longest:
                if length == 1:
                    after = text.ranks[position + 1]
                    slot = _bigram_slot(rank, after, bigrams)
                    weight = bigrams.weights[slot]
                    if slot < len(bigrams.node_of) and bigrams.node_of[slot]:
                        node = bigrams.node_of[slot]
                        trie.positions[node] = position
                        if after == text.end_rank or trie.depths[node] == longest:
                            weight = np.int64(0)
                else:
                    longer = min(length - 1, np.int64(trie.depths[node]))
                    weight = repeats.weights[repeats.begins[rank] + longer]
            ends.node_of[position] = node
            ends.next_weight_bounds[position] = min(weight, LARGEST_NEXT)


@kernel_without_allocation
def count_active(ends, threshold, sizes):
    """Counts the active suffixes, whose next string could be heavy enough, by node."""
    for position in range(len(ends.node_of)):
        if ends.next_weight_bounds[position] >= threshold:
            sizes[ends.node_of[position]] += 1


@kernel_without_allocation
def mark_active(ends, threshold, mark_of):
    """Writes the mark of its node in place of the bound of each active suffix."""
    for position in range(len(ends.node_of)):
        if ends.next_weight_bounds[position] >= threshold:
            ends.next_weight_bounds[position] = mark_of[ends.node_of[position]]


@kernel_without_allocation
def fill_frontier(text, ends, mark, depths, lists, frontier, regions):
    """Appends the suffixes with a mark to the lists of their nodes, in the first buffer.

    `lists.ends` holds the begin of each list before and its end after. A suffix is stored with as
    many of its next characters as a word holds: in text order they are cheap to read. Counts the
    suffixes by region. Suffixes are collected in `frontier.batch` without a branch, and appended
    when it is full.
    """
    batch = frontier.batch
    size = 0
    for token in range(len(text.counts)):
        begin, end, count = text.starts[token], text.starts[token + 1], text.counts[token]
        while begin < end:
            if size == batch.shape[1]:
                _append_batch(text, ends.node_of, depths, lists, frontier, size, regions)
                size = 0
            until = min(end, begin + batch.shape[1] - size)
            for position in range(begin, until):
                batch[0, _index(size)], batch[1, _index(size)] = position, count
                size += ends.next_weight_bounds[_index(position)] == mark
            begin = until
    _append_batch(text, ends.node_of, depths, lists, frontier, size, regions)


@kernel_without_allocation
def _append_batch(text, node_of, depths, lists, frontier, size, regions):
    """Appends the first `size` suffixes of the batch to the lists of their nodes."""
    buffer = Entries(frontier.positions[0], frontier.weights[0], frontier.words[0])
    for i in range(size):
        position = frontier.batch[0, i]
        node = np.int64(node_of[_index(position)])
        slot = _index(lists.ends[_index(node - lists.first)])
        lists.ends[_index(node - lists.first)] += 1
        characters = position + depths[_index(node)]
        word = _next_characters(text.ranks, characters, text.bits, 64 // text.bits)
        _write_suffix(buffer, slot, position, frontier.batch[1, i], word)
        regions.sizes[_index(position >> regions.bits)] += 1


@kernel_without_allocation
def _next_characters(ranks, position, bits, packed):
    """Packs the next `packed` characters into a word, with zeros after the end of the text."""
    word = np.uint64(0)
    for i in range(position, min(position + packed, len(ranks))):
        word = (word << np.uint64(bits)) | np.uint64(ranks[_index(i)])
    return word << np.uint64(bits * max(0, position + packed - len(ranks)))


@kernel_without_allocation
def _write_suffix(entries, slot, position, weight, word):
    """Writes a suffix to a slot, and prefetches the lines that later ones will go to.

    So many lists grow in turn that the hardware prefetcher follows none of them, and a store that
    waits for memory delays all stores after it.
    """
    entries.positions[slot], entries.weights[slot], entries.words[slot] = position, weight, word
    prefetch(entries.positions, slot + _AHEAD)
    prefetch(entries.weights, slot + _AHEAD)
    prefetch(entries.words, slot + _AHEAD)


@kernel_without_allocation
def split_frontier(lists, frontier, continuations, text, trie, limits):
    """Creates the nodes below those of the lists, down to the expansion limits.

    Afterwards the first rows of the frontier's positions and words hold where each suffix stops, as
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
    """Splits a list, and then the lists of the new children, depth first."""
    stack = frontier.stack
    mask = np.uint64((1 << text.bits) - 1)
    _push(stack, 0, first)
    top = 0
    while top >= 0:
        low, high, node = stack[top, 0], stack[top, 1], stack[top, 2]
        side, unread = stack[top, 3], stack[top, 4]
        top -= 1
        entries = Entries(
            frontier.positions[side, low:high],
            frontier.weights[side, low:high],
            frontier.words[side, low:high],
        )
        if unread == 0:
            unread = 64 // text.bits
            depth = np.int64(trie.depths[node])
            _pack_next(text.ranks, entries.positions, depth, text.bits, unread, entries.words)
        unread -= 1
        shift = np.uint64(text.bits * unread)
        letters = _weigh_continuations(entries, shift, mask, continuations)
        below = top
        parent = SuffixList(low, high, node, side, unread)
        top, stopped = _make_children(
            parent, letters, continuations, text, trie, limits, stack, top
        )
        if letters == 1 and top > below:
            continue  # the list stays as it is, for the node's only child
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
        for j in range(letters):
            continuations.weights[_index(continuations.letters[j])] = 0


@kernel_without_allocation
def _push(stack, top, new):
    stack[top, 0], stack[top, 1], stack[top, 2] = new.begin, new.end, new.node
    stack[top, 3], stack[top, 4] = new.side, new.unread


@kernel_without_allocation
def _pack_next(ranks, positions, depth, bits, packed, words):
    for i in range(len(positions)):
        words[i] = _next_characters(ranks, np.int64(positions[i]) + depth, bits, packed)


@kernel_without_allocation
def _weigh_continuations(entries, shift, mask, continuations):
    """Sums up weights and counts suffixes by next character; returns the distinct characters."""
    weights, sizes = continuations.weights, continuations.sizes
    letters = 0
    for i in range(len(entries.words)):
        letter = _index((entries.words[i] >> shift) & mask)
        if sizes[letter] == 0:
            continuations.letters[letters] = letter
            continuations.positions[letter] = entries.positions[i]
            letters += 1
        sizes[letter] += 1
        weights[letter] += entries.weights[i]
    return letters


@kernel_without_allocation
def _make_children(parent, letters, continuations, text, trie, limits, stack, top):
    """Creates a node's children, and chooses where the suffixes of each are written to.

    Suffixes that go on are written from the beginning of the `parent` list upwards, those that stop
    from its end downwards; for those that stop, the weight of the next string stays in
    `continuations.weights`. A node whose whole weight goes to one child becomes that child (path
    compression). Pushes new lists; returns the stack's top, and where the suffixes that stop begin.
    """
    low, high, node = parent.begin, parent.end, parent.node
    nodes = trie.cursor[0]['nodes']
    depth = np.int64(trie.depths[node])
    for i in range(letters):
        letter = _index(continuations.letters[i])
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
            _push(stack, top, SuffixList(low, low + size, child, parent.side, parent.unread))
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
def _scatter(entries, shift, mask, destinations, buffer):
    """Scatters suffixes to their new lists, without a branch, which would be mispredicted."""
    for i in range(len(entries.words)):
        word = entries.words[i]
        letter = _index((word >> shift) & mask)
        slot = _index(destinations[letter])
        destinations[letter] += 1
        _write_suffix(buffer, slot, entries.positions[i], entries.weights[i], word)


@kernel_without_allocation
def _write_leaves(stopped, shift, mask, continuations, leaf_positions, leaf_words):
    """Packs where suffixes stop, with the weight of the next string."""
    for i in range(len(stopped.words)):
        letter = _index((stopped.words[i] >> shift) & mask)
        leaf_positions[i] = stopped.positions[i]
        next_weight = np.uint64(min(continuations.weights[letter], LARGEST_NEXT))
        leaf_words[i] = (np.uint64(continuations.nodes[letter]) << _NEXT_BITS) | next_weight


@kernel_without_allocation
def write_back(positions, leaf_words, regions, ends):
    """Writes where suffixes stop, and the bounds of their next weights, to `SuffixEnds`.

    Suffixes are partitioned by regions of the text first, since random writes would miss every
    cache.

    Args:
      positions, leaf_words: [2, suffixes], the first rows as `split_frontier` leaves them; the
        second rows are scratch space.
      regions: with the begin of each region's suffixes in `sizes`.
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
        ends.node_of[position] = leaf_words[1, i] >> _NEXT_BITS
        ends.next_weight_bounds[position] = leaf_words[1, i] & _NEXT_MASK
