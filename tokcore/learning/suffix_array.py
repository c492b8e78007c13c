"""The suffix array of all escaped tokens, with the longest common prefixes (LCP) of neighbours.

Suffixes are sorted by their packed leading characters, bucket by bucket. Those still equal are
sorted by prefix doubling (the order by the first h characters gives that by the first 2h), so a
token of a million equal characters costs n log n and not n squared.
"""

from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.kernels.sorting import sort_pairs
from tokcore.learning.ranked_text import EscapedText

# 65,536 buckets: most of them fit the processor's cache, and so does their table (512 KB).
_BUCKET_BITS = 16
# Common prefixes are compared character by character up to this length; few words are longer.
_SHORT = 256
# From this number of positions on, int32 is too narrow.
_WIDE = 2**31
# Marks in `order`: 0 within a class; a class begins that may be split further (open), or not
# (closed).
_OPEN, _CLOSED = 1, 2
# Marks set during a round, which it must not see yet: a new class, or an open one that is now
# closed.
_NEW_OPEN, _NEW_CLOSED, _NOW_CLOSED = 3, 4, 5


class _SuffixClasses(NamedTuple):
    """The suffixes in ascending order, in classes of suffixes with equal leading characters.

    Index arrays are int32, or int64 from 2^31 characters on.
    """

    order: np.ndarray  # int[suffixes]: start positions in the text
    starts: np.ndarray  # int[classes + 1]: each class's range in `order`
    representatives: np.ndarray  # int[classes]: the first position of each class
    prefixes: np.ndarray  # int32[classes]: LCP with the class before, in characters


def sort_suffixes(text: EscapedText, longest: int) -> _SuffixClasses:
    """Sorts the suffixes of all tokens by at least their `longest` first characters.

    Suffixes of one class are equal in these characters. Classes that differ only after them have a
    common prefix of at least that length.
    """
    ranks, size = text.ranks, len(text.ranks)
    integer = np.int32 if size < _WIDE else np.int64
    bits = len(text.alphabet).bit_length()
    packed = 63 // bits  # characters in a key that stays positive
    order = np.empty(size, integer)
    marks = np.zeros(size, np.uint8)
    bucket_ends = _fill_buckets(ranks, text.end_rank, bits, packed, order)
    keys = np.empty(int(np.diff(bucket_ends, prepend=0).max()), np.int64)
    open_classes = _sort_buckets(
        ranks, text.end_rank, bits, packed, read_only(bucket_ends), order, marks, keys
    )
    if open_classes and packed < longest:
        class_of = np.empty(size, integer)
        _assign_classes(order, marks, class_of)
        known = packed
        while open_classes and known < longest:
            open_classes = _split_classes(class_of, known, order, marks, keys)
            _update_classes(order, marks, class_of)
            known *= 2
        del class_of

    starts = np.empty(int(np.count_nonzero(marks)) + 1, integer)
    representatives = np.empty(len(starts) - 1, integer)
    _list_classes(order, marks, starts, representatives)
    prefixes = np.zeros(len(representatives), np.int32)
    capped = _compare_neighbors(ranks, read_only(representatives), min(_SHORT, longest), prefixes)
    if capped and longest > _SHORT:
        classes = np.flatnonzero(prefixes == _SHORT)
        classes = classes[np.argsort(representatives[classes])]
        _compare_long_neighbors(
            ranks, read_only(representatives), read_only(classes), _SHORT, prefixes
        )
    return _SuffixClasses(
        read_only(order), read_only(starts), read_only(representatives), read_only(prefixes)
    )


@kernel
def _fill_buckets(ranks, end_rank, bits, packed, order):
    """Puts positions into buckets by the top bits of their keys; returns where each bucket ends.

    A key packs the leading characters, each as rank + 1, with zeros after the end of the token.
    Going backwards, the next key is the last one with a character pushed in at the top.
    """
    top = bits * (packed - 1)
    shift = bits * packed - _BUCKET_BITS
    ends = np.zeros(1 << _BUCKET_BITS, np.int64)
    key = 0
    for position in range(len(ranks) - 1, -1, -1):
        rank = np.int64(ranks[position])
        key = (rank + 1) << top if rank == end_rank else ((rank + 1) << top) | (key >> bits)
        ends[key >> shift] += 1
    ends = np.cumsum(ends)
    free = ends.copy()
    key = 0
    for position in range(len(ranks) - 1, -1, -1):
        rank = np.int64(ranks[position])
        key = (rank + 1) << top if rank == end_rank else ((rank + 1) << top) | (key >> bits)
        bucket = key >> shift
        free[bucket] -= 1
        order[free[bucket]] = position
    return ends


