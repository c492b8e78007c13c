"""The whole suffix tree at once, from the sorted suffixes: for tokens too long to be followed down.

A string of n characters that repeats itself takes n^2 steps downward, but n log n to sort.
"""

import numpy as np

from tokcore.compiled.compilation import frozen, kernel_in_place
from tokcore.learning.ranked_text import EscapedText, rest_length
from tokcore.learning.suffix_array import sort_suffixes
from tokcore.learning.suffix_trie import WeighedTree

# From so many nodes on int32 does not number them.
_WIDE = 2**31


class WholeTree:
    """All strings, of any weight; takes what `GrowingTree` takes."""

    def __init__(
        self, text: EscapedText, counts: np.ndarray, longest: int, rests: np.ndarray
    ):
        classes = sort_suffixes(text, longest)
        letters, most = len(text.alphabet), 2 * len(classes.leaders)
        integer = classes.order.dtype if letters + most < _WIDE else np.int64
        # Pages that are never written to take no memory.
        depths, parent_depths = np.empty(most, np.int32), np.empty(most, np.int32)
        places = np.empty(most, integer)
        node_of = np.empty(len(text.ranks), integer)
        height = min(longest, int(np.diff(text.starts).max())) + 1
        nodes = _write_nodes(
            text.ranks, text.starts, text.end_rank, classes.order, classes.starts, classes.leaders,
            classes.prefixes, longest, np.zeros(height + 1, np.int32),
            depths, parent_depths, places, node_of,
        )  # fmt: skip
        del classes
        self._tree = _from_the_top(
            text, counts, depths[:nodes], parent_depths[:nodes], places[:nodes], node_of, height
        )
        node_of[rests] = ~node_of[rests]

    def grown(self, least: int) -> WeighedTree:
        """Returns the tree, whatever is asked for."""
        return self._tree


def _from_the_top(
    text: EscapedText,
    counts: np.ndarray,
    depths: np.ndarray,
    parent_depths: np.ndarray,
    places: np.ndarray,
    node_of: np.ndarray,
    height: int,
) -> WeighedTree:
    """Puts the characters first and parents before children, and weighs all."""
    letters = len(text.alphabet)
    nodes = letters + int(np.count_nonzero(depths > 1))
    parents, new_places = np.zeros(nodes, places.dtype), np.zeros(nodes, places.dtype)
    new_depths = np.ones(nodes, np.int32)
    totals = np.zeros(nodes, np.int64)
    names = np.empty(len(depths), places.dtype)
    _name_nodes(
        text.ranks, depths, parent_depths, places, letters, np.empty((2, height + 1), np.int64),
        names, parents, new_depths, new_places,
    )  # fmt: skip
    _weigh_nodes(text.starts, counts, names, letters, parents, node_of, totals)
    return WeighedTree(
        letters, frozen(parents), frozen(new_depths), frozen(new_places), frozen(totals), node_of
    )


@kernel_in_place
def _write_nodes(
    ranks, starts, end_rank, order, class_starts, leaders, prefixes, longest, path,
    depths, parent_depths, places, node_of,
):  # fmt: skip
    """Writes the tree from the last suffix to the first; returns the nodes.

    `path[1:top + 1]` are the depths of the branching nodes begun: a common prefix shorter than the
    last one's ends it, a longer one begins another.
    """
    node, top = 0, 0
    for c in range(len(leaders) - 1, -1, -1):
        for i in range(class_starts[c], class_starts[c + 1]):
            node_of[order[i]] = node
        common = np.int64(prefixes[c])
        if common >= longest:
            continue  # as far as they count, the class before is the same string
        place = np.int64(leaders[c])
        places[node] = place
        depths[node] = min(rest_length(ranks, starts, end_rank, place), longest)
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
    return node


@kernel_in_place
def _name_nodes(
    ranks, depths, parent_depths, places, letters, path, names, parents, new_depths, new_places
):  # fmt: skip
    """Numbers the nodes from the first string to the last, behind the characters."""
    open_depths, open_names = path[0], path[1]
    top, name = -1, letters
    for node in range(len(depths) - 1, -1, -1):
        letter = np.int64(ranks[places[node]])
        while top >= 0 and open_depths[top] > parent_depths[node]:
            top -= 1
        given = letter
        if depths[node] > 1:
            given = name
            name += 1
            parents[given] = letter if top < 0 else open_names[top]
            new_depths[given] = depths[node]
        new_places[given] = places[node]
        names[node] = given
        top += 1
        open_depths[top], open_names[top] = depths[node], given


@kernel_in_place
def _weigh_nodes(starts, counts, names, letters, parents, node_of, totals):
    for token in range(len(counts)):
        for place in range(starts[token], starts[token + 1]):
            node_of[place] = names[node_of[place]]
            totals[node_of[place]] += counts[token]
    for node in range(len(parents) - 1, letters - 1, -1):
        totals[parents[node]] += totals[node]
