"""The suffix tree, grown only as far down as weights reach a least one.

A string lighter than the smallest min-count asked for is never kept, nor is one that it begins: so
the suffixes are not sorted, but followed downward from their first characters together, and left
where what follows is too light. A smaller min-count takes up those whose next step it reaches.
"""

from math import isqrt

import numpy as np

from tokcore.compiled.compilation import frozen
from tokcore.learning.bigram_nodes import plant_pairs, weigh_pairs
from tokcore.learning.frontier_lists import count_alive, list_suffixes, mark_alive, settle
from tokcore.learning.frontier_splitting import part_lists
from tokcore.learning.ranked_text import EscapedText
from tokcore.learning.repeat_nodes import (
    LARGEST_NEXT,
    measure_runs,
    plant_runs,
    start_suffixes,
    weigh_runs,
)
from tokcore.learning.suffix_trie import WeighedTree

# From so many nodes on int32 does not number them.
_WIDE = 2**31
# From here on the half of what is asked for is grown at once: that is little more.
_HALVED = 100
# Suffixes listed at a time: this share of all, if they are many. Those of one node stay together.
_SHARE = 1 / 8
_MANY = 2**20
# Picked from the text before they are listed: they stay in a core's first cache.
_PICKED = 1024
# What is written of so many places of the text, as a power of two, stays in a core's cache.
_REGION_BITS = 19
# The table of the weights of pairs of characters: 8 MB at most.
_MOST_PAIR_BITS = 20


