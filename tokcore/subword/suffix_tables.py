"""Tables of strings with weights, front-coded: the data that workers exchange.

A table has distinct strings in descending order of their bytes, so a string comes after its
extensions. A row is a byte of two nibbles, the bytes in common with the row before and the bytes
added (15: the number follows as LEB128), then the weight as LEB128, then the bytes added. Tables
stay packed: they are merged, weighed and swept as streams. A batch of suffixes is sorted by seven
bytes at a time. Groups of strings are ranges between short prefixes, chosen from a sample so that
each has the same share of its bytes.
"""

import heapq
import itertools
import math
import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.kernels.bytes import put_varint, read_varint
from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.kernels.sorting import sort_pairs

_KEY_BYTES = 7
_MORE = 8  # as the length in a key: the string continues
_BUCKET_BITS = 16  # two leading bytes

# In bytes. Every prefix of a border is a string that the driver selects or not; where neighbors
# have a longer common prefix, the border comes at a later string.
_LONGEST_BORDER = 64

# Average bytes of a row's head and weight in a sample.
_ROW_BYTES = 3

# Magic (its last byte is the version), number of rows, length of the longest, bytes added in all.
_MAGIC = b'TKS\x01'
_HEADER = struct.Struct('<4sQQQ')

_ESCAPED = 15
# A head, two numbers of up to 5 bytes, and a weight of up to 9.
MAX_ROW_OVERHEAD = 32

_WRITTEN = np.dtype([(name, np.int64) for name in ('used', 'rows', 'added', 'common')], align=True)


class SuffixRows(NamedTuple):
    """Strings `text[positions[i]:positions[i] + lengths[i]]`, each weighing its token's count."""

    text: np.ndarray  # uint8
    positions: np.ndarray  # int32[rows]
    lengths: np.ndarray  # int32[rows]
    tokens: np.ndarray  # int32[rows]: index of the token in `counts`
    counts: np.ndarray  # int64[tokens]

    @classmethod
    def empty(cls, text: np.ndarray, counts: np.ndarray) -> 'SuffixRows':
        """Returns uninitialized rows, one for each byte of the text."""
        positions, lengths, tokens = (np.empty(len(text), np.int32) for _ in range(3))
        return cls(text, positions, lengths, tokens, counts)

    def first(self, rows: int) -> 'SuffixRows':
        """Returns the first rows, read-only."""
        positions, lengths = read_only(self.positions[:rows]), read_only(self.lengths[:rows])
        return SuffixRows(self.text, positions, lengths, read_only(self.tokens[:rows]), self.counts)


@dataclass(frozen=True)
class PrefixPartitions:
    """Group i has the strings from borders[i - 1] to before borders[i]."""

    borders: tuple[bytes, ...]  # ascending, each of whole UTF-8 characters

    def __post_init__(self):
        if list(self.borders) != sorted(set(self.borders)) or b'' in self.borders:
            raise ValueError('the borders of groups must ascend and not be empty')

    def __len__(self) -> int:
        return len(self.borders) + 1

    def bounds(self, group: int) -> tuple[bytes, bytes]:
        """Returns a group's lower and upper border, empty where there is none."""
        lower = self.borders[group - 1] if group > 0 else b''
        upper = self.borders[group] if group < len(self.borders) else b''
        return lower, upper


class RowWriter(NamedTuple):
    """Writes rows to an array, which a larger one may replace."""

    out: np.ndarray  # uint8
    state: np.ndarray
    """A record: bytes used, rows, sum of bytes added, and an upper bound of what the last row and the
    next string have in common."""

    @classmethod
    def with_capacity(cls, capacity: int) -> 'RowWriter':
        return cls(np.empty(capacity, np.uint8), np.zeros(1, _WRITTEN))

    def with_room(self, more: int) -> 'RowWriter':
        """Returns a writer that continues this one, with room for this many bytes more."""
        return self._replace(out=_with_room(self.out, int(self.state[0]['used']), more))


