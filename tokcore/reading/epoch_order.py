"""The order of a split's rows in an epoch, the same for any number of readers.

An epoch is a permutation of the shards, and of the rows within windows of each shard. `build` has
shuffled the corpus across the shards, so windows suffice. The order is that of hashes of the row's
number, the seed and the epoch, so it is the same on every machine, and any row's position in it is
computed without reading a record. `ListedOrder` has the number of each row, in any order.
"""

from __future__ import annotations

import bisect
import functools
import itertools
from dataclasses import dataclass

import numpy as np

from tokcore.corpus.order_keys import splitmix64


@dataclass(frozen=True)
class EpochOrder:
    """The order of all rows in one epoch; a position in it is a number below `rows`.

    Attributes:
        shard_rows: the number of rows of each shard.
        window_rows: rows that are permuted together, at most.
        seed: of the order; None: rows are in the order in which they are stored.
        epoch: its number, from 0.
    """

    shard_rows: tuple[int, ...]
    window_rows: int
    seed: int | None
    epoch: int

    @property
    def rows(self) -> int:
        """The number of rows of an epoch."""
        return sum(self.shard_rows)

    @functools.cached_property
    def _shards(self) -> list[int]:
        """The numbers of the shards, in order."""
        shards = np.arange(len(self.shard_rows))
        if self.seed is not None:
            shards = permutation(len(shards), self.seed, self.epoch)
        return shards.tolist()

    @functools.cached_property
    def _positions(self) -> list[int]:
        """The position at which each shard begins, in order, and the number of rows."""
        sizes = (self.shard_rows[shard] for shard in self._shards)
        return [*itertools.accumulate(sizes, initial=0)]

    @functools.cached_property
    def _first_windows(self) -> list[int]:
        """The number of each shard's first window, in order, and the number of windows."""
        counts = (-(-self.shard_rows[shard] // self.window_rows) for shard in self._shards)
        return [*itertools.accumulate(counts, initial=0)]

    @property
    def window_count(self) -> int:
        """The number of windows, none of which is empty.

        They are never listed: the manifest may claim any number of rows.
        """
        return self._first_windows[-1]

    def window(self, number: int) -> Window:
        """Returns a window by its number in the order."""
        index = bisect.bisect(self._first_windows, number) - 1
        shard = self._shards[index]
        first = (number - self._first_windows[index]) * self.window_rows
        last = min(first + self.window_rows, self.shard_rows[shard])
        return Window(shard, first, last, self._positions[index] + first)

    def window_start(self, number: int) -> int:
        """Returns the position at which a window begins; after the last one, the number of rows."""
        return self.rows if number == self.window_count else self.window(number).position

    def window_of(self, position: int) -> int:
        """Returns the number of the window that has a position."""
        index = bisect.bisect(self._positions, position) - 1
        return self._first_windows[index] + (position - self._positions[index]) // self.window_rows

    def rows_of(self, window: Window) -> np.ndarray:
        """Returns the rows of a window in the epoch's order: int64, counted from its first."""
        count = window.last - window.first
        if self.seed is None:
            return np.arange(count)
        return permutation(count, self.seed, self.epoch, window.shard, window.first)


@dataclass(frozen=True)
class Window:
    """Rows `first` up to `last` of a shard; in an epoch's order they begin at `position`."""

    shard: int
    first: int
    last: int
    position: int


@dataclass(frozen=True, eq=False)
class ListedOrder:
    """Any order of all rows, which takes 8 bytes of memory for each row.

    Attributes:
        numbers: int64[rows], the number of the row at each position.
        window_rows: rows that are read together.
    """

    numbers: np.ndarray
    window_rows: int

    @classmethod
    def exact(cls, rows: int, window_rows: int, seed: int, epoch: int) -> ListedOrder:
        """Returns one permutation of all rows, that of an epoch; no window keeps its rows."""
        return cls(permutation(rows, seed, epoch), window_rows)

    @property
    def window_count(self) -> int:
        """The number of windows, none of which is empty."""
        return -(-len(self.numbers) // self.window_rows)

    def window_start(self, number: int) -> int:
        """Returns the position at which a window begins; after the last one, the number of rows."""
        return min(number * self.window_rows, len(self.numbers))


def permutation(count: int, *seeds: int) -> np.ndarray:
    """Returns the numbers below `count`, int64, in an order that depends on the seeds alone."""
    state = np.zeros(1, np.uint64)
    for seed in seeds:
        state = splitmix64(state ^ np.uint64(seed & 0xFFFFFFFFFFFFFFFF))
    hashes = splitmix64(state ^ splitmix64(np.arange(count, dtype=np.uint64)))
    return np.argsort(hashes, kind='stable')
