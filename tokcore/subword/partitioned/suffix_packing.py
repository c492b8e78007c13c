"""Sorting a batch of suffixes and packing them, group by group.

A sort key is seven bytes and how many of them there are; suffixes equal in it and longer are sorted
by the next seven, and so on. Equal suffixes become one row.
"""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.compilation import kernel, kernel_without_allocation, read_only
from tokcore.compiled.pair_sorting import sort_pairs
from tokcore.subword.partitioned.front_coding import MAX_ROW_OVERHEAD, with_capacity, write_row
from tokcore.subword.partitioned.prefix_partitions import PrefixPartitions
from tokcore.subword.partitioned.suffix_table import SuffixTable

_KEY_BYTES = 7
_MORE = 8  # in the place of a key's length: the string goes on
_BUCKET_BITS = 16  # two leading bytes


class SuffixRows(NamedTuple):
    """Strings `text[places[i]:places[i] + lengths[i]]`, each with the weight of its token."""

    text: np.ndarray  # uint8
    places: np.ndarray  # int32[rows]
    lengths: np.ndarray  # int32[rows]
    owners: np.ndarray  # int32[rows]: index of the token in `counts`
    counts: np.ndarray  # int64[tokens]

    @classmethod
    def empty(cls, text: np.ndarray, counts: np.ndarray) -> 'SuffixRows':
        """Returns rows not yet filled in, one for each byte."""
        return cls(text, *(np.empty(len(text), np.int32) for _ in range(3)), counts)

    def first(self, rows: int) -> 'SuffixRows':
        """Returns so many of the rows, to be read."""
        arrays = (self.places[:rows], self.lengths[:rows], self.owners[:rows])
        return SuffixRows(self.text, *map(read_only, arrays), self.counts)


def pack_suffixes(
    rows: SuffixRows, groups: PrefixPartitions, group_range: tuple[int, int]
) -> list[tuple[int, SuffixTable]]:
    """Returns (group, table) for each group of a range that has strings, in ascending order."""
    if not len(rows.places):
        return []
    order = np.empty(len(rows.places), np.int32)
    _sort_rows(rows, order)
    order = read_only(order)
    first, last = group_range
    borders = [_encoded(groups.bounds(group)[0]) for group in range(first, last)]
    cuts = [_count_below(rows, order, border) for border in borders]
    upper = groups.bounds(last - 1)[1]
    cuts.append(_count_below(rows, order, _encoded(upper)) if upper else len(order))
    tables = []
    for group, (begin, end) in enumerate(zip(cuts, cuts[1:]), first):
        if begin < end:
            data, count, longest, added = _pack_rows(rows, order, begin, end)
            tables.append((group, SuffixTable(read_only(data), count, longest, added)))
    return tables


def _encoded(border: bytes) -> np.ndarray:
    return np.frombuffer(border, np.uint8)


@kernel_without_allocation
def _key(text, place, length):
    key = np.int64(0)
    if length >= 7:
        for i in range(7):
            key = key << 8 | np.int64(text[np.uint64(place + i)])
        return key << 4 | np.int64(min(length, 8))
    for i in range(length):
        key = key << 8 | np.int64(text[np.uint64(place + i)])
    return key << (8 * (7 - length)) << 4 | np.int64(length)


@kernel
def _sort_rows(rows, order):
    """Fills `order` with the rows in ascending order of their strings."""
    text, places, lengths = rows.text, rows.places, rows.lengths
    ends = np.zeros(1 << _BUCKET_BITS, np.int64)
    for row in range(len(places)):
        place = np.int64(places[row])
        second = np.int64(text[place + 1]) if lengths[row] > 1 else np.int64(0)
        ends[np.int64(text[place]) << 8 | second] += 1
    widest = ends.max()
    ends = np.cumsum(ends)
    free = ends.copy()
    for row in range(len(places) - 1, -1, -1):
        place = np.int64(places[row])
        second = np.int64(text[place + 1]) if lengths[row] > 1 else np.int64(0)
        bucket = np.int64(text[place]) << 8 | second
        free[bucket] -= 1
        order[free[bucket]] = row
    keys = np.empty(widest, np.int64)
    # Classes of strings equal so far: begin, end, and the bytes in which they are.
    waiting = np.empty(3 * 64, np.int64)
    low = np.int64(0)
    for high in ends:
        if high == low:
            continue
        waiting[0], waiting[1], waiting[2] = low, high, 0
        count = 1
        while count:
            count -= 1
            begin, end, known = waiting[3 * count], waiting[3 * count + 1], waiting[3 * count + 2]
            for i in range(begin, end):
                row = np.int64(order[i])
                keys[i - begin] = _key(text, places[row] + known, lengths[row] - known)
            sort_pairs(keys, order, begin, end - begin)
            i = begin
            while i < end:
                key = keys[i - begin]
                j = i + 1
                while j < end and keys[j - begin] == key:
                    j += 1
                if j > i + 1 and key & 15 == _MORE:
                    if 3 * count + 3 > len(waiting):
                        larger = np.empty(2 * len(waiting), np.int64)
                        larger[: 3 * count] = waiting[: 3 * count]
                        waiting = larger
                    waiting[3 * count], waiting[3 * count + 1] = i, j
                    waiting[3 * count + 2] = known + _KEY_BYTES
                    count += 1
                i = j
        low = high


@kernel_without_allocation
def _count_below(rows, order, border):
    """Returns how many rows, in order, are below a string."""
    text = rows.text
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        row = np.int64(order[middle])
        place, length = np.int64(rows.places[row]), np.int64(rows.lengths[row])
        i = 0
        while i < length and i < len(border) and text[place + i] == border[i]:
            i += 1
        if i < len(border) and (i == length or text[place + i] < border[i]):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _pack_rows(rows, order, begin, end):
    """Packs order[begin:end] from the last to the first; returns (data, rows, longest, added)."""
    text = rows.text
    out = np.empty(8 * (end - begin) + MAX_ROW_OVERHEAD, np.uint8)
    used, packed, longest, added = 0, 0, np.int64(0), 0
    place, length, common = np.int64(0), np.int64(0), np.int64(0)
    weight = np.int64(0)
    for i in range(end - 1, begin - 2, -1):
        same = np.int64(0)
        if i >= begin:
            row = np.int64(order[i])
            other, other_length = np.int64(rows.places[row]), np.int64(rows.lengths[row])
            shorter = min(length, other_length)
            while same < shorter and (
                text[np.uint64(place + same)] == text[np.uint64(other + same)]
            ):
                same += 1
            if i < end - 1 and same == length and same == other_length:
                weight += rows.counts[rows.owners[row]]
                continue
        if i < end - 1:
            out = with_capacity(out, used, length - common + MAX_ROW_OVERHEAD)
            used = write_row(out, used, common, text[place : place + length], length, weight)
            packed += 1
            added += length - common
            longest = max(longest, length)
        if i >= begin:
            place, length, common = other, other_length, same
            weight = rows.counts[rows.owners[row]]
    return out[:used].copy(), packed, longest, added
