"""The files that reading has open, and the memory that it asks for, have bounds of their own."""

import resource
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_dataset import framed, lists_of, opened

from tokcore.errors import InputError
from tokcore.reading import shards
from tokcore.reading.shards import ShardFile, open_shard, rows_at_once

MANY = 500
OPEN_FILES = 430


@pytest.fixture(scope='module', params=['tfrecord', 'parquet'])
def many_shards(request, tmp_path_factory):
    rows = [[{'targets': [2 + number % 250, 1]}] for number in range(MANY)]
    folder = tmp_path_factory.mktemp('many') / 'd'
    dataset = opened(folder, rows, output_format=request.param)
    dataset.write_index()
    return dataset


@pytest.fixture
def few_open_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = len([*Path('/proc/self/fd').iterdir()])
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + OPEN_FILES, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(not Path('/proc/self/fd').exists(), reason='open files are counted in /proc')
@pytest.mark.parametrize(
    'shuffle', [*(pytest.param(each, marks=pytest.mark.slow) for each in (True, False)), 'exact']
)
def test_there_may_be_more_shards_than_open_files(many_shards, few_open_files, shuffle):
    asked = {'shuffle': shuffle, 'epochs': 2}
    batches = many_shards.batches('train', tokens_per_batch=64, **asked)
    assert sum(len(batch['targets']) for batch in batches) == 2 * MANY
    packed = many_shards.packed('train', 64, **asked)
    assert sum(int((batch['targets'] > 0).sum()) for batch in packed) == 4 * MANY
    rows = many_shards['train']
    assert [row['targets'].tolist() for row in rows[:]] == [
        rows[number]['targets'].tolist() for number in range(MANY)
    ]


def wide_rows(count, features, ids):
    return [
        {f'feature {k}': [row + k + number for number in range(ids)] for k in range(features)}
        for row in range(count)
    ]


def shard_of(path, rows):
    data = b''.join(framed([row])[0] for row in rows)
    path.write_bytes(data)
    return ShardFile(str(path), len(rows), len(data), '')


def test_many_features_take_no_more_memory_than_their_records(tmp_path):
    rows = wide_rows(2000, 100, 10)
    shard = shard_of(tmp_path / 'shard', rows)
    assert shard.bytes * 100 * 4 > 2 << 30
    reader = open_shard(shard, [*rows[0]], {})
    tracemalloc.start()
    try:
        read = reader.read(0, len(rows))[1]
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert lists_of(read.part(0, 3)) == rows[:3] and lists_of(read.part(1997, 2000)) == rows[-3:]
    assert most < 3 << 29


@given(st.integers(1, 30), st.integers(1, 3), st.integers(0, 9), st.integers(1, 2000))
def test_rows_are_the_same_however_many_are_parsed_at_once(
    tmp_path_factory, count, features, ids, room
):
    rows = wide_rows(count, features, ids)
    shard = shard_of(tmp_path_factory.mktemp('parsed') / 'shard', rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, '_PARSED_BYTES', room)
        assert lists_of(open_shard(shard, [*rows[0]], {}).read(0, count)[1]) == rows


def test_records_parsed_at_once_may_be_odd(tmp_path, monkeypatch):
    """The plain parser takes rows that have a feature twice, wherever they are."""
    rows = wide_rows(9, 2, 3)
    other = {'feature 0': [1], 'other': [2]}
    shard = shard_of(tmp_path / 'shard', [*rows[:4], other, *rows[5:]])
    monkeypatch.setattr(shards, '_PARSED_BYTES', 100)
    reader = open_shard(shard, [*rows[0]], {}, skips=True)
    numbers, read = reader.read(0, 9)
    assert numbers.tolist() == [0, 1, 2, 3, 5, 6, 7, 8]
    assert lists_of(read) == [rows[number] for number in numbers]
    with pytest.raises(InputError, match="record 4, .*has no feature 'feature 1'"):
        open_shard(shard, [*rows[0]], {}).read(0, 9)


@pytest.mark.parametrize('features', [63, 64, 65, 100, 130])
def test_records_may_have_more_features_than_a_word_has_bits(tmp_path, features):
    rows = wide_rows(3, features, 2)
    shard = shard_of(tmp_path / 'shard', rows)
    assert lists_of(open_shard(shard, [*rows[0]], {}).read(0, 3)[1]) == rows
    names = [*rows[0]]
    for kept in {1, min(64, features - 1), features - 1}:
        less = shard_of(tmp_path / 'less', [{name: rows[0][name] for name in names[:kept]}])
        with pytest.raises(InputError, match=f"has no feature 'feature {kept}'"):
            open_shard(less, names, {}).read(0, 1)


def test_fewer_rows_are_read_together_where_they_are_long():
    usual = ShardFile('usual', 1_000_000, 500_000_000, '')
    long = ShardFile('long', 1000, 1 << 30, '')
    assert rows_at_once([usual], 1 << 16) == 1 << 16
    assert rows_at_once([usual, long], 1 << 16) == 250
    assert rows_at_once([ShardFile('one', 1, 1 << 40, '')], 1 << 16) == 1
    assert rows_at_once([ShardFile('none', 0, 0, '')], 1 << 16) == 1 << 16


def test_long_rows_have_smaller_windows(tmp_path, monkeypatch):
    rows = [{'targets': [*range(2, 40), number]} for number in range(60)]
    dataset = opened(tmp_path / 'd', [rows[:30], rows[30:]])
    asked = {'tokens_per_batch': 39, 'seed': 5}

    def order(**window):
        return [
            int(batch['targets'][0, -1]) for batch in dataset.batches('train', **asked, **window)
        ]

    whole = order()
    monkeypatch.setattr(shards, '_WINDOW_BYTES', 700)
    assert order() == order(window=9) != whole
    assert sorted(order()) == [*range(60)]
    assert [row['targets'].tolist() for row in dataset.examples('train')] == [
        row['targets'] for row in rows
    ]
