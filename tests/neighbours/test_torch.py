"""`dataset.torch` in PyTorch's DataLoader, and in torchdata's StatefulDataLoader."""

import math

import pytest
from environments import run_script

from tokcore import open_dataset

# PyPI's PyTorch for Linux brings CUDA, three gigabytes.
pytestmark = pytest.mark.large


@pytest.fixture(scope='module')
def told(environment, dataset_folder):
    return run_script(environment('PyTorch'), 'torch_batches.py', dataset_folder)


def targets(folder, **arguments):
    batches = open_dataset(folder).batches('train', tokens_per_batch=256, seed=3, **arguments)
    return [batch['targets'].tolist() for batch in batches]


def test_epochs_are_those_of_batches(told, dataset_folder):
    assert told['dtype'] == 'torch.int32'
    assert told['alone'] == [targets(dataset_folder, first_epoch=each) for each in (0, 1)]
    assert told['alone'][0] != told['alone'][1]


def test_labels_are_what_pytorchs_loss_takes(told, dataset_folder):
    found = told['for a model']
    asked = {'tokens_per_batch': 256, 'seed': 3, 'for_model': 'seq2seq'}
    plain = next(open_dataset(dataset_folder).batches('train', **asked))
    assert found['arrays'] == {name: array.tolist() for name, array in plain.items()}
    assert found['dtypes'] == {
        name: 'torch.int64' if name == 'labels' else 'torch.int32' for name in plain
    }
    assert math.isclose(found['loss'], math.log(found['ids']), rel_tol=1e-5)


@pytest.mark.parametrize('workers', ['workers', 'persistent workers', 'spawned workers'])
def test_workers_take_turns_in_the_batches_of_each_epoch(told, dataset_folder, workers):
    for epoch, batches in enumerate(told[f'by {workers}']):
        assert batches == targets(dataset_folder, first_epoch=epoch)


def test_workers_of_several_readers_double_no_batch(told, dataset_folder):
    plain, shares = targets(dataset_folder), told['by readers']
    for reader, share in enumerate(shares):
        assert share == targets(dataset_folder, num_readers=3, reader_index=reader)
    rounds = len(plain) // 3
    found = [batch for round_ in zip(*shares, strict=True) for batch in round_]
    assert found[: rounds * 3] == plain[: rounds * 3] and rounds > 10


@pytest.mark.parametrize('loader', [0, 1, 2])
def test_a_state_goes_on_with_the_next_batch_and_the_next_epoch(told, loader):
    (rest, following), resumed = told['resumed'][loader]
    assert resumed == [rest, following] and rest and rest != following
