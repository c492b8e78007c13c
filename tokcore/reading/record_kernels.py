"""Kernels that index the TFRecords of a shard and parse the tf.train.Examples in them.

The parser takes the one layout that writers of whole lists produce, features in any order:

    Example ─ features ─▶ entries (name, then value) ─ int64_list ─▶ varints, packed or one by one

A record with another layout is marked, and `records.features.parse_features` parses it. Features that
are not read may be of any kind, but are checked as well: protobuf parses a record whole.
"""

import numpy as np

from tokcore.kernels.bytes import crc32c_bytes
from tokcore.kernels.jit import inlined_kernel, kernel_without_allocation
from tokcore.kernels.simd import CHUNK, at_least_mask, load_word

WHOLE, HEAD_CUT_OFF, HEAD_DAMAGED, CUT_OFF = range(4)
"""The status with which `index_records` stops."""

PARSED, UNPARSED = range(2)
"""The mark of a record: its ids were written, or it has another layout."""

HEADER_SIZE, FOOTER_SIZE = 12, 4
SMALLEST_RECORD = HEADER_SIZE + FOOTER_SIZE
LARGEST_ID = (1 << 31) - 1

_MESSAGE, _NAME, _VALUE, _INT64_LIST, _SINGLE = 0x0A, 0x0A, 0x12, 0x1A, 0x08
_BYTES_LIST, _FLOAT_LIST = 0x0A, 0x12

_GOES_ON = np.uint64(0x80)
"""A byte from here on is not the last one of its number; so it is the smallest number of two bytes."""

_THREE_BYTES = np.uint64(1 << 14)
"""The smallest number of three bytes."""

_ONE = np.uint64(1)

_ANY_NUMBER = -1
"""As the largest number of a list: read without its sign it is the largest that there is."""


@kernel_without_allocation
def _stored_checksum(data, place):
    checksum = np.uint64(0)
    for k in range(np.uint64(4)):
        checksum |= np.uint64(data[np.uint64(place) + k]) << (np.uint64(8) * k)
    return checksum


@kernel_without_allocation
def _masked(crc):
    rotated = ((crc >> np.uint64(15)) | (crc << np.uint64(17))) & np.uint64(0xFFFFFFFF)
    return (rotated + np.uint64(0xA282EAD8)) & np.uint64(0xFFFFFFFF)


@kernel_without_allocation
def index_records(data, place, table, checks, starts, lengths, damaged):
    """Indexes the records from data[place:] on, as many as `starts` has room for.

    Args:
        data: uint8, a shard.
        place: where a record begins.
        table: of CRC32C.
        checks: whether checksums of contents are compared; those of lengths always are.
        starts, lengths: int64[n], filled with where each record's content is.
        damaged: uint8[n], set to 1 where the checksum of a content does not match.

    Returns (the place after the last record, the number of records, the status there).
    """
    count = 0
    size = len(data)
    while count < len(starts) and place < size:
        if size - place < HEADER_SIZE:
            return place, count, HEAD_CUT_OFF
        length = load_word(data, np.uint64(place))
        if _masked(crc32c_bytes(data, place, place + 8, table)) != _stored_checksum(
            data, place + 8
        ):
            return place, count, HEAD_DAMAGED
        start = place + HEADER_SIZE
        if length > np.uint64(size) or start + np.int64(length) + FOOTER_SIZE > size:
            return place, count, CUT_OFF
        end = start + np.int64(length)
        starts[count] = start
        lengths[count] = end - start
        damaged[count] = 0
        if checks and _masked(crc32c_bytes(data, start, end, table)) != _stored_checksum(data, end):
            damaged[count] = 1
        count += 1
        place = end + FOOTER_SIZE
    return place, count, WHOLE


@kernel_without_allocation
def check_records(data, places, table, records):
    """Checks whole records at any places.

    Args:
        data: uint8, a shard.
        places: uint64[2, n], where records begin and end.
        table: of CRC32C.
        records: int64[2, n], filled with where each content begins, and its size.

    Returns (n, WHOLE); or the first record of which a checksum does not match or which ends elsewhere,
    and CUT_OFF.
    """
    for k in range(places.shape[1]):
        if places[1, k] > np.uint64(len(data)) or places[0, k] > places[1, k]:
            return k, CUT_OFF
        place = np.int64(places[0, k])
        size = _content_size(data, place, np.int64(places[1, k]), table)
        if size < 0:
            return k, CUT_OFF
        records[0, k] = place + HEADER_SIZE
        records[1, k] = size
    return places.shape[1], WHOLE