@kernel
def _sort_buckets(ranks, end_rank, bits, packed, bucket_ends, order, marks, keys):
    """Sorts each bucket by key and marks the classes of equal keys; counts the open classes."""
    last_character = (1 << bits) - 1
    open_classes = 0
    low = 0
    for high in bucket_ends:
        for i in range(low, high):
            position = np.int64(order[i])
            key = 0
            for j in range(packed):
                rank = np.int64(ranks[position + j])
                key = (key << bits) | (rank + 1)
                if rank == end_rank:
                    key <<= bits * (packed - 1 - j)
                    break
            keys[i - low] = key
        sort_pairs(keys, order, low, high - low)
        begin = low
        while begin < high:
            key = keys[begin - low]
            end = begin + 1
            while end < high and keys[end - low] == key:
                end += 1
            last = key & last_character
            if end == begin + 1 or last == 0 or last == end_rank + 1:
                marks[begin] = _CLOSED
            else:
                marks[begin] = _OPEN
                open_classes += 1
            begin = end
        low = high
    return open_classes


@kernel_without_allocation
def _assign_classes(order, marks, class_of):
    """Writes the class of each suffix: the index in `order` where the class begins."""
    begin = 0
    for i in range(len(order)):
        if marks[i]:
            begin = i
        class_of[order[i]] = begin


@kernel
def _split_classes(class_of, known, order, marks, keys):
    """Sorts each open class by the classes of the suffixes `known` characters later.

    `class_of` does not change during a round, so afterwards every class is exact in twice as many
    characters. Returns the number of classes still open.
    """
    open_classes = 0
    begin = 0
    while begin < len(order):
        end = begin + 1
        while end < len(order) and marks[end] == 0:
            end += 1
        if marks[begin] == _OPEN:
            for i in range(begin, end):
                keys[i - begin] = class_of[np.int64(order[i]) + known]
            sort_pairs(keys, order, begin, end - begin)
            low = begin
            while low < end:
                key = keys[low - begin]
                high = low + 1
                while high < end and keys[high - begin] == key:
                    high += 1
                closed = high == low + 1 or marks[key] == _CLOSED
                if low > begin:
                    marks[low] = _NEW_CLOSED if closed else _NEW_OPEN
                elif closed:
                    marks[low] = _NOW_CLOSED
                if not closed:
                    open_classes += 1
                low = high
        begin = end
    return open_classes


@kernel_without_allocation
def _update_classes(order, marks, class_of):
    """Writes the new classes of a round to `class_of`, and replaces the marks of the round."""
    begin = 0
    while begin < len(order):
        mark = marks[begin]
        if mark == _NEW_OPEN or mark == _NEW_CLOSED:
            class_of[order[begin]] = begin
            i = begin + 1
            while i < len(order) and marks[i] == 0:
                class_of[order[i]] = begin
                i += 1
            marks[begin] = _OPEN if mark == _NEW_OPEN else _CLOSED
            begin = i
        else:
            if mark == _NOW_CLOSED:
                marks[begin] = _CLOSED
            begin += 1


@kernel_without_allocation
def _list_classes(order, marks, starts, representatives):
    classes = -1
    for i in range(len(order)):
        if marks[i]:
            classes += 1
            starts[classes] = i
            representatives[classes] = order[i]
        elif order[i] < representatives[classes]:
            representatives[classes] = order[i]
    starts[classes + 1] = len(order)


@kernel_without_allocation
def _compare_neighbors(ranks, representatives, limit, prefixes):
    """Writes the LCP of each class with the one before, up to a limit; counts how many reach it."""
    capped = 0
    for i in range(1, len(representatives)):
        one, other = np.int64(representatives[i]), np.int64(representatives[i - 1])
        common = 0
        while common < limit and ranks[one + common] == ranks[other + common]:
            common += 1
        prefixes[i] = common
        if common == limit:
            capped += 1
    return capped


@kernel_without_allocation
def _compare_long_neighbors(ranks, representatives, classes, known, prefixes):
    """Completes the LCPs of `known` characters or more, visited in text order (Kasai's algorithm).

    If a suffix has n characters in common with the one before it in the suffix array, then the
    suffix one character later has at least n - 1 in common with its predecessor: no need to compare
    those.
    """
    common, expected = known, -1
    for i in classes:
        one, other = np.int64(representatives[i]), np.int64(representatives[i - 1])
        common = max(common - 1, known) if one == expected else known
        while ranks[one + common] == ranks[other + common]:
            common += 1
        prefixes[i] = common
        expected = one + 1