@dataclass(frozen=True)
class SuffixTable:
    """Distinct strings and their weights, packed as the module describes."""

    data: np.ndarray  # uint8
    rows: int
    longest: int  # bytes of the longest string, or more
    added: int  # sum of the bytes added by rows: the nodes of a trie of all strings

    def __len__(self) -> int:
        return self.rows

    @property
    def nbytes(self) -> int:
        """The size in memory and as bytes."""
        return len(self.data) + _HEADER.size

    @classmethod
    def empty(cls) -> 'SuffixTable':
        return cls(read_only(np.empty(0, np.uint8)), 0, 0, 0)

    @classmethod
    def from_items(cls, items: Iterable[tuple[bytes, int]]) -> 'SuffixTable':
        """Returns the table of a few (string, weight) in any order; adds up repeats."""
        weights: dict[bytes, int] = {}
        for string, weight in items:
            weights[string] = weights.get(string, 0) + weight
        strings = sorted(weights, reverse=True)
        out = np.empty(sum(map(len, strings)) + MAX_ROW_OVERHEAD * len(strings), np.uint8)
        used = added = 0
        before = b''
        for string in strings:
            common = len(os.path.commonprefix([before, string]))
            array = np.frombuffer(string, np.uint8)
            used = _write_row(out, used, common, array, len(string), weights[string])
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
        """Returns the strings one after another (uint8), ends and weights (int64[rows])."""
        data = read_only(self.data)
        strings = np.empty(_measure_rows(data), np.uint8)
        ends, weights = np.empty(self.rows, np.int64), np.empty(self.rows, np.int64)
        _unpack_rows(data, self.longest, strings, ends, weights)
        return strings, ends, weights

    def with_weights(self, weights: np.ndarray, first: int) -> 'SuffixTable':
        """Returns the table with int64 weights[first:first + rows], without rows of weight 0."""
        writer = RowWriter.with_capacity(len(self.data) + 9 * self.rows + MAX_ROW_OVERHEAD)
        string = np.empty(self.longest, np.uint8)
        _write_reweighed(read_only(self.data), string, first, read_only(weights), writer)
        return self.written(writer, self.longest)

    @classmethod
    def written(cls, writer: RowWriter, longest: int) -> 'SuffixTable':
        """Returns the table of all rows of a writer; no string is longer than `longest`."""
        used, rows, added, _ = writer.state[0].tolist()
        return cls(read_only(writer.out[:used].copy()), rows, longest, added)

    def to_bytes(self) -> bytes:
        header = _HEADER.pack(_MAGIC, self.rows, self.longest, self.added)
        return header + self.data.tobytes()

    @classmethod
    def from_bytes(cls, packed: bytes) -> 'SuffixTable':
        """Returns the table that `to_bytes` packed, a view; raises ValueError for other bytes."""
        if len(packed) < _HEADER.size or packed[: len(_MAGIC)] != _MAGIC:
            raise ValueError('these bytes are not a packed suffix table of this version')
        _, rows, longest, added = _HEADER.unpack_from(packed)
        data = np.frombuffer(packed, np.uint8)[_HEADER.size :]
        return cls(read_only(data), rows, longest, added)


def pack_suffixes(
    rows: SuffixRows, groups: PrefixPartitions, group_range: tuple[int, int]
) -> list[tuple[int, SuffixTable]]:
    """Sorts suffixes; returns (group, table) of each nonempty group of a range, ascending."""
    if not len(rows.positions):
        return []
    order = np.empty(len(rows.positions), np.int32)
    _sort_rows(rows, order)
    order = read_only(order)
    first, last = group_range
    upper = groups.bounds(last - 1)[1]
    borders = [
        *(groups.bounds(group)[0] for group in range(first, last)),
        *([upper] if upper else []),
    ]
    begins = [_count_below(rows, order, np.frombuffer(border, np.uint8)) for border in borders]
    if not upper:
        begins.append(len(order))
    tables = []
    for group, (begin, end) in enumerate(zip(begins, begins[1:]), first):
        if begin < end:
            data, count, longest, added = _pack_rows(rows, order, begin, end)
            tables.append((group, SuffixTable(read_only(data), count, longest, added)))
    return tables


@kernel_without_allocation
def _key(text, position, length):
    key = np.int64(0)
    if length >= 7:
        for i in range(7):
            key = key << 8 | np.int64(text[np.uint64(position + i)])
        return key << 4 | np.int64(min(length, 8))
    for i in range(length):
        key = key << 8 | np.int64(text[np.uint64(position + i)])
    return key << (8 * (7 - length)) << 4 | np.int64(length)


