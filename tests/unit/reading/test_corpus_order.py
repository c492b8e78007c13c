"""Batches in the order of the corpus, which follows from the order keys in the index."""

import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_dataset import write_dataset, write_order

from tokcore import open_dataset
from tokcore.errors import InputError

ROWS = [{'targets': [*range(2, 4 + number), 1]} for number in range(7)]
ORDER = [3, 6, 0, 5, 1, 4, 2]


def written(folder, shards, numbers, output_format='tfrecord'):
    write_dataset(folder, shards, output_format=output_format)
    write_order(folder, np.array(numbers))
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


def test_an_index_without_keys_or_none_is_refused(folder):
    shutil.rmtree(folder / 'index')
    open_dataset(folder).write_index()
    said = (
        f'does not say where in the corpus rows come from; run `tokbeam index {folder}` where the'
    )
    with pytest.raises(InputError, match=said):
        in_order(folder)
    (folder / 'index' / 'd-train-00002-of-00003').unlink()
    with pytest.raises(InputError):
        in_order(folder)
