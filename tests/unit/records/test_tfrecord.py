"""Framed rows: the bytes of tf.train.Example and TFRecord, and moves that lose no record."""

import dataclasses
import struct

import google_crc32c
import numpy as np
import pytest
from framed_rows import framed, records_of
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.errors import InputError
from tokcore.records.tfrecord import (
    FramedRows,
    frame_examples,
    join_rows,
    parse_example,
    read_records,
    sort_rows,
    split_by_bucket,
)


@dataclasses.dataclass
class Encoded:
    ids: np.ndarray
    offsets: np.ndarray


def encoded(rows: list[list[int]]) -> Encoded:
    ids = np.array([value for row in rows for value in row], np.int32)
    return Encoded(ids, np.cumsum([0] + [len(row) for row in rows], dtype=np.int64))


# --- the formats, said again plainly


def plain_varint(value: int) -> bytes:
    digits = [value >> shift & 127 for shift in range(0, max(value.bit_length(), 1), 7)]
    return bytes([digit | 128 for digit in digits[:-1]] + digits[-1:])


def plain_field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + plain_varint(len(content)) + content


def plain_example(features: dict[str, list[int]]) -> bytes:
    entries = b''
    for name in sorted(features, key=lambda name: name.encode('utf-8')):
        packed = b''.join(map(plain_varint, features[name]))
        int64_list = plain_field(1, packed) if packed else b''
        feature = plain_field(3, int64_list)
        entries += plain_field(1, plain_field(1, name.encode('utf-8')) + plain_field(2, feature))
    return plain_field(1, entries)


