"""Strings with weights, front-coded: what workers send each other when a vocabulary is learned.

A table holds distinct strings in descending order of their bytes (that of their code points), each
as what it adds to the one before. It stays packed: it is merged, weighed and cut as a stream, so
memory is that of the bytes sent.
"""

import heapq
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.subword.partitioned.front_coding import (
    MAX_ROW_OVERHEAD,
    RowWriter,
    measure_rows,
    merge_rows,
    unpack_rows,
    weigh_anew,
    write_row,
)

# Magic (its last byte is the version), number of rows, length of the longest, bytes added in all.
_MAGIC = b'TKS\x01'
_HEADER = struct.Struct('<4sQQQ')


@dataclass(frozen=True)
class SuffixTable:
    """Distinct strings and their weights, packed (`suffix_table_kernels` has the form of a row)."""

    data: np.ndarray  # uint8
    rows: int
    longest: int  # bytes; no string is longer
    added: int  # bytes that the rows add to each other: the nodes of a trie of all strings

    def __len__(self) -> int:
        return self.rows

    @property
    def nbytes(self) -> int:
        """The bytes it takes, in memory and on the way."""
        return len(self.data) + _HEADER.size

    @classmethod
    def empty(cls) -> 'SuffixTable':
        return cls(read_only(np.empty(0, np.uint8)), 0, 0, 0)

    @classmethod
    def from_items(cls, items: Iterable[tuple[bytes, int]]) -> 'SuffixTable':
        """Packs a few (string, weight), in any order, equal strings added up."""
        weights: dict[bytes, int] = {}
        for string, weight in items:
            weights[string] = weights.get(string, 0) + weight
        strings = sorted(weights, reverse=True)
        out = np.empty(sum(map(len, strings)) + MAX_ROW_OVERHEAD * len(strings), np.uint8)
        used = added = 0
        before = b''
        for string in strings:
            common = _common_prefix(before, string)
            array = np.frombuffer(string, np.uint8)
            used = write_row(out, used, common, array, len(string), weights[string])
            added += len(string) - common
            before = string
        longest = max(map(len, strings), default=0)
        return cls(read_only(out[:used].copy()), len(strings), longest, added)

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Yields (string, weight) in descending order of the strings."""
        strings, ends, weights = self.arrays()
        start, joined = 0, strings.tobytes()
        for end, weight in zip(ends.tolist(), weights.tolist()):
            yield joined[start:end], weight
            start = end

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the strings one after another (uint8), their ends and weights (int64[rows])."""
        data = read_only(self.data)
        strings = np.empty(measure_rows(data), np.uint8)
        ends, weights = np.empty(self.rows, np.int64), np.empty(self.rows, np.int64)
        unpack_rows(data, self.longest, strings, ends, weights)
        return strings, ends, weights

    def with_weights(self, weights: np.ndarray, first: int) -> 'SuffixTable':
        """Returns the rows whose weight in int64 weights[first:first + rows] is not 0, with it."""
        writer = RowWriter.with_capacity(len(self.data) + 9 * self.rows + MAX_ROW_OVERHEAD)
        string = np.empty(self.longest, np.uint8)
        weigh_anew(read_only(self.data), string, first, read_only(weights), writer)
        return self.written(writer, self.longest)

    @classmethod
    def written(cls, writer: RowWriter, longest: int) -> 'SuffixTable':
        """Returns the table of all rows written; none is longer than `longest`."""
        used, rows, added, _ = writer.state[0].tolist()
        return cls(read_only(writer.out[:used].copy()), rows, longest, added)

    def to_bytes(self) -> bytes:
        header = _HEADER.pack(_MAGIC, self.rows, self.longest, self.added)
        return header + self.data.tobytes()

    @classmethod
    def from_bytes(cls, packed: bytes) -> 'SuffixTable':
        """Returns the table that `to_bytes` packed, a view; ValueError if there is none."""
        if len(packed) < _HEADER.size or packed[: len(_MAGIC)] != _MAGIC:
            raise ValueError('these bytes are not a packed suffix table of this version')
        _, rows, longest, added = _HEADER.unpack_from(packed)
        data = np.frombuffer(packed, np.uint8)[_HEADER.size :]
        return cls(read_only(data), rows, longest, added)


def merge_suffix_tables(tables: Iterable[SuffixTable]) -> SuffixTable:
    """Returns one table with the weights of each string added up; the smallest are merged first."""
    waiting = [(table.nbytes, place, table) for place, table in enumerate(tables) if table.rows]
    if not waiting:
        return SuffixTable.empty()
    heapq.heapify(waiting)
    place = len(waiting) + max(each[1] for each in waiting)
    while len(waiting) > 1:
        first, second = heapq.heappop(waiting)[2], heapq.heappop(waiting)[2]
        merged = _merge_two(first, second)
        place += 1
        heapq.heappush(waiting, (merged.nbytes, place, merged))
    return waiting[0][2]


def _merge_two(first: SuffixTable, second: SuffixTable) -> SuffixTable:
    longest = max(first.longest, second.longest)
    out = np.empty(len(first.data) + len(second.data) + MAX_ROW_OVERHEAD, np.uint8)
    strings = np.empty((2, longest), np.uint8)
    rows, added, used = merge_rows(read_only(first.data), read_only(second.data), strings, out)
    return SuffixTable(read_only(out[:used].copy()), rows, longest, added)


def _common_prefix(one: bytes, other: bytes) -> int:
    common = 0
    while common < min(len(one), len(other)) and one[common] == other[common]:
        common += 1
    return common


class SuffixTableMerger:
    """Merges tables as they come: what waits never outweighs what is merged, beyond one table."""

    def __init__(self):
        self._merged = SuffixTable.empty()
        self._waiting: list[SuffixTable] = []
        self._waiting_bytes = 0

    @property
    def nbytes(self) -> int:
        return self._waiting_bytes + self._merged.nbytes

    def add(self, table: SuffixTable) -> None:
        self._waiting.append(table)
        self._waiting_bytes += table.nbytes
        if self._waiting_bytes >= self._merged.nbytes:
            self.merged()

    def merged(self) -> SuffixTable:
        """Returns the sum of all tables added."""
        if self._waiting:
            self._merged = merge_suffix_tables([self._merged, *self._waiting])
            self._waiting, self._waiting_bytes = [], 0
        return self._merged

    def to_bytes(self) -> bytes:
        """Returns the sum's bytes."""
        return self.merged().to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> 'SuffixTableMerger':
        """Returns what gave these bytes."""
        merger = cls()
        merger.add(SuffixTable.from_bytes(data))
        return merger
