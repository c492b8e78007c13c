"""The rows of a split in the order of its epochs, read by their positions there.

An epoch is a permutation of the shards, and of the rows within windows of each shard, the same for any
number of readers. `build` has shuffled the corpus across the shards, so windows suffice. The order is
that of hashes of the row's number, the seed and the epoch (`EpochOrder`), so it is the same on every
machine, and any row's position in it is computed without reading a record. `ListedOrder` has the number
of each row, in any order. `mixture.MixedRows` mixes the orders of several splits.
"""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from tokcore.corpus.order_keys import splitmix64
from tokcore.reading.corpus_order import read_corpus_order, shards_digest
from tokcore.reading.shards import EncodedRows, ShardFile, rows_at_once
from tokcore.reading.split_rows import SplitRows


class OrderedRows(Protocol):
    """Rows in an order for each epoch, of which a window is read at once; for one thread."""

    identity: str
    """A hash, in hexadecimal, of all that a position means."""

    differs: str
    """What is wrong with a state of another identity."""

    def rows(self, epoch: int) -> int:
        """Returns the number of rows of an epoch."""

    def window_count(self, epoch: int) -> int:
        """Returns the number of windows of an epoch, none of which is empty."""

    def window_start(self, epoch: int, number: int) -> int:
        """Returns the position at which a window begins; after the last one, the number of rows."""

    def read(self, epoch: int, positions: np.ndarray) -> tuple[np.ndarray, EncodedRows]:
        """Reads the rows at ascending positions, int64; returns the positions of sound rows, and these.

        Raises:
            InputError: a row is damaged, and damage is not skipped.
        """


_WINDOW_ROWS = 1 << 16
"""Rows that are read, and permuted, together by default; fewer where rows are long."""


class Shuffle(NamedTuple):
    """How rows are shuffled.

    Attributes:
        window_rows: rows that are read, and permuted, together; None: 65,536, or fewer if they are long.
        seed: of the order; None: rows are in the order in which they are stored.
        is_exact: whether an epoch is one permutation of all rows.
        is_corpus: whether rows are in the order of the corpus.
    """

    window_rows: int | None
    seed: int | None
    is_exact: bool = False
    is_corpus: bool = False


class SplitInOrder(OrderedRows):
    """The rows of a split."""

    def __init__(
        self,
        split: str,
        folder: str,
        shards: Sequence[ShardFile],
        features: Sequence[str],
        id_counts: Mapping[str, int],
        shuffle: Shuffle,
        skips: bool,
        keeps_window: bool = False,
    ):
        """Takes the shards.

        Args:
            split: its name.
            folder: of the dataset.
            shards: the files.
            features: those that are read.
            id_counts: by feature, how many ids its vocabulary has.
            shuffle: the order.
            skips: whether damaged rows are skipped; those that are read one by one cannot be.
            keeps_window: whether the rows of the last window are kept, for reading it in parts.
        """
        self._shuffle, self._features = shuffle, features
        self.window_rows = shuffle.window_rows or rows_at_once(shards, _WINDOW_ROWS)
        self._shard_rows = tuple(shard.rows for shard in shards)
        self.identity = shards_digest(shards).hex()
        self.differs = f'of other shards than those of {split} in {folder}: their checksums differ'
        if shuffle.is_corpus:
            numbers = read_corpus_order(folder, split, shards)
            self._in_corpus = ListedOrder(numbers, self.window_rows)
        self._by_number = SplitRows(shards, features, id_counts, skips)
        for number, shard in enumerate(shards):
            if not shard.rows:
                self._by_number.reader(number)  # no window will open it, and it may have rows
        if keeps_window:
            self._read_shard = functools.lru_cache(maxsize=1)(self._read_shard)  # type: ignore[method-assign]

    def rows(self, epoch: int) -> int:
        return sum(self._shard_rows)

    def window_count(self, epoch: int) -> int:
        return self._order(epoch).window_count

    def window_start(self, epoch: int, number: int) -> int:
        return self._order(epoch).window_start(number)

    def read(self, epoch: int, positions: np.ndarray) -> tuple[np.ndarray, EncodedRows]:
        order = self._order(epoch)
        if isinstance(order, ListedOrder):
            return positions, self._by_number.encoded(order.numbers[positions])
        parts = [(np.empty(0, np.int64), EncodedRows.empty(self._features))]
        while len(positions):
            window = order.window(order.window_of(int(positions[0])))
            end = int(np.searchsorted(positions, window.position + window.last - window.first))
            numbers = order.rows_of(window)[positions[:end] - window.position]
            sound, rows = self._read_shard(window.shard, window.first, window.last)
            row_of = np.full(window.last - window.first, -1, np.int64)
            row_of[sound - window.first] = np.arange(len(sound))
            is_sound = row_of[numbers] >= 0
            parts.append((positions[:end][is_sound], rows.take(row_of[numbers[is_sound]])))
            positions = positions[end:]
        return (
            np.concatenate([part[0] for part in parts]),
            EncodedRows.joined([part[1] for part in parts]),
        )

    def _read_shard(self, shard: int, first: int, last: int) -> tuple[np.ndarray, EncodedRows]:
        return self._by_number.reader(shard).read(first, last)

    @functools.lru_cache(maxsize=2)  # noqa: B019 - a mixture reads the end of one epoch and the next
    def _order(self, epoch: int) -> EpochOrder | ListedOrder:
        shuffle = self._shuffle
        if shuffle.is_corpus:
            return self._in_corpus
        if shuffle.is_exact:
            assert shuffle.seed is not None
            return ListedOrder.exact(sum(self._shard_rows), self.window_rows, shuffle.seed, epoch)
        return EpochOrder(self._shard_rows, self.window_rows, shuffle.seed, epoch)


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
