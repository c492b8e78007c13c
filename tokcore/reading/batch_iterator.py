"""Batches of a split, one after another, whose state is a small JSON value at every moment.

In an epoch whole shards are permuted, and rows within windows of a shard; shards hold the corpus
shuffled already, so windows suffice. Every order is of sorted hashes of seed and epoch alone, the
same everywhere.
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

from tokcore.errors import InputError
from tokcore.reading.batching import (
    LEFT_OUT,
    Batch,
    BatchedRows,
    BatchRule,
    part_batches,
    waiting_rows,
    whole_batches,
)
from tokcore.reading.declared_json import Within, WrongValue, checked
from tokcore.reading.shards import EncodedRows, ShardFile, open_shard

STATE_FORMAT = 2
"""1 knew a dataset by the rows of its shards alone."""

_MOST_EMPTY_EPOCHS = 100
"""Epochs without a batch before an iterator gives up: without end they would look like a slow disk."""

_Count = Annotated[int, Within(0, (1 << 63) - 1)]

WINDOW_ROWS = 1 << 16

_GOLDEN, _FIRST, _SECOND = (
    np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


@dataclass(frozen=True)
class Reading:
    """What a reader reads, and in which order.

    Attributes:
        folder: of the dataset, for errors.
        shards: the files.
        id_counts: by feature, how many ids its vocabulary has.
        window_rows: rows that are permuted together.
        seed: of the order; None: as stored.
        readers, reader: how many there are, and which of them this is.
        epochs: how many; None: without end.
        first_epoch: the number of the first.
        drop_remainder: whether rows that fill no batch at an epoch's end are left out.
        skips: whether damaged records are passed over and counted.
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
        rows = tuple(each.rows for each in self.shards)
        return EpochOrder(rows, self.window_rows, self.seed, epoch)

    @property
    def last_epoch(self) -> int | None:
        """The number of the last, that not among them; None: there is none."""
        return None if self.epochs is None else self.first_epoch + self.epochs

    @functools.cached_property
    def identity(self) -> str:
        """What the shards are known by wherever they are: their checksums, in hexadecimal."""
        told = [(each.rows, each.bytes, each.crc32c) for each in self.shards]
        return hashlib.sha256(repr(told).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class IteratorState:
    """A state as JSON holds it.

    Attributes:
        format: `STATE_FORMAT`.
        arguments: of `Dataset.batches`, the split among them.
        dataset: the identity of the split's shards.
        place: where the iterator is.
        left_out: rows so far, by reason.
        cells, ids: of the arrays given so far.
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
        """Raises InputError for what is no state, of whatever kind, or of another format."""
        try:
            found = checked(state, _Format, 'the state').format
            if found != STATE_FORMAT:
                raise InputError(
                    f'the state has format {found}, this version reads {STATE_FORMAT}; begin the '
                    'epoch again, and keep a new state'
                )
            return checked(state, cls, 'the state')
        except WrongValue as error:
            raise InputError(
                f'this is no state of batches ({error}); give what state() returned'
            ) from error


class BatchIterator:
    """Iterates over batches; see `Dataset.batches`."""

    def __init__(self, rule: BatchRule, reading: Reading, arguments: dict[str, object]):
        """Takes what `Dataset.batches` made of its arguments, which the state repeats."""
        self._rule, self._reading, self._arguments = rule, reading, arguments
        self._sizes = rule.sizes
        self._shards = [
            open_shard(each, rule.features, reading.id_counts, reading.skips)
            for each in reading.shards
        ]
        self._place = _Place.at_start(reading.first_epoch)
        self._window: _Window | None = None  # of the place where this is, once it is read
        self._waiting: tuple[np.ndarray, EncodedRows] | None = None  # of the same, once they are
        self._left_out = LeftOut(0, 0, 0)
        self._cells = self._ids = 0
        self._empty_epochs = 0  # one after another, up to here

    @property
    def left_out(self) -> dict[str, int]:
        """Rows so far, by reason: `damaged`, `length` (of which no batch has one, or which are
        empty), `remainder`."""
        return dataclasses.asdict(self._left_out)

    def __iter__(self) -> BatchIterator:
        return self

    def __next__(self) -> Batch:
        while self._place.epoch != self._reading.last_epoch:
            if self._window is None:
                self._window = self._read_window()
            if self._place.batch < len(self._window.batches):
                batch = self._window.looked_at.batch(*self._window.batches[self._place.batch])
                self._place.batch += 1
                self._empty_epochs = 0
                self._tally(batch)
                return batch
            self._go_on(self._window)
        raise StopIteration

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

    def _own_windows(self, order: EpochOrder) -> tuple[int, int]:
        """The numbers of the windows that this reader has a part of: the first, and behind the last."""
        first, last = order.share(self._reading.readers, self._reading.reader)
        if first == last:
            return 0, 0
        return order.window_of(first), order.window_of(last - 1) + 1

    def _own_part(self, order: EpochOrder, number: int) -> tuple[int, int]:
        """The positions of this reader's part of one of its windows, the end not among them."""
        first, last = order.share(self._reading.readers, self._reading.reader)
        window = order.window(number)
        return (
            max(first, window.position),
            min(last, window.position + window.last - window.first),
        )

    def _read_window(self) -> _Window:
        """Reads the window where this is; behind the last the rows that wait are the last batches."""
        place, order = self._place, self._reading.order(self._place.epoch)
        if self._waiting is None:
            self._waiting = self._rows_at(order, np.array(place.waiting, np.int64))
        first, end = self._own_windows(order)
        if place.window == end - first:
            looked_at = self._rule.look_at(self._waiting[1])
            batches = [*part_batches(looked_at.buckets, self._sizes)]
            batches = [] if self._reading.drop_remainder else batches
            return _Window(*self._waiting, looked_at, batches)
        start, stop = self._own_part(order, first + place.window)
        parts = [self._waiting, self._read(order, start, stop)]
        positions = np.concatenate([each[0] for each in parts])
        rows = EncodedRows.joined([each[1] for each in parts])
        looked_at = self._rule.look_at(rows)
        batches = [*whole_batches(looked_at.buckets, self._sizes)]
        return _Window(positions, rows, looked_at, batches, (stop - start, len(parts[1][0])))

    def _go_on(self, window: _Window) -> None:
        """Goes to the window behind this one, whose batches have all been given."""
        place, order = self._place, self._reading.order(self._place.epoch)
        first, end = self._own_windows(order)
        self._window = None
        if place.window == end - first:
            if self._reading.drop_remainder:
                self._left_out.remainder += len(place.waiting)
            self._empty_epochs += 1
            if self._empty_epochs > _MOST_EMPTY_EPOCHS:
                raise InputError(
                    f'{self._reading.folder}: no batch came of {_MOST_EMPTY_EPOCHS} epochs of '
                    f'{self._arguments["split"]}, so none may ever come; ask for smaller batches, '
                    'other lengths or fewer readers'
                )
            self._place, self._waiting = _Place.at_start(place.epoch + 1), None
            return
        buckets = window.looked_at.buckets
        self._left_out.damaged += window.read[0] - window.read[1]
        self._left_out.length += int(np.count_nonzero(buckets == LEFT_OUT))
        still = waiting_rows(buckets, self._sizes)
        self._waiting = window.positions[still], window.rows.take(still)
        self._place = _Place(
            place.epoch, place.window + 1, 0, tuple(window.positions[still].tolist())
        )

    def _read(self, order: EpochOrder, start: int, stop: int) -> tuple[np.ndarray, EncodedRows]:
        """Reads positions within one window: those of the rows that are sound, and these rows."""
        window = order.window(order.window_of(start))
        wanted = order.rows_of(window)[start - window.position : stop - window.position]
        return self._wanted(window.shard, window.first, window.last, wanted, np.arange(start, stop))

    def _wanted(
        self, shard: int, first: int, last: int, wanted: np.ndarray, positions: np.ndarray
    ) -> tuple[np.ndarray, EncodedRows]:
        """Returns the sound ones of `wanted` rows, counted from `first`, with their positions."""
        numbers, rows = self._shards[shard].read(first, last)
        places = np.full(last - first, -1, np.int64)
        places[numbers - first] = np.arange(len(numbers))
        found = places[wanted]
        return positions[found >= 0], rows.take(found[found >= 0])

    def _rows_at(self, order: EpochOrder, positions: np.ndarray) -> tuple[np.ndarray, EncodedRows]:
        """Reads the rows at some ascending positions."""
        empty = EncodedRows(
            {name: np.empty(0, np.int32) for name in self._rule.features},
            {name: np.zeros(1, np.int64) for name in self._rule.features},
        )
        found = [(np.empty(0, np.int64), empty)]
        windows = [order.window_of(int(each)) for each in positions]
        for number in sorted(set(windows)):
            window = order.window(number)
            own = positions[np.array(windows) == number]
            rows = order.rows_of(window)[own - window.position]
            found.append(self._wanted(window.shard, window.first, window.last, rows, own))
        return np.concatenate([each[0] for each in found]), EncodedRows.joined(
            [each[1] for each in found]
        )

    def signature(self) -> dict[str, tuple[tuple[int | None, ...], type]]:
        """Returns the shape and dtype of each array of a batch; None is what differs."""
        return self._rule.signature()

    def state(self) -> dict[str, object]:
        """Returns where this is, as JSON can hold it; `Dataset.from_state` goes on behind it."""
        place = self._place
        return {
            'format': STATE_FORMAT,
            'arguments': self._arguments,
            'dataset': self._reading.identity,
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
        """Goes to where another iterator with the same arguments was; reads the rows there.

        Raises:
            InputError: the state is of another dataset, or of a place where no iterator can be.
        """
        if state.dataset != self._reading.identity:
            folder = self._reading.folder
            raise InputError(
                f'the state is of other shards than those of {self._arguments["split"]} in {folder}: '
                'their checksums differ; give a state of this dataset'
            )
        if state.ids > state.cells:
            raise _no_place(f'it has {state.ids} ids in {state.cells} cells')
        self._left_out, self._cells, self._ids = state.left_out, state.cells, state.ids
        self._place, self._window, self._waiting = state.place, None, None
        self._check_place()

    def _check_place(self) -> None:
        place, reading = self._place, self._reading
        first, last = reading.first_epoch, reading.last_epoch
        if place.epoch < first or (last is not None and place.epoch > last):
            raise _no_place(f'epoch {place.epoch} is none of those from {first} on')
        if place.epoch == last:
            if place != _Place.at_start(place.epoch):
                raise _no_place(f'it is within epoch {place.epoch}, behind the last')
            return
        order = reading.order(place.epoch)
        begin, end = order.share(reading.readers, reading.reader)
        first_window, end_window = self._own_windows(order)
        if place.window > end_window - first_window:
            raise _no_place(f'it is at window {place.window} of {end_window - first_window}')
        if place.window < end_window - first_window:
            end = self._own_part(order, first_window + place.window)[0]
        waiting = place.waiting
        if not all(a < b for a, b in zip((begin - 1, *waiting), (*waiting, end), strict=True)):
            raise _no_place(f'its {len(waiting)} rows are none of those that wait there')
        self._window = self._read_window()
        self._left_out.damaged += len(waiting) - len(self._waiting[0])
        buckets = self._rule.look_at(self._waiting[1]).buckets
        fills = next(whole_batches(buckets, self._sizes), None) is not None
        if fills or (buckets == LEFT_OUT).any():
            raise _no_place(f'its {len(waiting)} rows do not wait for a batch')
        if place.batch > len(self._window.batches):
            raise _no_place(f'{place.batch} batches were given of {len(self._window.batches)}')


@dataclass
class _Place:
    """Where an iterator is: so many batches of a window have been given, after those before it."""

    epoch: _Count
    window: _Count  # of the reader's own, the last is none: what waits is given there
    batch: _Count
    waiting: tuple[_Count, ...]  # positions of rows that wait for their batch since before it

    @classmethod
    def at_start(cls, epoch: int) -> _Place:
        return cls(epoch, 0, 0, ())


@dataclass
class LeftOut:
    """Rows that no batch has, by reason."""

    damaged: _Count
    length: _Count
    remainder: _Count


@dataclass(frozen=True)
class _Format:
    format: Annotated[int, Within(0, (1 << 31) - 1)]


@dataclass(frozen=True)
class _Window:
    """A reader's part of a window, read: its rows behind those that wait since before it.

    Attributes:
        positions: int64[rows].
        rows: at these.
        looked_at: the same with their buckets.
        batches: (rows, bucket) of each.
        read: how many positions were to be read for it, and how many rows came.
    """

    positions: np.ndarray
    rows: EncodedRows
    looked_at: BatchedRows
    batches: Sequence[tuple[np.ndarray, int]]
    read: tuple[int, int] = (0, 0)


def _no_place(what: str) -> InputError:
    return InputError(f'the state is of a place where no reader can be ({what}); give another')


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
