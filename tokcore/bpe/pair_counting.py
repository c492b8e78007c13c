"""Counts the pairs of the BPE trainer's words, and lists where the frequent ones occur.

Words are compact: a symbol has one cell. A hash table of all pairs would be far larger than the
processor's caches, and a look-up for each pair of the text would wait for memory. So few symbols have
their counts in a table by both symbols. Of more, all pairs are sorted by the left symbol first, in
the order of their cells; then the pairs of a left symbol are summed by the right one.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.bpe.trainer_kernels import (
    ALIAS,
    CELLS,
    PAIRS,
    SYMBOLS,
    Pairs,
    Symbols,
    TrainerConfig,
    Words,
    add_pair,
    may_merge,
    pair_of,
    word_count,
)
from tokcore.kernels.jit import kernel_without_allocation

_FEW_SYMBOLS = 1200
"""The most symbols with a table by both: 16 bytes a pair, 23 MB. Sorting the pairs of so few takes a sixth
longer in all."""

_BINS = 1 << 12

_32, _48 = np.uint64(32), np.uint64(48)
_LOW, _LOW_16 = np.uint64((1 << 32) - 1), np.uint64((1 << 16) - 1)


@dataclass(frozen=True)
class CountedPairs:
    """The counts of all pairs that may be merged.

    Attributes:
        largest: the largest count; `~pair` if the count of that pair exceeds 2^63 - 1.
        at_least: int64[bins], how many pairs have each count or a larger one. The last bin also has
            those of larger counts.
        occurrences: how many occurrences all pairs have, at most.
        list_into: adds the pairs that reach the configured threshold to empty `Pairs`.
    """

    largest: int
    at_least: np.ndarray
    occurrences: int
    list_into: Callable[[Pairs, TrainerConfig], None]

    def number(self, threshold: int) -> int:
        """Returns how many pairs have this count or a larger one, at most."""
        return int(self.at_least[min(threshold, _BINS - 1)])

    def threshold(self, most: float) -> int:
        """Returns the smallest count that no more than `most` pairs reach, or the number of bins."""
        return int(np.searchsorted(-self.at_least, -most))


def count_pairs(
    words: Words, symbols: Symbols, max_piece_length: int, state: np.ndarray
) -> CountedPairs:
    """Counts all pairs that may be merged in compact words."""
    size, histogram = int(state[SYMBOLS]), np.zeros(_BINS, np.int64)
    if size <= _FEW_SYMBOLS:
        sums = np.zeros((size * size, 2), np.int64)
        largest = _sum_by_both(words, symbols, sums, histogram, max_piece_length, state)
        occurrences = int(state[CELLS])
        list_pairs = functools.partial(_list_by_both, words, symbols, sums)
    else:
        starts = np.zeros(size + 1, np.int64)
        _count_lefts(words, starts, state)
        occurrences = int(starts[-1])
        buckets = _Buckets(
            np.empty(occurrences, np.uint64), starts, np.empty(size, np.int64),
            np.zeros((size, 2), np.int64), np.empty(size + 1, np.int32),
        )  # fmt: skip
        _fill_buckets(words, buckets, state)
        largest = _sum_buckets(words, symbols, buckets, histogram, max_piece_length)
        list_pairs = functools.partial(_list_buckets, words, symbols, buckets)
    return CountedPairs(
        int(largest),
        np.cumsum(histogram[::-1])[::-1],
        occurrences,
        lambda pairs, config: list_pairs(pairs, config, state),
    )


@kernel_without_allocation
def compact_cells(words, symbols, state):
    """Moves each symbol to a single cell, and leaves out words of one symbol."""
    cells, inside = words.cells, words.inside
    source, target, end = np.int64(1), np.int64(1), state[CELLS]
    while source < end:
        symbol = np.int64(cells[source, 0])
        if symbol > inside:
            source += 1
            if cells[target - 2, 0] > inside:
                target -= 1
                continue
            cells[target, 0] = symbol
        else:
            cells[target, 1] = cells[source, 1]
            source += symbols.spans[symbol]
            cells[target, 0] = state[ALIAS] if symbol == state[SYMBOLS] else symbol
        target += 1
    state[CELLS] = target
    state[ALIAS] = -1
    symbols.spans[:] = 1


@kernel_without_allocation
def _sum_by_both(words, symbols, sums, histogram, max_piece_length, state):
    """Sums the count and the occurrences of each pair in `sums` (int64[symbols ** 2, 2], all 0).

    Adds the counts of those that may be merged to a histogram; returns as `CountedPairs.largest`.
    """
    cells, inside, size = words.cells, words.inside, state[SYMBOLS]
    left, largest = np.int64(cells[0, 0]), np.int64(0)
    for following in range(1, state[CELLS]):
        right = np.int64(cells[following, 0])
        if left < inside and right < inside:
            pair = np.uint64(left * size + right)
            if not _add(sums, pair, np.int64(cells[following, 1]), words):
                if may_merge(left, right, symbols, max_piece_length):
                    return ~pair_of(left, right)
        left = right
    for left in range(size):
        for right in range(size):
            count = sums[left * size + right, 0]
            if count and may_merge(left, right, symbols, max_piece_length):
                largest = max(largest, count)
                histogram[min(count, _BINS - 1)] += 1
    return largest


@kernel_without_allocation
def _add(sums, index, weight, words):
    """Adds a word to the sums of a pair; returns False if its count would exceed 2^63 - 1."""
    count = sums[index, 0] + word_count(weight, words)
    if words.may_overflow and count < 0:
        return False
    sums[index, 0] = count
    sums[index, 1] += 1
    return True


@kernel_without_allocation
def _list_by_both(words, symbols, sums, pairs, config, state):
    """Lists the pairs that reach the threshold, with their occurrences; overwrites `sums`."""
    cells, inside, size = words.cells, words.inside, state[SYMBOLS]
    for left in range(size):
        for right in range(size):
            pair = left * size + right
            if sums[pair, 1]:
                start = add_pair(
                    left, right, sums[pair, 0], sums[pair, 1], symbols, pairs, config, state
                )
                # Occurrences of other pairs are written one over another, at the array's end.
                sums[pair, 0] = len(pairs.occurrences) - 1 if start < 0 else start
                sums[pair, 1] = start >= 0
    left = np.int64(cells[0, 0])
    for following in range(1, state[CELLS]):
        right = np.int64(cells[following, 0])
        if left < inside and right < inside:
            pair = np.uint64(left * size + right)
            target = np.uint64(sums[pair, 0])
            pairs.occurrences[target] = following - 1
            sums[pair, 0] = target + np.uint64(sums[pair, 1])
        left = right


class _Buckets(NamedTuple):
    """All pairs by their left symbols, in the order of the cells."""

    entries: np.ndarray  # uint64: cell, right symbol << 32, and if cells are narrow weight << 48
    starts: np.ndarray  # int64[symbols + 1]
    ends: np.ndarray  # int64[symbols]
    sums: np.ndarray  # int64[symbols, 2]: count and occurrences by right symbol, else 0
    rights: np.ndarray  # int32[symbols + 1]: the right symbols that there are


@kernel_without_allocation
def _is_narrow(words):
    return words.first_index < 1 << 16


@kernel_without_allocation
def _count_lefts(words, starts, state):
    """Sets where the bucket of each left symbol starts, if all symbols were left ones."""
    cells, inside = words.cells, words.inside
    for cell in range(1, state[CELLS]):
        left = np.int64(cells[cell, 0])
        if left < inside:
            starts[left + 1] += 1
    for left in range(len(starts) - 1):
        starts[left + 1] += starts[left]


@kernel_without_allocation
def _fill_buckets(words, buckets, state):
    """Sorts all pairs by their left symbols."""
    cells, inside, ends, narrow = words.cells, words.inside, buckets.ends, _is_narrow(words)
    for left in range(len(ends)):
        ends[left] = buckets.starts[left]
    left = np.int64(cells[0, 0])
    for following in range(1, state[CELLS]):
        right = np.int64(cells[following, 0])
        if left < inside and right < inside:
            entry = np.uint64(following - 1) | np.uint64(right) << _32
            if narrow:
                entry |= np.uint64(cells[following, 1]) << _48
            buckets.entries[ends[left]] = entry
            ends[left] += 1
        left = right


@kernel_without_allocation
def _sum_buckets(words, symbols, buckets, histogram, max_piece_length):
    """Adds the counts of all pairs that may be merged to a histogram.

    Returns as `CountedPairs.largest`.
    """
    largest = np.int64(0)
    for left in range(len(buckets.ends)):
        size = _sum_bucket(left, words, symbols, buckets, max_piece_length)
        if size < 0:
            return ~pair_of(left, ~size)
        for i in range(size):
            right = np.int64(buckets.rights[i])
            count = buckets.sums[right, 0]
            if may_merge(left, right, symbols, max_piece_length):
                largest = max(largest, count)
                histogram[min(count, _BINS - 1)] += 1
            _clear(buckets.sums, right)
    return largest


@kernel_without_allocation
def _sum_bucket(left, words, symbols, buckets, max_piece_length):
    """Sums the pairs of a left symbol; returns how many different ones there are.

    Returns `~right` if the count of a pair that may be merged exceeds 2^63 - 1.
    """
    size, narrow = np.int64(0), _is_narrow(words)
    for i in range(buckets.starts[left], buckets.ends[left]):
        entry = buckets.entries[i]
        right = _right_symbol(entry, narrow)
        if narrow:
            weight = np.int64(entry >> _48)
        else:
            weight = np.int64(words.cells[np.int64(entry & _LOW), 1])
        buckets.rights[size] = right
        size += np.int64(buckets.sums[right, 1] == 0)
        if not _add(buckets.sums, right, weight, words):
            if may_merge(left, right, symbols, max_piece_length):
                return ~right
    return size


@kernel_without_allocation
def _right_symbol(entry, narrow):
    right = entry >> _32
    return np.int64(right & _LOW_16) if narrow else np.int64(right)


@kernel_without_allocation
def _clear(sums, index):
    sums[index, 0] = 0
    sums[index, 1] = 0


@kernel_without_allocation
def _list_buckets(words, symbols, buckets, pairs, config, state):
    """Lists the pairs that reach the threshold, with their occurrences."""
    sums, narrow = buckets.sums, _is_narrow(words)
    for left in range(len(buckets.ends)):
        first = state[PAIRS]
        size = _sum_bucket(left, words, symbols, buckets, config.max_piece_length)
        for i in range(size):
            right = np.int64(buckets.rights[i])
            sums[right, 0] = add_pair(
                left, right, sums[right, 0], sums[right, 1], symbols, pairs, config, state
            )
        if state[PAIRS] > first:
            for i in range(buckets.starts[left], buckets.ends[left]):
                entry = buckets.entries[i]
                right = _right_symbol(entry, narrow)
                target = sums[right, 0]
                if target >= 0:
                    pairs.occurrences[target] = entry & _LOW
                    sums[right, 0] = target + 1
        for i in range(size):
            _clear(sums, np.int64(buckets.rights[i]))
