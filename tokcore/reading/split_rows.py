"""The rows of a split by their numbers, in any order."""

from __future__ import annotations

import bisect
import functools
import io
import itertools
import operator
import typing
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tokcore.errors import InputError
from tokcore.reading.record_index import read_index
from tokcore.reading.shards import EncodedRows, ShardFile, ShardReader, map_shard, open_shard
from tokcore.records.tfrecord import stream_records

Row = dict[str, np.ndarray]

_MOST_OPEN = 200
"""Shards, and as many indexes, that a process has open for all splits: each is one of its open files, of
which there are often 1,024 at most. To open another one takes as long as to read some 30 rows."""


class SplitRows:
    """The rows of a split, a sequence of dictionaries by feature of int32[length], as stored.

    For one thread. A row of TFRecords takes its shard's index.
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
        self._firsts = [*itertools.accumulate((shard.rows for shard in shards), initial=0)]

    def __len__(self) -> int:
        return self._firsts[-1]

    def __repr__(self) -> str:
        """Tells how many rows there are, and of what features."""
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
        shard, number = self._place(index)
        return self.reader(shard).row(number, self._offsets(shard))

    def record(self, index: int) -> bytes:
        """Returns the bytes of a row's TFRecord, a serialized tf.train.Example: with all that it holds.

        Raises:
            IndexError: there is no such row.
            InputError: as `rows`; or its shard is Parquet, which has no records.
        """
        shard, number = self._place(index)
        file = self._shards[shard]
        if file.is_parquet:
            raise InputError(f'{file.path} is Parquet, which has no records; take its rows')
        offsets = self._offsets(shard)
        assert offsets is not None
        start, end = offsets[number : number + 2].tolist()
        stream = io.BytesIO(map_shard(file)[start:end].tobytes())
        for record in stream_records(stream, file.path, start):
            return record
        raise InputError(f'{file.path} has no record {number}; run `tokbeam index` again')

    def _place(self, index: int) -> tuple[int, int]:
        """Returns the shard of a row, and its number there."""
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f'row {number} of {len(self)} rows')
        number %= len(self)
        shard = bisect.bisect(self._firsts, number) - 1
        return shard, number - self._firsts[shard]

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
        rows = self.encoded(numbers)
        bounds = {name: offsets.tolist() for name, offsets in rows.offsets.items()}
        return [
            {name: rows.ids[name][own[row] : own[row + 1]] for name, own in bounds.items()}
            for row in range(len(rows))
        ]

    def encoded(self, numbers: np.ndarray) -> EncodedRows:
        """Returns the rows of these numbers, int64[n] from 0 on, in their order.

        Raises:
            InputError: as `rows`.
        """
        shards = np.searchsorted(self._firsts, numbers, side='right') - 1
        parts = [EncodedRows.empty(self._features)]
        for shard in np.unique(shards).tolist():
            own = numbers[shards == shard] - self._firsts[shard]
            parts.append(self.reader(shard).pick(own, self._offsets(shard)))
        back = np.empty(len(numbers), np.int64)
        back[np.argsort(shards, kind='stable')] = np.arange(len(numbers))
        return EncodedRows.joined(parts).take(back)

    @functools.lru_cache(_MOST_OPEN)  # noqa: B019 - it holds no more files than that
    def reader(self, shard: int) -> ShardReader:
        """Returns the reader of a shard; those that were used last stay open."""
        return open_shard(self._shards[shard], self._features, self._id_counts, self._skips)

    @functools.lru_cache(_MOST_OPEN)  # noqa: B019 - likewise
    def _offsets(self, shard: int) -> np.ndarray | None:
        """Returns where the records of a shard are; None if it is Parquet."""
        file = self._shards[shard]
        return None if file.is_parquet else np.asarray(read_index(file))
