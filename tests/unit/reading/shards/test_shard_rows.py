"""Rows of a shard are those of the plain readers, in any window; damage is told where it is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written_dataset import framed

from tokcore.errors import InputError
from tokcore.reading.shards.shard_rows import ShardRows

IDS = st.lists(st.one_of(st.integers(0, 300), st.integers(0, 2**31 - 1)), max_size=30)
EXAMPLES = st.lists(st.fixed_dictionaries({'inputs': IDS, 'targets': IDS}), min_size=1, max_size=12)


def listed(rows):
    return [
        {name: rows.ids[name][own[row] : own[row + 1]].tolist() for name, own in rows.offsets.items()}
        for row in range(len(rows))
    ]


def shard(tmp_path, data, rows, features=('inputs', 'targets'), skips=False):
    path = tmp_path / 'shard'
    path.write_bytes(data)
    return ShardRows(str(path), rows, features, skips)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('shards')


@given(EXAMPLES, st.data())
@settings(max_examples=150, deadline=None)
def test_any_window_has_the_rows_that_were_written(folder, examples, dice):
    reader = shard(folder, framed(examples)[0], len(examples))
    for _ in range(3):
        first = dice.draw(st.integers(0, len(examples)))
        last = dice.draw(st.integers(first, len(examples)))
        numbers, rows = reader.read(first, last)
        assert numbers.tolist() == [*range(first, last)]
        assert listed(rows) == examples[first:last]


@given(EXAMPLES)
@settings(max_examples=50, deadline=None)
def test_some_of_the_features_in_another_order(folder, examples):
    reader = shard(folder, framed(examples)[0], len(examples), ('targets',))
    _, rows = reader.read(0, len(examples))
    assert listed(rows) == [{'targets': each['targets']} for each in examples]


def test_what_tensorflow_writes_is_read(folder, tmp_path):
    """Unpacked numbers, features in another order, others beside them, and one of bytes."""
    varint = lambda number: bytes([number]) if number < 128 else bytes([number & 127 | 128, number >> 7])  # noqa: E731
    field = lambda tag, data: bytes([tag]) + varint(len(data)) + data  # noqa: E731
    unpacked = b''.join(b'\x08' + varint(number) for number in (5, 300))
    targets = field(10, field(10, b'targets') + field(18, field(26, unpacked)))
    empty = field(10, field(10, b'inputs') + field(18, b''))
    other = field(10, field(10, b'score') + field(18, field(10, field(10, b'x'))))
    for order in ([targets, other, empty], [other, empty, targets]):
        data = with_frame(field(10, b''.join(order)))
        _, rows = shard(tmp_path, data, 1).read(0, 1)
        assert listed(rows) == [{'inputs': [], 'targets': [5, 300]}]
    twice = field(10, targets + empty + field(10, field(10, b'targets') + field(18, b'')))
    _, rows = shard(tmp_path, with_frame(twice), 1).read(0, 1)
    assert listed(rows) == [{'inputs': [], 'targets': []}]  # as in protobuf, the last one wins


def with_frame(payload):
    import struct

    import google_crc32c

    def masked(data):
        crc = google_crc32c.value(data)
        return struct.pack('<I', ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack('<Q', len(payload))
    return length + masked(length) + payload + masked(payload)


EXAMPLES_OF_FIVE = [{'inputs': [k, k + 1], 'targets': [7] * k} for k in range(5)]


@pytest.fixture
def whole():
    return framed(EXAMPLES_OF_FIVE)


def test_a_damaged_content_is_named_and_skipped_if_asked_for(whole, tmp_path):
    data, places = whole
    bad = bytearray(data)
    bad[places[3] - 5] ^= 1  # in the content of record 2
    with pytest.raises(InputError, match=rf'record 2, byte {places[2]}: .*content does not match'):
        shard(tmp_path, bad, 5).read(0, 5)
    numbers, rows = shard(tmp_path, bad, 5, skips=True).read(1, 5)
    assert numbers.tolist() == [1, 3, 4]
    assert listed(rows) == [EXAMPLES_OF_FIVE[number] for number in (1, 3, 4)]


@pytest.mark.parametrize(
    ('spoil', 'said', 'left'),
    [
        (lambda data, at: data[: at + 3], 'ends within the head', 2),
        (lambda data, at: data[: at + 14], 'ends within a TFRecord', 2),
        (lambda data, at: data[:at] + b'\xff' + data[at + 1 :], 'length does not match', 2),
        (lambda data, at: data[:at], 'ends after 2 records, and the manifest tells of 5', 2),
    ],
    ids=['head', 'content', 'length', 'end'],
)
def test_a_shard_that_is_cut_off_is_read_to_there_if_asked_for(whole, tmp_path, spoil, said, left):
    data, places = whole
    bad = spoil(data, places[2])
    with pytest.raises(InputError, match=said):
        shard(tmp_path, bad, 5).read(0, 5)
    reader = shard(tmp_path, bad, 5, skips=True)
    assert reader.read(0, 5)[0].tolist() == [*range(left)]
    assert reader.read(3, 5)[0].tolist() == []


def test_records_behind_the_last_are_an_error(whole, tmp_path):
    with pytest.raises(InputError, match='goes on at byte'):
        shard(tmp_path, whole[0], 4).read(0, 4)


@pytest.mark.parametrize(
    ('example', 'said'),
    [({'targets': [1]}, "no feature 'inputs'"), ({'inputs': [1], 'targets': [1]}, None)],
)
def test_an_example_without_a_feature_is_an_error(tmp_path, example, said):
    data, _ = framed([example])
    reader = shard(tmp_path, data, 1)
    if said is None:
        assert listed(reader.read(0, 1)[1]) == [example]
    else:
        with pytest.raises(InputError, match=said):
            reader.read(0, 1)


def test_an_empty_shard_has_no_rows(tmp_path):
    numbers, rows = shard(tmp_path, b'', 0).read(0, 0)
    assert len(rows) == len(numbers) == 0
    assert rows.ids['inputs'].dtype == np.int32
