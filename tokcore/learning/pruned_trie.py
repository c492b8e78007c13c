"""The suffix trie pruned by weight: expanded only as far down as a least weight reaches.

Weights fall monotonically with depth: a string lighter than the smallest min-count asked for is
never selected, nor is any that it begins. So suffixes are not sorted. All are followed down together
from their first characters, and dropped from the *frontier* where the next, longer string is too
light. A smaller min-count makes those active again whose next string it reaches.
"""

from math import isqrt

import numpy as np

from tokcore.kernels.jit import read_only
from tokcore.learning.pruned_trie_kernels import (
    LARGEST_NEXT,
    TRIE_CURSOR,
    Bigrams,
    Continuations,
    Frontier,
    Limits,
    NodeLists,
    RankedText,
    Regions,
    Repeats,
    SuffixEnds,
    SuffixList,
    Trie,
    add_bigram_nodes,
    add_repeat_nodes,
    count_active,
    fill_frontier,
    mark_active,
    measure_repeats,
    split_frontier,
    start_suffixes,
    weigh_bigrams,
    weigh_repeats,
    write_back,
)
from tokcore.learning.ranked_text import EscapedText
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
        self._text = RankedText.of(text, counts)
        self._longest, self._reserved_suffixes = longest, reserved_suffixes
        size, letters = len(text.ranks), len(text.alphabet)
        most = letters + 2 * size
        integer = np.int32 if most < _WIDE else np.int64
        # Pages that are never written to take no memory.
        self._trie = Trie(
            parents=np.empty(most, integer),
            depths=np.empty(most, np.int32),
            positions=np.empty(most, integer),
            totals=np.empty(most, np.int64),
            cursor=np.zeros(1, TRIE_CURSOR),
        )
        self._ends = SuffixEnds(np.empty(size, integer), np.empty(size, np.uint16))
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
        trie, nodes = self._trie, self._nodes
        return SuffixTrie(
            self._text.letters,
            read_only(trie.parents[:nodes]),
            read_only(trie.depths[:nodes]),
            read_only(trie.positions[:nodes]),
            read_only(trie.totals[:nodes]),
            self._ends.node_of,
        )

    @property
    def _nodes(self) -> int:
        return int(self._trie.cursor[0]['nodes'])

    def _complement_reserved_suffixes(self) -> None:
        node_of = self._ends.node_of
        node_of[self._reserved_suffixes] = ~node_of[self._reserved_suffixes]

    def _seed(self, min_weight: int) -> None:
        """Makes the nodes of characters, their repeats and bigrams, where suffixes begin."""
        text, trie, repeat_of = self._text, self._trie, self._ends.next_weight_bounds
        most = np.ones(text.letters, np.int64)
        measure_repeats(text, min(self._longest, LARGEST_NEXT), repeat_of, most)
        sums = np.cumsum(most)
        repeats = Repeats(
            sums - most,
            most,
            weights=np.zeros(int(sums[-1]), np.int64),
            positions=np.zeros(int(sums[-1]), trie.positions.dtype),
            names=np.empty(int(sums[-1]), trie.parents.dtype),
        )
        weigh_repeats(text, repeat_of, repeats)
        add_repeat_nodes(repeats, min_weight, trie)
        slots = 1 << min(_MOST_PAIR_BITS, len(text.ranks).bit_length())
        width = isqrt(slots // 2)
        numbered, number_of = _number_most_frequent(trie.totals[: text.letters], width)
        names = np.zeros(width * width, trie.parents.dtype)
        bigrams = Bigrams(number_of, width, np.zeros(slots, np.int64), names)
        weigh_bigrams(text, repeat_of, bigrams)
        if self._longest > 1:
            add_bigram_nodes(numbered, bigrams, min_weight, trie)
        start_suffixes(text, repeats, bigrams, self._longest, trie, self._ends)

    def _grow(self, min_weight: int) -> None:
        if not self._nodes:
            self._seed(min_weight)
        reached = np.uint16(min(min_weight, LARGEST_NEXT))
        sizes = np.zeros(self._nodes, np.int64)
        count_active(self._ends, reached, sizes)
        most = max(_MANY, int(len(self._ends.node_of) * _SHARE))
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
            mark_active(self._ends, reached, read_only(mark_of))
            listed = max(int(begins[-1]) for _, begins in shares)
            integer, largest_weight = self._ends.node_of.dtype, int(self._text.counts.max())
            frontier = _new_frontier(listed, integer, largest_weight)
            for first, begins in shares:
                self._descend(first, begins, mark_of[first], frontier, min_weight)

    def _descend(
        self, first: int, begins: np.ndarray, mark: np.uint16, frontier: Frontier, min_weight: int
    ) -> None:
        """Expands the nodes from `first` on whose suffixes have a mark."""
        text, trie, ends, alive = self._text, self._trie, self._ends, int(begins[-1])
        lists = NodeLists(first, begins[:-1].copy())
        sizes = np.zeros((len(ends.node_of) >> _REGION_BITS) + 1, np.int64)
        fill_frontier(text, ends, mark, trie.depths, lists, frontier, Regions(_REGION_BITS, sizes))
        continuations = Continuations(*np.zeros((6, text.letters), np.int64))
        limits = Limits(self._longest, min_weight)
        split_frontier(lists, frontier, continuations, text, trie, limits)
        regions = Regions(_REGION_BITS, np.cumsum(sizes) - sizes)
        write_back(frontier.positions[:, :alive], frontier.words[:, :alive], regions, ends)


def _number_most_frequent(weights: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the heaviest characters, int64[at most `most`], and each one's number there or -1."""
    heaviest = np.argsort(-weights, kind='stable')[:most]
    number_of = np.full(len(weights), -1, np.int32)
    number_of[heaviest] = np.arange(len(heaviest))
    return heaviest, number_of


def _new_frontier(suffixes: int, integer: np.dtype, largest_weight: int) -> Frontier:
    """Returns a frontier for so many suffixes at most.

    Allocated once for all shares: a gigabyte of new memory takes longer than splitting some lists.
    Lists are longer than caches, so a weight has four bytes if the largest one fits.
    """
    weight = np.uint32 if largest_weight < 2**32 else np.int64
    return Frontier(
        positions=np.empty((2, suffixes), integer),
        weights=np.empty((2, suffixes), weight),
        words=np.empty((2, suffixes), np.uint64),
        stack=np.empty((suffixes // 2 + 2, len(SuffixList._fields)), np.int64),
        picked=np.empty((2, _PICKED), np.int64),
    )
