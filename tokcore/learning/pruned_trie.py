"""The suffix trie pruned by weight: only strings of a minimum weight get nodes.

A string weighs at least as much as any string that it is a prefix of. So one that is lighter than
the smallest min-count is never selected, nor are its extensions, and suffixes need no sorting. All
are followed down together from their first characters, and leave the *frontier* where the next,
longer string is too light. A smaller min-count makes those active again whose next string is heavy
enough.
"""

from math import isqrt
from typing import Any

import numpy as np

from tokcore.kernels.jit import read_only, read_only_state
from tokcore.learning.pruned_trie_kernels import (
    LARGEST_NEXT,
    TRIE_CURSOR,
    Bigrams,
    Continuations,
    ExpansionLimits,
    Frontier,
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
from tokcore.learning.suffix_trie import WIDE, SuffixTrie

# From this min-weight on, the trie is expanded to half of it: a search often goes on downwards, and
# the further nodes are few.
_HALVED = 100
# Suffixes in the frontier at a time: this share of all, but at least `_MIN_FRONTIER`, and all of a
# node.
_SHARE = 1 / 8
_MIN_FRONTIER = 2**20
# Suffixes collected before they are appended to lists: 16 KB, which stay in a core's first cache.
_BATCH = 1024
# Log2 of the positions in a region of the text: 3 MB of node numbers and bounds, in a core's cache.
_REGION_BITS = 19
# Log2 of the most slots of the bigram table: 8 MB.
_MAX_BIGRAM_BITS = 20


class PrunedSuffixTrie:
    """The trie of all strings of a minimum weight, expanded further as the minimum falls.

    Args:
      longest: of strings, in characters; at least 1.
      reserved_suffixes: int64, the positions of suffixes that are reserved tokens.
    """

    def __init__(
        self, text: EscapedText, counts: np.ndarray, longest: int, reserved_suffixes: np.ndarray
    ):
        self._text = RankedText.of(text, counts)
        self._longest, self._reserved_suffixes = longest, reserved_suffixes
        size, letters = len(text.ranks), len(text.alphabet)
        max_nodes = letters + 2 * size
        integer = np.int32 if max_nodes < WIDE else np.int64
        # Pages that are never written to take no memory.
        self._trie = Trie(
            parents=np.empty(max_nodes, integer),
            depths=np.empty(max_nodes, np.int32),
            positions=np.empty(max_nodes, integer),
            totals=np.empty(max_nodes, np.int64),
            cursor=np.zeros(1, TRIE_CURSOR),
        )
        self._ends = SuffixEnds(np.empty(size, integer), np.empty(size, np.uint16))
        self._min_weight = 0

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _text=read_only_state(state['_text']))

    def at_least(self, min_weight: int) -> SuffixTrie:
        """Returns a trie of all strings that weigh `min_weight` or more, and of all characters.

        It may have lighter strings too.
        """
        if self._min_weight == 0 or min_weight < self._min_weight:
            if self._min_weight:
                self._complement_reserved_suffixes()
            self._min_weight = min_weight // 2 if min_weight >= _HALVED else min_weight
            self._expand(self._min_weight)
            self._complement_reserved_suffixes()
        return SuffixTrie.of(self._trie, self._text.letters, self._ends.node_of)

    @property
    def _nodes(self) -> int:
        return int(self._trie.cursor[0]['nodes'])

    def _complement_reserved_suffixes(self) -> None:
        node_of = self._ends.node_of
        node_of[self._reserved_suffixes] = ~node_of[self._reserved_suffixes]

    def _make_first_nodes(self, min_weight: int) -> None:
        """Creates the nodes of characters, repeats and bigrams, and starts each suffix at one."""
        text, trie, repeat_of = self._text, self._trie, self._ends.next_weight_bounds
        longest_of = np.ones(text.letters, np.int64)
        measure_repeats(text, min(self._longest, LARGEST_NEXT), repeat_of, longest_of)
        sums = np.cumsum(longest_of)
        repeats = Repeats(
            sums - longest_of,
            longest_of,
            weights=np.zeros(int(sums[-1]), np.int64),
            positions=np.zeros(int(sums[-1]), trie.positions.dtype),
            node_of=np.empty(int(sums[-1]), trie.parents.dtype),
        )
        weigh_repeats(text, repeat_of, repeats)
        add_repeat_nodes(repeats, min_weight, trie)
        slots = 1 << min(_MAX_BIGRAM_BITS, len(text.ranks).bit_length())
        width = isqrt(slots // 2)
        frequent = np.argsort(-trie.totals[: text.letters], kind='stable')[:width]
        number_of = np.full(text.letters, -1, np.int32)
        number_of[frequent] = np.arange(len(frequent))
        node_of = np.zeros(width * width, trie.parents.dtype)
        bigrams = Bigrams(number_of, width, np.zeros(slots, np.int64), node_of)
        weigh_bigrams(text, repeat_of, bigrams)
        if self._longest > 1:
            add_bigram_nodes(frequent, bigrams, min_weight, trie)
        start_suffixes(text, repeats, bigrams, self._longest, trie, self._ends)

    def _expand(self, min_weight: int) -> None:
        if not self._nodes:
            self._make_first_nodes(min_weight)
        threshold = np.uint16(min(min_weight, LARGEST_NEXT))
        sizes = np.zeros(self._nodes, np.int64)
        count_active(self._ends, threshold, sizes)
        share_size = max(_MIN_FRONTIER, int(len(self._ends.node_of) * _SHARE))
        sums = np.append(0, np.cumsum(sizes))
        shares: list[tuple[int, np.ndarray]] = []  # first node, and where its and later lists begin
        mark_of = np.zeros(len(sizes), np.uint16)
        begin = 0
        while begin < len(sizes):
            end = max(begin + 1, int(np.searchsorted(sums, sums[begin] + share_size, 'right')) - 1)
            if sums[end] > sums[begin]:
                mark_of[begin:end] = LARGEST_NEXT + 1 + len(shares)
                shares.append((begin, sums[begin : end + 1] - sums[begin]))
            begin = end
        if shares:
            mark_active(self._ends, threshold, read_only(mark_of))
            largest = max(int(begins[-1]) for _, begins in shares)
            integer, largest_weight = self._ends.node_of.dtype, int(self._text.counts.max())
            frontier = _new_frontier(largest, integer, largest_weight)
            for first, begins in shares:
                self._expand_share(first, begins, mark_of[first], frontier, min_weight)

    def _expand_share(
        self, first: int, begins: np.ndarray, mark: np.uint16, frontier: Frontier, min_weight: int
    ) -> None:
        """Expands the nodes from `first` on, whose suffixes have the mark."""
        text, trie, ends, active = self._text, self._trie, self._ends, int(begins[-1])
        lists = NodeLists(first, begins[:-1].copy())
        sizes = np.zeros((len(ends.node_of) >> _REGION_BITS) + 1, np.int64)
        fill_frontier(text, ends, mark, trie.depths, lists, frontier, Regions(_REGION_BITS, sizes))
        continuations = Continuations(*np.zeros((6, text.letters), np.int64))
        limits = ExpansionLimits(self._longest, min_weight)
        split_frontier(lists, frontier, continuations, text, trie, limits)
        regions = Regions(_REGION_BITS, np.cumsum(sizes) - sizes)
        write_back(frontier.positions[:, :active], frontier.words[:, :active], regions, ends)


def _new_frontier(suffixes: int, integer: np.dtype, largest_weight: int) -> Frontier:
    """Returns a frontier with room for this many suffixes.

    It is allocated once for all shares, since touching a gigabyte of new memory takes longer than
    splitting some lists. Weights are uint32 where the largest one fits: lists exceed the caches.
    """
    weight = np.uint32 if largest_weight < 2**32 else np.int64
    return Frontier(
        positions=np.empty((2, suffixes), integer),
        weights=np.empty((2, suffixes), weight),
        words=np.empty((2, suffixes), np.uint64),
        stack=np.empty((suffixes // 2 + 2, len(SuffixList._fields)), np.int64),
        batch=np.empty((2, _BATCH), np.int64),
    )
