"""Batches that are made ahead are the same, with the states of those that were given."""

import gc
import json
import threading

import pytest
from written_dataset import framed, opened, write_files

from tokcore import open_dataset
from tokcore.errors import InputError

ROWS = [{'targets': [*range(2, 4 + number % 30), 1]} for number in range(90)]
ASKED = {'tokens_per_batch': 60, 'window': 20, 'epochs': 2}


@pytest.fixture
def dataset(tmp_path):
    return opened(tmp_path / 'd', [ROWS[:40], ROWS[40:]])


def listed(batches):
    return [batch['targets'].tolist() for batch in batches]


@pytest.mark.parametrize('ahead', [1, 3, 500])
def test_they_are_the_same_with_the_same_states(dataset, ahead):
    plain, prefetched = (dataset.batches('train', **ASKED) for _ in range(2))
    prefetched, states = prefetched.prefetch(ahead), []
    assert prefetched.state() == plain.state()
    for batch in plain:
        assert next(prefetched)['targets'].tolist() == batch['targets'].tolist()
        states.append(plain.state())
        assert prefetched.state() == states[-1]
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(prefetched)
    assert prefetched.state() == plain.state()
    again = dataset.from_state(json.loads(json.dumps(states[6]))).prefetch(ahead)
    assert listed(again) == listed(dataset.batches('train', **ASKED))[7:]
    with pytest.raises(InputError, match='ahead is 0'):
        plain.prefetch(0)


def test_an_error_comes_where_its_batch_would(tmp_path):
    data, starts = framed(ROWS)
    damaged = bytearray(data)
    damaged[starts[70] - 6] ^= 1
    folder = write_files(tmp_path / 'd', [('d-train-00000-of-00001', 90, bytes(damaged))])
    asked = {'tokens_per_batch': 60, 'window': 20, 'shuffle': False}
    plain = open_dataset(folder).batches('train', **asked)
    prefetched = open_dataset(folder).batches('train', **asked).prefetch(100)
    while True:
        try:
            batch = next(plain)
        except InputError as error:
            with pytest.raises(InputError) as raised:
                next(prefetched)
            assert str(raised.value) == str(error) and 'record 69' in str(error)
            break
        assert next(prefetched)['targets'].tolist() == batch['targets'].tolist()
    with pytest.raises(StopIteration):
        next(prefetched)


def test_the_thread_ends_with_what_it_is_for(dataset):
    before = threading.active_count()
    prefetched = dataset.batches('train', tokens_per_batch=60, epochs=None).prefetch()
    next(prefetched)
    assert threading.active_count() == before + 1
    del prefetched
    gc.collect()
    assert threading.active_count() == before
    prefetched = dataset.batches('train', tokens_per_batch=60, epochs=None).prefetch()
    prefetched.close()
    assert threading.active_count() == before
    with pytest.raises(StopIteration):
        next(prefetched)
