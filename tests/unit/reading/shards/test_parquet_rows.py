"""Rows of Parquet are ids of the vocabulary, or an error tells the file, the group and the row."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from written_dataset import parquet_shard, write_files

from tokcore import open_dataset
from tokcore.errors import InputError

NAME = 'd-train-00000-of-00001.parquet'
SOUND = [[5, 6, 1], [], [7, 1]]


def dataset_of(folder, table, **options):
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return dataset_of_bytes(folder, stream.getvalue(), table.num_rows)


def dataset_of_bytes(folder, data, rows):
    files = [(NAME, rows, data)]
    return open_dataset(write_files(folder, files, options={'output_format': 'parquet'}))


def ways_to_read(dataset, on_error='stop'):
    yield lambda: [row['targets'].tolist() for row in dataset.examples('train', on_error=on_error)]
    for asked in ({'tokens_per_batch': 20}, {'batch_size': 2, 'start': 0}):
        yield lambda asked=asked: [*dataset.batches('train', on_error=on_error, **asked)]


@pytest.mark.parametrize(
    ('kind', 'rows', 'told'),
    [
        (pa.list_(pa.int32()), [*SOUND, [5, None]], 'row 3 holds None'),
        (pa.list_(pa.int32()), [*SOUND, None], 'row 3 is null'),
        (pa.list_(pa.int32()), [*SOUND, [5, -5]], 'row 3 holds -5'),
        (pa.list_(pa.int32()), [[258], *SOUND], 'row 0 holds 258'),
        (pa.list_(pa.int64()), [*SOUND, [2**40 + 7]], f'row 3 holds {2**40 + 7}'),
        (pa.list_(pa.int64()), [*SOUND, [-(2**63)]], f'row 3 holds -{2**63}'),
        (pa.list_(pa.uint64()), [*SOUND, [1, 2**64 - 1]], f'row 3 holds {2**64 - 1}'),
        (pa.list_(pa.int8()), [*SOUND, [], [3, -1]], 'row 4 holds -1'),
        (pa.large_list(pa.int64()), [*SOUND, [2**32]], f'row 3 holds {2**32}'),
    ],
    ids=str,
)
def test_what_is_no_id_is_told_with_its_row(tmp_path, kind, rows, told):
    dataset = dataset_of(tmp_path, pa.table({'targets': pa.array(rows, kind)}))
    for read in ways_to_read(dataset):
        with pytest.raises(InputError, match=f"{NAME}: its group 0, .*column 'targets' of {told}"):
            read()
    for read in ways_to_read(dataset, 'skip'):
        assert read() == []


@pytest.mark.parametrize(
    ('columns', 'told'),
    [
        ({'targets': pa.array([['7']])}, 'is list<.*string> and no list of whole numbers'),
        ({'targets': pa.array([[1.9]])}, 'double'),
        ({'targets': pa.array(['7'])}, 'is string'),
        ({'targets': pa.array([7])}, 'is int64'),
        ({'targets': pa.array([{'a': 7}])}, 'is struct'),
        ({'targets': pa.array([[7, 8]], pa.list_(pa.int32(), 2))}, 'is fixed_size_list'),
        ({'targets': pa.array([[[7]]])}, 'is list'),
        ({'targets': pa.array([[True]])}, 'is list'),
        ({'targets': pa.array([None])}, 'is null'),
        ({'targets': pa.array(['a']).dictionary_encode()}, 'is dictionary'),
        ({'targets': pa.array([[(7, 8)]], pa.list_(pa.struct({'a': pa.int32(), 'b': pa.int32()})))},
         'is list'),
        ({'inputs': pa.array([[7]])}, "has no column 'targets'"),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize('on_error', ['stop', 'skip'])
def test_columns_of_other_types(tmp_path, columns, told, on_error):
    for read in ways_to_read(dataset_of(tmp_path, pa.table(columns)), on_error):
        with pytest.raises(InputError, match=f'{NAME}: .*{told}'):
            read()


def test_a_column_twice(tmp_path):
    column = pa.array([[7]], pa.list_(pa.int32()))
    table = pa.table([column, column], names=['targets', 'targets'])
    for read in ways_to_read(dataset_of(tmp_path, table)):
        with pytest.raises(InputError, match="has 2 columns 'targets'"):
            read()


@pytest.mark.parametrize('kind', [pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.uint64()], ids=str)
@pytest.mark.parametrize('list_', [pa.list_, pa.large_list])
def test_ids_of_any_width_are_read(tmp_path, kind, list_):
    table = pa.table({'targets': pa.array(SOUND, list_(kind)), 'score': pa.array([1.5, 2.5, 3.5])})
    for read in [*ways_to_read(dataset_of(tmp_path, table, row_group_size=2))][:1]:
        assert read() == SOUND


def test_a_row_is_counted_through_all_groups(tmp_path):
    table = pa.table({'targets': pa.array([*SOUND, [258]], pa.list_(pa.int32()))})
    dataset = dataset_of(tmp_path, table, row_group_size=2)
    with pytest.raises(InputError, match='its group 1, from row 2 on: .* of row 3 holds 258'):
        next(dataset.batches('train', tokens_per_batch=20))
    skipping = dataset.batches('train', tokens_per_batch=20, on_error='skip', shuffle=False)
    assert next(skipping)['targets'].tolist() == [[5, 6, 1], [0, 0, 0]]
    assert [*skipping] == [] and skipping.left_out['damaged'] == 2


def test_bytes_that_are_not_the_manifests_are_told(tmp_path):
    """A page of Parquet has no checksum: its ids would be others, and within the vocabulary."""
    rows = [{'targets': np.random.default_rng(1).integers(2, 250, 90).tolist()} for _ in range(50)]
    data = bytearray(parquet_shard(rows, ['targets']))
    dataset = dataset_of_bytes(tmp_path, bytes(data), 50)
    data[len(data) // 3] ^= 16
    (tmp_path / NAME).write_bytes(data)
    for read in ways_to_read(dataset):
        with pytest.raises(InputError, match=f'{NAME}: its CRC-32C is not the'):
            read()
    batches = dataset.batches('train', tokens_per_batch=100, on_error='skip')
    assert [*batches] == [] and batches.left_out['damaged'] == 50


def test_a_false_number_of_rows_is_not_counted_through_where_damage_is_passed_over(tmp_path):
    dataset = dataset_of_bytes(tmp_path, parquet_shard([{'targets': [5]}] * 9, ['targets']), 10**12)
    path = tmp_path / NAME
    data = bytearray(path.read_bytes())
    data[8] ^= 1
    path.write_bytes(data)
    for read in ways_to_read(dataset, 'skip'):
        with pytest.raises(InputError, match=f'{NAME}: it has 9 rows, and the manifest tells of 10'):
            read()


@pytest.mark.parametrize('data', [b'', b'PAR1', b'PAR1' * 9, b'x' * 400, b'PAR1' + b'\xff' * 90 + b'PAR1'], ids=str)
def test_what_is_no_parquet(tmp_path, data):
    for read in ways_to_read(dataset_of_bytes(tmp_path, data, 3)):
        with pytest.raises(InputError, match=f'{NAME}: it cannot be opened'):
            read()