@kernel
def _sort_rows(rows, order):
    """Writes the rows in ascending order of their strings to `order`."""
    text, positions, lengths = rows.text, rows.positions, rows.lengths
    ends = np.zeros(1 << _BUCKET_BITS, np.int64)
    for row in range(len(positions)):
        position = np.int64(positions[row])
        second = np.int64(text[position + 1]) if lengths[row] > 1 else np.int64(0)
        ends[np.int64(text[position]) << 8 | second] += 1
    widest = ends.max()
    ends = np.cumsum(ends)
    free = ends.copy()
    for row in range(len(positions) - 1, -1, -1):
        position = np.int64(positions[row])
        second = np.int64(text[position + 1]) if lengths[row] > 1 else np.int64(0)
        bucket = np.int64(text[position]) << 8 | second
        free[bucket] -= 1
        order[free[bucket]] = row
    keys = np.empty(widest, np.int64)
    # A stack of classes of strings that are equal so far: begin, end, and the bytes compared.
    waiting = np.empty(3 * 64, np.int64)
    low = np.int64(0)
    for high in ends:
        if high == low:
            continue
        waiting[0], waiting[1], waiting[2] = low, high, 0
        count = 1
        while count:
            count -= 1
            begin, end, known = waiting[3 * count], waiting[3 * count + 1], waiting[3 * count + 2]
            for i in range(begin, end):
                row = np.int64(order[i])
                keys[i - begin] = _key(text, positions[row] + known, lengths[row] - known)
            sort_pairs(keys, order, begin, end - begin)
            i = begin
            while i < end:
                key = keys[i - begin]
                j = i + 1
                while j < end and keys[j - begin] == key:
                    j += 1
                if j > i + 1 and key & 15 == _MORE:
                    if 3 * count + 3 > len(waiting):
                        larger = np.empty(2 * len(waiting), np.int64)
                        larger[: 3 * count] = waiting[: 3 * count]
                        waiting = larger
                    waiting[3 * count], waiting[3 * count + 1] = i, j
                    waiting[3 * count + 2] = known + _KEY_BYTES
                    count += 1
                i = j
        low = high


@kernel_without_allocation
def _count_below(rows, order, border):
    """Returns how many of the sorted rows are less than a border."""
    text = rows.text
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        row = np.int64(order[middle])
        position, length = np.int64(rows.positions[row]), np.int64(rows.lengths[row])
        i = 0
        while i < length and i < len(border) and text[position + i] == border[i]:
            i += 1
        if i < len(border) and (i == length or text[position + i] < border[i]):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _pack_rows(rows, order, begin, end):
    """Packs order[begin:end] in descending order; returns (data, rows, longest, added)."""
    text = rows.text
    out = np.empty(8 * (end - begin) + MAX_ROW_OVERHEAD, np.uint8)
    used, packed, longest, added = 0, 0, np.int64(0), 0
    position, length, common = np.int64(0), np.int64(0), np.int64(0)
    weight = np.int64(0)
    for i in range(end - 1, begin - 2, -1):
        same = np.int64(0)
        if i >= begin:
            row = np.int64(order[i])
            other, other_length = np.int64(rows.positions[row]), np.int64(rows.lengths[row])
            shorter = min(length, other_length)
            while same < shorter and (
                text[np.uint64(position + same)] == text[np.uint64(other + same)]
            ):
                same += 1
            if i < end - 1 and same == length and same == other_length:
                weight += rows.counts[rows.tokens[row]]
                continue
        if i < end - 1:
            out = _with_room(out, used, length - common + MAX_ROW_OVERHEAD)
            used = _write_row(out, used, common, text[position : position + length], length, weight)
            packed += 1
            added += length - common
            longest = max(longest, length)
        if i >= begin:
            position, length, common = other, other_length, same
            weight = rows.counts[rows.tokens[row]]
    return out[:used].copy(), packed, longest, added


def proper_prefixes(string: bytes) -> list[bytes]:
    """Returns the proper prefixes of a string, in whole characters, from short to long."""
    return [string[:i] for i in range(1, len(string)) if string[i] & 0xC0 != 0x80]


