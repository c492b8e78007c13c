"""The order of an epoch: whole shards permuted, and rows within windows of a shard.

Shards hold the corpus shuffled already, so windows suffice. Every number depends on seed and epoch
alone, and on no library's generator: orders are sorted hashes, the same everywhere.
"""

from __future__ import annotations

import bisect
import functools
import itertools
from dataclasses import dataclass

import numpy as np

WINDOW_ROWS = 1 << 16

_GOLDEN, _FIRST, _SECOND = (
    np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Returns hashes of uint64 numbers (Steele, Lea and Flood's SplitMix64, 2014)."""
    with np.errstate(over='ignore'):
        mixed = numbers + _GOLDEN
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
        mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
        return mixed ^ (mixed >> np.uint64(31))


def permutation(count: int, *seeds: int) -> np.ndarray:
    """Returns the numbers below `count`, int64, in an order that the seeds give."""
    state = np.zeros(1, np.uint64)
    for each in seeds:
        state = _mixed(state ^ np.uint64(each & 0xFFFFFFFFFFFFFFFF))
    return np.argsort(_mixed(state ^ _mixed(np.arange(count, dtype=np.uint64))), kind='stable')


@dataclass(frozen=True)
class Window:
    """Rows `first` to `last` of a shard; in an epoch's order they begin at `position`."""

    shard: int
    first: int
    last: int
    position: int


@dataclass(frozen=True)
class EpochOrder:
    """The order of one epoch, of which a reader has a part.

    Attributes:
        shard_rows: how many rows each shard has.
        window_rows: the rows that are permuted together, at most.
        seed: of the order; None: rows come as they are stored.
        epoch: counted from 0.
    """

    shard_rows: tuple[int, ...]
    window_rows: int
    seed: int | None
    epoch: int

    @property
    def rows(self) -> int:
        """How many rows an epoch has."""
        return sum(self.shard_rows)

    def share(self, readers: int, reader: int) -> tuple[int, int]:
        """Returns the positions of one of several readers: as many as of any other, or one less."""
        return self.rows * reader // readers, self.rows * (reader + 1) // readers

    @functools.cached_property
    def _shards(self) -> list[int]:
        """The shards in their order."""
        shards = np.arange(len(self.shard_rows))
        if self.seed is not None:
            shards = permutation(len(shards), self.seed, self.epoch)
        return shards.tolist()

    @functools.cached_property
    def _positions(self) -> list[int]:
        """Where each shard in the order begins, and the end."""
        return [*itertools.accumulate((self.shard_rows[each] for each in self._shards), initial=0)]

    @functools.cached_property
    def _first_windows(self) -> list[int]:
        """The number of the first window of each shard in the order, and how many there are."""
        counts = (-(-self.shard_rows[each] // self.window_rows) for each in self._shards)
        return [*itertools.accumulate(counts, initial=0)]

    @property
    def window_count(self) -> int:
        """How many windows there are; none is empty. They are never listed: rows may be a claim."""
        return self._first_windows[-1]

    def window(self, number: int) -> Window:
        """Returns a window by its number, counted in the order."""
        place = bisect.bisect(self._first_windows, number) - 1
        shard = self._shards[place]
        first = (number - self._first_windows[place]) * self.window_rows
        last = min(first + self.window_rows, self.shard_rows[shard])
        return Window(shard, first, last, self._positions[place] + first)

    def window_of(self, position: int) -> int:
        """Returns the number of the window that has a position."""
        place = bisect.bisect(self._positions, position) - 1
        return self._first_windows[place] + (position - self._positions[place]) // self.window_rows

    def rows_of(self, window: Window) -> np.ndarray:
        """Returns the rows of a window in the epoch's order: int64, counted from its first."""
        count = window.last - window.first
        if self.seed is None:
            return np.arange(count)
        return permutation(count, self.seed, self.epoch, window.shard, window.first)
