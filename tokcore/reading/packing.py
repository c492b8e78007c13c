"""Rules that put several rows into one of a fixed length, so that batches have hardly any padding.

    best-fit   the longest rows of a window first, each where the least room is left after it; it is the
               best-fit decreasing of "Fewer Truncations Improve Language Modeling" (Ding et al., 2024)
    greedy     rows in their order, each into the first of ten open packed rows that has room, as
               Tensor2Tensor's `pack_examples` (data_generators/generator_utils.py), without its spacing
    concat     rows in their order, one after another, cut where a packed row is full

A packed row has all of its rows as segments, with their numbers from 1 on and positions from 0 on, so
that attention can be kept within each. Rows that fill no batch wait for the next window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tokcore.kernels.bytes import row_offsets
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import trailing_zeros
from tokcore.reading.batching import (
    Batch,
    BatchedRows,
    Ids,
    Part,
    Signature,
    Starts,
    with_ends,
)

Strategy = Literal['best-fit', 'greedy', 'concat']

_OPEN_ROWS = 10
"""Packed rows that are open at once by `greedy`: Tensor2Tensor's queue."""


@dataclass(frozen=True)
class PackedBatches:
    """A batch has a fixed number of packed rows.

    Attributes:
        length: ids of each feature in a packed row, padding included.
        batch_size: packed rows of a batch.
        strategy: how rows are packed.
        pads: by feature the id of padding.
        features: those of the rows. Of a single one, longer rows are cut; longer pairs are left out.
        ends: by feature the id that is added to each row; features without one stay as they are.
    """

    length: int
    batch_size: int
    strategy: Strategy
    pads: Mapping[str, int]
    features: tuple[str, ...]
    ends: Mapping[str, int] = field(default_factory=dict)

    def pieces(self, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        has_ids: np.ndarray = np.any(lengths, axis=0)
        lengths = with_ends(lengths, self.features, self.ends)
        if self.strategy == 'concat':
            counts = has_ids.astype(np.int64)
        elif len(self.features) == 1:
            counts = np.where(has_ids, -(-lengths[0] // self.length), 0)
        else:
            counts = ((lengths.max(axis=0) <= self.length) & has_ids).astype(np.int64)
        rows = np.repeat(np.arange(lengths.shape[1]), counts)
        return rows, (np.arange(len(rows)) - row_offsets(counts)[rows]) * self.length

    def lengths_at(self, lengths: np.ndarray, starts: np.ndarray) -> np.ndarray | None:
        lengths = with_ends(lengths, self.features, self.ends)
        if len(self.features) > 1:
            is_start = (starts == 0) & (lengths.max(axis=0) <= self.length)
        else:
            lengths = lengths - starts
            is_start = lengths[0] > 0
            if self.strategy != 'concat':
                lengths = np.minimum(lengths, self.length)
        return lengths if is_start.all() else None

    def arrange(self, lengths: np.ndarray) -> BatchedRows:
        return _PackedRows(self, lengths)

    def cells(self, batch: Batch) -> tuple[int, int]:
        numbers = [batch[f'{name}_segmentation'] for name in self.features]
        return sum(segments.size for segments in numbers), sum(
            int(np.count_nonzero(segments)) for segments in numbers
        )

    def signature(self) -> Signature:
        return {
            f'{name}{suffix}': ((None, self.length), np.int32)
            for name in self.features
            for suffix in ('', '_segmentation', '_position')
        }


class _PackedRows:
    """Pieces of rows in packed rows, which are numbered in their order."""

    left_out = 0

    def __init__(self, rule: PackedBatches, lengths: np.ndarray):
        self._rule, self._lengths = rule, lengths
        if rule.strategy == 'concat':
            self._concatenate()
        else:
            self._pack_whole()

    def _pack_whole(self) -> None:
        """Packs whole pieces."""
        packed_of, count = self._packed_of()
        sizes = self._lengths.sum(axis=0)
        whole = count - count % self._rule.batch_size
        rank = np.arange(count)
        if self._rule.strategy == 'best-fit':
            # The emptiest wait, and the others come as the first of their rows did:
            # otherwise batches would begin with the longest rows.
            firsts = np.full(count, len(packed_of))
            np.minimum.at(firsts, packed_of, np.arange(len(packed_of)))
            filled = np.bincount(packed_of, sizes, count)
            order = np.lexsort((firsts, -filled))
            order = np.concatenate([np.sort(firsts[order[:whole]]), firsts[order[whole:]]])
            rank[packed_of[order]] = np.arange(count)
        packed_of = rank[packed_of]
        self._pieces = np.argsort(packed_of, kind='stable')
        self._bounds = np.searchsorted(packed_of[self._pieces], np.arange(count + 1))
        self._starts = np.zeros(len(self._pieces), np.int64)  # in its piece, of each segment
        self._sizes = self._lengths[:, self._pieces]
        self._whole = whole

    def _packed_of(self) -> tuple[np.ndarray, int]:
        """Returns the packed row of each piece, int64, and the number of packed rows."""
        rule, lengths = self._rule, read_only(self._lengths)
        count = lengths.shape[1]
        room, packed_of = np.empty_like(self._lengths), np.empty(count, np.int64)
        if rule.strategy == 'greedy':
            return packed_of, first_fit(lengths, rule.length, _OPEN_ROWS, room, packed_of)
        order = np.argsort(-lengths.max(axis=0, initial=0), kind='stable')
        heads = np.full(rule.length + 1, -1)
        marks = np.zeros(rule.length // 64 + 1, np.uint64)
        following = np.empty(count, np.int64)
        return packed_of, best_fit(
            lengths, read_only(order), rule.length, marks, heads, following, room, packed_of
        )

    def _concatenate(self) -> None:
        """Cuts the pieces, one after another, where packed rows begin."""
        offsets, length = row_offsets(self._lengths[0]), self._rule.length
        total = int(offsets[-1])
        starts = np.union1d(offsets[:-1], np.arange(0, total, length))
        count = -(-total // length)
        self._pieces = np.searchsorted(offsets, starts, side='right') - 1
        self._bounds = np.searchsorted(starts, np.arange(count + 1) * length)
        self._starts = starts - offsets[self._pieces]
        self._sizes = np.diff(np.append(starts, total))[None, :]
        full = total // length
        self._whole = full - full % self._rule.batch_size

    def _batches(self, rows: int) -> list[Part]:
        size = self._rule.batch_size
        return [(np.arange(at, min(at + size, rows)), 0) for at in range(0, rows, size)]

    def full_batches(self) -> list[Part]:
        return self._batches(self._whole)

    def partial_batches(self) -> list[Part]:
        return self._batches(len(self._bounds) - 1)

    def waiting(self) -> tuple[np.ndarray, int]:
        first = self._bounds[self._whole]
        waiting = np.unique(self._pieces[first:])
        return waiting, int(self._starts[first]) if len(waiting) else 0

    def can_all_wait(self) -> bool:
        room = self._rule.batch_size * self._rule.length
        return bool((self._lengths.sum(axis=1) < room).all())

    def pieces_of(self, which: np.ndarray) -> np.ndarray:
        return self._pieces[self._segments_of(which)]

    def ids_in(self, which: np.ndarray) -> int:
        return int(self._sizes[:, self._segments_of(which)].sum())

    def _segments_of(self, which: np.ndarray) -> np.ndarray:
        firsts, lasts = self._bounds[which], self._bounds[which + 1]
        if (lasts[:-1] == firsts[1:]).all():  # as those of a batch are
            return np.arange(firsts[0], lasts[-1])
        counts = lasts - firsts
        return np.arange(counts.sum()) + np.repeat(lasts - np.cumsum(counts), counts)

    def batch(self, which: np.ndarray, bucket: int, ids: Ids, starts: Starts) -> Batch:
        batch, shape = {}, (len(which), self._rule.length)
        of_batch = self._segments_of(which)
        counts = self._bounds[which + 1] - self._bounds[which]
        for name, sizes in zip(
            self._rule.features, self._sizes.take(of_batch, axis=1), strict=True
        ):
            out = np.full(shape, self._rule.pads[name], np.int32)
            segments, positions = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
            firsts = starts[name] + self._starts[of_batch]
            fill_packed(ids[name], firsts, sizes, counts, out, segments, positions)
            batch[name] = out
            batch[f'{name}_segmentation'] = segments
            batch[f'{name}_position'] = positions
        return batch


_MOST_TRIED = 64
"""Packed rows tried for a pair that may have room for both sides: there can be many that have not."""


@kernel_without_allocation
def _next_marked(marks, space):
    """Returns the first number from this on whose bit is set, or -1."""
    word = space >> 6
    if word >= len(marks):
        return -1
    bits = marks[word] >> np.uint64(space & 63) << np.uint64(space & 63)
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
        space = _next_marked(marks, shortest)
        while space >= 0 and chosen < 0:
            if space < longest and tried == _MOST_TRIED:
                space = _next_marked(marks, longest)
                continue
            before, packed = -1, heads[space]
            while packed >= 0 and chosen < 0 and (space >= longest or tried < _MOST_TRIED):
                tried += 1
                has_room = True
                for feature in range(lengths.shape[0]):
                    has_room &= lengths[feature, row] <= room[feature, packed]
                if has_room:
                    chosen = packed
                else:
                    before, packed = packed, following[packed]
            if chosen < 0:
                space = _next_marked(marks, space + 1)
        if chosen < 0:
            chosen = count
            count += 1
            for feature in range(lengths.shape[0]):
                room[feature, chosen] = capacity
        elif before >= 0:
            following[before] = following[chosen]
        else:
            heads[space] = following[chosen]
            if heads[space] < 0:
                marks[space >> 6] &= ~(np.uint64(1) << np.uint64(space & 63))
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
def fill_packed(ids, starts, lengths, counts, out, segments, positions):
    """Writes packed rows: their ids, the numbers of their segments from 1 on, and places within these.

    Args:
        ids: int32, in which all segments are.
        starts, lengths: int64[n], where each segment's ids are.
        counts: int64[k], how many segments each packed row has.
        out, segments, positions: int32[k, length], filled in; cells of padding stay as they are.
    """
    first = 0
    for k in range(len(counts)):
        at = 0
        for segment in range(first, first + counts[k]):
            for place in range(lengths[segment]):
                out[k, at] = ids[starts[segment] + place]
                segments[k, at] = segment - first + 1
                positions[k, at] = place
                at += 1
        first += counts[k]