@inlined_kernel
def _content_size(data, start, end, table):
    """Returns the size of the content of data[start:end], or -1 if that is not a whole sound record."""
    size = end - start - SMALLEST_RECORD
    if size < 0 or load_word(data, np.uint64(start)) != np.uint64(size):
        return np.int64(-1)
    if _masked(crc32c_bytes(data, start, start + 8, table)) != _stored_checksum(data, start + 8):
        return np.int64(-1)
    content, stop = start + HEADER_SIZE, end - FOOTER_SIZE
    if _masked(crc32c_bytes(data, content, stop, table)) != _stored_checksum(data, stop):
        return np.int64(-1)
    return size


@kernel_without_allocation
def _varint(data, place, end):
    """Returns a number and the place after it, which is -1 if it is cut off."""
    number = np.uint64(0)
    shift = np.uint64(0)
    while place < end and shift < np.uint64(70):
        byte = np.uint64(data[np.uint64(place)])
        place += 1
        number |= (byte & np.uint64(127)) << shift
        if byte < np.uint64(128):
            return number, place
        shift += np.uint64(7)
    return number, np.int64(-1)


@kernel_without_allocation
def _message(data, place, end, tag):
    """Returns where the content of a field begins and ends; (-1, -1) if its tag is not this one."""
    if place >= end or data[np.uint64(place)] != tag:
        return np.int64(-1), np.int64(-1)
    if place + 1 < end and data[np.uint64(place + 1)] < 128:  # as most: the length is one byte
        stop = place + 2 + np.int64(data[np.uint64(place + 1)])
        return (place + 2, stop) if stop <= end else (np.int64(-1), np.int64(-1))
    length, start = _varint(data, place + 1, end)
    if start < 0 or length > np.uint64(end - start):
        return np.int64(-1), np.int64(-1)
    return start, start + np.int64(length)


@kernel_without_allocation
def _read_ids(data, place, end, largest, ids, feature, at):
    """Writes the numbers of a Feature to ids[feature, at:]; returns where they end, or -1."""
    if place == end:
        return at
    place, stop = _message(data, place, end, _INT64_LIST)
    if place < 0 or stop != end:
        return np.int64(-1)
    while place < end:
        stop = end
        if data[np.uint64(place)] == _MESSAGE:
            place, stop = _message(data, place, end, _MESSAGE)
            if place < 0:
                return np.int64(-1)
        elif data[np.uint64(place)] == _SINGLE:
            number, place = _varint(data, place + 1, end)
            if place < 0 or number > np.uint64(largest):
                return np.int64(-1)
            ids[np.uint64(feature), np.uint64(at)] = np.int32(number)
            at += 1
            continue
        else:
            return np.int64(-1)
        while place < stop:
            number, place = _varint(data, place, stop)
            if place < 0 or number > np.uint64(largest):
                return np.int64(-1)
            ids[np.uint64(feature), np.uint64(at)] = np.int32(number)
            at += 1
    return at


@kernel_without_allocation
def _find_name(data, start, end, names, bounds):
    """Returns the number of the feature whose name is data[start:end], or -1."""
    for feature in range(len(bounds) - 1):
        first = bounds[feature]
        if bounds[feature + 1] - first == end - start:
            k = 0
            while k < end - start and data[np.uint64(start + k)] == names[np.uint64(first + k)]:
                k += 1
            if k == end - start:
                return feature
    return -1


