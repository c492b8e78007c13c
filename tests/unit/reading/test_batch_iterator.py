"""A state of any content is refused in a sentence, or goes on where it says."""

import copy
import functools
import json
from pathlib import Path

import pytest
from written_dataset import listed, opened

from tokcore import open_dataset
from tokcore.errors import InputError
from tokcore.reading.batch_options import BatchOptions

ASKED = {'batch_size': 3, 'start': 0, 'window': 8, 'epochs': 2}


def dataset_of(folder, first, output_format='tfrecord'):
    """Twenty pairs in two shards; those of another `first` id have other bytes, and as many rows."""
    rows = [
        {name: [first + number] * (1 + number * 7 % 30) + [1] for name in ('inputs', 'targets')}
        for number in range(20)
    ]
    return opened(folder, [rows[:12], rows[12:]], output_format=output_format)


@pytest.fixture(scope='module')
def dataset(tmp_path_factory):
    return dataset_of(tmp_path_factory.mktemp('states') / 'd', 5)


def state_after(dataset, batches):
    iterator = dataset.batches('train', **ASKED)
    for _ in range(batches):
        next(iterator)
    return json.loads(json.dumps(iterator.state()))


@pytest.mark.parametrize('output_format', ['tfrecord', 'parquet'])
def test_a_state_of_another_corpus_with_as_many_rows_is_refused(tmp_path, output_format):
    one = dataset_of(tmp_path / 'one', 5, output_format)
    other = dataset_of(tmp_path / 'other', 90, output_format)
    state = state_after(one, 2)
    with pytest.raises(InputError, match=f'of other shards than those of train in {other.folder}'):
        other.from_state(state)
    again = open_dataset((tmp_path / 'one').rename(tmp_path / 'moved'))
    assert 'target_input' in next(again.from_state(state))


WRONG = [
    *[(path, wrong) for path in (
        ('place', 'epoch'), ('place', 'window'), ('place', 'batch'),
        ('left_out', 'damaged'), ('left_out', 'length'), ('left_out', 'remainder'),
    ) for wrong in (-1, 1.5, 'x', None, [1], {}, True, 10**30, 1 << 63)],
    *[(('place', 'waiting'), wrong) for wrong in (
        None, 3, 'ab', {}, [-1], [1.5], ['1'], [None], [[1]], [5, 5], [6, 2], [19], [10**30], [*range(8)],
    )],
    (('place', 'epoch'), 2), (('place', 'epoch'), 9), (('place', 'window'), 4), (('place', 'batch'), 77),
    *[((name,), wrong) for name in ('place', 'left_out', 'arguments') for wrong in (None, [], 3, 'x', {})],
    *[(('dataset',), wrong) for wrong in (None, 5, '', 'x' * 32)],
    *[(('format',), wrong) for wrong in (None, '2', 2.5, 10**40, 0, [])],
    *[(('arguments', name), wrong) for name, wrong in (
        ('split', None), ('split', 5), ('split', 'dev'), ('self', 1), ('unknown', 1), ('batch_size', 'x'),
        ('batch_size', 0), ('batch_size', 1.5), ('batch_size', 1 << 40), ('batch_size', [2]),
        ('num_buckets', 10**12), ('num_buckets', 'five'), ('start', 10**12), ('start', 'a'),
        ('pad', 10**12), ('pad', 1.5), ('window', 0), ('window', 'w'), ('window', 1 << 70),
        ('epochs', 'x'), ('epochs', 0), ('first_epoch', -1), ('first_epoch', 1 << 64), ('seed', 's'),
        ('seed', 1.5), ('shuffle', 'no'), ('shuffle', None), ('num_readers', 0), ('num_readers', 'n'),
        ('num_readers', 2), ('reader_index', 0), ('reader_index', -1), ('on_error', 3), ('on_error', []),
        ('split', 'x' * 5000), ('shuffle', 'x' * 5000), ('on_error', 'x' * 5000), ('x' * 5000, 1),
        ('boundaries', ['a']), ('boundaries', 5), ('drop_remainder', {}), ('source_max_length', 1 << 64),
    )],
]  # fmt: skip


MISSING = 'the field is missing'
WRONG += [((name,), MISSING) for name in ('format', 'arguments', 'dataset', 'place', 'left_out')]
WRONG += [(('arguments', 'split'), MISSING), (('format',), 1)]


@pytest.mark.parametrize(('path', 'wrong'), WRONG, ids=lambda each: str(each)[:40])
def test_each_field_of_a_state_is_checked(dataset, path, wrong):
    state = state_after(dataset, 2)
    assert state['place']['window'] == 1 and state['place']['waiting']
    within = functools.reduce(dict.__getitem__, path[:-1], state)
    within[path[-1]] = wrong
    if wrong is MISSING:
        del within[path[-1]]
    with pytest.raises(InputError) as refused:
        dataset.from_state(state)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize('state', [None, 5, 'x', [], [{}], {}, {5: 6}], ids=str)
def test_a_state_must_be_an_object(dataset, state):
    with pytest.raises(InputError, match='not a state of batches'):
        dataset.from_state(state)


def test_a_state_does_not_change_with_its_iterator(dataset):
    iterator = dataset.batches('train', **ASKED)
    next(iterator)
    state = iterator.state()
    kept = copy.deepcopy(state)
    rest = [batch['source'].tolist() for batch in iterator]
    assert [batch['source'].tolist() for batch in dataset.from_state(state)] == rest
    assert state == kept
    assert len(rest) > 2 and [*dataset.from_state(iterator.state())] == []


def test_a_worker_that_could_not_read_goes_on_with_its_own_batches(dataset):
    options = BatchOptions.of({**ASKED, 'epochs': 1})
    expected = [*map(listed, dataset._batches('train', options, 1, 2))]
    iterator = dataset._batches('train', options, 1, 2)
    folder = Path(dataset.folder)
    folder.rename(folder.with_name('away'))
    for _ in range(2):
        with pytest.raises(InputError, match='open it again'):
            next(iterator)
    folder.with_name('away').rename(folder)
    assert [*map(listed, iterator)] == expected
