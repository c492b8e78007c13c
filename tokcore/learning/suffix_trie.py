"""The weighted suffix trie of all escaped tokens: which strings are selected, and how far they match.

A compressed trie (only nodes that branch or end) of every suffix of every escaped token; a node's
weight is how often its string occurs, tokens counted as often as the text has them. Of the tokens
`the` 3 times, `then` twice and `there` once, escaped `the_`, `then_`, `there_`: the characters, each
with a node whatever it weighs, and below them what weighs 2 or more.

    t 6 ── the 6 ─┬─ the_ 3          e 7 ─┬─ e_ 4         n 2 ── n_ 2
                  └─ then_ 2              └─ en_ 2        r 1
    h 6 ── he 6 ──┬─ he_ 3           _ 6
                  └─ hen_ 2

Selection at min-count 2 goes from long strings to short ones. A string of two characters or more that
has 2 or more *left* is selected and takes what it has left from all of its prefixes; one with less
leaves it to them. Of the 6 of `the`, `the_` takes 3 and `then_` 2: 1 is left, so `the` is not
selected. Characters are always in the vocabulary.

The first iteration lets every suffix count, and selects `the_ he_ e_ then_ hen_ en_ n_`. The second
counts only what begins at a segment, where the longest selected strings are matched from the left:
the_, then_, and t·h·e·r·e_ of `there`. Now `he_` or `n_` begins nowhere, `e_` has 1, and `the_` 3 and
`then_` 2 remain. The third and the fourth segment `there` into t·h·e·r·e·_ and select the same.

Parents come before their children in the arrays, so sweeps do an iteration. Downward, each node learns
the deepest selected node on the way to it, itself among them: that is how far a suffix that ends in
it matches. A pass over the tokens adds up what begins at their segments. Upward, a node with
min-count left is selected, else it leaves what it has to its parent.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import prefetch
from tokcore.learning.pruned_trie_kernels import TRIE_CURSOR, RankedText, Trie
from tokcore.learning.ranked_text import EscapedText, remaining_length
from tokcore.learning.suffix_array import sort_suffixes

# From so many nodes on int32 does not number them.
_WIDE = 2**31

# Tokens segmented side by side: their states stay in the cache.
_LANES = 2048
# The node of a token so many turns ahead is prefetched: nodes of large tables fit no cache.
_AHEAD = 8


@dataclass(frozen=True)
class SuffixTrie:
    """The characters, in order of rank, and below them nodes that branch or end, parents first.

    Along an unbranched path only the deepest node could be selected. Index arrays are int32, int64 from
    2^31 characters on.
    """

    letters: int
    parents: np.ndarray  # int[nodes]: smaller than the node; a character's own are of no meaning
    depths: np.ndarray  # int32[nodes]: length of a node's string; 1 for the characters alone
    positions: np.ndarray  # int[nodes]: a position in the text where the string stands
    totals: np.ndarray  # int64[nodes]: weight of all suffixes that the string begins
    node_of: np.ndarray
    """int[characters]: the deepest node of the suffix that starts there, complemented where that
    suffix is a reserved token."""


class FullSuffixTrie:
    """All strings, of any weight; takes what `PrunedSuffixTrie` takes."""

    def __init__(
        self, text: EscapedText, counts: np.ndarray, longest: int, reserved_suffixes: np.ndarray
    ):
        classes = sort_suffixes(text, longest)
        ranked = RankedText.of(text, counts)
        letters, most = len(text.alphabet), 2 * len(classes.representatives)
        integer = classes.order.dtype if letters + most < _WIDE else np.int64
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
        self._trie = _from_the_top(ranked, branches, node_of, height)
        node_of[reserved_suffixes] = ~node_of[reserved_suffixes]

    def at_least(self, min_weight: int) -> SuffixTrie:
        """Returns the trie, whatever is asked for."""
        return self._trie


class _Branches(NamedTuple):
    """Nodes from the last string to the first, children before their parents."""

    depths: np.ndarray  # int32[nodes]
    parent_depths: np.ndarray  # int32[nodes]
    positions: np.ndarray  # int[nodes]


def _from_the_top(
    text: RankedText, branches: _Branches, node_of: np.ndarray, height: int
) -> SuffixTrie:
    """Puts the characters first and parents before children, and weighs all."""
    letters, integer = text.letters, branches.positions.dtype
    nodes = letters + int(np.count_nonzero(branches.depths > 1))
    trie = Trie(
        parents=np.zeros(nodes, integer),
        depths=np.ones(nodes, np.int32),
        positions=np.zeros(nodes, integer),
        totals=np.zeros(nodes, np.int64),
        cursor=np.zeros(1, TRIE_CURSOR),
    )
    names = np.empty(len(branches.depths), integer)
    _name_nodes(text, branches, np.empty((2, height + 1), np.int64), names, trie)
    _weigh_nodes(text, names, trie, node_of)
    arrays = (trie.parents, trie.depths, trie.positions, trie.totals)
    return SuffixTrie(letters, *map(read_only, arrays), node_of)


@kernel_without_allocation
def _write_nodes(text, classes, longest, path, branches, node_of):
    """Writes the trie from the last suffix to the first; returns the nodes.

    `path[1:top + 1]` are the depths of the branching nodes begun: a common prefix shorter than the
    last one's ends it, a longer one begins another.
    """
    node, top = 0, 0
    for c in range(len(classes.representatives) - 1, -1, -1):
        for i in range(classes.starts[c], classes.starts[c + 1]):
            node_of[classes.order[i]] = node
        common = np.int64(classes.prefixes[c])
        if common >= longest:
            continue  # as far as they count, the class before is the same string
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
def _name_nodes(text, branches, path, names, trie):
    """Numbers the nodes from the first string to the last, behind the characters."""
    open_depths, open_names = path[0], path[1]
    top, name = -1, text.letters
    for node in range(len(branches.depths) - 1, -1, -1):
        depth, position = branches.depths[node], branches.positions[node]
        letter = np.int64(text.ranks[position])
        while top >= 0 and open_depths[top] > branches.parent_depths[node]:
            top -= 1
        given = letter
        if depth > 1:
            given = name
            name += 1
            trie.parents[given] = letter if top < 0 else open_names[top]
            trie.depths[given] = depth
        trie.positions[given] = position
        names[node] = given
        top += 1
        open_depths[top], open_names[top] = depth, given
    trie.cursor[0]['nodes'] = name


@kernel_without_allocation
def _weigh_nodes(text, names, trie, node_of):
    for token in range(len(text.counts)):
        for position in range(text.starts[token], text.starts[token + 1]):
            node_of[position] = names[node_of[position]]
            trie.totals[node_of[position]] += text.counts[token]
    for node in range(len(trie.parents) - 1, text.letters - 1, -1):
        trie.totals[trie.parents[node]] += trie.totals[node]


@dataclass(frozen=True)
class Selection:
    """What an iteration selects, besides the characters."""

    nodes: np.ndarray
    """int64[nodes, 2]: the weight that no selected string below has taken, and a selected string's
    length (1 for the characters, 0 for others)."""

    def selected(self, letters: int) -> np.ndarray:
        """Returns the selected nodes, int64."""
        return np.flatnonzero(self.nodes[letters:, 1]) + letters

    def left(self, nodes: np.ndarray | slice) -> np.ndarray:
        """Returns what some nodes have left, int64."""
        return self.nodes[nodes, 0].copy()


def select_first(trie: SuffixTrie, min_count: int) -> Selection:
    """Selects nodes when every suffix counts: tokens are segmented into single characters."""
    nodes = np.empty((len(trie.totals), 2), np.int64)
    nodes[:, 0] = trie.totals
    _take_children(trie.letters, trie.parents, trie.totals, nodes)
    _select(trie.letters, trie.parents, trie.depths, min_count, nodes)
    return Selection(nodes)


def select_next(
    trie: SuffixTrie, starts: np.ndarray, counts: np.ndarray, selection: Selection, min_count: int
) -> Selection:
    """Segments all tokens by the strings selected before, and selects by what begins at a segment.

    The selection before is used up: its array becomes that of the result.

    Args:
      starts: int64[tokens + 1], where each token begins.
      counts: int64[tokens].
    """
    nodes = selection.nodes
    _match(trie.parents, nodes)
    lanes = np.empty((3, _LANES), np.int64)
    _weigh_segment_starts(starts, counts, trie.node_of, lanes, nodes)
    _select(trie.letters, trie.parents, trie.depths, min_count, nodes)
    return Selection(nodes)


@kernel_without_allocation
def _take_children(letters, parents, totals, nodes):
    """Takes the children's totals from each node's."""
    for node in range(letters, len(parents)):
        nodes[parents[node], 0] -= totals[node]


@kernel_without_allocation
def _select(letters, parents, depths, min_count, nodes):
    """Selects each node that has `min_count` left; others leave what they have to their parents.

    (Tensor2Tensor goes through the strings from long to short and subtracts each selected one's
    count from all its prefixes.)
    """
    for node in range(len(parents) - 1, letters - 1, -1):
        left = nodes[node, 0]
        if left >= min_count:
            nodes[node, 1] = depths[node]
        else:
            nodes[node, 1] = 0
            nodes[parents[node], 0] += left
    nodes[:letters, 1] = 1


@kernel_without_allocation
def _match(parents, nodes):
    """Hands the length of the deepest selected node down, and clears what nodes have left."""
    for node in range(len(parents)):
        nodes[node, 0] = 0
        if nodes[node, 1] == 0:
            nodes[node, 1] = nodes[parents[node], 1]


@kernel_without_allocation
def _weigh_segment_starts(starts, counts, node_of, lanes, nodes):
    """Adds up the weights of the suffixes that start where a segment of a token does.

    Greedy longest match (MaxMatch) from the left; a reserved token is the last segment. Many tokens
    advance by one segment each in turn: where one ends would be a mispredicted branch.
    """
    positions, ends, held = lanes[0], lanes[1], lanes[2]
    for begin in range(0, len(counts), len(positions)):
        size = min(len(positions), len(counts) - begin)
        for i in range(size):
            positions[i], ends[i] = starts[begin + i], starts[begin + i + 1]
            held[i] = counts[begin + i]
        while size:
            left = 0
            for i in range(size):
                ahead = np.int64(node_of[np.uintp(positions[min(i + _AHEAD, size - 1)])])
                prefetch(nodes, np.uintp(2 * max(ahead, ~ahead)))
                position, end, count = positions[i], ends[i], held[i]
                node = np.int64(node_of[np.uintp(position)])
                if node < 0:
                    node, position = ~node, end
                nodes[np.uintp(node), 0] += count
                position += nodes[np.uintp(node), 1]
                positions[left], ends[left], held[left] = position, end, count
                left += position < end
            size = left
