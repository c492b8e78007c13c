"""Rows of packed suffix tables: written one by one, read one by one, two tables merged into one.

A row is a byte of two nibbles, bytes in common with the row before and bytes added (15: the number
follows as LEB128), the weight as LEB128, and the bytes added. Rows stand in descending order, so
that what a string begins comes before it.
"""

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


@kernel
def merge_rows(first, second, longest, out):
    """Merges two tables of rows into `out`, equal strings' weights added up.

    Beside each waiting string stands what it has in common with the string written last: the one
    with more of it is next, and only where both have the same are bytes compared, from there on.
    Returns (rows, bytes added in all, bytes used); what is used is never more than both inputs.
    """
    a, b = np.empty(longest + 1, np.uint8), np.empty(longest + 1, np.uint8)
    i, j, used, rows, added = 0, 0, 0, 0, 0
    a_common, a_length, a_weight = np.int64(0), np.int64(0), np.int64(0)
    b_common, b_length, b_weight = np.int64(0), np.int64(0), np.int64(0)
    read_a, read_b = True, True
    while True:
        if read_a:
            read_a = False
            a_common = np.int64(-1)
            if i < len(first):
                a_common, more, a_weight, i = read_row_head(first, i)
                for k in range(more):
                    a[np.uint64(a_common + k)] = first[np.uint64(i + k)]
                i += more
                a_length = a_common + more
        if read_b:
            read_b = False
            b_common = np.int64(-1)
            if j < len(second):
                b_common, more, b_weight, j = read_row_head(second, j)
                for k in range(more):
                    b[np.uint64(b_common + k)] = second[np.uint64(j + k)]
                j += more
                b_length = b_common + more
        # -1 where a table has ended.
        if a_common > b_common:
            read_a = True
        elif b_common > a_common:
            read_b = True
        elif a_common < 0:
            return rows, added, used
        else:
            same, shorter = a_common, min(a_length, b_length)
            while same < shorter and a[np.uint64(same)] == b[np.uint64(same)]:
                same += 1
            if same == a_length and same == b_length:
                read_a = read_b = True
            elif same == b_length or (same < a_length and a[same] > b[same]):
                read_a = True
                b_kept = same
            else:
                read_b = True
                a_kept = same
            if read_a and not read_b:
                used = write_row(out, used, a_common, a, a_length, a_weight)
                added += a_length - a_common
                b_common = b_kept
            elif read_b and not read_a:
                used = write_row(out, used, b_common, b, b_length, b_weight)
                added += b_length - b_common
                a_common = a_kept
            else:
                used = write_row(out, used, a_common, a, a_length, a_weight + b_weight)
                added += a_length - a_common
            rows += 1
            continue
        if read_a:
            used = write_row(out, used, a_common, a, a_length, a_weight)
            added += a_length - a_common
        else:
            used = write_row(out, used, b_common, b, b_length, b_weight)
            added += b_length - b_common
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


@kernel
def weigh_anew(data, longest, row, weights, out):
    """Writes the rows whose new weight, weights[row + i], is not 0.

    Returns (rows read, rows written, bytes added in all, bytes used).
    """
    string = np.empty(longest + 1, np.uint8)
    place, used, read, rows, added = 0, 0, 0, 0, 0
    shared, length_before = 0, 0
    while place < len(data):
        common, more, _, place = read_row_head(data, place)
        for k in range(more):
            string[common + k] = data[place + k]
        place += more
        shared = min(shared, common)
        weight = weights[row + read]
        read += 1
        if weight != 0:
            length = common + more
            shared = min(shared, length_before)
            used = write_row(out, used, shared, string, length, weight)
            rows += 1
            added += length - shared
            shared, length_before = length, length
    return read, rows, added, used
