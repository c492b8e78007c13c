"""Rows of shards at any place: TFRecords, Parquet, and lines of pieces."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dataset_files import framed as with_frame
from hypothesis import given
from hypothesis import strategies as st
from protobuf_example import features_by_protobuf
from written_dataset import framed, lists_of, parquet_shard, write_files

from tokcore import open_dataset
from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets
from tokcore.reading.shards import PieceLineWriter, ShardFile, open_shard

NAME = 'd-train-00000-of-00001.parquet'
SOUND = [[5, 6, 1], [], [7, 1]]

IDS = st.lists(st.one_of(st.integers(0, 300), st.integers(0, 2**31 - 1)), max_size=30)
EXAMPLES = st.lists(st.fixed_dictionaries({'inputs': IDS, 'targets': IDS}), min_size=1, max_size=12)

EXAMPLES_OF_FIVE = [{'inputs': [k, k + 1], 'targets': [7] * k} for k in range(5)]

PIECES = ['a', 'é中', '', 'b c', '\\32;']
SHOWN = ['a', 'é中', '', 'b\\32;c', '\\92;32;']


def dataset_of(folder, table, **options):
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return dataset_of_bytes(folder, stream.getvalue(), table.num_rows)


def dataset_of_bytes(folder, data, rows):
    files = [(NAME, rows, data)]
    return open_dataset(write_files(folder, files, options={'output_format': 'parquet'}))


def ways_to_read(dataset, on_error='stop'):
    yield lambda: [row['targets'].tolist() for row in dataset.examples('train', on_error=on_error)]
    for arguments in ({'tokens_per_batch': 20}, {'batch_size': 2, 'start': 0}):
        yield lambda arguments=arguments: [
            *dataset.batches('train', on_error=on_error, **arguments)
        ]


@pytest.mark.parametrize(
    ('kind', 'rows', 'message'),
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
def test_a_number_that_is_not_an_id_is_an_error_with_its_row(tmp_path, kind, rows, message):
    dataset = dataset_of(tmp_path, pa.table({'targets': pa.array(rows, kind)}))
    for read in ways_to_read(dataset):
        with pytest.raises(
            InputError, match=f"{NAME}: its group 0, .*column 'targets' of {message}"
        ):
            read()
    for read in ways_to_read(dataset, 'skip'):
        assert read() == []


@pytest.mark.parametrize(
    ('columns', 'message'),
    [
        ({'targets': pa.array([['7']])}, 'is list<.*string>, not a list of whole numbers'),
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
        ([('targets', pa.array([[7]])), ('targets', pa.array([[7]]))], "has 2 columns 'targets'"),
    ],
)  # fmt: skip
@pytest.mark.parametrize('on_error', ['stop', 'skip'])
def test_columns_of_other_types(tmp_path, columns, message, on_error):
    pairs = columns.items() if isinstance(columns, dict) else columns
    table = pa.table([column for _, column in pairs], names=[name for name, _ in pairs])
    for read in ways_to_read(dataset_of(tmp_path, table), on_error):
        with pytest.raises(InputError, match=f'{NAME}: .*{message}'):
            read()


@pytest.mark.parametrize(
    'kind', [pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.uint64()], ids=str
)
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


def test_a_file_with_another_checksum_is_an_error(tmp_path):
    """A page of Parquet has no checksum: its ids would be others, and within the vocabulary."""
    rows = [{'targets': np.random.default_rng(1).integers(2, 250, 90).tolist()} for _ in range(50)]
    data = bytearray(parquet_shard(rows, ['targets']))
    dataset_of_bytes(tmp_path, bytes(data), 50)
    data[len(data) // 3] ^= 16
    (tmp_path / NAME).write_bytes(data)
    dataset = open_dataset(tmp_path)
    for read in ways_to_read(dataset):
        with pytest.raises(InputError, match=f'{NAME}: its CRC-32C is not the'):
            read()
    batches = dataset.batches('train', tokens_per_batch=100, on_error='skip')
    assert [*batches] == [] and batches.left_out['damaged'] == 50


def test_a_false_number_of_rows_is_refused_even_if_damage_is_skipped(tmp_path):
    dataset_of_bytes(tmp_path, parquet_shard([{'targets': [5]}] * 9, ['targets']), 10**12)
    path = tmp_path / NAME
    data = bytearray(path.read_bytes())
    data[8] ^= 1
    path.write_bytes(data)
    for read in ways_to_read(open_dataset(tmp_path), 'skip'):
        with pytest.raises(InputError, match=f'{NAME}: it has 9 rows, and the manifest states 10'):
            read()


@pytest.mark.parametrize(
    'data', [b'', b'PAR1', b'PAR1' * 9, b'x' * 400, b'PAR1' + b'\xff' * 90 + b'PAR1'], ids=str
)
def test_other_files_than_parquet_are_refused(tmp_path, data):
    for read in ways_to_read(dataset_of_bytes(tmp_path, data, 3)):
        with pytest.raises(InputError, match=f'{NAME}: it cannot be opened'):
            read()


def shard(tmp_path, data, rows, features=('inputs', 'targets'), skips=False):
    path = tmp_path / 'shard'
    path.write_bytes(data)
    return open_shard(ShardFile(str(path), rows, len(data), ''), features, {}, skips)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('shards')


@given(EXAMPLES, st.data())
def test_any_window_has_the_rows_that_were_written(folder, examples, dice):
    reader = shard(folder, framed(examples)[0], len(examples))
    for _ in range(3):
        first = dice.draw(st.integers(0, len(examples)))
        last = dice.draw(st.integers(first, len(examples)))
        numbers, rows = reader.read(first, last)
        assert numbers.tolist() == [*range(first, last)]
        assert lists_of(rows) == examples[first:last]
    _, rows = shard(folder, framed(examples)[0], len(examples), ('targets',)).read(0, len(examples))
    assert lists_of(rows) == [{'targets': each['targets']} for each in examples]


def part(tag, data):
    size = len(data)
    return bytes([tag, *([size] if size < 128 else [size & 127 | 128, size >> 7])]) + data


def test_what_tensorflow_writes_is_read(tmp_path):
    """Unpacked numbers, features in another order, others beside them, and one of bytes."""
    targets = part(10, part(10, b'targets') + part(18, part(26, b'\x08\x05\x08\xac\x02')))
    empty = part(10, part(10, b'inputs') + part(18, b''))
    other = part(10, part(10, b'score') + part(18, part(10, part(10, b'x'))))
    again = part(10, part(10, b'targets') + part(18, b''))
    for features, ids in (
        ([targets, other, empty], [5, 300]),
        ([other, empty, targets], [5, 300]),
        ([targets, empty, again], []),  # as in protobuf, the last one wins
    ):
        reader = shard(tmp_path, with_frame(part(10, b''.join(features))), 1)
        assert lists_of(reader.read(0, 1)[1]) == [{'inputs': [], 'targets': ids}]


def example_beside(name, value):
    """An Example with sound ids and another feature, of which both are given as they are stored."""
    ids = part(10, part(10, b'targets') + part(18, part(26, part(10, b'\x05\xac\x02'))))
    return part(10, ids + part(10, part(10, name) + part(18, value)))


BESIDE = {
    'nothing': (b'', b'', True),
    'bytes': (b'text', part(10, part(10, b'\xff') + part(10, b'')), True),
    'floats': (b'score', part(18, part(10, b'1234' * 2)), True),
    'floats one by one': (b'score', part(18, b'\x0d1234' * 2), True),
    'negative numbers': (b'label', part(26, part(10, b'\xfe' + b'\xff' * 8 + b'\x01')), True),
    'a name beyond ASCII': ('größe'.encode(), part(18, part(10, b'1234')), True),
    'a name that is not UTF-8': (b'gr\xfc', part(26, part(10, b'\x07')), False),
    'a number that is cut off': (b'label', part(26, part(10, b'\x07\x87')), False),
    'floats that are cut off': (b'score', part(18, part(10, b'12345')), False),
    'a list that is cut off': (b'text', b'\x0a\x05ab', False),
    'a field without a number': (b'text', b'\x00\x05', False),
}


@pytest.mark.parametrize(('name', 'value', 'is_sound'), BESIDE.values(), ids=BESIDE)
def test_a_record_is_sound_with_all_that_stands_beside_its_ids(tmp_path, name, value, is_sound):
    payload = example_beside(name, value)
    assert (features_by_protobuf(payload) is not None) == is_sound
    reader = shard(tmp_path, with_frame(payload), 1, ('targets',))
    if is_sound:
        assert lists_of(reader.read(0, 1)[1]) == [{'targets': [5, 300]}]
    else:
        with pytest.raises(InputError, match='record 0, byte 0'):
            reader.read(0, 1)


@given(st.data())
def test_records_of_changed_bytes_are_read_as_protobuf_reads_them_or_not_at_all(folder, dice):
    name, value, _ = dice.draw(st.sampled_from([*BESIDE.values()]))
    payload = bytearray(example_beside(name, value))
    for _ in range(dice.draw(st.integers(1, 2))):
        payload[dice.draw(st.integers(0, len(payload) - 1))] = dice.draw(st.integers(0, 255))
    by_protobuf = features_by_protobuf(bytes(payload))
    try:
        [row] = lists_of(shard(folder, with_frame(bytes(payload)), 1, ('targets',)).read(0, 1)[1])
    except InputError:
        return
    assert by_protobuf is not None and by_protobuf['targets'] == row['targets']


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
    assert lists_of(rows) == [EXAMPLES_OF_FIVE[number] for number in (1, 3, 4)]


@pytest.mark.parametrize(
    ('damage', 'said'),
    [
        (lambda data, at: data[: at + 3], 'ends within the head'),
        (lambda data, at: data[: at + 14], 'ends within a TFRecord'),
        (lambda data, at: data[:at] + b'\xff' + data[at + 1 :], 'length does not match'),
        (lambda data, at: data[:at], 'ends after 2 records, and the manifest states 5'),
    ],
    ids=['head', 'content', 'length', 'end'],
)
def test_a_shard_that_is_cut_off_is_read_to_there_if_asked_for(whole, tmp_path, damage, said):
    data, places = whole
    bad = damage(data, places[2])
    with pytest.raises(InputError, match=said):
        shard(tmp_path, bad, 5).read(0, 5)
    reader = shard(tmp_path, bad, 5, skips=True)
    assert reader.read(0, 5)[0].tolist() == [0, 1]
    assert reader.read(3, 5)[0].tolist() == []


def test_other_shards_than_are_stated(whole, tmp_path):
    with pytest.raises(InputError, match='goes on at byte'):
        shard(tmp_path, whole[0], 4).read(0, 4)
    with pytest.raises(InputError, match="no feature 'inputs'"):
        shard(tmp_path, framed([{'targets': [1]}])[0], 1).read(0, 1)
    numbers, rows = shard(tmp_path, b'', 0).read(0, 0)
    assert len(rows) == len(numbers) == 0 and rows.ids['inputs'].dtype == np.int32


@given(st.lists(st.lists(st.integers(0, len(PIECES) - 1), max_size=5), max_size=6))
def test_lines(rows):
    ids = np.array([id_ for row in rows for id_ in row], np.int32)
    offsets = row_offsets([len(row) for row in rows])
    for shown, writer in (
        (SHOWN, PieceLineWriter(PIECES)),
        (PIECES, PieceLineWriter(PIECES, False)),
    ):
        expected = ''.join(' '.join(shown[id_] for id_ in row) + '\n' for row in rows)
        assert writer.lines(ids, offsets).tobytes().decode() == expected