def choose_groups(sample: SuffixTable, groups: int) -> PrefixPartitions:
    """Returns at most about this many groups, with equal shares of the sample's bytes."""
    total = sample.added + _ROW_BYTES * sample.rows
    share = max(1, math.ceil(total / max(1, groups)))
    borders = np.empty(_LONGEST_BORDER * (groups + 1), np.uint8)
    ends = np.empty(groups + 1, np.int64)
    size = _find_borders(read_only(sample.data), sample.longest, share, borders, ends)
    starts = [0, *ends[:size].tolist()]
    joined = borders.tobytes()
    strings = [joined[start:end] for start, end in zip(starts, starts[1:])]
    return PrefixPartitions(tuple(reversed(strings)))


def pass_ranges(group_bytes: list[int], max_bytes: int) -> Iterator[tuple[int, int]]:
    """Splits the groups into ranges [first, last) of at most `max_bytes`, or of a single group."""
    first, range_bytes = 0, 0
    for group, size in enumerate(group_bytes):
        if group > first and range_bytes + size > max_bytes:
            yield first, group
            first, range_bytes = group, 0
        range_bytes += size
    if first < len(group_bytes):
        yield first, len(group_bytes)


@kernel
def _find_borders(data, longest, share, borders, ends):
    """Writes a border after each share: the shortest prefix of a row that is above the next row."""
    row = np.empty(longest + 1, np.uint8)
    position, share_bytes, count, written, size = 0, 0, 0, 0, 0
    while position < len(data):
        common, more, _, position = read_row_head(data, position)
        if share_bytes >= share and common < size and count < len(ends):
            length = common + 1
            while length < size and row[length] & 0xC0 == 0x80:
                length += 1
            if length <= _LONGEST_BORDER:
                for i in range(length):
                    borders[written + i] = row[i]
                written += length
                ends[count] = written
                count += 1
                share_bytes = 0
        position, size = _put_bytes(row, common, data, position, more)
        share_bytes += more + _ROW_BYTES
    return count


def merge_suffix_tables(tables: Iterable[SuffixTable]) -> SuffixTable:
    """Returns one table with the weights of each string added up; merges the smallest first."""
    numbers = itertools.count()  # they break ties
    waiting = [(table.nbytes, next(numbers), table) for table in tables if table.rows]
    if not waiting:
        return SuffixTable.empty()
    heapq.heapify(waiting)
    while len(waiting) > 1:
        merged = _merge_two(heapq.heappop(waiting)[2], heapq.heappop(waiting)[2])
        heapq.heappush(waiting, (merged.nbytes, next(numbers), merged))
    return waiting[0][2]


class SuffixTableMerger:
    """Merges tables one by one; those not yet merged take at most as much memory as the sum."""

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
        """Returns the sum, packed."""
        return self.merged().to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> 'SuffixTableMerger':
        """Returns a merger with the sum that `to_bytes` packed."""
        merger = cls()
        merger.add(SuffixTable.from_bytes(data))
        return merger


def _merge_two(first: SuffixTable, second: SuffixTable) -> SuffixTable:
    longest = max(first.longest, second.longest)
    out = np.empty(len(first.data) + len(second.data) + MAX_ROW_OVERHEAD, np.uint8)
    strings = np.empty((2, longest), np.uint8)
    rows, added, used = _merge_rows(read_only(first.data), read_only(second.data), strings, out)
    return SuffixTable(read_only(out[:used].copy()), rows, longest, added)


@kernel_without_allocation
def read_row_head(data, position):
    """Returns (bytes in common, bytes added, weight, position of the bytes added)."""
    head = np.int64(data[np.uint64(position)])
    position += 1
    common, more = head >> 4, head & 15
    if common == _ESCAPED:
        common, position = read_varint(data, position)
    if more == _ESCAPED:
        more, position = read_varint(data, position)
    weight, position = read_varint(data, position)
    return common, more, weight, position


@kernel_without_allocation
def keep_common(writer, common):
    """Notes that the next string has at most `common` bytes in common with the last one read."""
    state = writer.state[0]
    state['common'] = min(state['common'], common)


@kernel_without_allocation
def append_row(writer, string, length, weight):
    """Writes string[:length]; the caller ensures that there is room."""
    state = writer.state[0]
    common = min(state['common'], length)
    state['used'] = _write_row(writer.out, state['used'], common, string, length, weight)
    state['rows'] += 1
    state['added'] += length - common
    state['common'] = length