def plain_checksum(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack('<I', ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32)


def plain_record(payload: bytes) -> bytes:
    length = struct.pack('<Q', len(payload))
    return length + plain_checksum(length) + payload + plain_checksum(payload)


IDS = st.one_of(
    st.integers(0, 9000),
    st.integers(0, 2**31 - 1),
    st.sampled_from([b + d for b in (2**7, 2**14, 2**21, 2**28) for d in (-1, 0)] + [2**31 - 1]),
)
ID_LISTS = st.lists(IDS, max_size=80)
KEYS = st.integers(0, 2**64 - 1)
KEYED_RECORDS = st.lists(
    st.tuples(KEYS, st.binary(max_size=90)), max_size=30, unique_by=lambda record: record[0]
)


# --- framing


@given(st.lists(st.tuples(ID_LISTS, ID_LISTS, KEYS), max_size=12))
@example([([], [], 0)])
@example([([2**31 - 1], [0], 2**64 - 1)])
def test_two_features_are_framed_as_the_formats_say(rows):
    inputs = [row[0] for row in rows]
    targets = [row[1] for row in rows]
    keys = [row[2] for row in rows]
    found = frame_examples(
        [('inputs', encoded(inputs)), ('targets', encoded(targets))], np.uint64(keys)
    )
    assert records_of(found) == [
        (key, plain_record(plain_example({'inputs': a, 'targets': b}))) for a, b, key in rows
    ]


@given(st.dictionaries(st.text(max_size=200), ID_LISTS, min_size=1, max_size=4), st.randoms())
def test_features_are_sorted_by_name(features, random):
    given_order = list(features.items())
    random.shuffle(given_order)
    found = frame_examples([(name, encoded([ids])) for name, ids in given_order], np.uint64([7]))
    assert records_of(found) == [(7, plain_record(plain_example(features)))]


# Around each of these some message's size takes one byte more; the last row has 2 MiB of varints.
@pytest.mark.parametrize(
    'length',
    [
        *range(108, 130),
        *range(16_360, 16_386),
        pytest.param(2**21 // 5 + 1, marks=pytest.mark.slow),
    ],
)
def test_long_rows(length):
    ids = [2**31 - 1 if length > 400_000 else 127] * length
    found = frame_examples([('targets', encoded([[], ids, [5]]))], np.uint64([1, 2, 3]))
    payloads = list(read_records(found.records.tobytes(), 'rows'))
    assert payloads[1] == plain_example({'targets': ids})
    assert [parse_example(payload)['targets'] for payload in payloads] == [[], ids, [5]]


def test_no_rows():
    found = frame_examples([('targets', encoded([]))], np.uint64([]))
    assert len(found) == 0 and found.records.tobytes() == b''
    assert split_by_bucket(found, 3) == []
    assert len(sort_rows([found])) == len(sort_rows([])) == 0


def test_a_side_may_be_a_window_of_a_larger_one():
    whole = encoded([[1, 2], [3], [400, 5]])
    window = Encoded(whole.ids, whole.offsets[1:])
    assert records_of(frame_examples([('a', window)], np.uint64([8, 9]))) == [
        (8, plain_record(plain_example({'a': [3]}))),
        (9, plain_record(plain_example({'a': [400, 5]}))),
    ]


def test_misuse_is_refused():
    ids = encoded([[1], [2, -3]])
    with pytest.raises(ValueError, match="row 1 of feature 'a' has a negative id"):
        frame_examples([('a', ids)], np.uint64([1, 2]))
    with pytest.raises(ValueError, match='repeat a name'):
        frame_examples([('a', ids), ('a', ids)], np.uint64([1, 2]))
    with pytest.raises(ValueError, match='2 rows for 3 keys'):
        frame_examples([('a', ids)], np.uint64([1, 2, 3]))
    with pytest.raises(ValueError, match='int64 ids'):
        frame_examples([('a', Encoded(ids.ids.astype(np.int64), ids.offsets))], np.uint64([1, 2]))
    with pytest.raises(ValueError, match='do not ascend within its 3 ids'):
        frame_examples([('a', Encoded(ids.ids, np.array([0, 1, 4])))], np.uint64([1, 2]))


# --- framed rows as bytes


@given(KEYED_RECORDS)
def test_rows_survive_a_round_trip_through_bytes(records):
    rows = framed(records)
    data = rows.to_bytes()
    assert len(data) == 24 + 16 * len(records) + len(rows.records)
    back = FramedRows.from_bytes(data)
    assert records_of(back) == records and back.sizes.tolist() == rows.sizes.tolist()
    dtypes = [np.uint64, np.int64, np.uint8, np.uint32]
    assert [column.dtype for column in vars(back).values()] == dtypes


def test_other_bytes_are_refused():
    data = framed([(1, b'abc'), (2, b'd')]).to_bytes()
    for broken in (b'', b'nonsense' * 9, data[:20], data[:-1], data + b'x'):
        with pytest.raises(ValueError):
            FramedRows.from_bytes(broken)


def test_arrays_must_fit_together():
    with pytest.raises(ValueError, match='do not fit'):
        FramedRows(np.uint64([1]), np.array([4]), np.zeros(3, np.uint8), np.zeros((1, 0)))
    with pytest.raises(ValueError, match='do not fit'):
        FramedRows(np.uint64([1, 2]), np.array([3]), np.zeros(3, np.uint8), np.zeros((2, 0)))
    with pytest.raises(ValueError, match='sizes of 2 rows'):
        FramedRows(np.uint64([1]), np.array([3]), np.zeros(3, np.uint8), np.zeros((2, 0)))


# --- cut, sort, join


@given(KEYED_RECORDS, st.one_of(st.integers(1, 5), st.sampled_from([65_536, 65_537, 2**32])))
def test_split_keeps_every_row_in_order_in_the_bucket_of_its_key(records, buckets):
    expected: dict[int, list] = {}
    for key, record in records:
        expected.setdefault(key * buckets >> 64, []).append((key, record))
    parts = split_by_bucket(framed(records), buckets)
    assert [(bucket, records_of(part)) for bucket, part in parts] == sorted(expected.items())


@given(KEYED_RECORDS, st.lists(st.integers(0, 30), max_size=4))
def test_sort_puts_the_rows_of_all_parts_by_key(records, cuts):
    bounds = [0, *sorted(min(cut, len(records)) for cut in cuts), len(records)]
    parts = [framed(records[a:b]) for a, b in zip(bounds, bounds[1:])]
    assert records_of(sort_rows(iter(parts))) == sorted(records)
    assert records_of(join_rows(iter(parts))) == records


def test_a_row_that_came_twice_is_shown():
    parts = [framed([(5, b'a'), (0xABC, b'b')]), framed([(9, b''), (0xABC, b'c')])]
    with pytest.raises(ValueError, match='0x0000000000000abc'):
        sort_rows(parts)


# --- reading


@given(st.lists(st.binary(max_size=60)))
def test_records_are_read(payloads):
    data = b''.join(map(plain_record, payloads))
    assert list(read_records(data, 'f')) == payloads


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=4), st.data())
def test_a_file_cut_anywhere_but_between_records_is_refused(payloads, data):
    records = list(map(plain_record, payloads))
    whole = b''.join(records)
    cut = data.draw(st.integers(0, len(whole)))
    ends = np.cumsum([0] + [len(record) for record in records]).tolist()
    if cut in ends:
        assert list(read_records(whole[:cut], 'f')) == payloads[: ends.index(cut)]
    else:
        start = max(end for end in ends if end < cut)
        with pytest.raises(InputError, match=f'^dir/f, byte {start}: the file ends'):
            list(read_records(whole[:cut], 'dir/f'))


