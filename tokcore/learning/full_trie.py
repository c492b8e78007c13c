"""The full suffix trie at once, from the suffix array: for tokens too long to be expanded.

A string of n characters that repeats itself takes n^2 steps downward, but n log n to sort.
"""

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation, read_only
from tokcore.learning.ranked_text import EscapedText, remaining_length
from tokcore.learning.suffix_array import sort_suffixes
from tokcore.learning.suffix_trie import SuffixTrie

# From so many nodes on int32 does not number them.
_WIDE = 2**31


class FullSuffixTrie:
    """All strings, of any weight; takes what `PrunedSuffixTrie` takes."""

    def __init__(
        self, text: EscapedText, counts: np.ndarray, longest: int, reserved_suffixes: np.ndarray
    ):
        classes = sort_suffixes(text, longest)
        letters, most = len(text.alphabet), 2 * len(classes.representatives)
        integer = classes.order.dtype if letters + most < _WIDE else np.int64
        # Pages that are never written to take no memory.
        depths, parent_depths = np.empty(most, np.int32), np.empty(most, np.int32)
        positions = np.empty(most, integer)
        node_of = np.empty(len(text.ranks), integer)
        height = min(longest, int(np.diff(text.starts).max())) + 1
        nodes = _write_nodes(
            text.ranks, text.starts, text.end_rank, classes.order, classes.starts, classes.representatives,
            classes.prefixes, longest, np.zeros(height + 1, np.int32),
            depths, parent_depths, positions, node_of,
        )  # fmt: skip
        del classes
        self._trie = _from_the_top(
            text, counts, depths[:nodes], parent_depths[:nodes], positions[:nodes], node_of, height
        )
        node_of[reserved_suffixes] = ~node_of[reserved_suffixes]

    def at_least(self, min_weight: int) -> SuffixTrie:
        """Returns the trie, whatever is asked for."""
        return self._trie


def _from_the_top(
    text: EscapedText,
    counts: np.ndarray,
    depths: np.ndarray,
    parent_depths: np.ndarray,
    positions: np.ndarray,
    node_of: np.ndarray,
    height: int,
) -> SuffixTrie:
    """Puts the characters first and parents before children, and weighs all."""
    letters = len(text.alphabet)
    nodes = letters + int(np.count_nonzero(depths > 1))
    parents, new_positions = np.zeros(nodes, positions.dtype), np.zeros(nodes, positions.dtype)
    new_depths = np.ones(nodes, np.int32)
    totals = np.zeros(nodes, np.int64)
    names = np.empty(len(depths), positions.dtype)
    _name_nodes(
        text.ranks, depths, parent_depths, positions, letters, np.empty((2, height + 1), np.int64),
        names, parents, new_depths, new_positions,
    )  # fmt: skip
    _weigh_nodes(text.starts, counts, names, letters, parents, node_of, totals)
    return SuffixTrie(
        letters, read_only(parents), read_only(new_depths), read_only(new_positions), read_only(totals), node_of
    )


@kernel_without_allocation
def _write_nodes(
    ranks, starts, end_rank, order, class_starts, representatives, prefixes, longest, path,
    depths, parent_depths, positions, node_of,
):  # fmt: skip
    """Writes the trie from the last suffix to the first; returns the nodes.

    `path[1:top + 1]` are the depths of the branching nodes begun: a common prefix shorter than the
    last one's ends it, a longer one begins another.
    """
    node, top = 0, 0
    for c in range(len(representatives) - 1, -1, -1):
        for i in range(class_starts[c], class_starts[c + 1]):
            node_of[order[i]] = node
        common = np.int64(prefixes[c])
        if common >= longest:
            continue  # as far as they count, the class before is the same string
        position = np.int64(representatives[c])
        positions[node] = position
        depths[node] = min(remaining_length(ranks, starts, end_rank, position), longest)
        parent_depths[node] = max(common, np.int64(path[top]))
        node += 1
        while path[top] > common:
            positions[node] = position
            depths[node] = path[top]
            top -= 1
            parent_depths[node] = max(common, np.int64(path[top]))
            node += 1
        if path[top] < common:
            top += 1
            path[top] = common
    return node


@kernel_without_allocation
def _name_nodes(
    ranks, depths, parent_depths, positions, letters, path, names, parents, new_depths, new_positions
):  # fmt: skip
    """Numbers the nodes from the first string to the last, behind the characters."""
    open_depths, open_names = path[0], path[1]
    top, name = -1, letters
    for node in range(len(depths) - 1, -1, -1):
        letter = np.int64(ranks[positions[node]])
        while top >= 0 and open_depths[top] > parent_depths[node]:
            top -= 1
        given = letter
        if depths[node] > 1:
            given = name
            name += 1
            parents[given] = letter if top < 0 else open_names[top]
            new_depths[given] = depths[node]
        new_positions[given] = positions[node]
        names[node] = given
        top += 1
        open_depths[top], open_names[top] = depths[node], given


@kernel_without_allocation
def _weigh_nodes(starts, counts, names, letters, parents, node_of, totals):
    for token in range(len(counts)):
        for position in range(starts[token], starts[token + 1]):
            node_of[position] = names[node_of[position]]
            totals[node_of[position]] += counts[token]
    for node in range(len(parents) - 1, letters - 1, -1):
        totals[parents[node]] += totals[node]
