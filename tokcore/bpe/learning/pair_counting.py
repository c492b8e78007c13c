"""Pairs of symbols: counted, and where each of those is that are worth it.

A pair is `left << 32 | right`, an int64; tables of pairs are open-addressing, of a power of two.
"""

from typing import NamedTuple

import numpy as np

from tokcore.bpe.learning.word_cells import may_join
from tokcore.compiled.byte_hashing import GOLDEN_RATIO, MIXER
from tokcore.compiled.compilation import kernel_without_allocation

NO_PAIR = -1

_SPREAD, _MIXER = np.uint64(GOLDEN_RATIO), np.uint64(MIXER)
_1, _32 = np.uint64(1), np.uint64(32)
_RIGHT = (1 << 32) - 1
_LARGEST = (1 << 63) - 1


class PairCounts(NamedTuple):
    """Pairs by hash; where there is none, all is 0 but the pair."""

    keys: np.ndarray  # int64, `NO_PAIR` where there is none
    counts: np.ndarray  # int64
    numbers: np.ndarray  # int64: places

    @classmethod
    def empty(cls, slots: int) -> 'PairCounts':
        return cls(
            np.full(slots, NO_PAIR, np.int64), np.zeros(slots, np.int64), np.zeros(slots, np.int64)
        )


class Pairs(NamedTuple):
    """The pairs that may be merged soon, by number, and places where their left symbols begin.

    Places ascend. One may be past: what is there now is another symbol, or a border behind it.
    """

    slots: np.ndarray  # int32[2^k]: numbers by the hashes of keys, plus 1
    keys: np.ndarray  # int64
    counts: np.ndarray  # int64
    starts: np.ndarray  # int64: of the pair's places, from those on that are known to be past
    ends: np.ndarray  # int64
    places: np.ndarray  # int32


@kernel_without_allocation
def pair_of(left, right):
    """The key of two symbols."""
    return np.int64(left) << 32 | np.int64(right)


@kernel_without_allocation
def left_of(pair):
    return pair >> 32


@kernel_without_allocation
def right_of(pair):
    return pair & _RIGHT


@kernel_without_allocation
def _first_slot(pair):
    mixed = np.uint64(pair) * _SPREAD
    return ((mixed ^ (mixed >> _32)) * _MIXER) >> _32


@kernel_without_allocation
def _slot_of(pair, keys):
    """Where a table of keys has a pair, or has room for it."""
    slot, mask = _first_slot(pair), np.uint64(len(keys) - 1)
    while True:
        slot &= mask
        if keys[slot] == pair or keys[slot] == NO_PAIR:
            return slot
        slot += _1


@kernel_without_allocation
def find_pair(pair, pairs):
    """Returns the number of a pair, or -1."""
    slot, mask = _first_slot(pair), np.uint64(len(pairs.slots) - 1)
    while True:
        slot &= mask
        number = pairs.slots[slot] - 1
        if number < 0 or pairs.keys[number] == pair:
            return np.int64(number)
        slot += _1


@kernel_without_allocation
def enter_pair(number, pairs):
    """Makes a pair be found, which is not among those that are."""
    slot, mask = _first_slot(pairs.keys[number]), np.uint64(len(pairs.slots) - 1)
    while True:
        slot &= mask
        if pairs.slots[slot] == 0:
            pairs.slots[slot] = number + 1
            return
        slot += _1


@kernel_without_allocation
def enter_pairs(pairs, used):
    """Makes all pairs below `used` be found, in empty slots."""
    for number in range(used):
        enter_pair(number, pairs)


@kernel_without_allocation
def enter_counts(table, larger):
    """Puts all pairs of a table into an empty one that is larger."""
    for old in range(len(table.keys)):
        if table.keys[old] != NO_PAIR:
            slot = _slot_of(table.keys[old], larger.keys)
            larger.keys[slot] = table.keys[old]
            larger.counts[slot] = table.counts[old]
            larger.numbers[slot] = table.numbers[old]


@kernel_without_allocation
def count_pairs(place, words, symbols, max_piece_length, table, used):
    """Counts pairs from a symbol's cell on, if they may be merged, into a table of `used` pairs.

    Returns (place, used, pair): where it would go on, which is behind all words unless the table is
    half full, or unless there is a pair whose count would be past 2^63 - 1; else that is `NO_PAIR`.
    """
    cells, place = words.cells, np.uint64(place)
    last, most = np.uint64(len(cells) - 1), len(table.keys) // 2
    while place < last and used < most:
        left = cells[place, 0]
        following = place + np.uint64(symbols.lengths[left])
        right = cells[following, 0]
        if right < 0:
            following += _1
        elif may_join(left, right, symbols, max_piece_length):
            pair, count = pair_of(left, right), words.counts[cells[place, 1]]
            slot = _slot_of(pair, table.keys)
            if table.keys[slot] == NO_PAIR:
                table.keys[slot] = pair
                used += 1
            if table.counts[slot] > _LARGEST - count:
                return np.int64(place), used, pair
            table.counts[slot] += count
            table.numbers[slot] += 1
        place = following
    return np.int64(place), used, np.int64(NO_PAIR)


@kernel_without_allocation
def list_places(words, symbols, pairs):
    """Lists the places of all these pairs, of each from `ends` on, which it moves."""
    cells, place = words.cells, np.uint64(1)
    last = np.uint64(len(cells) - 1)
    while place < last:
        left = cells[place, 0]
        following = place + np.uint64(symbols.lengths[left])
        right = cells[following, 0]
        if right < 0:
            following += _1
        else:
            number = find_pair(pair_of(left, right), pairs)
            if number >= 0:
                pairs.places[pairs.ends[number]] = place
                pairs.ends[number] += 1
        place = following


@kernel_without_allocation
def is_there(place, pair, words, symbols):
    """Whether a pair begins in this cell, which it did when that was listed."""
    left = left_of(pair)
    if words.cells[place, 0] != left:
        return False
    return words.cells[place + symbols.lengths[left], 0] == right_of(pair)


@kernel_without_allocation
def pack_places(words, symbols, pairs, used):
    """Moves the places of pairs together, without those that are past and of pairs merged.

    Returns how many there are now, and how many the pair of most has.
    """
    kept = largest = 0
    for number in range(used):
        first = kept
        for i in range(pairs.starts[number], pairs.ends[number]):
            if pairs.counts[number] and is_there(pairs.places[i], pairs.keys[number], words, symbols):
                pairs.places[kept] = pairs.places[i]
                kept += 1
        pairs.starts[number], pairs.ends[number] = first, kept
        largest = max(largest, kept - first)
    return kept, largest