@given(st.data())
def test_any_flipped_bit_is_found(data):
    first, second = plain_record(b'first one'), plain_record(b'second')
    damaged = bytearray(first + second)
    at = data.draw(st.integers(0, len(damaged) - 1))
    damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    start = 0 if at < len(first) else len(first)
    with pytest.raises(InputError, match=f'^f, byte {start}: the checksum'):
        list(read_records(bytes(damaged), 'f'))


@given(st.dictionaries(st.text(max_size=5), ID_LISTS, max_size=3))
def test_examples_are_parsed(features):
    assert parse_example(plain_example(features)) == features


def test_unpacked_negative_and_unknown_fields_are_parsed():
    minus_two = bytes([0xFE] + [0xFF] * 8 + [0x01])
    # one value unpacked, three packed, then an unknown field of each wire type
    int64_list = b'\x08\x05' + plain_field(1, b'\x01\xac\x02' + minus_two)
    unknown = b'\x30\x07' + b'\x39' + b'8' * 8 + b'\x45' + b'4' * 4 + plain_field(9, b'?')
    feature = plain_field(3, int64_list + unknown)
    entry = plain_field(1, b'x') + plain_field(2, feature) + unknown
    record = plain_field(1, plain_field(1, entry)) + unknown
    assert parse_example(record) == {'x': [5, 1, 300, -2]}


@pytest.mark.parametrize(
    'record',
    [
        b'\x0a',
        b'\x0a\x05abc',
        b'\x0b',
        b'\x08\x01',
        b'\x0a' + b'\x80' * 12,
        plain_field(1, plain_field(1, plain_field(1, b'x') + plain_field(2, plain_field(2, b'')))),
    ],
    ids=['no size', 'cut', 'group', 'varint', 'long varint', 'floats'],
)
def test_other_messages_than_examples_of_int64_are_refused(record):
    with pytest.raises(ValueError):
        parse_example(record)


def test_ids_of_two_bytes_make_the_same_records():
    wide = encoded([[1, 2], [], [127, 128, 300, 16_383, 16_384, 65_535]])
    narrow = Encoded(wide.ids.astype(np.uint16), wide.offsets)
    made = [
        records_of(frame_examples([('x', each)], np.uint64([3, 1, 2]))) for each in (wide, narrow)
    ]
    assert made[0] == made[1]
