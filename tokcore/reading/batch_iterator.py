"""Batches of a split, one after another, whose state is a small JSON value at every moment."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.errors import InputError
from tokcore.reading.batch_rules import (
    LEFT_OUT,
    Batch,
    BatchRule,
    part_batches,
    waiting_rows,
    whole_batches,
)
from tokcore.reading.epoch_order import EpochOrder
from tokcore.reading.shards.open_shard import open_shard
from tokcore.reading.shards.rows import Rows

STATE_FORMAT = 1


@dataclass(frozen=True)
class Reading:
    """What a reader reads, and in which order.

    Attributes:
        paths: of the shards.
        shard_rows: how many rows each has.
        window_rows: rows that are permuted together.
        seed: of the order; None: as stored.
        readers, reader: how many there are, and which of them this is.
        epochs: how many; None: without end.
        first_epoch: the number of the first.
        drop_remainder: whether rows that fill no batch at an epoch's end are left out.
        skips: whether damaged records are passed over and counted.
    """

    paths: tuple[str, ...]
    shard_rows: tuple[int, ...]
    window_rows: int
    seed: int | None
    readers: int = 1
    reader: int = 0
    epochs: int | None = 1
    drop_remainder: bool = False
    skips: bool = False
    first_epoch: int = 0

    def order(self, epoch: int) -> EpochOrder:
        return EpochOrder(self.shard_rows, self.window_rows, self.seed, epoch)


@dataclass
class _Place:
    """Where an iterator is: so many batches of a window have been given, after those before it."""

    epoch: int = 0
    window: int = 0  # of the reader's own, the last is none: what waits is given there
    batch: int = 0
    waiting: tuple[int, ...] = ()  # positions of rows that wait for their batch since before it


class BatchIterator:
    """Iterates over batches; see `Dataset.batches`.

    Attributes:
        left_out: so far, rows by reason: `damaged`, `length` (of which no batch has one, or which
            are empty), `remainder`.
    """

    def __init__(self, rule: BatchRule, reading: Reading, arguments: dict[str, object]):
        """Takes what `Dataset.batches` made of its arguments, which the state repeats."""
        self._rule, self._reading, self._arguments = rule, reading, arguments
        self._sizes = rule.sizes
        self._shards = [
            open_shard(path, rows, rule.features, reading.skips)
            for path, rows in zip(reading.paths, reading.shard_rows, strict=True)
        ]
        self._place = _Place(reading.first_epoch)
        self._batches: Iterator[Batch] | None = None
        self._waiting: tuple[np.ndarray, Rows] | None = None  # of the place where this is
        self.left_out = {'damaged': 0, 'length': 0, 'remainder': 0}
        self._cells = self._ids = 0

    def __iter__(self) -> BatchIterator:
        return self

    def __next__(self) -> Batch:
        while True:
            if self._batches is None:
                epochs = self._reading.epochs
                if epochs is not None and self._place.epoch == self._reading.first_epoch + epochs:
                    raise StopIteration
                self._batches = self._window()
            batch = next(self._batches, None)
            if batch is not None:
                self._place.batch += 1
                self._tally(batch)
                return batch
            self._batches = None

    @property
    def padding_share(self) -> float:
        """The share of padding in the arrays given so far, from 0 to 1."""
        return 1 - self._ids / self._cells if self._cells else 0.0

    def _tally(self, batch: Batch) -> None:
        for name, array in batch.items():
            if array.ndim == 2:
                self._cells += array.size
        self._ids += self._rule_ids(batch)

    @staticmethod
    def _rule_ids(batch: Batch) -> int:
        """How many of a batch's cells are ids."""
        if 'target_input' in batch:
            source = batch.get('source_sequence_length', np.zeros(0, np.int32))
            return int(source.sum()) + 2 * int(batch['target_sequence_length'].sum())
        return sum(int(each.sum()) for name, each in batch.items() if name.endswith('_length'))

    def _own_windows(self, order: EpochOrder) -> list[tuple[int, int]]:
        """The parts of windows that are this reader's, as positions."""
        first, last = order.share(self._reading.readers, self._reading.reader)
        found = []
        for window in order.windows:
            end = window.position + window.last - window.first
            start, stop = max(first, window.position), min(last, end)
            if start < stop:
                found.append((start, stop))
        return found

    def _window(self) -> Iterator[Batch]:
        """Yields the batches of the window where this is, and then goes on to the next."""
        place = self._place
        order = self._reading.order(place.epoch)
        own = self._own_windows(order)
        waiting = np.array(place.waiting, np.int64)
        parts = [self._rows_at(order, waiting) if self._waiting is None else self._waiting]
        is_end = place.window == len(own)
        if not is_end:
            parts.append(self._read(order, *own[place.window]))
        positions = np.concatenate([each[0] for each in parts])
        rows = Rows.joined([each[1] for each in parts])
        looked_at = self._rule.look_at(rows)
        buckets = looked_at.buckets
        batches = part_batches if is_end else whole_batches
        if is_end and self._reading.drop_remainder:
            batches = _no_batches
        for number, (which, bucket) in enumerate(batches(buckets, self._sizes)):
            if number >= place.batch:
                yield looked_at.batch(which, bucket)
        if is_end:
            self.left_out['remainder'] += len(waiting) if self._reading.drop_remainder else 0
            self._place, self._waiting = _Place(place.epoch + 1), None
            return
        start, stop = own[place.window]
        self.left_out['damaged'] += stop - start - len(parts[1][0])
        self.left_out['length'] += int(np.count_nonzero(buckets == LEFT_OUT))
        still = waiting_rows(buckets, self._sizes)
        self._waiting = positions[still], rows.take(still)
        self._place = _Place(
            place.epoch, place.window + 1, 0, tuple(positions[still].tolist())
        )

    def _read(self, order: EpochOrder, start: int, stop: int) -> tuple[np.ndarray, Rows]:
        """Reads positions within one window: those of the rows that are sound, and these rows."""
        window = order.windows[order.window_of(start)]
        wanted = order.rows_of(window)[start - window.position : stop - window.position]
        return self._wanted(window.shard, window.first, window.last, wanted, np.arange(start, stop))

    def _wanted(
        self, shard: int, first: int, last: int, wanted: np.ndarray, positions: np.ndarray
    ) -> tuple[np.ndarray, Rows]:
        """Returns the sound ones of `wanted` rows, counted from `first`, with their positions."""
        numbers, rows = self._shards[shard].read(first, last)
        places = np.full(last - first, -1, np.int64)
        places[numbers - first] = np.arange(len(numbers))
        found = places[wanted]
        return positions[found >= 0], rows.take(found[found >= 0])

    def _rows_at(self, order: EpochOrder, positions: np.ndarray) -> tuple[np.ndarray, Rows]:
        """Reads the rows at some ascending positions."""
        empty = Rows(
            {name: np.empty(0, np.int32) for name in self._rule.features},
            {name: np.zeros(1, np.int64) for name in self._rule.features},
        )
        found = [(np.empty(0, np.int64), empty)]
        windows = [order.window_of(int(each)) for each in positions]
        for number in sorted(set(windows)):
            window = order.windows[number]
            own = positions[np.array(windows) == number]
            rows = order.rows_of(window)[own - window.position]
            found.append(self._wanted(window.shard, window.first, window.last, rows, own))
        return np.concatenate([each[0] for each in found]), Rows.joined([each[1] for each in found])

    def signature(self) -> dict[str, tuple[tuple[int | None, ...], type]]:
        """Returns the shape and dtype of each array of a batch; None is what differs."""
        return self._rule.signature()

    def state(self) -> dict[str, object]:
        """Returns where this is, as JSON can hold it; `Dataset.from_state` goes on behind it."""
        place = self._place
        return {
            'format': STATE_FORMAT,
            'arguments': self._arguments,
            'shards': self._fingerprint,
            'epoch': place.epoch,
            'window': place.window,
            'batch': place.batch,
            'waiting': list(place.waiting),
            'left_out': dict(self.left_out),
            'cells': self._cells,
            'ids': self._ids,
        }

    @property
    def _fingerprint(self) -> str:
        return f'{zlib.crc32(repr(self._reading.shard_rows).encode()):08x}'

    def go_to(self, state: dict[str, object]) -> None:
        """Goes to where another iterator with the same arguments was.

        Raises:
            InputError: the state is of another dataset.
        """
        if state['shards'] != self._fingerprint:
            raise InputError('the state is of other shards; give that of this dataset')
        self._place = _Place(
            state['epoch'], state['window'], state['batch'], tuple(state['waiting'])
        )
        self.left_out = dict(state['left_out'])
        self._cells, self._ids = state['cells'], state['ids']
        self._batches = self._waiting = None


def _no_batches(buckets: np.ndarray, sizes: np.ndarray) -> Sequence[tuple[np.ndarray, int]]:
    return ()

