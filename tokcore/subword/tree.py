"""The compacted suffix tree of all escaped tokens: which strings are kept, and where they match.

Nodes stand in descending order of their strings, so that children come before their parent and two
sweeps do all: upward, the weight below each node is known when it is met and decides whether the
node is kept; downward, each node learns the deepest kept node above it. A node holds its depth and
its parent's, which is all that the sweeps need: the nodes begun and not yet met are one path.
"""

from dataclasses import dataclass

import numpy as np

from tokcore.compilation import frozen, kernel
from tokcore.subword.escaped_text import EscapedText
from tokcore.subword.suffixes import SuffixClasses

# Where a token's end is sought character by character before its place is looked up.
_NEAR = 256


@dataclass(frozen=True)
class SuffixTree:
    """Branching nodes and leaves; along an unbranched path only the deepest node could be kept.

    Index arrays are int32, int64 from 2^31 characters on. There is no root.
    """

    depths: np.ndarray  # int32[nodes]: length of a node's string
    parent_depths: np.ndarray  # int32[nodes]: 0 below the root
    places: np.ndarray  # int[nodes]: a place in the text where the string stands
    node_of: np.ndarray  # int[characters]: the deepest node of the suffix that starts there
    first_ranks: np.ndarray  # int32: first character of each node below the root, in node order
    height: int  # no path has more nodes


@dataclass(frozen=True)
class Claims:
    """The nodes kept, in descending order of their strings, and what is left for the characters."""

    nodes: np.ndarray  # int[kept]
    counts: np.ndarray  # int64[kept]: the weight that no longer kept string has claimed
    left_over: np.ndarray  # int64[letters]: the same for every single character


def build_tree(text: EscapedText, classes: SuffixClasses, longest: int) -> SuffixTree:
    """Builds the tree of the suffixes, each cut to `longest` characters (at least 1)."""
    integer = classes.order.dtype
    height = min(longest, int(np.diff(text.starts).max(initial=0))) + 1
    most = 2 * len(classes.leaders)
    # Pages that are never written to take no memory.
    depths, parent_depths = np.empty(most, np.int32), np.empty(most, np.int32)
    places = np.empty(most, integer)
    node_of = np.empty(len(text.ranks), integer)
    first_ranks = np.empty(len(text.alphabet), np.int32)
    nodes, tops = _write_nodes(
        text.ranks, text.starts, text.end_rank, classes.order, classes.starts, classes.leaders,
        classes.prefixes, longest, np.zeros(height + 1, np.int32),
        depths, parent_depths, places, node_of, first_ranks,
    )  # fmt: skip
    return SuffixTree(
        frozen(depths[:nodes]),
        frozen(parent_depths[:nodes]),
        frozen(places[:nodes]),
        frozen(node_of),
        frozen(first_ranks[:tops]),
        height,
    )


def sum_below(tree: SuffixTree, weights: np.ndarray) -> np.ndarray:
    """Adds to each node's own weight those of all nodes below it; int64[nodes]."""
    totals = weights.copy()
    _add_children(tree.depths, tree.parent_depths, _path(tree), 1, totals)
    return totals


def own_weights(tree: SuffixTree, totals: np.ndarray) -> np.ndarray:
    """Takes the children's totals from each node's: the inverse of `sum_below`."""
    weights = totals.copy()
    _add_children(tree.depths, tree.parent_depths, _path(tree), -1, weights)
    return weights


def prune_tree(tree: SuffixTree, totals: np.ndarray, least: int) -> tuple[SuffixTree, np.ndarray]:
    """Leaves out the nodes that weigh less than `least`, save those below the root.

    Their suffixes belong to the deepest node left above. Returns the smaller tree and its totals.
    """
    retained = (totals >= least) | (tree.parent_depths == 0)
    renamed = np.empty(len(retained), tree.node_of.dtype)
    _rename_nodes(tree.depths, tree.parent_depths, frozen(retained), _path(tree), renamed)
    node_of = np.empty_like(tree.node_of)
    _translate(tree.node_of, frozen(renamed), node_of)
    pruned = SuffixTree(
        frozen(tree.depths[retained]),
        frozen(tree.parent_depths[retained]),
        frozen(tree.places[retained]),
        frozen(node_of),
        tree.first_ranks,
        tree.height,
    )
    return pruned, totals[retained]


def claim_nodes(tree: SuffixTree, weights: np.ndarray, min_count: int, letters: int) -> Claims:
    """Keeps each node of two characters or more that has `min_count` left after those below it.

    A kept node takes all the weight below it from the nodes above. (Tensor2Tensor goes through the
    strings from long to short and subtracts each kept one's count from all its prefixes.)

    Args:
      weights: int64[nodes], the weight of the suffixes counted whose deepest node it is.
    """
    nodes = np.empty(len(tree.depths), tree.node_of.dtype)
    counts = np.empty(len(tree.depths), np.int64)
    left_over = np.zeros(letters, np.int64)
    kept = _sweep_up(
        tree.depths, tree.parent_depths, tree.first_ranks, frozen(weights), min_count,
        _path(tree), nodes, counts, left_over,
    )  # fmt: skip
    return Claims(frozen(nodes[:kept].copy()), counts[:kept].copy(), left_over)


