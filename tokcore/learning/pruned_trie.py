"""The suffix trie pruned by weight: expanded only as far down as a least weight reaches.

Weights fall monotonically with depth: a string lighter than the smallest min-count asked for is
never selected, nor is any that it begins. So suffixes are not sorted. All are followed down together
from their first characters, and dropped from the *frontier* where the next, longer string is too
light. A smaller min-count makes those active again whose next string it reaches.
"""

from math import isqrt

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.learning.bigram_nodes import add_bigram_nodes, weigh_bigrams
from tokcore.learning.frontier_lists import count_active, fill_frontier, mark_active, write_back
from tokcore.learning.frontier_splitting import split_frontier
from tokcore.learning.ranked_text import EscapedText
from tokcore.learning.repeat_nodes import (
    LARGEST_NEXT,
    add_repeat_nodes,
    measure_repeats,
    start_suffixes,
    weigh_repeats,
)
from tokcore.learning.suffix_trie import SuffixTrie

# From so many nodes on int32 does not number them.
_WIDE = 2**31
# From here on the trie is expanded to the half of what is asked for: that is little more.
_HALVED = 100
# Suffixes in the frontier at a time: this share of all, if they are many; one node's stay together.
_SHARE = 1 / 8
_MANY = 2**20
# Picked from the text before they enter the frontier: they stay in a core's first cache.
_PICKED = 1024
# What is written of so many positions of the text, as a power of two, stays in a core's cache.
_REGION_BITS = 19
# The table of the weights of pairs of characters: 8 MB at most.
_MOST_PAIR_BITS = 20


