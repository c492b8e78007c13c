"""The order of the corpus beside the shards: batches in it, and damage of its file."""

import hashlib
import struct

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_dataset import write_dataset

from tokcore import open_dataset
from tokcore.errors import InputError
from tokcore.reading.manifest import DatasetManifest
from tokcore.reading.record_index import write_corpus_order

ROWS = [{'targets': [*range(2, 4 + number), 1]} for number in range(7)]
ORDER = [3, 6, 0, 5, 1, 4, 2]


def written(folder, shards, numbers, output_format='tfrecord'):
    write_dataset(folder, shards, output_format=output_format)
    shards = DatasetManifest.read(folder).splits['train']
    write_corpus_order(str(folder), 'train', shards, np.array(numbers, np.int64))
    open_dataset(folder).write_index()
    return folder


@pytest.fixture
def folder(tmp_path):
    return written(tmp_path / 'd', [ROWS[:4], [], ROWS[4:]], ORDER)


def in_order(folder, **asked):
    """The rows of batches of one row each."""
    batches = open_dataset(folder).batches('train', tokens_per_batch=1, shuffle='corpus', **asked)
    return [batch['targets'][0].tolist() for batch in batches]


@given(st.permutations(range(7)), st.integers(1, 9), st.integers(0, 7), st.sampled_from(['tfrecord', 'parquet']))  # fmt: skip
def test_rows_come_in_any_order_that_is_written(tmp_path_factory, order, window, cut, kind):
    folder = tmp_path_factory.mktemp('drawn') / 'd'
    written(folder, [ROWS[:cut], ROWS[cut:]], order, kind)
    expected = [ROWS[number]['targets'] for number in order]
    assert in_order(folder, window=window) == expected
    assert in_order(folder, window=window, epochs=2, seed=4) == expected * 2


def test_packed_rows_keep_the_order(folder):
    packed = open_dataset(folder).packed(
        'train', 64, strategy='concat', shuffle='corpus', batch_size=1
    )
    ids = next(packed)['targets'][0].tolist()
    expected = [id_ for number in ORDER for id_ in ROWS[number]['targets']]
    assert ids[: len(expected)] == expected and not any(ids[len(expected) :])


def test_the_file_is_as_formats_md_says(folder):
    data = (folder / 'index' / 'train.corpus').read_bytes()
    shards = DatasetManifest.read(folder).splits['train']
    fields = [struct.pack('<QQI', each.rows, each.bytes, int(each.crc32c, 16)) for each in shards]
    numbers = struct.pack('<7Q', *ORDER)
    head = b'tborder\x01' + struct.pack('<Q', 7) + hashlib.sha256(b''.join(fields)).digest()
    head += struct.pack('<I', google_crc32c.value(numbers))
    assert data == head + struct.pack('<I', google_crc32c.value(head)) + numbers


NOT_THE_ORDER = 'is damaged, or is not the order of these 7 rows'


@pytest.mark.parametrize(
    'spoil',
    [
        lambda data: data[:20],
        lambda data: b'x' * len(data),
        lambda data: data[:9] + b'\1' + data[10:],
        lambda data: data[:-8],
        lambda data: data + b'\0',
        lambda data: data[:60] + b'\1' + data[61:],
    ],
    ids=['short', 'magic', 'head', 'cut off', 'longer', 'number'],
)
def test_a_damaged_order_is_refused(folder, spoil):
    path = folder / 'index' / 'train.corpus'
    path.write_bytes(spoil(path.read_bytes()))
    said = f'{NOT_THE_ORDER}; run `tokbeam index {folder} --corpus-order`'
    with pytest.raises(InputError, match=said):
        in_order(folder)


def test_an_order_of_other_shards_or_none_or_of_rows_that_are_not_there_is_refused(
    folder, tmp_path
):
    other = written(tmp_path / 'other', [ROWS[:2], ROWS[2:4]], [3, 2, 1, 0])
    path = folder / 'index' / 'train.corpus'
    path.write_bytes((other / 'index' / 'train.corpus').read_bytes())
    with pytest.raises(InputError, match=NOT_THE_ORDER):
        in_order(folder)
    path.unlink()
    with pytest.raises(InputError, match='has no order of the corpus for train; run `tokbeam ind'):
        in_order(folder)
    shards = DatasetManifest.read(folder).splits['train']
    write_corpus_order(str(folder), 'train', shards, np.array([0, 1, 2, 3, 4, 5, 7]))
    with pytest.raises(InputError, match='has the row 7 of 7'):
        in_order(folder)
