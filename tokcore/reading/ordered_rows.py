"""The rows of a split: by their numbers (`SplitRows`), and by their positions in the order of an epoch.

An epoch is a permutation of the shards, and of the rows within windows of each shard, the same for any
number of readers. `build` has shuffled the corpus across the shards, so windows suffice. The order is
that of hashes of the row's number, the seed and the epoch (`EpochOrder`), so it is the same on every
machine, and any row's position in it is computed without reading a record. Other orders are
arrays with the number of each row. `mixture.MixedRows` mixes the orders of several splits.
"""

from __future__ import annotations

import bisect
import functools
import io
import itertools
import operator
import os
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tokcore.corpus.order_keys import order_of_corpus, splitmix64
from tokcore.errors import InputError
from tokcore.kernels.sorting import sort_keys
from tokcore.reading.batch_options import OrderOptions
from tokcore.reading.record_index import RecordIndex, read_index, shards_digest
from tokcore.reading.shards import (
    EncodedRows,
    ShardFile,
    ShardReader,
    map_shard,
    open_shard,
    rows_at_once,
)
from tokcore.records.tfrecord import stream_records


class OrderedRows(Protocol):
    """Rows with numbers from 0 on, in an order for each epoch; for one thread."""

    identity: str
    """A hash, in hexadecimal, of all that a position means."""

    differs: str
    """What is wrong with a state of another identity."""

    features: Sequence[str]
    """Those that are read."""

    has_lengths: bool
    """Whether the lengths of rows are known without reading them."""

    row_count: int
    """The number of rows of every epoch."""

    window_rows: int
    """Rows that form batches together, at most."""

    def window_count(self, epoch: int) -> int:
        """Returns the number of windows of an epoch, none of which is empty."""
        return -(-self.row_count // self.window_rows)

    def window_start(self, epoch: int, number: int) -> int:
        """Returns the position at which a window begins; after the last one, the number of rows."""
        return min(number * self.window_rows, self.row_count)

    def numbers(self, epoch: int, positions: np.ndarray) -> np.ndarray:
        """Returns the numbers of the rows at ascending positions, int64[n] both."""

    def lengths(self, numbers: np.ndarray) -> np.ndarray:
        """Returns the ids of each feature in the rows of these numbers, int64[features, n], where they are known."""

    def read(
        self, numbers: np.ndarray, lengths: np.ndarray | None = None
    ) -> tuple[np.ndarray, EncodedRows]:
        """Reads the rows of ascending numbers, int64[n]; returns the numbers of sound rows, and these.

        No number comes twice; `lengths` are theirs, if they are known.

        Raises:
            InputError: a row has another length, or is damaged, and damage is not skipped.
        """

    def look_up(self, epoch: int, positions: np.ndarray) -> tuple[np.ndarray, EncodedRows]:
        """Returns the rows at ascending positions, int64, as `POSITION` says, and what was read of them.

        Where lengths are not known, all are read, and those are left out that are skipped for damage.

        Raises:
            InputError: as `read`.
        """
        pieces = np.zeros((LENGTHS + len(self.features), len(positions)), np.int64)
        pieces[POSITION], pieces[PLACE] = positions, -1
        pieces[NUMBER] = numbers = self.numbers(epoch, positions)
        if self.has_lengths:
            pieces[LENGTHS:] = self.lengths(numbers)
            return pieces, EncodedRows.empty(self.features)
        asked, places = np.unique(numbers, return_inverse=True)
        read, rows = self.read(asked)
        is_sound = np.isin(asked, read)
        pieces[PLACE] = (np.cumsum(is_sound) - 1)[places]
        pieces = pieces[:, is_sound[places]]
        pieces[LENGTHS:] = rows.lengths[:, pieces[PLACE]]
        return pieces, rows


POSITION, NUMBER, START, PLACE, LENGTHS = range(5)
"""What an array has of pieces, int64[4 + features, n]; a piece is a row, or a part of one, for a batch.

    POSITION    of its row, in the order of the epoch
    NUMBER      of its row
    START       the id of its row at which it begins
    PLACE       where its row is among those that were read; -1: it was not
    LENGTHS     and further: the ids of each feature in the whole row, as it is stored
"""


_WINDOW_ROWS = 1 << 16
"""Rows that form batches, and are permuted, together by default; fewer where rows are long."""


class SplitInOrder(OrderedRows):
    """The rows of a split."""

    def __init__(
        self,
        split: str,
        folder: str,
        shards: Sequence[ShardFile],
        features: Sequence[str],
        id_counts: Mapping[str, int],
        options: OrderOptions,
        seed: int | None,
        keeps_window: bool = False,
    ):
        """Takes the shards of a split of the dataset in a folder.

        Args:
            split, folder, shards, features: what is read.
            id_counts: by feature, how many ids its vocabulary has.
            options: the order, and whether damaged rows are skipped.
            seed: of the order keys; None: it is not known.
            keeps_window: whether the rows of the last window that was read for lengths are kept, for
                reading it in parts.
        """
        self._options, self.features = options, features
        self.window_rows = options.window or rows_at_once(shards, _WINDOW_ROWS)
        self._shard_rows = tuple(shard.rows for shard in shards)
        self.row_count = sum(self._shard_rows)
        self.identity = shards_digest(shards).hex()
        self.differs = f'of other shards than those of {split} in {folder}: their checksums differ'
        self._by_number = SplitRows(shards, features, id_counts, options.on_error == 'skip')
        if options.shuffle == 'corpus':
            keys = self._by_number.keys()
            if seed is None:
                raise InputError(
                    f'{folder} does not record the seed of its order keys, from which the order of the '
                    'corpus follows; write it with EncodeBlocks and WriteShards again'
                )
            self._in_corpus = order_of_corpus(keys, seed)
        for number, shard in enumerate(shards):
            if not shard.rows:
                self._by_number.reader(number)  # no window will open it, and it may have rows
        if keeps_window:
            self._read_window = functools.lru_cache(maxsize=1)(self._read_window)  # type: ignore[method-assign]
        # A mixture has the end of one epoch and the next in a window.
        self._order = functools.lru_cache(maxsize=2)(self._order)  # type: ignore[method-assign]
        self._rows_of = functools.lru_cache(maxsize=2)(self._rows_of)  # type: ignore[method-assign]

    def window_count(self, epoch: int) -> int:
        order = self._order(epoch)
        return order.window_count if isinstance(order, EpochOrder) else super().window_count(epoch)

    def window_start(self, epoch: int, number: int) -> int:
        order = self._order(epoch)
        if isinstance(order, EpochOrder):
            return order.window_start(number)
        return super().window_start(epoch, number)

    def numbers(self, epoch: int, positions: np.ndarray) -> np.ndarray:
        order = self._order(epoch)
        if not isinstance(order, EpochOrder):
            return order[positions]
        parts = [np.empty(0, np.int64)]
        while len(positions):
            number = order.window_of(int(positions[0]))
            window = order.window(number)
            end = int(np.searchsorted(positions, window.position + window.last - window.first))
            parts.append(self._rows_of(epoch, number)[positions[:end] - window.position])
            positions = positions[end:]
        return np.concatenate(parts)

    def _rows_of(self, epoch: int, number: int) -> np.ndarray:
        """Returns the numbers of the rows of a window, in the epoch's order."""
        order = self._order(epoch)
        assert isinstance(order, EpochOrder)
        window = order.window(number)
        return self._by_number.firsts[window.shard] + window.first + order.rows_of(window)

    @functools.cached_property
    def has_lengths(self) -> bool:  # type: ignore[override]
        return self._options.on_error == 'stop' and self._by_number.has_lengths

    def lengths(self, numbers: np.ndarray) -> np.ndarray:
        return self._by_number.lengths(numbers)

    def read(
        self, numbers: np.ndarray, lengths: np.ndarray | None = None
    ) -> tuple[np.ndarray, EncodedRows]:
        is_listed = isinstance(self._options.shuffle, str)
        if lengths is None and not is_listed:
            return self._read_windows(numbers)
        try:
            return numbers, self._by_number.encoded(numbers, lengths)
        except InputError:
            if not is_listed:
                self._read_windows(numbers)  # says what is wrong with a damaged record
            raise

    def _read_windows(self, numbers: np.ndarray) -> tuple[np.ndarray, EncodedRows]:
        """Reads rows by reading their windows, without an index."""
        sound, parts = [np.empty(0, np.int64)], [EncodedRows.empty(self.features)]
        for shard, of_shard in by_part(self._by_number.firsts, numbers):
            before = self._by_number.firsts[shard]
            for number in np.unique((numbers[of_shard] - before) // self.window_rows).tolist():
                first = number * self.window_rows
                last = min(first + self.window_rows, self._shard_rows[shard])
                read, rows = self._read_window(shard, first, last)
                asked = np.flatnonzero(np.isin(read + before, numbers))
                sound.append(read[asked] + before)
                parts.append(rows if len(asked) == len(read) else rows.take(asked))
        return np.concatenate(sound), EncodedRows.joined(parts)

    def _read_window(self, shard: int, first: int, last: int) -> tuple[np.ndarray, EncodedRows]:
        return self._by_number.reader(shard).read(first, last)

    def _order(self, epoch: int) -> EpochOrder | np.ndarray:
        """Returns the order of an epoch, or int64[rows], the number of the row at each position."""
        options = self._options
        if options.shuffle == 'corpus':
            return self._in_corpus
        if options.shuffle == 'exact':
            return permutation(self.row_count, options.seed, epoch)
        seed = options.seed if options.shuffle else None
        return EpochOrder(self._shard_rows, self.window_rows, seed, epoch)


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


def permutation(count: int, *seeds: int) -> np.ndarray:
    """Returns the numbers below `count`, int64, in an order that depends on the seeds alone."""
    state = np.zeros(1, np.uint64)
    for seed in seeds:
        state = splitmix64(state ^ np.uint64(seed & 0xFFFFFFFFFFFFFFFF))
    hashes = splitmix64(state ^ splitmix64(np.arange(count, dtype=np.uint64)))
    if count > np.iinfo(np.int32).max:  # more than `sort_keys` can number
        return np.argsort(hashes, kind='stable')
    return sort_keys(hashes)[1].astype(np.int64)  # of a bijection, so no two are equal


def by_part(firsts: Sequence[int], numbers: np.ndarray) -> Iterator[tuple[int, np.ndarray | slice]]:
    """Yields each part that has any of these numbers, and where they are among them, int64[n].

    Args:
        firsts: the first number of each part, ascending, and the end of the last one.
        numbers: int64; ascending ones stay so in each part.
    """
    if not len(numbers):
        return
    part = bisect.bisect(firsts, int(numbers[0])) - 1
    if firsts[part] <= numbers.min() and numbers.max() < firsts[part + 1]:
        yield part, slice(None)  # as nearly always
        return
    order = np.argsort(numbers)
    bounds = np.searchsorted(numbers[order], firsts)
    for part in np.flatnonzero(np.diff(bounds)).tolist():
        yield part, order[bounds[part] : bounds[part + 1]]


Row = dict[str, np.ndarray]

_MOST_OPEN = 200
"""Shards, and as many indexes, that a process has open for all splits: each is one of its open files, of
which there are often 1,024 at most. To open another one takes as long as to read some 30 rows."""


class SplitRows:
    """The rows of a split, a sequence of dictionaries by feature of int32[length], as stored.

    For one thread. A row of TFRecords takes its shard's index. `firsts` are the numbers of the first rows of
    shards, and the number of all rows.
    """

    def __init__(
        self,
        shards: Sequence[ShardFile],
        features: Sequence[str],
        id_counts: Mapping[str, int],
        skips: bool = False,
    ):
        """Use `Dataset.__getitem__`."""
        self._shards, self._features, self._id_counts = tuple(shards), features, id_counts
        self._skips = skips
        self.firsts = [*itertools.accumulate((shard.rows for shard in shards), initial=0)]

    def __len__(self) -> int:
        return self.firsts[-1]

    def __repr__(self) -> str:
        """Returns how many rows there are, and of what features."""
        return f'<SplitRows: {len(self):,} rows of {" and ".join(self._features)}>'

    @typing.overload
    def __getitem__(self, index: int) -> Row: ...

    @typing.overload
    def __getitem__(self, index: slice) -> list[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        """Returns a row, or the rows of a slice; numbers below 0 count from the end.

        Raises:
            IndexError: there is no such row.
            InputError: as `rows`.
        """
        if isinstance(index, slice):
            return self.rows(range(*index.indices(len(self))))
        shard, number = self._shard_and_number(index)
        addresses = self.index(shard)
        bounds = None if addresses is None else addresses.bounds_of(number)
        return self.reader(shard).row(number, bounds)

    def record(self, index: int) -> bytes:
        """Returns the bytes of a row's TFRecord, a serialized tf.train.Example: with all that it holds.

        Raises:
            IndexError: there is no such row.
            InputError: as `rows`; or its shard is Parquet, which has no records.
        """
        shard, number = self._shard_and_number(index)
        file = self._shards[shard]
        if file.is_parquet:
            raise InputError(f'{file.path} is Parquet, which has no records; take its rows')
        addresses = self.index(shard)
        assert addresses is not None
        start, end = addresses.bounds_of(number)
        stream = io.BytesIO(map_shard(file)[start:end].tobytes())
        for record in stream_records(stream, file.path, start):
            return record
        raise InputError(f'{file.path} has no record {number}; run `tokbeam index` again')

    def _shard_and_number(self, index: int) -> tuple[int, int]:
        """Returns the shard of a row, and its number there."""
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f'row {number} of {len(self)} rows')
        number %= len(self)
        shard = bisect.bisect(self.firsts, number) - 1
        return shard, number - self.firsts[shard]

    def rows(self, indices: Iterable[int]) -> list[Row]:
        """Returns the rows of these numbers, in their order; a number may come more than once.

        Raises:
            IndexError: there is no such row.
            InputError: naming the shard, if it has no index, the index is of another shard, or the row
                is damaged.
        """
        numbers = np.array([*indices], np.int64)
        wrong = (numbers < -len(self)) | (numbers >= len(self))
        if wrong.any():
            raise IndexError(f'row {numbers[wrong][0]} of {len(self)} rows')
        numbers[numbers < 0] += len(self)
        read, back = np.unique(numbers, return_inverse=True)
        rows = self.encoded(read).take(back)
        bounds = {name: offsets.tolist() for name, offsets in rows.offsets.items()}
        return [
            {name: rows.ids[name][starts[row] : starts[row + 1]] for name, starts in bounds.items()}
            for row in range(len(rows))
        ]

    def encoded(self, numbers: np.ndarray, lengths: np.ndarray | None = None) -> EncodedRows:
        """Returns the rows of these numbers, int64[n] from 0 on, ascending.

        Args:
            numbers: of rows of the split.
            lengths: int64[features, n], what they were in the indexes; None: they are not compared.

        Raises:
            InputError: as `rows`; or a row has another length.
        """
        parts = [EncodedRows.empty(self._features)]
        for shard, of_shard in by_part(self.firsts, numbers):
            asked = numbers[of_shard] - self.firsts[shard]
            addresses = self.index(shard)
            bounds = None if addresses is None else addresses.bounds(asked)
            rows = self.reader(shard).pick(asked, bounds)
            if lengths is not None:
                differs = (rows.lengths != lengths[:, of_shard]).any(axis=0)
                if differs.any():
                    path = self._shards[shard].path
                    folder = os.path.dirname(path)
                    raise InputError(
                        f'{path}, record {asked[differs][0]} has another number of ids than its index says; '
                        f'run `tokbeam verify {folder}`, and `tokbeam index {folder}` if the index is wrong'
                    )
            parts.append(rows)
        return EncodedRows.joined(parts)

    @functools.cached_property
    def has_lengths(self) -> bool:
        """Whether `lengths` knows all of them: the index of each shard with rows has these features."""
        try:
            indexes = map(self.index, np.flatnonzero(np.diff(self.firsts)).tolist())
            return all(each and each.lengths.shape[1] == len(self._features) for each in indexes)
        except InputError:
            return False

    def lengths(self, numbers: np.ndarray) -> np.ndarray:
        """Returns the ids of each feature in the rows of these numbers, int64[features, n], by the indexes."""
        lengths = np.empty((len(self._features), len(numbers)), np.int64)
        for shard, of_shard in by_part(self.firsts, numbers):
            index, rows = self.index(shard), numbers[of_shard] - self.firsts[shard]
            assert index is not None
            for of_feature, column in zip(lengths, index.lengths.T, strict=True):
                of_feature[of_shard] = column.take(rows)
        return lengths

    def keys(self) -> np.ndarray:
        """Returns the order keys of all rows, uint64[rows], ascending.

        Raises:
            InputError: the index of a shard is missing, or was made without the corpus.
        """
        parts = [np.empty(0, np.uint64)]
        for shard in self._shards:
            index = read_index(shard)
            if not index.has_keys:
                folder = os.path.dirname(shard.path)
                raise InputError(
                    f'the index of {shard.path} does not say where in the corpus rows come from; run `tokbeam '
                    f'index {folder}` where the corpus is, and open the dataset again'
                )
            parts.append(index.keys)
        return np.concatenate(parts)

    @functools.lru_cache(_MOST_OPEN)  # noqa: B019 - it holds no more files than that
    def reader(self, shard: int) -> ShardReader:
        """Returns the reader of a shard; those that were used last stay open."""
        return open_shard(self._shards[shard], self._features, self._id_counts, self._skips)

    @functools.lru_cache(_MOST_OPEN)  # noqa: B019 - likewise
    def index(self, shard: int) -> RecordIndex | None:
        """Returns the index of a shard; None if it is Parquet."""
        file = self._shards[shard]
        return None if file.is_parquet else read_index(file)
