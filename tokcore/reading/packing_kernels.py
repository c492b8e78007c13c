"""Kernels that place rows into packed rows of a fixed length, and write these."""

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation
from tokcore.kernels.simd import trailing_zeros

_MOST_TRIED = 64
"""Packed rows tried for a pair that may have room for both sides: there can be many that have not."""


@kernel_without_allocation
def _next_marked(marks, place):
    """Returns the first place from this on whose bit is set, or -1."""
    word = place >> 6
    if word >= len(marks):
        return -1
    bits = marks[word] >> np.uint64(place & 63) << np.uint64(place & 63)
    while bits == np.uint64(0):
        word += 1
        if word == len(marks):
            return -1
        bits = marks[word]
    return (word << 6) + np.int64(trailing_zeros(bits))


@kernel_without_allocation
def best_fit(lengths, order, capacity, marks, heads, following, room, packed_of):
    """Places each row where the least room was left before it, or into a new packed row.

    The room of a packed row is that of its fullest feature, so that one with room for the longest side
    of a pair has room for both. Of those with less, some are tried before.

    Args:
        lengths: int64[features, n], up to `capacity`.
        order: int64[n], in which rows are placed.
        capacity: ids of a feature that a packed row has room for.
        marks: uint64, zeros, a bit for each room from 0 to `capacity`.
        heads: int64[capacity + 1], all -1: by room, a packed row that has it.
        following: int64[n], room for the next packed row with the same room.
        room: int64[features, n], room for that of each packed row.
        packed_of: int64[n], filled in: the packed row of each row.

    Returns the number of packed rows.
    """
    count = 0
    for k in range(len(order)):
        row = order[k]
        shortest, longest = lengths[0, row], lengths[0, row]
        for feature in range(1, lengths.shape[0]):
            shortest = min(shortest, lengths[feature, row])
            longest = max(longest, lengths[feature, row])
        chosen, before, tried = -1, -1, 0
        place = _next_marked(marks, shortest)
        while place >= 0 and chosen < 0:
            if place < longest and tried == _MOST_TRIED:
                place = _next_marked(marks, longest)
                continue
            before, packed = -1, heads[place]
            while packed >= 0 and chosen < 0 and (place >= longest or tried < _MOST_TRIED):
                tried += 1
                has_room = True
                for feature in range(lengths.shape[0]):
                    has_room &= lengths[feature, row] <= room[feature, packed]
                if has_room:
                    chosen = packed
                else:
                    before, packed = packed, following[packed]
            if chosen < 0:
                place = _next_marked(marks, place + 1)
        if chosen < 0:
            chosen = count
            count += 1
            for feature in range(lengths.shape[0]):
                room[feature, chosen] = capacity
        elif before >= 0:
            following[before] = following[chosen]
        else:
            heads[place] = following[chosen]
            if heads[place] < 0:
                marks[place >> 6] &= ~(np.uint64(1) << np.uint64(place & 63))
        left = capacity
        for feature in range(lengths.shape[0]):
            room[feature, chosen] -= lengths[feature, row]
            left = min(left, room[feature, chosen])
        following[chosen] = heads[left]
        heads[left] = chosen
        marks[left >> 6] |= np.uint64(1) << np.uint64(left & 63)
        packed_of[row] = chosen
    return count


@kernel_without_allocation
def first_fit(lengths, capacity, most_open, room, packed_of):
    """Places rows in their order into the first of a few open packed rows that has room.

    Where none has, the oldest one is closed, and a new one opened.

    Args:
        lengths, capacity, room, packed_of: as of `best_fit`.
        most_open: how many packed rows are open at once.

    Returns the number of packed rows.
    """
    count = 0
    for row in range(lengths.shape[1]):
        chosen = -1
        packed = max(0, count - most_open)
        while packed < count and chosen < 0:
            has_room = True
            for feature in range(lengths.shape[0]):
                has_room &= lengths[feature, row] <= room[feature, packed]
            if has_room:
                chosen = packed
            packed += 1
        if chosen < 0:
            chosen = count
            count += 1
            for feature in range(lengths.shape[0]):
                room[feature, chosen] = capacity
        for feature in range(lengths.shape[0]):
            room[feature, chosen] -= lengths[feature, row]
        packed_of[row] = chosen
    return count


@kernel_without_allocation
def fill_packed(ids, starts, lengths, bounds, which, out, segments, positions):
    """Writes packed rows: their ids, the numbers of their segments from 1 on, and places within these.

    Args:
        ids: int32, all rows one after another.
        starts, lengths: int64[n], where each segment's ids are.
        bounds: int64[k + 1], the segments of packed row i are those from bounds[i] to bounds[i + 1].
        which: int64[m], the packed rows to write.
        out, segments, positions: int32[m, length], filled in; cells of padding stay as they are.
    """
    for k in range(len(which)):
        at = 0
        first = bounds[which[k]]
        for segment in range(first, bounds[which[k] + 1]):
            for place in range(lengths[segment]):
                out[k, at] = ids[starts[segment] + place]
                segments[k, at] = segment - first + 1
                positions[k, at] = place
                at += 1
