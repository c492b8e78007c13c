"""Rows of packed suffix tables: written one by one, read one by one, two tables merged into one.

A row is a byte of two nibbles, bytes in common with the row before and bytes added (15: the number
follows as LEB128), the weight as LEB128, and the bytes added. Rows stand in descending order, so
that what a string begins comes before it.
"""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.compilation import kernel, kernel_without_allocation
from tokcore.compiled.varints import put_varint, read_varint

_ESCAPED = 15
# A head, two numbers of up to 5 bytes, and a weight of up to 9.
MAX_ROW_OVERHEAD = 32


@kernel_without_allocation
def read_row_head(data, place):
    """Reads what stands before a row's added bytes.

    Returns (bytes in common with the row before, bytes added, weight, the place of those bytes).
    """
    head = np.int64(data[np.uint64(place)])
    place += 1
    common, more = head >> 4, head & 15
    if common == _ESCAPED:
        common, place = read_varint(data, place)
    if more == _ESCAPED:
        more, place = read_varint(data, place)
    weight, place = read_varint(data, place)
    return common, more, weight, place


@kernel_without_allocation
def write_row(out, used, common, string, length, weight):
    """Writes string[:length], which has `common` bytes with the row before; there is room."""
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
def with_capacity(out, used, more):
    """Returns `out`, or a larger copy, with room for `more` bytes behind the used ones."""
    if used + more <= len(out):
        return out
    larger = np.empty(2 * (used + more), np.uint8)
    larger[:used] = out[:used]
    return larger


_WRITTEN = np.dtype(
    [(name, np.int64) for name in ('used', 'rows', 'added', 'common')], align=True
)


class RowWriter(NamedTuple):
    """Rows as they are written to an array, of which a larger one may take the place."""

    out: np.ndarray  # uint8
    state: np.ndarray
    """A record: bytes used, rows, bytes added in all, and how many bytes, at most, the row written
    last has in common with the string that comes next."""

    @classmethod
    def with_capacity(cls, capacity: int) -> 'RowWriter':
        return cls(np.empty(capacity, np.uint8), np.zeros(1, _WRITTEN))

    def with_room(self, more: int) -> 'RowWriter':
        """Returns the writer to go on with, which has room for so many bytes more."""
        return self._replace(out=with_capacity(self.out, int(self.state[0]['used']), more))


@kernel_without_allocation
def keep_common(writer, common):
    """Tells a writer that the strings to come have so many bytes, at most, of those before."""
    state = writer.state[0]
    state['common'] = min(state['common'], common)


@kernel_without_allocation
def append_row(writer, string, length, weight):
    """Writes string[:length]; there is room."""
    state = writer.state[0]
    common = min(state['common'], length)
    state['used'] = write_row(writer.out, state['used'], common, string, length, weight)
    state['rows'] += 1
    state['added'] += length - common
    state['common'] = length


@kernel_without_allocation
def _put_bytes(string, common, data, place, more):
    """Adds a row's bytes to the string before; returns the place behind them, and the length."""
    for i in range(more):
        string[np.uint64(common + i)] = data[np.uint64(place + i)]
    return place + more, common + more


@kernel_without_allocation
def merge_rows(first, second, strings, out):
    """Merges two tables of rows into `out`, equal strings' weights added up.

    Beside each waiting string stands what it has in common with the string written last: the one
    with more of it is next, and only where both have the same are bytes compared, from there on.
    Returns (rows, bytes added in all, bytes used); what is used is never more than both inputs.

    Args:
      strings: uint8[2, longest], room for the two strings that wait.
    """
    a, b = strings[0], strings[1]
    used, rows, added = np.int64(0), 0, np.int64(0)
    i, a_common, a_length, a_weight = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    j, b_common, b_length, b_weight = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    takes_a, takes_b = True, True
    # Each row is read and written at one place in the code: the compiler inlines no more.
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
            a_common = b_common = same  # of the one that goes on waiting
        if takes_a:
            weight = a_weight + b_weight if takes_b else a_weight
            used = write_row(out, used, common, a, a_length, weight)
            added += a_length - common
        else:
            used = write_row(out, used, common, b, b_length, b_weight)
            added += b_length - common
        rows += 1


@kernel
def unpack_rows(data, longest, strings, ends, weights):
    """Writes every string in full; `ends` and `weights` have a number for each row."""
    string = np.empty(longest + 1, np.uint8)
    place, row, written = 0, 0, 0
    while place < len(data):
        common, more, weight, place = read_row_head(data, place)
        for k in range(more):
            string[common + k] = data[place + k]
        place += more
        for k in range(common + more):
            strings[written + k] = string[k]
        written += common + more
        ends[row] = written
        weights[row] = weight
        row += 1


@kernel_without_allocation
def measure_rows(data):
    """Returns the bytes that `unpack_rows` writes."""
    place, total = 0, 0
    while place < len(data):
        common, more, _, place = read_row_head(data, place)
        place += more
        total += common + more
    return total


@kernel_without_allocation
def weigh_anew(data, string, row, weights, writer):
    """Writes the rows whose new weight, weights[row + i], is not 0.

    Args:
      string: uint8[longest], room for the string that is read.
    """
    place = np.int64(0)
    while place < len(data):
        common, more, _, place = read_row_head(data, place)
        place, length = _put_bytes(string, common, data, place, more)
        keep_common(writer, common)
        if weights[row] != 0:
            append_row(writer, string, length, weights[row])
        row += 1