@inlined_kernel
def _are_ids(data, place, end, largest):
    """Whether data[place:end] are whole varints of numbers up to `largest`.

    64 bytes are looked at at once. A number is an id if it has fewer bytes than `largest`, or as many, two
    or three, of which the last is below its last one; only where there are others all are decoded.
    """
    is_wide = np.uint64(largest) >= _THREE_BYTES
    last_byte = np.uint64(largest) >> (np.uint64(14) if is_wide else np.uint64(7))
    lowest = min(last_byte, _GOES_ON)
    while place < end:
        size = np.uint64(min(CHUNK, end - place))
        stop = place + np.int64(size)
        if np.uint64(largest) >= _GOES_ON and place + CHUNK <= len(data):
            goes_on = at_least_mask(data, np.uint64(place), _GOES_ON)
            # A number of which the rest comes after the chunk is left for the next one.
            while end > stop and size > _ONE and goes_on >> (size - _ONE) & _ONE:
                size -= _ONE
            last_bytes = goes_on << _ONE
            if is_wide:
                last_bytes = (goes_on & last_bytes) << _ONE
            unsure = last_bytes & at_least_mask(data, np.uint64(place), lowest)
            unsure |= goes_on & (_ONE << (size - _ONE))
            if unsure << (np.uint64(CHUNK) - size) == np.uint64(0):
                place += np.int64(size)
                continue
        while place < stop:
            number, place = _varint(data, place, end)
            if place < 0 or number > np.uint64(largest):
                return False
    return True


@kernel_without_allocation
def _count_ids(data, place, end, largest):
    """Returns the number of ids of a Feature, data[place:end], as `_read_ids` reads it; -1 if it is none."""
    count = np.int64(0)
    if place == end:
        return count
    place, stop = _message(data, place, end, _INT64_LIST)
    if place < 0 or stop != end:
        return np.int64(-1)
    while place < end:
        if data[np.uint64(place)] == _MESSAGE:
            place, stop = _message(data, place, end, _MESSAGE)
            if place < 0 or not _are_ids(data, place, stop, largest):
                return np.int64(-1)
            for at in range(np.uint64(place), np.uint64(stop)):
                count += np.int64(data[at] < 0x80)  # the last byte of a varint
            place = stop
        elif data[np.uint64(place)] == _SINGLE:
            number, place = _varint(data, place + 1, end)
            if place < 0 or number > np.uint64(largest):
                return np.int64(-1)
            count += 1
        else:
            return np.int64(-1)
    return count


@kernel_without_allocation
def _is_other(data, name, name_end, value, value_end):
    """Whether a feature that is not read is sound: its name ASCII, its value of any kind.

    False for other sound layouts too, which the plain parser distinguishes from damage.
    """
    for place in range(name, name_end):
        if data[np.uint64(place)] >= 0x80:
            return False
    if value == value_end or data[np.uint64(value)] == _INT64_LIST:
        return _count_ids(data, value, value_end, _ANY_NUMBER) >= 0
    kind = data[np.uint64(value)]
    if kind != _BYTES_LIST and kind != _FLOAT_LIST:
        return False
    place, stop = _message(data, value, value_end, kind)
    if place < 0 or stop != value_end:
        return False
    while place < stop:
        start, place = _message(data, place, stop, _MESSAGE)
        if place < 0 or (kind == _FLOAT_LIST and (place - start) % 4):
            return False
    return True


@inlined_kernel
def _next_feature(data, place, end):
    """Returns where the name of an entry begins and ends, and its value; (-1, …) if it is no entry."""
    entry, entry_end = _message(data, place, end, _MESSAGE)
    name, name_end = _message(data, entry, entry_end, _NAME)  # (-1, -1) if there is no entry
    if name < 0:
        return name, name, name, name
    value, value_end = _message(data, name_end, entry_end, _VALUE)
    if value < 0 or value_end != entry_end:
        return np.int64(-1), name_end, value, value_end
    return name, name_end, value, value_end


@kernel_without_allocation
def _parse(data, place, end, names, bounds, largest, ids, offsets, row):
    """Parses one record, whose ids begin at offsets[:, row]; returns its mark."""
    place, stop = _message(data, place, end, _MESSAGE)
    if place < 0 or stop != end:
        return UNPARSED
    for feature in range(len(bounds) - 1):
        offsets[feature, row + 1] = -1
    seen = 0
    while place < end:
        name, name_end, value, place = _next_feature(data, place, end)
        if name < 0:
            return UNPARSED
        feature = _find_name(data, name, name_end, names, bounds)
        if feature < 0:
            if not _is_other(data, name, name_end, value, place):
                return UNPARSED
            continue
        if offsets[feature, row + 1] >= 0:
            return UNPARSED
        seen += 1
        at = _read_ids(data, value, place, largest[feature], ids, feature, offsets[feature, row])
        if at < 0:
            return UNPARSED
        offsets[feature, row + 1] = at
    return PARSED if seen == len(bounds) - 1 else UNPARSED


