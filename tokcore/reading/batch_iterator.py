"""Iterates over the batches of a split; its state is a small JSON value at every moment.

An epoch is a permutation of the shards, and of the rows within windows of each shard. `build` has
shuffled the corpus across the shards, so windows suffice. The order is that of hashes of the row's
number, the seed and the epoch, so it is the same on every machine, and any row's position in it is
computed without reading a record.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tokcore.checked_json import Within, WrongValue, checked
from tokcore.corpus.order_keys import splitmix64
from tokcore.errors import InputError
from tokcore.format_numbers import ITERATOR_STATE, check_format
from tokcore.reading.batching import (
    LEFT_OUT,
    Batch,
    BatchRule,
    BucketedRows,
    Signature,
    full_batches,
    partial_batches,
    waiting_rows,
)
from tokcore.reading.shards import EncodedRows, ShardFile, open_shard

_MOST_EMPTY_EPOCHS = 100
"""Epochs without a batch until an iterator gives up; it would seem to hang if it went on."""

_Count = Annotated[int, Within(0, (1 << 63) - 1)]

WINDOW_ROWS = 1 << 16
"""Rows that are permuted together by default; they are in memory at once."""


@dataclass(frozen=True)
class ReaderOptions:
    """What one reader of a split reads, and in which order.

    Attributes:
        folder: of the dataset, for errors.
        shards: the files.
        id_counts: by feature, how many ids its vocabulary has.
        window_rows: rows that are permuted together.
        seed: of the order; None: as stored.
        readers, reader: the number of readers, and which of them this is.
        epochs: how many; None: without end.
        drop_remainder: whether rows that fill no batch at an epoch's end are left out.
        skips: whether damaged records are skipped and counted.
        first_epoch: the number of the first.
    """

    folder: str
    shards: tuple[ShardFile, ...]
    id_counts: Mapping[str, int]
    window_rows: int
    seed: int | None
    readers: int = 1
    reader: int = 0
    epochs: int | None = 1
    drop_remainder: bool = False
    skips: bool = False
    first_epoch: int = 0

    def order(self, epoch: int) -> EpochOrder:
        """Returns the order of an epoch."""
        shard_rows = tuple(shard.rows for shard in self.shards)
        return EpochOrder(shard_rows, self.window_rows, self.seed, epoch)

    @property
    def end_epoch(self) -> int | None:
        """The number of the epoch at which to stop; None: never."""
        return None if self.epochs is None else self.first_epoch + self.epochs

    @functools.cached_property
    def identity(self) -> str:
        """A hash of the shards' sizes and checksums, in hexadecimal: the same in any folder."""
        shards = [(shard.rows, shard.bytes, shard.crc32c) for shard in self.shards]
        return hashlib.sha256(repr(shards).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class IteratorState:
    """The state of a `BatchIterator`, as JSON holds it.

    Attributes:
        format: `ITERATOR_STATE` of `format_numbers`.
        arguments: of `Dataset.batches`, and the split.
        dataset: the identity of the split's shards.
        place: where the iterator is.
        left_out: the rows left out so far, by reason.
        cells, ids: the number of cells in all arrays so far, and of ids in them.
    """

    format: int
    arguments: dict[str, object]
    dataset: str
    place: _Place
    left_out: LeftOut
    cells: _Count
    ids: _Count

    @classmethod
    def read(cls, state: object) -> IteratorState:
        """Checks a value of JSON; raises InputError if it is not a state of this format."""
        try:
            number = checked(state, _Format, 'the state').format
            remedy = 'begin the epoch again, and keep a new state'
            check_format('the state', number, ITERATOR_STATE, remedy)
            return checked(state, cls, 'the state')
        except WrongValue as error:
            raise InputError(
                f'this is not a state of batches ({error}); give what state() returned'
            ) from error


class BatchIterator:
    """Iterates over batches, as `Dataset.batches` describes them; for one thread."""

    def __init__(self, rule: BatchRule, options: ReaderOptions, arguments: dict[str, object]):
        """Takes the rule and the options, and the arguments of both that the state repeats."""
        self._rule, self._options, self._arguments = rule, options, arguments
        self._sizes = rule.sizes
        self._shards = [
            open_shard(shard, rule.features, options.id_counts, options.skips)
            for shard in options.shards
        ]
        self._place = _Place.at_start(options.first_epoch)
        self._window: _WindowRows | None = None  # at this place, once it is read
        self._waiting: tuple[np.ndarray, EncodedRows] | None = None  # likewise
        self._left_out = LeftOut(0, 0, 0)
        self._cells = self._ids = 0
        self._empty_epochs = 0  # consecutive ones until now

    @property
    def left_out(self) -> dict[str, int]:
        """The rows left out so far, by reason: `damaged`; `length`, which no bucket takes; and
        `remainder`, which filled no batch at an epoch's end."""
        return dataclasses.asdict(self._left_out)

    def __iter__(self) -> BatchIterator:
        return self

    def __next__(self) -> Batch:
        while self._place.epoch != self._options.end_epoch:
            if self._window is None:
                self._window = self._read_window()
            if self._place.batch < len(self._window.batches):
                batch = self._window.bucketed.batch(*self._window.batches[self._place.batch])
                self._place.batch += 1
                self._empty_epochs = 0
                self._count_cells(batch)
                return batch
            self._go_to_next_window(self._window)
        raise StopIteration

    @property
    def padding_share(self) -> float:
        """The share of padding in the arrays so far, from 0 to 1."""
        return 1 - self._ids / self._cells if self._cells else 0.0

    def _count_cells(self, batch: Batch) -> None:
        self._cells += sum(array.size for array in batch.values() if array.ndim == 2)
        lengths = {name: int(batch[name].sum()) for name in batch if name.endswith('_length')}
        self._ids += sum(lengths.values())
        if 'target_input' in batch:  # the targets stand there twice, as input and as output
            self._ids += lengths['target_sequence_length']

    def _own_windows(self, order: EpochOrder) -> tuple[int, int]:
        """The windows of which this reader has a part: the first number, and one after the last."""
        first, last = order.share(self._options.readers, self._options.reader)
        if first == last:
            return 0, 0
        return order.window_of(first), order.window_of(last - 1) + 1

    def _own_part(self, order: EpochOrder, number: int) -> tuple[int, int]:
        """The positions of this reader's part of a window: the first, and one after the last."""
        first, last = order.share(self._options.readers, self._options.reader)
        window = order.window(number)
        return (
            max(first, window.position),
            min(last, window.position + window.last - window.first),
        )

    def _read_window(self) -> _WindowRows:
        """Reads the window at this place; after the last one the waiting rows make the last batches."""
        place, order = self._place, self._options.order(self._place.epoch)
        if self._waiting is None:
            self._waiting = self._read_positions(order, np.array(place.waiting, np.int64))
        first, end = self._own_windows(order)
        if place.window == end - first:
            bucketed = self._rule.assign_buckets(self._waiting[1])
            batches = [*partial_batches(bucketed.buckets, self._sizes)]
            batches = [] if self._options.drop_remainder else batches
            return _WindowRows(*self._waiting, bucketed, batches, damaged=0)
        start, stop = self._own_part(order, first + place.window)
        positions, rows = self._read_positions(order, np.arange(start, stop))
        damaged = stop - start - len(rows)
        positions = np.concatenate([self._waiting[0], positions])
        rows = EncodedRows.joined([self._waiting[1], rows])
        bucketed = self._rule.assign_buckets(rows)
        batches = [*full_batches(bucketed.buckets, self._sizes)]
        return _WindowRows(positions, rows, bucketed, batches, damaged)

    def _go_to_next_window(self, window: _WindowRows) -> None:
        place, order = self._place, self._options.order(self._place.epoch)
        first, end = self._own_windows(order)
        self._window = None
        if place.window == end - first:
            if self._options.drop_remainder:
                self._left_out.remainder += len(place.waiting)
            self._empty_epochs += 1
            if self._empty_epochs > _MOST_EMPTY_EPOCHS:
                raise InputError(
                    f'{self._options.folder}: no batch came of {_MOST_EMPTY_EPOCHS} epochs of '
                    f'{self._arguments["split"]}, so none may ever come; ask for smaller batches, '
                    'other lengths or fewer readers'
                )
            self._place, self._waiting = _Place.at_start(place.epoch + 1), None
            return
        buckets = window.bucketed.buckets
        self._left_out.damaged += window.damaged
        self._left_out.length += int(np.count_nonzero(buckets == LEFT_OUT))
        waiting = waiting_rows(buckets, self._sizes)
        positions = window.positions[waiting]
        self._waiting = positions, window.rows.take(waiting)
        self._place = _Place(place.epoch, place.window + 1, 0, tuple(positions.tolist()))

    def _read_positions(
        self, order: EpochOrder, positions: np.ndarray
    ) -> tuple[np.ndarray, EncodedRows]:
        """Reads the rows at ascending positions; returns the positions of sound ones, and these."""
        parts = [(np.empty(0, np.int64), EncodedRows.empty(self._rule.features))]
        while len(positions):
            window = order.window(order.window_of(int(positions[0])))
            end = int(np.searchsorted(positions, window.position + window.last - window.first))
            numbers = order.rows_of(window)[positions[:end] - window.position]
            sound, rows = self._shards[window.shard].read(window.first, window.last)
            row_of = np.full(window.last - window.first, -1, np.int64)
            row_of[sound - window.first] = np.arange(len(sound))
            is_sound = row_of[numbers] >= 0
            parts.append((positions[:end][is_sound], rows.take(row_of[numbers[is_sound]])))
            positions = positions[end:]
        return (
            np.concatenate([part[0] for part in parts]),
            EncodedRows.joined([part[1] for part in parts]),
        )

    def signature(self) -> Signature:
        """Returns the shape and dtype of each array of a batch; None where batches differ."""
        return self._rule.signature()

    def state(self) -> dict[str, object]:
        """Returns the state as a value of JSON, from which `Dataset.from_state` goes on."""
        place = self._place
        return {
            'format': ITERATOR_STATE,
            'arguments': self._arguments,
            'dataset': self._options.identity,
            'place': {
                'epoch': place.epoch,
                'window': place.window,
                'batch': place.batch,
                'waiting': list(place.waiting),
            },
            'left_out': self.left_out,
            'cells': self._cells,
            'ids': self._ids,
        }

    def go_to(self, state: IteratorState) -> None:
        """Goes to where another iterator with the same arguments was, and reads the rows there.

        Raises:
            InputError: the state is of another dataset, or of a place where no iterator can be.
        """
        if state.dataset != self._options.identity:
            folder = self._options.folder
            raise InputError(
                f'the state is of other shards than those of {self._arguments["split"]} in {folder}: '
                'their checksums differ; give a state of this dataset'
            )
        if state.ids > state.cells:
            raise _impossible_state(f'it has {state.ids} ids in {state.cells} cells')
        self._left_out, self._cells, self._ids = state.left_out, state.cells, state.ids
        self._place, self._window, self._waiting = state.place, None, None
        self._check_place()

    def _check_place(self) -> None:
        place, options = self._place, self._options
        first, stop = options.first_epoch, options.end_epoch
        if place.epoch < first or (stop is not None and place.epoch > stop):
            epochs = f'from {first} on' if stop is None else f'from {first} to {stop - 1}'
            raise _impossible_state(f'epoch {place.epoch} is not one {epochs}')
        if place.epoch == stop:
            if place != _Place.at_start(place.epoch):
                raise _impossible_state(f'it is within epoch {place.epoch}, after the last')
            return
        order = options.order(place.epoch)
        begin, end = order.share(options.readers, options.reader)
        first_window, end_window = self._own_windows(order)
        if place.window > end_window - first_window:
            raise _impossible_state(
                f'it is at window {place.window} of {end_window - first_window}'
            )
        if place.window < end_window - first_window:
            end = self._own_part(order, first_window + place.window)[0]
        waiting = place.waiting
        if not all(a < b for a, b in zip((begin - 1, *waiting), (*waiting, end), strict=True)):
            raise _impossible_state(f'its {len(waiting)} waiting rows cannot all be waiting there')
        positions, rows = self._read_positions(order, np.array(waiting, np.int64))
        self._left_out.damaged += len(waiting) - len(positions)
        self._waiting = positions, rows
        buckets = self._rule.assign_buckets(rows).buckets
        is_full = next(full_batches(buckets, self._sizes), None) is not None
        if is_full or (buckets == LEFT_OUT).any():
            raise _impossible_state(f'its {len(waiting)} waiting rows do not wait for a batch')
        self._window = self._read_window()
        if place.batch > len(self._window.batches):
            raise _impossible_state(
                f'it is after batch {place.batch} of {len(self._window.batches)} of a window'
            )


@dataclass
class _Place:
    """Where an iterator is.

    Attributes:
        epoch: counted as `ReaderOptions.first_epoch` is.
        window: among the reader's own; after the last one come the batches of waiting rows.
        batch: how many of the window's batches have been returned.
        waiting: positions of rows of earlier windows that filled no batch before this window.
    """

    epoch: _Count
    window: _Count
    batch: _Count
    waiting: tuple[_Count, ...]

    @classmethod
    def at_start(cls, epoch: int) -> _Place:
        return cls(epoch, 0, 0, ())


@dataclass
class LeftOut:
    """How many rows were left out, by reason."""

    damaged: _Count
    length: _Count
    remainder: _Count


@dataclass(frozen=True)
class _Format:
    format: Annotated[int, Within(0, (1 << 31) - 1)]


@dataclass(frozen=True)
class _WindowRows:
    """The waiting rows, and after them the rows of a reader's part of a window.

    Attributes:
        positions: int64[rows], in the epoch's order.
        rows: the rows at these.
        bucketed: the same with their buckets.
        batches: (rows, bucket) of each.
        damaged: how many rows of the window were skipped.
    """

    positions: np.ndarray
    rows: EncodedRows
    bucketed: BucketedRows
    batches: Sequence[tuple[np.ndarray, int]]
    damaged: int


def _impossible_state(problem: str) -> InputError:
    return InputError(
        f'the state is of a place where no iterator can be ({problem}); give what state() returned'
    )


def _permutation(count: int, *seeds: int) -> np.ndarray:
    """Returns the numbers below `count`, int64, in an order that depends on the seeds alone."""
    state = np.zeros(1, np.uint64)
    for seed in seeds:
        state = splitmix64(state ^ np.uint64(seed & 0xFFFFFFFFFFFFFFFF))
    hashes = splitmix64(state ^ splitmix64(np.arange(count, dtype=np.uint64)))
    return np.argsort(hashes, kind='stable')


@dataclass(frozen=True)
class _Window:
    """Rows `first` up to `last` of a shard; in an epoch's order they begin at `position`."""

    shard: int
    first: int
    last: int
    position: int


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

    def share(self, readers: int, reader: int) -> tuple[int, int]:
        """Returns the positions of one of several readers: the first, and one after the last.

        The readers' numbers of rows differ by 1 at most.
        """
        return self.rows * reader // readers, self.rows * (reader + 1) // readers

    @functools.cached_property
    def _shards(self) -> list[int]:
        """The numbers of the shards, in order."""
        shards = np.arange(len(self.shard_rows))
        if self.seed is not None:
            shards = _permutation(len(shards), self.seed, self.epoch)
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

    def window(self, number: int) -> _Window:
        """Returns a window by its number in the order."""
        index = bisect.bisect(self._first_windows, number) - 1
        shard = self._shards[index]
        first = (number - self._first_windows[index]) * self.window_rows
        last = min(first + self.window_rows, self.shard_rows[shard])
        return _Window(shard, first, last, self._positions[index] + first)

    def window_of(self, position: int) -> int:
        """Returns the number of the window that has a position."""
        index = bisect.bisect(self._positions, position) - 1
        return self._first_windows[index] + (position - self._positions[index]) // self.window_rows

    def rows_of(self, window: _Window) -> np.ndarray:
        """Returns the rows of a window in the epoch's order: int64, counted from its first."""
        count = window.last - window.first
        if self.seed is None:
            return np.arange(count)
        return _permutation(count, self.seed, self.epoch, window.shard, window.first)
