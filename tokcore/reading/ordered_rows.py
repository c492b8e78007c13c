"""The rows of a split in the order of its epochs, read by their positions there.

`SplitInOrder` has the orders of `epoch_order`; `mixture.MixedRows` mixes those of several splits.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from tokcore.reading.corpus_order import read_corpus_order, shards_digest
from tokcore.reading.epoch_order import EpochOrder, ListedOrder
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