@kernel_without_allocation
def parse_records(data, records, names, bounds, largest, ids, offsets, marks):
    """Parses records one after another.

    Args:
        data: uint8, a shard.
        records: int64[2, n], where the contents begin, and their sizes.
        names: uint8, the names of the features; that of i is names[bounds[i]:bounds[i + 1]].
        bounds: int64[features + 1].
        largest: int64[features], the largest id of each; a record with a larger one is marked.
        ids: int32[features, room], filled in; no record has more ids than bytes.
        offsets: int64[features, n + 1], filled in: where each record's ids are.
        marks: uint8[n], filled with PARSED or UNPARSED; an unparsed record has no ids.
    """
    for feature in range(len(bounds) - 1):
        offsets[feature, 0] = 0
    for row in range(records.shape[1]):
        start = records[0, row]
        marks[row] = _parse(
            data, start, start + records[1, row], names, bounds, largest, ids, offsets, row
        )
        if marks[row] != PARSED:
            for feature in range(len(bounds) - 1):
                offsets[feature, row + 1] = offsets[feature, row]


@kernel_without_allocation
def read_row(data, start, end, table, names, bounds, largest, ids, offsets):
    """Checks and parses one whole record, which is faster for a single one than two kernels are.

    Args:
        data: uint8, a shard.
        start, end: where the record begins and ends, up to len(data).
        table: of CRC32C.
        names, bounds, largest: as of `parse_records`.
        ids: int32[features, end - start or more], filled in from the first column on.
        offsets: int64[features, 2], filled in: 0, and the number of ids of each feature.

    Returns CUT_OFF if it is not a whole sound record, otherwise PARSED or UNPARSED.
    """
    if _content_size(data, start, end, table) < 0:
        return CUT_OFF
    for feature in range(len(bounds) - 1):
        offsets[feature, 0] = 0
    content, stop = start + HEADER_SIZE, end - FOOTER_SIZE
    return _parse(data, content, stop, names, bounds, largest, ids, offsets, 0)


@kernel_without_allocation
def _is_row(data, place, end, names, bounds, largest, counts):
    """Whether `_parse` would parse one record; False where there are more features than bits.

    Sets counts[feature] to the number of its ids.
    """
    place, stop = _message(data, place, end, _MESSAGE)
    if place < 0 or stop != end or len(bounds) > 64:
        return False
    seen = 0
    while place < end:
        name, name_end, value, place = _next_feature(data, place, end)
        if name < 0:
            return False
        feature = _find_name(data, name, name_end, names, bounds)
        if feature < 0:
            if not _is_other(data, name, name_end, value, place):
                return False
            continue
        count = _count_ids(data, value, place, largest[feature])
        if seen >> feature & 1 or count < 0:
            return False
        counts[feature] = count
        seen |= 1 << feature
    return seen == (1 << (len(bounds) - 1)) - 1


@kernel_without_allocation
def mark_rows(data, records, names, bounds, largest, marks, counts):
    """Marks the records that `parse_records` would parse, and counts their ids, without writing these.

    The arguments are those of `parse_records`; `counts`, uint32[n, features], has the numbers of marked ones.
    """
    for row in range(records.shape[1]):
        start = records[0, row]
        is_row = _is_row(data, start, start + records[1, row], names, bounds, largest, counts[row])
        marks[row] = PARSED if is_row else UNPARSED


@kernel_without_allocation
def fill_rows(ids, starts, lengths, out, column):
    """Writes rows of ids to the rows of a padded array, from a column on.

    Args:
        ids: int32, in which all of the rows are.
        starts, lengths: int64[rows], where each row is.
        out: int32[rows, width], filled with padding; a row that is too long is cut.
        column: the first column that is written.
    """
    room = out.shape[1] - column
    for k in range(len(starts)):
        start = np.uint64(starts[k])
        length = min(lengths[k], room)
        for at in range(np.uint64(length)):
            out[np.uint64(k), np.uint64(column) + at] = ids[start + at]