def match_nodes(tree: SuffixTree, claims: Claims) -> np.ndarray:
    """Returns the length of the longest kept string that begins each node's, at least 1; int32."""
    lengths = np.empty(len(tree.depths), np.int32)
    _sweep_down(tree.depths, tree.parent_depths, claims.nodes, _path(tree), lengths)
    return lengths


def _path(tree: SuffixTree) -> np.ndarray:
    return np.empty((3, tree.height + 1), np.int64)


@kernel
def _rest_length(ranks, starts, end_rank, place):
    """Returns how many characters a token has from a place on."""
    for length in range(_NEAR):
        if ranks[place + length] == end_rank:
            return length + 1
    return starts[np.searchsorted(starts, place, side='right')] - place


@kernel
def _write_nodes(
    ranks, starts, end_rank, order, class_starts, leaders, prefixes, longest, path,
    depths, parent_depths, places, node_of, first_ranks,
):  # fmt: skip
    """Writes the tree from the last suffix to the first; returns the nodes, and those on top.

    `path[1:top + 1]` are the depths of the branching nodes begun: a common prefix shorter than the
    last one's ends it, a longer one begins another.
    """
    node, tops, top = 0, 0, 0
    for c in range(len(leaders) - 1, -1, -1):
        for i in range(class_starts[c], class_starts[c + 1]):
            node_of[order[i]] = node
        common = np.int64(prefixes[c])
        if common >= longest:
            continue  # as far as they count, the class before is the same string
        place = np.int64(leaders[c])
        places[node] = place
        depths[node] = min(_rest_length(ranks, starts, end_rank, place), longest)
        parent_depths[node] = max(common, np.int64(path[top]))
        node += 1
        while path[top] > common:
            places[node] = place
            depths[node] = path[top]
            top -= 1
            parent_depths[node] = max(common, np.int64(path[top]))
            node += 1
        if path[top] < common:
            top += 1
            path[top] = common
        if common == 0:
            first_ranks[tops] = ranks[place]
            tops += 1
    return node, tops


@kernel
def _add_children(depths, parent_depths, path, sign, weights):
    """Adds `sign` times the children's weights to each node's.

    With 1 a child's weight is what it has become by then, with -1 what it was.
    """
    open_depths, below = path[0], path[1]
    top = -1
    for node in range(len(depths)):
        weight = weights[node]
        if top >= 0 and open_depths[top] == depths[node]:
            weights[node] += sign * below[top]
            top -= 1
        if sign > 0:
            weight = weights[node]
        parent = parent_depths[node]
        if parent == 0:
            continue
        if top < 0 or open_depths[top] != parent:
            top += 1
            open_depths[top], below[top] = parent, 0
        below[top] += weight


@kernel
def _rename_nodes(depths, parent_depths, retained, path, renamed):
    """Numbers the nodes retained, and gives the others the number of the nearest one above."""
    name = 0
    for node in range(len(depths)):
        renamed[node] = name
        if retained[node]:
            name += 1
    open_depths, names = path[0], path[1]
    top = -1
    for node in range(len(depths) - 1, -1, -1):
        while top >= 0 and open_depths[top] > parent_depths[node]:
            top -= 1
        if retained[node]:
            top += 1
            open_depths[top], names[top] = depths[node], renamed[node]
        else:
            renamed[node] = names[top]


@kernel
def _translate(node_of, renamed, result):
    """Renames nodes; a complemented one stays so (`_mark_rests` in learner.py)."""
    for place in range(len(node_of)):
        node = node_of[place]
        result[place] = renamed[node] if node >= 0 else ~renamed[~node]


@kernel
def _sweep_up(
    depths, parent_depths, first_ranks, weights, min_count, path, nodes, counts, left_over
):
    """Decides on every node and returns how many are kept.

    `path` holds, for each node begun, its depth, the weight below it so far, and how much of that
    the kept nodes below it have claimed.
    """
    open_depths, below, claimed = path[0], path[1], path[2]
    top, kept, tops = -1, 0, 0
    for node in range(len(depths)):
        depth, parent = np.int64(depths[node]), np.int64(parent_depths[node])
        weight, taken = weights[node], np.int64(0)
        if top >= 0 and open_depths[top] == depth:
            weight += below[top]
            taken = claimed[top]
            top -= 1
        if depth > 1 and weight - taken >= min_count:
            nodes[kept] = node
            counts[kept] = weight - taken
            kept += 1
            taken = weight
        if parent == 0:
            left_over[first_ranks[tops]] = weight - taken
            tops += 1
            continue
        if top < 0 or open_depths[top] != parent:
            top += 1
            open_depths[top], below[top], claimed[top] = parent, 0, 0
        below[top] += weight
        claimed[top] += taken
    return kept


@kernel
def _sweep_down(depths, parent_depths, kept, path, lengths):
    """Hands the length of the deepest kept node down each path; characters are always kept."""
    open_depths, best = path[0], path[1]
    open_depths[0], best[0] = 0, 1
    top, unseen = 0, len(kept) - 1
    for node in range(len(depths) - 1, -1, -1):
        depth, parent = depths[node], parent_depths[node]
        while open_depths[top] > parent:
            top -= 1
        longest = best[top]
        if unseen >= 0 and kept[unseen] == node:
            longest = np.int64(depth)
            unseen -= 1
        lengths[node] = longest
        # A node with children is followed by the first of them.
        if node > 0 and parent_depths[node - 1] == depth:
            top += 1
            open_depths[top], best[top] = depth, longest