@kernel_without_allocation
def _write_row(out, used, common, string, length, weight):
    """Writes string[:length], which has `common` bytes in common with the row before."""
    added = length - common
    out[np.uint64(used)] = np.uint8(min(common, _ESCAPED) << 4 | min(added, _ESCAPED))
    used += 1
    if common >= _ESCAPED:
        used = put_varint(out, used, common)
    if added >= _ESCAPED:
        used = put_varint(out, used, added)
    used = put_varint(out, used, weight)
    for i in range(common, length):
        out[np.uint64(used)] = string[np.uint64(i)]
        used += 1
    return used


@kernel
def _with_room(out, used, more):
    """Returns `out`, or a larger copy, with room for `more` bytes after the used ones."""
    if used + more <= len(out):
        return out
    larger = np.empty(2 * (used + more), np.uint8)
    larger[:used] = out[:used]
    return larger


@kernel_without_allocation
def _put_bytes(string, common, data, position, more):
    """Makes a row's string of the one before; returns the next position and the length."""
    for i in range(more):
        string[np.uint64(common + i)] = data[np.uint64(position + i)]
    return position + more, common + more


@kernel_without_allocation
def _merge_rows(first, second, strings, out):
    """Merges two tables into `out` and adds up the weights of equal strings.

    Of the next string of each table, it keeps the length of the common prefix with the string
    written last. The string with the longer one comes next; only if both are equal, bytes are
    compared, from there on. Returns (rows, bytes added, bytes used); the result is never larger
    than both inputs.

    Args:
      strings: uint8[2, longest], scratch space for the next strings.
    """
    a, b = strings[0], strings[1]
    used, rows, added = np.int64(0), 0, np.int64(0)
    i, a_common, a_length, a_weight = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    j, b_common, b_length, b_weight = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    takes_a, takes_b = True, True
    # Rows are read and written at one place each in the code, as the compiler would not inline
    # more.
    while True:
        if takes_a:
            a_common = np.int64(-1)
            if i < len(first):
                a_common, more, a_weight, i = read_row_head(first, i)
                i, a_length = _put_bytes(a, a_common, first, i, more)
        if takes_b:
            b_common = np.int64(-1)
            if j < len(second):
                b_common, more, b_weight, j = read_row_head(second, j)
                j, b_length = _put_bytes(b, b_common, second, j, more)
        common = max(a_common, b_common)
        if common < 0:
            return rows, added, used
        takes_a, takes_b = a_common == common, b_common == common
        if takes_a and takes_b:
            same, shorter = common, min(a_length, b_length)
            while same < shorter and a[np.uint64(same)] == b[np.uint64(same)]:
                same += 1
            takes_a = same == b_length or (same < a_length and a[same] > b[same])
            takes_b = same == a_length or (same < b_length and b[same] > a[same])
            a_common = b_common = same  # for the string that is not written
        if takes_a:
            weight = a_weight + b_weight if takes_b else a_weight
            used = _write_row(out, used, common, a, a_length, weight)
            added += a_length - common
        else:
            used = _write_row(out, used, common, b, b_length, b_weight)
            added += b_length - common
        rows += 1


@kernel
def _unpack_rows(data, longest, strings, ends, weights):
    """Writes every string in full, with its end and weight."""
    string = np.empty(longest + 1, np.uint8)
    position, row, written = 0, 0, 0
    while position < len(data):
        common, more, weight, position = read_row_head(data, position)
        position, length = _put_bytes(string, common, data, position, more)
        for k in range(length):
            strings[written + k] = string[k]
        written += length
        ends[row] = written
        weights[row] = weight
        row += 1


@kernel_without_allocation
def _measure_rows(data):
    """Returns the number of bytes that `_unpack_rows` writes."""
    position, total = 0, 0
    while position < len(data):
        common, more, _, position = read_row_head(data, position)
        position += more
        total += common + more
    return total


@kernel_without_allocation
def _write_reweighed(data, string, row, weights, writer):
    """Writes the rows whose new weight, weights[row + i], is not 0.

    Args:
      string: uint8[longest], scratch space.
    """
    position = np.int64(0)
    while position < len(data):
        common, more, _, position = read_row_head(data, position)
        position, length = _put_bytes(string, common, data, position, more)
        keep_common(writer, common)
        if weights[row] != 0:
            append_row(writer, string, length, weights[row])
        row += 1
