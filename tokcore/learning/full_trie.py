"""The full suffix trie at once, from the suffix array: for tokens too long to be expanded.

A string of n characters that repeats itself takes n^2 steps downward, but n log n to sort.
"""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation, read_only
from tokcore.learning.kernel_state import TRIE_CURSOR, RankedText, Trie
from tokcore.learning.ranked_text import EscapedText, remaining_length
from tokcore.learning.suffix_array import sort_suffixes
from tokcore.learning.suffix_trie import SuffixTrie

# From so many nodes on int32 does not number them.
_WIDE = 2**31


class _Branches(NamedTuple):
    """Nodes from the last string to the first, children before their parents."""

    depths: np.ndarray  # int32[nodes]
    parent_depths: np.ndarray  # int32[nodes]
    positions: np.ndarray  # int[nodes]


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