class GrowingTree:
    """All strings of at least some weight, down from the single characters.

    Args:
      longest: no string gets longer; at least 1.
      rests: int64, the places where all the rest of a token is a reserved one.
    """

    def __init__(
        self, text: EscapedText, counts: np.ndarray, longest: int, rests: np.ndarray
    ):
        self._text, self._counts, self._longest, self._rests = text, counts, longest, rests
        size, letters = len(text.ranks), len(text.alphabet)
        most = letters + 2 * size
        integer = np.int32 if most < _WIDE else np.int64
        # Pages that are never written to take no memory.
        self._parents, self._places = np.empty(most, integer), np.empty(most, integer)
        self._depths = np.empty(most, np.int32)
        self._totals = np.empty(most, np.int64)
        self._node_of = np.empty(size, integer)
        # What the longer string weighs that a suffix did not follow, or more; 0 if nothing goes on.
        self._next = np.empty(size, np.uint16)
        self._nodes = 0
        self._least = 0

    def grown(self, least: int) -> WeighedTree:
        """Returns a tree of all strings that weigh `least` or more, and of all characters.

        It may have lighter ones too: a search that goes down goes on to the half.
        """
        if self._least == 0 or least < self._least:
            if self._least:
                self._complement_rests()
            self._least = least // 2 if least >= _HALVED else least
            self._grow(self._least)
            self._complement_rests()
        nodes = self._nodes
        return WeighedTree(
            len(self._text.alphabet),
            frozen(self._parents[:nodes]),
            frozen(self._depths[:nodes]),
            frozen(self._places[:nodes]),
            frozen(self._totals[:nodes]),
            self._node_of,
        )

    def _complement_rests(self) -> None:
        self._node_of[self._rests] = ~self._node_of[self._rests]

    def _plant(self, least: int) -> None:
        """Makes the nodes of characters, their repetitions and pairs, where suffixes begin."""
        text = self._text
        longest = min(self._longest, LARGEST_NEXT)
        most = np.ones(len(text.alphabet), np.int64)
        measure_runs(text.ranks, text.starts, longest, self._next, most)
        begins = np.cumsum(most) - most
        weights = np.zeros(int(most.sum()), np.int64)
        places = np.zeros(len(weights), self._places.dtype)
        weigh_runs(text.ranks, text.starts, self._counts, begins, self._next, weights, places)
        names = np.empty(len(weights), self._parents.dtype)
        self._nodes = plant_runs(
            begins, most, weights, places, least, names,
            self._parents, self._depths, self._places, self._totals,
        )  # fmt: skip
        pair_sums = np.zeros(1 << min(_MOST_PAIR_BITS, len(text.ranks).bit_length()), np.int64)
        width = isqrt(len(pair_sums) // 2)
        heaviest, pair_of = _number_heaviest(self._totals[: len(text.alphabet)], width)
        weigh_pairs(
            text.ranks, text.starts, self._counts, text.end_rank, self._next, pair_of, width,
            pair_sums,
        )  # fmt: skip
        pair_names = np.zeros(width * width, names.dtype)
        if self._longest > 1:
            self._nodes = plant_pairs(
                heaviest, width, pair_sums, least, self._nodes, pair_names,
                self._parents, self._depths, self._totals,
            )  # fmt: skip
        start_suffixes(
            text.ranks, text.starts, self._counts, text.end_rank, begins, self._longest, weights,
            pair_of, width, pair_sums, pair_names, names, self._depths, self._places,
            self._node_of, self._next,
        )  # fmt: skip

    def _grow(self, least: int) -> None:
        if not self._nodes:
            self._plant(least)
        reached = np.uint16(min(least, LARGEST_NEXT))
        sizes = np.zeros(self._nodes, np.int64)
        count_alive(self._next, self._node_of, reached, sizes)
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
            mark_alive(self._next, self._node_of, reached, frozen(mark_of))
            listed = max(int(begins[-1]) for _, begins in shares)
            rooms = _Rooms(listed, self._node_of.dtype, int(self._counts.max()))
            for first, begins in shares:
                self._lead_down(first, begins, mark_of[first], rooms, least)

    def _lead_down(
        self, first: int, begins: np.ndarray, mark: np.uint16, rooms: '_Rooms', least: int
    ) -> None:
        """Leads the suffixes with a mark on, which are those at some nodes from `first` on."""
        text = self._text
        letters, alive = len(text.alphabet), int(begins[-1])
        bits = max(1, (letters - 1).bit_length())
        ends = begins[:-1].copy()
        regions = np.zeros((len(self._node_of) >> _REGION_BITS) + 1, np.int64)
        list_suffixes(
            text.ranks, text.starts, self._counts, self._next, mark, self._node_of, self._depths,
            first, ends, bits, rooms.picked, rooms.places[0], rooms.weights[0], rooms.words[0],
            _REGION_BITS, regions,
        )  # fmt: skip
        self._nodes = part_lists(
            ends, first, rooms.places, rooms.weights, rooms.words, rooms.waiting,
            np.zeros((6, letters), np.int64), text.ranks, text.starts, text.end_rank, bits, letters,
            self._longest, least, self._nodes, self._parents, self._depths, self._places,
            self._totals,
        )  # fmt: skip
        settle(
            rooms.places[:, :alive], rooms.words[:, :alive], _REGION_BITS,
            np.cumsum(regions) - regions, self._node_of, self._next,
        )  # fmt: skip


def _number_heaviest(weights: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the heaviest characters, int64[at most `most`], and each one's number there or -1."""
    heaviest = np.argsort(-weights, kind='stable')[:most]
    number_of = np.full(len(weights), -1, np.int32)
    number_of[heaviest] = np.arange(len(heaviest))
    return heaviest, number_of


class _Rooms:
    """What `part_lists` works in, for so many suffixes at most.

    Had once for all shares: a gigabyte of new memory takes longer than parting some lists. Lists
    are longer than caches, so a weight has four bytes if the largest one fits.
    """

    def __init__(self, suffixes: int, integer: np.dtype, largest_weight: int):
        weight = np.uint32 if largest_weight < 2**32 else np.int64
        self.places = np.empty((2, suffixes), integer)
        self.weights = np.empty((2, suffixes), weight)
        self.words = np.empty((2, suffixes), np.uint64)
        self.waiting = np.empty((suffixes // 2 + 2, 5), np.int64)
        self.picked = np.empty((2, _PICKED), np.int64)
