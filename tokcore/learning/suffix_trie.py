"""A weighed tree of the suffixes of all escaped tokens: which strings are kept, and how far they match.

Parents come before their children, so two sweeps do all. Upward, a node that has min-count left is
kept; else what it has left goes to its parent: that is what no kept string below has claimed.
Downward, each node learns the deepest kept node above it.
"""

from dataclasses import dataclass

import numpy as np

from tokcore.compiled.compilation import kernel_in_place
from tokcore.compiled.wide_loads import fetch_ahead

# Tokens cut side by side: their states stay in the processor's cache.
_SIDE_BY_SIDE = 2048
# The node of a token so many turns later is fetched: nodes of large tables fit no cache.
_AHEAD = 8


@dataclass(frozen=True)
class WeighedTree:
    """The characters, in order of rank, and below them nodes that branch or end, in any order.

    Along an unbranched path only the deepest node could be kept. Index arrays are int32, int64 from
    2^31 characters on.
    """

    letters: int
    parents: np.ndarray  # int[nodes]: smaller than the node; a character's own are of no meaning
    depths: np.ndarray  # int32[nodes]: length of a node's string; 1 for the characters alone
    places: np.ndarray  # int[nodes]: a place in the text where the string stands
    totals: np.ndarray  # int64[nodes]: weight of all suffixes that the string begins
    node_of: np.ndarray
    """int[characters]: the deepest node of the suffix that starts there, complemented where all the
    rest of a token is a reserved one."""


@dataclass(frozen=True)
class Claims:
    """What an iteration keeps, besides the characters."""

    nodes: np.ndarray
    """int64[nodes, 2]: the weight that no kept string below has claimed, and a kept string's length
    (1 for the characters, 0 for others)."""

    def kept(self, letters: int) -> np.ndarray:
        """Returns the kept nodes, int64."""
        return np.flatnonzero(self.nodes[letters:, 1]) + letters

    def left(self, nodes: np.ndarray | slice) -> np.ndarray:
        """Returns what some nodes have left, int64."""
        return self.nodes[nodes, 0].copy()


def first_claims(tree: WeighedTree, min_count: int) -> Claims:
    """Keeps nodes when every suffix counts, as where tokens are cut before every character."""
    nodes = np.empty((len(tree.totals), 2), np.int64)
    nodes[:, 0] = tree.totals
    _take_children(tree.letters, tree.parents, tree.totals, nodes)
    _keep(tree.letters, tree.parents, tree.depths, min_count, nodes)
    return Claims(nodes)


def next_claims(
    tree: WeighedTree, starts: np.ndarray, counts: np.ndarray, claims: Claims, min_count: int
) -> Claims:
    """Cuts all tokens by the strings kept before, and keeps nodes by what begins at a cut.

    The claims before are used up: their array becomes that of the result.

    Args:
      starts: int64[tokens + 1], where each token begins.
      counts: int64[tokens].
    """
    nodes = claims.nodes
    _match(tree.parents, nodes)
    waiting = np.empty((3, _SIDE_BY_SIDE), np.int64)
    _weigh_cuts(starts, counts, tree.node_of, waiting, nodes)
    _keep(tree.letters, tree.parents, tree.depths, min_count, nodes)
    return Claims(nodes)


@kernel_in_place
def _take_children(letters, parents, totals, nodes):
    """Takes the children's totals from each node's."""
    for node in range(letters, len(parents)):
        nodes[parents[node], 0] -= totals[node]


@kernel_in_place
def _keep(letters, parents, depths, min_count, nodes):
    """Keeps each node that has `min_count` left; others leave what they have to their parents.

    (Tensor2Tensor goes through the strings from long to short and subtracts each kept one's count
    from all its prefixes.)
    """
    for node in range(len(parents) - 1, letters - 1, -1):
        left = nodes[node, 0]
        if left >= min_count:
            nodes[node, 1] = depths[node]
        else:
            nodes[node, 1] = 0
            nodes[parents[node], 0] += left
    nodes[:letters, 1] = 1


@kernel_in_place
def _match(parents, nodes):
    """Hands the length of the deepest kept node down, and takes what nodes have left away."""
    for node in range(len(parents)):
        nodes[node, 0] = 0
        if nodes[node, 1] == 0:
            nodes[node, 1] = nodes[parents[node], 1]


@kernel_in_place
def _weigh_cuts(starts, counts, node_of, waiting, nodes):
    """Adds up the weights of the suffixes that start where a token is cut.

    A token is cut into the longest matches from its left; a reserved token is the last one. Many
    tokens go on by one cut each in turn: so the processor need not guess where one ends.
    """
    places, ends, held = waiting[0], waiting[1], waiting[2]
    for begin in range(0, len(counts), len(places)):
        size = min(len(places), len(counts) - begin)
        for i in range(size):
            places[i], ends[i] = starts[begin + i], starts[begin + i + 1]
            held[i] = counts[begin + i]
        while size:
            left = 0
            for i in range(size):
                later = np.int64(node_of[np.uintp(places[min(i + _AHEAD, size - 1)])])
                fetch_ahead(nodes, np.uintp(2 * max(later, ~later)))
                place, end, count = places[i], ends[i], held[i]
                node = np.int64(node_of[np.uintp(place)])
                if node < 0:
                    node, place = ~node, end
                nodes[np.uintp(node), 0] += count
                place += nodes[np.uintp(node), 1]
                places[left], ends[left], held[left] = place, end, count
                left += place < end
            size = left

