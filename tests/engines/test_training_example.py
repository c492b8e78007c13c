"""A small sequence-to-sequence model learns from what was built, and goes on from a saved state."""

import json
from pathlib import Path

import numpy as np
import pytest
from jobs import succeed

from tokcore import open_dataset

SAMPLE = Path(__file__).parents[2] / 'pipelines' / 'sample'
STEPS = 24
SAVED_AT = 14
ASKED = {
    'batch_size': 32,
    'source_max_length': 40,
    'target_max_length': 40,
    'epochs': None,
    'seed': 3,
}


@pytest.fixture(scope='module')
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp('sample') / 'out'
    pairs = ['--source', SAMPLE / 'train.zh', '--target', SAMPLE / 'train.en', '--name', 'zhen']
    asked = ['--scheme', 'wordpiece', '--vocab-size', 600, '--min-count-range', '2:1000']
    succeed('build', *pairs, *asked, '--shared-vocab', '--shards', 4, '--output', folder)
    return open_dataset(folder)


def model_of(tensorflow, size):
    """An encoder and a decoder of one recurrent layer each."""
    keras = tensorflow.keras
    keras.utils.set_random_seed(1)
    source = keras.Input([None], dtype='int32')
    target = keras.Input([None], dtype='int32')
    embedding = keras.layers.Embedding(size, 32)
    _, state = keras.layers.GRU(48, return_state=True)(embedding(source))
    decoded = keras.layers.GRU(48, return_sequences=True)(embedding(target), initial_state=state)
    model = keras.Model([source, target], keras.layers.Dense(size)(decoded))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    model.compile(keras.optimizers.Adam(0.01), loss)
    return model


def steps(model, batches, count):
    """Trains; returns the losses, and what the batches held."""
    losses, seen = [], []
    for _, batch in zip(range(count), batches):
        given = [batch['source'], batch['target_input']]
        losses.append(float(model.train_on_batch(given, batch['target_output'])))
        seen.append({name: array.tolist() for name, array in batch.items()})
    return losses, seen


@pytest.mark.slow
def test_the_loss_falls_and_a_saved_state_goes_on(tensorflow, dataset):
    model = model_of(tensorflow, dataset.vocab_size())
    batches = dataset.batches('train', **ASKED)
    before, seen = steps(model, batches, SAVED_AT)
    saved = json.dumps(batches.state())
    after, more = steps(model, dataset.from_state(json.loads(saved)), STEPS - SAVED_AT)
    assert np.mean(after[-6:]) < 0.9 * np.mean(before[:6])

    undisturbed = dataset.batches('train', **ASKED)
    expected = [
        {name: array.tolist() for name, array in batch.items()}
        for _, batch in zip(range(STEPS), undisturbed)
    ]
    assert seen + more == expected
