"""Rows by their numbers, with an index of the records or the groups of Parquet; damage of both."""

import struct

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_dataset import framed, listed, opened, write_dataset

from pipelines.cli.main import main
from tokcore import open_dataset
from tokcore.errors import InputError

IDS = st.lists(st.integers(0, 257), max_size=9)
SHARDS = st.lists(
    st.lists(st.fixed_dictionaries({'inputs': IDS, 'targets': IDS}), max_size=9),
    min_size=1,
    max_size=4,
).filter(any)

ROWS = [{'targets': [*range(2, 4 + number), 1]} for number in range(7)]


@given(SHARDS, st.sampled_from(['tfrecord', 'parquet']), st.data())
def test_any_rows_are_those_that_were_written(tmp_path_factory, shards, output_format, draw):
    folder = tmp_path_factory.mktemp('drawn') / 'd'
    dataset = opened(folder, shards, output_format=output_format)
    assert dataset.write_index() == (len(shards) if output_format == 'tfrecord' else 0)
    expected = [row for shard in shards for row in shard]
    rows = dataset['train']
    assert len(rows) == len(expected)
    numbers = draw.draw(st.lists(st.integers(-len(expected), len(expected) - 1), max_size=12))
    assert [listed(row) for row in rows.rows(numbers)] == [expected[number] for number in numbers]
    cut = draw.draw(st.slices(len(expected)))
    assert [listed(row) for row in rows[cut]] == expected[cut]
    assert listed(rows[np.int64(-1)]) == expected[-1]
    for wrong in (len(expected), -len(expected) - 1):
        with pytest.raises(IndexError, match=f'row {wrong} of {len(expected)} rows'):
            rows[wrong]


@pytest.fixture
def folder(tmp_path):
    return write_dataset(tmp_path / 'd', [ROWS[:4], ROWS[4:]])


@pytest.fixture
def indexed(folder):
    assert main(['index', str(folder)]) == 0
    return folder


def test_an_index_is_written_as_formats_md_says(indexed):
    data, starts = framed(ROWS[:4])
    index = (indexed / 'index' / 'd-train-00000-of-00002').read_bytes()
    lengths = [len(row['targets']) for row in ROWS[:4]]
    entries = [struct.pack('<II', *entry) for entry in zip(starts, lengths)]
    fields = [len(data), google_crc32c.value(data), 1, 1]  # a feature, and offsets without keys
    footer = b'tbindex\x02' + struct.pack('<QQIBB', 4, *fields)
    crc32c = google_crc32c.value(footer).to_bytes(4, 'little')
    assert index == b''.join(entries) + footer + crc32c
    assert sorted(path.name for path in (indexed / 'index').iterdir()) == [
        'd-train-00000-of-00002',
        'd-train-00001-of-00002',
    ]


def test_a_folder_without_an_index_tells_how_to_get_it(folder, capsys):
    with pytest.raises(InputError, match=rf'has no index, .*; run `tokbeam index {folder}`'):
        open_dataset(folder)['train'][0]
    assert main(['index']) == 2
    assert 'the following arguments are required: DIR' in capsys.readouterr().err
    assert main(['index', str(folder)]) == 0
    assert '2 shards' in capsys.readouterr().out


NOT_AN_INDEX = '00002 is damaged, or is not the index of 4 rows in .* bytes with CRC-32C'


@pytest.mark.parametrize(
    ('spoil', 'said'),
    [
        (lambda data, other: other, NOT_AN_INDEX),
        (lambda data, other: data[:20], NOT_AN_INDEX),
        (lambda data, other: b'x' * len(data), NOT_AN_INDEX),
        (lambda data, other: data[:-20] + b'\1' + data[-19:], NOT_AN_INDEX),
        (lambda data, other: data[8:], NOT_AN_INDEX),
        (lambda data, other: b'', NOT_AN_INDEX),
        (lambda data, other: b'\1' + data[1:], 'record 0, byte 1: it is damaged, or'),
        (lambda data, other: b'\xff' * 4 + data[4:], 'record 0, byte .*its index is'),
        (lambda data, other: data[:8] + b'\xff' * 4 + data[12:], 'record 0, byte 0: .*its index'),
    ],
    ids=['other', 'short', 'magic', 'footer', 'cut off', 'empty', 'offset', 'beyond', 'end beyond'],
)
def test_an_index_of_another_shard_or_a_damaged_one_is_refused(indexed, spoil, said):
    path = indexed / 'index' / 'd-train-00000-of-00002'
    other = (indexed / 'index' / 'd-train-00001-of-00002').read_bytes()
    path.write_bytes(spoil(path.read_bytes(), other))
    with pytest.raises(InputError, match=said):
        open_dataset(indexed)['train'][0]


def test_a_damaged_record_is_refused_and_others_are_read(indexed):
    shard = indexed / 'd-train-00000-of-00002'
    data, starts = framed(ROWS[:4])
    damaged = bytearray(data)
    damaged[starts[2] - 6] ^= 1  # in the content of record 1
    shard.write_bytes(damaged)
    rows = open_dataset(indexed)['train']
    assert [listed(row) for row in rows.rows([0, 3, 6])] == [ROWS[0], ROWS[3], ROWS[6]]
    with pytest.raises(InputError, match=rf'00000-of-00002, record 1, byte {starts[1]}'):
        rows[1]
    damaged[0] ^= 1
    shard.write_bytes(damaged)
    (indexed / 'index' / shard.name).unlink()
    with pytest.raises(InputError, match='00000-of-00002, record 0, .*length does not match'):
        open_dataset(indexed).write_index()
    assert not (indexed / 'index' / shard.name).exists()


def test_a_split_that_is_not_there(folder):
    with pytest.raises(InputError, match="has no split 'dev'; there are train"):
        open_dataset(folder)['dev']
