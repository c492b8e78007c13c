"""The weighted suffix trie of all escaped tokens: selects strings, and segments tokens by them.

A compressed trie (its nodes branch or end) of every suffix of every escaped token; the weight of a
node is the number of occurrences of its string, each multiplied by the count of its token. Here is
the trie of `the` 3 times, `then` twice and `there` once, escaped `the_`, `then_`, `there_`: a node
for each character, and below them those of weight 2 or more.

    t 6 ── the 6 ─┬─ the_ 3          e 7 ─┬─ e_ 4         n 2 ── n_ 2
                  └─ then_ 2              └─ en_ 2        r 1
    h 6 ── he 6 ──┬─ he_ 3           _ 6
                  └─ hen_ 2

Selection at min-count 2 goes from long strings to short ones. A string of two characters or more is
selected if its remaining weight is 2 or more, and this weight is then subtracted from all of its
prefixes. Of the 6 of `the`, `the_` takes 3 and `then_` 2: 1 remains, so `the` is not selected.
Characters are always in the vocabulary.

The first iteration counts every suffix, and selects `the_ he_ e_ then_ hen_ en_ n_`. The second
segments the tokens by greedy longest match, into the_, then_ and t·h·e·r·e_, and counts only the
suffixes that begin at a segment: `he_` and `n_` weigh nothing any more and `e_` weighs 1, so only
`the_` (3) and `then_` (2) are selected. The third and the fourth segment `there` into t·h·e·r·e·_
and select the same.

Parents come before their children in the arrays, so an iteration is three sweeps. Downward, each
node gets the length of the deepest selected node on the path from its character, itself included:
so far a suffix that ends in the node matches. Over the tokens, each segment adds its count to the
node of the suffix that begins there. Upward, a node is selected if the min-count remains to it, or
else passes its weight to its parent.

`FullSuffixTrie` makes the trie from a suffix array, with the longest common prefixes (LCP) of
neighbors. Suffixes are sorted by their packed leading characters, bucket by bucket. Those still
equal are sorted by prefix doubling (the order by the first h characters gives that by the first
2h), so a token of a million equal characters costs n log n and not n squared.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.kernels.simd import prefetch
from tokcore.kernels.sorting import sort_pairs
from tokcore.learning.pruned_trie_kernels import TRIE_CURSOR, RankedText, Trie
from tokcore.learning.ranked_text import EscapedText, remaining_length

# 65,536 buckets: most of them fit the processor's cache, and so does their table (512 KB).
_BUCKET_BITS = 16
# Common prefixes are compared character by character up to this length; few words are longer.
_SHORT = 256
# Marks in `order`: 0 within a class; a class begins that may be split further (open), or not
# (closed).
_OPEN, _CLOSED = 1, 2
# Marks set during a round, which it must not see yet: a new class, or an open one that is now
# closed.
_NEW_OPEN, _NEW_CLOSED, _NOW_CLOSED = 3, 4, 5

WIDE = 2**31
"""From this number of nodes on, int32 is too narrow."""

# Tokens that are segmented side by side: their states (48 KB) stay in a core's cache.
_LANES = 2048
# Lanes between the prefetch of a node and its use: the nodes of large tables fit no cache.
_AHEAD = 8


@dataclass(frozen=True)
class SuffixTrie:
    """The nodes of the characters in order of rank, then those that branch or end, parents first.

    (Of strings along an unbranched path, only the longest can be selected.) Index arrays are int32,
    or int64 from 2^31 characters on.
    """

    letters: int
    parents: np.ndarray  # int[nodes]: smaller than the node; meaningless for characters
    depths: np.ndarray  # int32[nodes]: length of the node's string; 1 for characters only
    positions: np.ndarray  # int[nodes]: a position in the text where the string occurs
    totals: np.ndarray  # int64[nodes]: weight of all suffixes that begin with the string
    node_of: np.ndarray
    """int[characters]: the deepest node of the suffix that starts there, complemented where that
    suffix is a reserved token."""

    @classmethod
    def of(cls, trie: Trie, letters: int, node_of: np.ndarray) -> 'SuffixTrie':
        """Returns the nodes that a trie has so far, read-only."""
        size = int(trie.cursor[0]['nodes'])
        parents, depths, positions, totals = (read_only(array[:size]) for array in trie[:-1])
        return cls(letters, parents, depths, positions, totals, node_of)


class FullSuffixTrie:
    """The trie of all strings of any weight, by a suffix array; arguments as `PrunedSuffixTrie`."""

    def __init__(
        self, text: EscapedText, counts: np.ndarray, longest: int, reserved_suffixes: np.ndarray
    ):
        classes = sort_suffixes(text, longest)
        ranked = RankedText.of(text, counts)
        letters, most = len(text.alphabet), 2 * len(classes.representatives)
        integer = classes.order.dtype if letters + most < WIDE else np.int64
        # Pages that are never written to take no memory.
        branches = _Branches(
            np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, integer)
        )
        node_of = np.empty(len(text.ranks), integer)
        height = min(longest, int(np.diff(text.starts).max())) + 1
        path = np.zeros(height + 1, np.int32)
        nodes = _write_nodes(ranked, classes, longest, path, branches, node_of)
        del classes
        branches = _Branches(*(array[:nodes] for array in branches))
        self._trie = _number_from_root(ranked, branches, node_of, height)
        node_of[reserved_suffixes] = ~node_of[reserved_suffixes]

    def at_least(self, min_weight: int) -> SuffixTrie:
        """Returns the whole trie: it contains all strings of any weight."""
        return self._trie


class _Branches(NamedTuple):
    """The nodes in descending order of their strings, children before their parents."""

    depths: np.ndarray  # int32[nodes]
    parent_depths: np.ndarray  # int32[nodes]
    positions: np.ndarray  # int[nodes]


def _number_from_root(
    text: RankedText, branches: _Branches, node_of: np.ndarray, height: int
) -> SuffixTrie:
    """Numbers the characters first and parents before children, and sums up weights."""
    letters, integer = text.letters, branches.positions.dtype
    nodes = letters + int(np.count_nonzero(branches.depths > 1))
    trie = Trie(
        parents=np.zeros(nodes, integer),
        depths=np.ones(nodes, np.int32),
        positions=np.zeros(nodes, integer),
        totals=np.zeros(nodes, np.int64),
        cursor=np.zeros(1, TRIE_CURSOR),
    )
    numbers = np.empty(len(branches.depths), integer)
    _number_nodes(text, branches, np.empty((2, height + 1), np.int64), numbers, trie)
    _weigh_nodes(text, numbers, trie, node_of)
    return SuffixTrie.of(trie, letters, node_of)


@kernel_without_allocation
def _write_nodes(text, classes, longest, path, branches, node_of):
    """Writes the nodes from the last suffix to the first; returns their number.

    `path[1:top + 1]` are the depths of the open branching nodes. A longest common prefix (LCP)
    shorter than the deepest of them closes it, a longer one opens another.
    """
    node, top = 0, 0
    for c in range(len(classes.representatives) - 1, -1, -1):
        for i in range(classes.starts[c], classes.starts[c + 1]):
            node_of[classes.order[i]] = node
        common = np.int64(classes.prefixes[c])
        if common >= longest:
            continue  # equal to the class before in the first `longest` characters
        position = np.int64(classes.representatives[c])
        length = remaining_length(text.ranks, text.starts, text.end_rank, position)
        branches.positions[node] = position
        branches.depths[node] = min(length, longest)
        branches.parent_depths[node] = max(common, np.int64(path[top]))
        node += 1
        while path[top] > common:
            branches.positions[node] = position
            branches.depths[node] = path[top]
            top -= 1
            branches.parent_depths[node] = max(common, np.int64(path[top]))
            node += 1
        if path[top] < common:
            top += 1
            path[top] = common
    return node


@kernel_without_allocation
def _number_nodes(text, branches, path, numbers, trie):
    """Numbers the nodes in ascending order of their strings, after the characters."""
    open_depths, open_numbers = path[0], path[1]
    top, nodes = -1, text.letters
    for node in range(len(branches.depths) - 1, -1, -1):
        depth, position = branches.depths[node], branches.positions[node]
        letter = np.int64(text.ranks[position])
        while top >= 0 and open_depths[top] > branches.parent_depths[node]:
            top -= 1
        number = letter
        if depth > 1:
            number = nodes
            nodes += 1
            trie.parents[number] = letter if top < 0 else open_numbers[top]
            trie.depths[number] = depth
        trie.positions[number] = position
        numbers[node] = number
        top += 1
        open_depths[top], open_numbers[top] = depth, number
    trie.cursor[0]['nodes'] = nodes


@kernel_without_allocation
def _weigh_nodes(text, numbers, trie, node_of):
    for token in range(len(text.counts)):
        for position in range(text.starts[token], text.starts[token + 1]):
            node_of[position] = numbers[node_of[position]]
            trie.totals[node_of[position]] += text.counts[token]
    for node in range(len(trie.parents) - 1, text.letters - 1, -1):
        trie.totals[trie.parents[node]] += trie.totals[node]


def select_first(trie: SuffixTrie, min_count: int) -> np.ndarray:
    """Selects nodes in the first iteration, in which each character is a segment.

    Returns the selection, int64[nodes, 2]: the remaining weight (without selected strings below), and
    the length of a selected string (1 for characters, 0 for others).
    """
    nodes = np.empty((len(trie.totals), 2), np.int64)
    nodes[:, 0] = trie.totals
    _subtract_children(trie.letters, trie.parents, trie.totals, nodes)
    _select(trie.letters, trie.parents, trie.depths, min_count, nodes)
    return nodes


def select_next(
    trie: SuffixTrie, starts: np.ndarray, counts: np.ndarray, nodes: np.ndarray, min_count: int
) -> None:
    """Segments all tokens by the last selection, and selects by the suffixes at segment starts.

    Args:
      starts: int64[tokens + 1], where each token begins.
      counts: int64[tokens].
      nodes: the last selection, which the new one replaces.
    """
    _inherit_lengths(trie.parents, nodes)
    lanes = np.empty((3, _LANES), np.int64)
    _weigh_segment_starts(starts, counts, trie.node_of, lanes, nodes)
    _select(trie.letters, trie.parents, trie.depths, min_count, nodes)


@kernel_without_allocation
def _subtract_children(letters, parents, totals, nodes):
    """Subtracts the children's totals from each node's weight."""
    for node in range(letters, len(parents)):
        nodes[parents[node], 0] -= totals[node]


@kernel_without_allocation
def _select(letters, parents, depths, min_count, nodes):
    """Selects each node with a remaining weight of `min_count`; others add theirs to the parent.

    (Tensor2Tensor goes through the strings from long to short and subtracts the count of each
    selected one from all its prefixes.)
    """
    for node in range(len(parents) - 1, letters - 1, -1):
        weight = nodes[node, 0]
        if weight >= min_count:
            nodes[node, 1] = depths[node]
        else:
            nodes[node, 1] = 0
            nodes[parents[node], 0] += weight
    nodes[:letters, 1] = 1


@kernel_without_allocation
def _inherit_lengths(parents, nodes):
    """Copies the length of the deepest selected node downwards, and clears remaining weights."""
    for node in range(len(parents)):
        nodes[node, 0] = 0
        if nodes[node, 1] == 0:
            nodes[node, 1] = nodes[parents[node], 1]


@kernel_without_allocation
def _weigh_segment_starts(starts, counts, node_of, lanes, nodes):
    """Segments the tokens, and adds their counts to the nodes of the suffixes at segment starts.

    Greedy longest match (MaxMatch) from the left; a reserved token is the last segment. Many tokens
    advance by one segment each in turn, since the end of a token would be a mispredicted branch.
    """
    positions, ends, weights = lanes[0], lanes[1], lanes[2]
    for begin in range(0, len(counts), len(positions)):
        size = min(len(positions), len(counts) - begin)
        for i in range(size):
            positions[i], ends[i] = starts[begin + i], starts[begin + i + 1]
            weights[i] = counts[begin + i]
        while size:
            unfinished = 0
            for i in range(size):
                ahead = np.int64(node_of[np.uintp(positions[min(i + _AHEAD, size - 1)])])
                prefetch(nodes, np.uintp(2 * max(ahead, ~ahead)))
                position, end, count = positions[i], ends[i], weights[i]
                node = np.int64(node_of[np.uintp(position)])
                if node < 0:
                    node, position = ~node, end
                nodes[np.uintp(node), 0] += count
                position += nodes[np.uintp(node), 1]
                positions[unfinished], ends[unfinished] = position, end
                weights[unfinished] = count
                unfinished += position < end
            size = unfinished


class _SuffixClasses(NamedTuple):
    """The suffixes in ascending order, in classes of suffixes with equal leading characters.

    Index arrays are int32, or int64 from 2^31 characters on.
    """

    order: np.ndarray  # int[suffixes]: start positions in the text
    starts: np.ndarray  # int[classes + 1]: each class's range in `order`
    representatives: np.ndarray  # int[classes]: the first position of each class
    prefixes: np.ndarray  # int32[classes]: LCP with the class before, in characters


def sort_suffixes(text: EscapedText, longest: int) -> _SuffixClasses:
    """Sorts the suffixes of all tokens by at least their `longest` first characters.

    Suffixes of one class are equal in these characters. Classes that differ only after them have a
    common prefix of at least that length.
    """
    ranks, size = text.ranks, len(text.ranks)
    integer = np.int32 if size < WIDE else np.int64
    bits = len(text.alphabet).bit_length()
    packed = 63 // bits  # characters in a key that stays positive
    order = np.empty(size, integer)
    marks = np.zeros(size, np.uint8)
    bucket_ends = _fill_buckets(ranks, text.end_rank, bits, packed, order)
    keys = np.empty(int(np.diff(bucket_ends, prepend=0).max()), np.int64)
    open_classes = _sort_buckets(
        ranks, text.end_rank, bits, packed, read_only(bucket_ends), order, marks, keys
    )
    if open_classes and packed < longest:
        class_of = np.empty(size, integer)
        _assign_classes(order, marks, class_of)
        known = packed
        while open_classes and known < longest:
            open_classes = _split_classes(class_of, known, order, marks, keys)
            _update_classes(order, marks, class_of)
            known *= 2
        del class_of

    starts = np.empty(int(np.count_nonzero(marks)) + 1, integer)
    representatives = np.empty(len(starts) - 1, integer)
    _list_classes(order, marks, starts, representatives)
    prefixes = np.zeros(len(representatives), np.int32)
    capped = _compare_neighbors(ranks, read_only(representatives), min(_SHORT, longest), prefixes)
    if capped and longest > _SHORT:
        classes = np.flatnonzero(prefixes == _SHORT)
        classes = classes[np.argsort(representatives[classes])]
        _compare_long_neighbors(
            ranks, read_only(representatives), read_only(classes), _SHORT, prefixes
        )
    return _SuffixClasses(
        read_only(order), read_only(starts), read_only(representatives), read_only(prefixes)
    )


@kernel
def _fill_buckets(ranks, end_rank, bits, packed, order):
    """Puts positions into buckets by the top bits of their keys; returns where each bucket ends.

    A key packs the leading characters, each as rank + 1, with zeros after the end of the token.
    Going backwards, the next key is the last one with a character pushed in at the top.
    """
    top = bits * (packed - 1)
    shift = bits * packed - _BUCKET_BITS
    ends = np.zeros(1 << _BUCKET_BITS, np.int64)
    key = 0
    for position in range(len(ranks) - 1, -1, -1):
        rank = np.int64(ranks[position])
        key = (rank + 1) << top if rank == end_rank else ((rank + 1) << top) | (key >> bits)
        ends[key >> shift] += 1
    ends = np.cumsum(ends)
    free = ends.copy()
    key = 0
    for position in range(len(ranks) - 1, -1, -1):
        rank = np.int64(ranks[position])
        key = (rank + 1) << top if rank == end_rank else ((rank + 1) << top) | (key >> bits)
        bucket = key >> shift
        free[bucket] -= 1
        order[free[bucket]] = position
    return ends


@kernel
def _sort_buckets(ranks, end_rank, bits, packed, bucket_ends, order, marks, keys):
    """Sorts each bucket by key and marks the classes of equal keys; counts the open classes."""
    last_character = (1 << bits) - 1
    open_classes = 0
    low = 0
    for high in bucket_ends:
        for i in range(low, high):
            position = np.int64(order[i])
            key = 0
            for j in range(packed):
                rank = np.int64(ranks[position + j])
                key = (key << bits) | (rank + 1)
                if rank == end_rank:
                    key <<= bits * (packed - 1 - j)
                    break
            keys[i - low] = key
        sort_pairs(keys, order, low, high - low)
        begin = low
        while begin < high:
            key = keys[begin - low]
            end = begin + 1
            while end < high and keys[end - low] == key:
                end += 1
            last = key & last_character
            if end == begin + 1 or last == 0 or last == end_rank + 1:
                marks[begin] = _CLOSED
            else:
                marks[begin] = _OPEN
                open_classes += 1
            begin = end
        low = high
    return open_classes


@kernel_without_allocation
def _assign_classes(order, marks, class_of):
    """Writes the class of each suffix: the index in `order` where the class begins."""
    begin = 0
    for i in range(len(order)):
        if marks[i]:
            begin = i
        class_of[order[i]] = begin


@kernel
def _split_classes(class_of, known, order, marks, keys):
    """Sorts each open class by the classes of the suffixes `known` characters later.

    `class_of` does not change during a round, so afterwards every class is exact in twice as many
    characters. Returns the number of classes still open.
    """
    open_classes = 0
    begin = 0
    while begin < len(order):
        end = begin + 1
        while end < len(order) and marks[end] == 0:
            end += 1
        if marks[begin] == _OPEN:
            for i in range(begin, end):
                keys[i - begin] = class_of[np.int64(order[i]) + known]
            sort_pairs(keys, order, begin, end - begin)
            low = begin
            while low < end:
                key = keys[low - begin]
                high = low + 1
                while high < end and keys[high - begin] == key:
                    high += 1
                closed = high == low + 1 or marks[key] == _CLOSED
                if low > begin:
                    marks[low] = _NEW_CLOSED if closed else _NEW_OPEN
                elif closed:
                    marks[low] = _NOW_CLOSED
                if not closed:
                    open_classes += 1
                low = high
        begin = end
    return open_classes


@kernel_without_allocation
def _update_classes(order, marks, class_of):
    """Writes the new classes of a round to `class_of`, and replaces the marks of the round."""
    begin = 0
    while begin < len(order):
        mark = marks[begin]
        if mark == _NEW_OPEN or mark == _NEW_CLOSED:
            class_of[order[begin]] = begin
            i = begin + 1
            while i < len(order) and marks[i] == 0:
                class_of[order[i]] = begin
                i += 1
            marks[begin] = _OPEN if mark == _NEW_OPEN else _CLOSED
            begin = i
        else:
            if mark == _NOW_CLOSED:
                marks[begin] = _CLOSED
            begin += 1


@kernel_without_allocation
def _list_classes(order, marks, starts, representatives):
    classes = -1
    for i in range(len(order)):
        if marks[i]:
            classes += 1
            starts[classes] = i
            representatives[classes] = order[i]
        elif order[i] < representatives[classes]:
            representatives[classes] = order[i]
    starts[classes + 1] = len(order)


@kernel_without_allocation
def _compare_neighbors(ranks, representatives, limit, prefixes):
    """Writes the LCP of each class with the one before, up to a limit; counts how many reach it."""
    capped = 0
    for i in range(1, len(representatives)):
        one, other = np.int64(representatives[i]), np.int64(representatives[i - 1])
        common = 0
        while common < limit and ranks[one + common] == ranks[other + common]:
            common += 1
        prefixes[i] = common
        if common == limit:
            capped += 1
    return capped


@kernel_without_allocation
def _compare_long_neighbors(ranks, representatives, classes, known, prefixes):
    """Completes the LCPs of `known` characters or more, visited in text order (Kasai's algorithm).

    If a suffix has n characters in common with the one before it in the suffix array, then the
    suffix one character later has at least n - 1 in common with its predecessor: no need to compare
    those.
    """
    common, expected = known, -1
    for i in classes:
        one, other = np.int64(representatives[i]), np.int64(representatives[i - 1])
        common = max(common - 1, known) if one == expected else known
        while ranks[one + common] == ranks[other + common]:
            common += 1
        prefixes[i] = common
        expected = one + 1
