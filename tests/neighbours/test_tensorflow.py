"""`dataset.tensorflow` in the TensorFlow that is installed: tf.data's own steps, and resuming."""

import json
import sys
from functools import partial

import pytest
from environments import run_script

from tokcore import mixture, open_dataset

ARGUMENTS = {'tokens_per_batch': 256, 'seed': 3}


def lists(batches):
    return [batch['targets'].tolist() for batch in batches]


@pytest.mark.parametrize(
    ('method', 'asked'), [('batches', ARGUMENTS), ('packed', {'length': 64, 'seed': 3})], ids=str
)
def test_batches_for_a_model_are_those_of_numpy(tensorflow, dataset_folder, method, asked):
    dataset = open_dataset(dataset_folder)
    plain = [*getattr(dataset, method)('train', for_model='seq2seq', **asked)]
    found = [*dataset.tensorflow('train', for_model='seq2seq', **asked)]
    assert len(found) == len(plain) > 5
    for batch, expected in zip(found, plain, strict=True):
        assert batch.keys() == expected.keys()
        assert all((batch[name].numpy() == expected[name]).all() for name in expected)


def test_it_is_resumed_by_skipping_what_was_given(tensorflow, dataset_folder):
    dataset = open_dataset(dataset_folder)
    plain = lists(dataset.batches('train', first_epoch=1, **ARGUMENTS))
    resumed = dataset.tensorflow('train', first_epoch=1, **ARGUMENTS).skip(5)
    assert [batch['targets'].numpy().tolist() for batch in resumed] == plain[5:]


def test_batches_without_end_begin_with_another_epoch_in_each_iteration(tensorflow, dataset_folder):
    dataset = open_dataset(dataset_folder)
    batches = dataset.tensorflow('train', epochs=None, **ARGUMENTS).take(3)
    for number in range(3):
        plain = lists(dataset.batches('train', first_epoch=number, **ARGUMENTS))
        assert [batch['targets'].numpy().tolist() for batch in batches] == plain[:3]


def states_of(batches):
    """The targets of batches, and the states after them."""
    elements = list(batches.prefetch(3))
    states = [json.loads(element['state'].numpy()) for element in elements]
    return [element['targets'].numpy().tolist() for element in elements], states


def test_each_batch_has_the_state_after_it(tensorflow, dataset_folder):
    dataset = open_dataset(dataset_folder)
    plain = lists(dataset.batches('train', epochs=2, **ARGUMENTS))
    found, states = states_of(dataset.batches('train', epochs=2, **ARGUMENTS).tensorflow())
    assert found == plain
    for given in (1, 5, len(plain) // 2 + 3, len(plain)):
        rest, _ = states_of(dataset.from_state(states[given - 1]).tensorflow())
        assert rest == plain[given:]


def test_readers_mixtures_and_packed_rows_have_states_too(tensorflow, dataset_folder):
    dataset = open_dataset(dataset_folder)
    mixed, reader = mixture({'a': dataset, 'b': dataset}), {'num_readers': 4, 'reader_index': 2}
    for make, resume in (
        (
            lambda: dataset.batches('train', **reader, **ARGUMENTS),
            partial(dataset.from_state, **reader),
        ),
        (lambda: mixed.batches('train', **ARGUMENTS), mixed.from_state),
        (lambda: dataset.packed('train', 128, seed=3), dataset.from_state),
    ):
        plain = lists(make())
        found, states = states_of(make().tensorflow())
        assert found == plain
        assert states_of(resume(states[4]).tensorflow())[0] == plain[5:]


def test_batches_of_an_iterator_are_iterated_over_once(tensorflow, dataset_folder):
    batches = open_dataset(dataset_folder).batches('train', **ARGUMENTS).tensorflow()
    next(iter(batches))
    with pytest.raises(tensorflow.errors.OpError, match='go on with Dataset.from_state'):
        next(iter(batches))


def test_neither_a_service_nor_a_strategy_gives_a_batch_twice(tensorflow, dataset_folder):
    told = run_script(sys.executable, 'tensorflow_service.py', dataset_folder)
    dataset = open_dataset(dataset_folder)
    epochs = [lists(dataset.batches('train', first_epoch=each, **ARGUMENTS)) for each in (0, 1)]
    assert told['workers'] == 2
    assert told['DYNAMIC'] == told['iterator, DYNAMIC'] == epochs[0]
    # Each worker has an epoch of its own.
    assert sorted(told['OFF']) == sorted(epochs[0] + epochs[1])
    assert 'iterated over once' in told['iterator, OFF']
    assert all(len(step) == 2 for step in told['strategy'][:-1])
    assert [batch for step in told['strategy'] for batch in step if batch] == epochs[0]