class PrunedSuffixTrie:
    """All strings of at least some weight, down from the single characters.

    Args:
      longest: no string gets longer; at least 1.
      reserved_suffixes: int64, the positions of suffixes that are reserved tokens.
    """

    def __init__(
        self, text: EscapedText, counts: np.ndarray, longest: int, reserved_suffixes: np.ndarray
    ):
        self._text, self._counts, self._longest, self._reserved_suffixes = text, counts, longest, reserved_suffixes
        size, letters = len(text.ranks), len(text.alphabet)
        most = letters + 2 * size
        integer = np.int32 if most < _WIDE else np.int64
        # Pages that are never written to take no memory.
        self._parents, self._positions = np.empty(most, integer), np.empty(most, integer)
        self._depths = np.empty(most, np.int32)
        self._totals = np.empty(most, np.int64)
        self._node_of = np.empty(size, integer)
        # Upper bound of the weight of the next, longer string at a position; 0 if there is none. It
        # tells whether a smaller min-count makes the suffix active again.
        self._next_weight_bounds = np.empty(size, np.uint16)
        self._nodes = 0
        self._min_weight = 0

    def at_least(self, min_weight: int) -> SuffixTrie:
        """Returns a trie of all strings that weigh `min_weight` or more, and of all characters.

        It may have lighter ones too: a search that goes down goes on to the half.
        """
        if self._min_weight == 0 or min_weight < self._min_weight:
            if self._min_weight:
                self._complement_reserved_suffixes()
            self._min_weight = min_weight // 2 if min_weight >= _HALVED else min_weight
            self._grow(self._min_weight)
            self._complement_reserved_suffixes()
        nodes = self._nodes
        return SuffixTrie(
            len(self._text.alphabet),
            read_only(self._parents[:nodes]),
            read_only(self._depths[:nodes]),
            read_only(self._positions[:nodes]),
            read_only(self._totals[:nodes]),
            self._node_of,
        )

    def _complement_reserved_suffixes(self) -> None:
        self._node_of[self._reserved_suffixes] = ~self._node_of[self._reserved_suffixes]

    def _seed(self, min_weight: int) -> None:
        """Makes the nodes of characters, their repeats and bigrams, where suffixes begin."""
        text = self._text
        longest = min(self._longest, LARGEST_NEXT)
        most = np.ones(len(text.alphabet), np.int64)
        measure_repeats(text.ranks, text.starts, longest, self._next_weight_bounds, most)
        begins = np.cumsum(most) - most
        weights = np.zeros(int(most.sum()), np.int64)
        positions = np.zeros(len(weights), self._positions.dtype)
        weigh_repeats(text.ranks, text.starts, self._counts, begins, self._next_weight_bounds, weights, positions)
        names = np.empty(len(weights), self._parents.dtype)
        self._nodes = add_repeat_nodes(
            begins, most, weights, positions, min_weight, names,
            self._parents, self._depths, self._positions, self._totals,
        )  # fmt: skip
        pair_sums = np.zeros(1 << min(_MOST_PAIR_BITS, len(text.ranks).bit_length()), np.int64)
        width = isqrt(len(pair_sums) // 2)
        heaviest, pair_of = _number_most_frequent(self._totals[: len(text.alphabet)], width)
        weigh_bigrams(
            text.ranks, text.starts, self._counts, text.end_rank, self._next_weight_bounds, pair_of, width,
            pair_sums,
        )  # fmt: skip
        pair_names = np.zeros(width * width, names.dtype)
        if self._longest > 1:
            self._nodes = add_bigram_nodes(
                heaviest, width, pair_sums, min_weight, self._nodes, pair_names,
                self._parents, self._depths, self._totals,
            )  # fmt: skip
        start_suffixes(
            text.ranks, text.starts, self._counts, text.end_rank, begins, self._longest, weights,
            pair_of, width, pair_sums, pair_names, names, self._depths, self._positions,
            self._node_of, self._next_weight_bounds,
        )  # fmt: skip

    def _grow(self, min_weight: int) -> None:
        if not self._nodes:
            self._seed(min_weight)
        reached = np.uint16(min(min_weight, LARGEST_NEXT))
        sizes = np.zeros(self._nodes, np.int64)
        count_active(self._next_weight_bounds, self._node_of, reached, sizes)
        most = max(_MANY, int(len(self._node_of) * _SHARE))
        sums = np.append(0, np.cumsum(sizes))
        shares = []
        mark_of = np.zeros(len(sizes), np.uint16)
        begin = 0
        while begin < len(sizes):
            end = max(begin + 1, int(np.searchsorted(sums, sums[begin] + most, 'right')) - 1)
            if sums[end] > sums[begin]:
                mark_of[begin:end] = LARGEST_NEXT + 1 + len(shares)
                shares.append((begin, sums[begin : end + 1] - sums[begin]))
            begin = end
        if shares:
            mark_active(self._next_weight_bounds, self._node_of, reached, read_only(mark_of))
            listed = max(int(begins[-1]) for _, begins in shares)
            workspace = _Workspace(listed, self._node_of.dtype, int(self._counts.max()))
            for first, begins in shares:
                self._descend(first, begins, mark_of[first], workspace, min_weight)

    def _descend(
        self, first: int, begins: np.ndarray, mark: np.uint16, workspace: '_Workspace', min_weight: int
    ) -> None:
        """Expands the nodes from `first` on whose suffixes have a mark."""
        text = self._text
        letters, alive = len(text.alphabet), int(begins[-1])
        bits = max(1, (letters - 1).bit_length())
        ends = begins[:-1].copy()
        regions = np.zeros((len(self._node_of) >> _REGION_BITS) + 1, np.int64)
        fill_frontier(
            text.ranks, text.starts, self._counts, self._next_weight_bounds, mark, self._node_of, self._depths,
            first, ends, bits, workspace.picked, workspace.positions[0], workspace.weights[0], workspace.words[0],
            _REGION_BITS, regions,
        )  # fmt: skip
        self._nodes = split_frontier(
            ends, first, workspace.positions, workspace.weights, workspace.words, workspace.stack,
            np.zeros((6, letters), np.int64), text.ranks, text.starts, text.end_rank, bits, letters,
            self._longest, min_weight, self._nodes, self._parents, self._depths, self._positions,
            self._totals,
        )  # fmt: skip
        write_back(
            workspace.positions[:, :alive], workspace.words[:, :alive], _REGION_BITS,
            np.cumsum(regions) - regions, self._node_of, self._next_weight_bounds,
        )  # fmt: skip


def _number_most_frequent(weights: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the heaviest characters, int64[at most `most`], and each one's number there or -1."""
    heaviest = np.argsort(-weights, kind='stable')[:most]
    number_of = np.full(len(weights), -1, np.int32)
    number_of[heaviest] = np.arange(len(heaviest))
    return heaviest, number_of


class _Workspace:
    """What `split_frontier` works in, for so many suffixes at most.

    Allocated once for all shares: a gigabyte of new memory takes longer than splitting some lists.
    Lists are longer than caches, so a weight has four bytes if the largest one fits.
    """

    def __init__(self, suffixes: int, integer: np.dtype, largest_weight: int):
        weight = np.uint32 if largest_weight < 2**32 else np.int64
        self.positions = np.empty((2, suffixes), integer)
        self.weights = np.empty((2, suffixes), weight)
        self.words = np.empty((2, suffixes), np.uint64)
        self.stack = np.empty((suffixes // 2 + 2, 5), np.int64)
        self.picked = np.empty((2, _PICKED), np.int64)
