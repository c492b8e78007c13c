"""Batches of a dataset by a DataLoader, over epochs, with workers, resumed. Argument: its folder.

Prints targets, as lists, by what was done.
"""

import itertools
import json
import sys

import torch
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

from tokcore import open_dataset
from tokcore.errors import InputError

ARGUMENTS = {'tokens_per_batch': 256, 'seed': 3}


def targets(batches):
    return [batch['targets'].tolist() for batch in batches]


def resumed(dataset, loader_class, of_other=None, **options):
    """The rest of the second epoch and the third one, the same from the state, and the state then."""

    def loader_of(batches, **more):
        return loader_class(batches, batch_size=None, **options, **more)

    batches, others = (dataset.torch('train', **ARGUMENTS) for _ in range(2))
    loader, other = loader_of(batches), loader_of(others, **(of_other or {}))
    stateful = loader_class is StatefulDataLoader
    targets(loader)
    iterator = iter(loader)
    for _ in range(5):
        next(iterator)
    state = loader.state_dict() if stateful else json.loads(json.dumps(batches.state_dict()))
    (other if stateful else others).load_state_dict(state)
    found = [[targets(iterator), targets(loader)], [targets(other), targets(other)]]
    return [*found, others.state_dict()]


def state_of_workers(dataset, **options):
    """What `state_dict` says while two workers are within an epoch, and what it returns after the epoch."""
    batches = dataset.torch('train', **ARGUMENTS)
    iterator = iter(DataLoader(batches, batch_size=None, num_workers=2, **options))
    next(iterator)
    try:
        refused = f'not refused: {batches.state_dict()}'
    except InputError as error:
        refused = str(error)
    targets(iterator)
    return refused, batches.state_dict()


def first_batches(dataset, **arguments):
    """The first batches of three iterations over a loader."""
    loader = DataLoader(dataset.torch('train', **arguments, **ARGUMENTS), batch_size=None)
    return [targets(itertools.islice(loader, 3)) for _ in range(3)]


def by_readers(dataset, readers, **arguments):
    """What each of several readers gets of a loader with workers."""
    return [
        targets(
            DataLoader(
                dataset.torch(
                    'train', num_readers=readers, reader_index=reader, **arguments, **ARGUMENTS
                ),
                batch_size=None,
                num_workers=2,
            )
        )
        for reader in range(readers)
    ]


def for_a_model(dataset):
    """The arrays of a batch for a model, their dtypes, and whether PyTorch's loss takes the labels."""
    batch = next(iter(dataset.torch('train', for_model='seq2seq', **ARGUMENTS)))
    labels = batch['labels']
    logits = torch.zeros(*labels.shape, dataset.vocab_size())
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
    return {
        'arrays': {name: tensor.tolist() for name, tensor in batch.items()},
        'dtypes': {name: str(tensor.dtype) for name, tensor in batch.items()},
        'loss': float(loss),
        'ids': dataset.vocab_size(),
    }


def main(folder):
    dataset = open_dataset(folder)
    alone = dataset.torch('train', **ARGUMENTS)
    by_workers, by_persistent, by_spawned = (
        DataLoader(
            dataset.torch('train', **ARGUMENTS),
            batch_size=None,
            num_workers=2,
            persistent_workers=persistent,
            multiprocessing_context=context,
        )
        for persistent, context in [(False, 'fork'), (True, 'fork'), (False, 'spawn')]
    )
    print(
        json.dumps(
            {
                'version': torch.__version__,
                'dtype': str(next(iter(dataset.torch('train', **ARGUMENTS)))['targets'].dtype),
                'for a model': for_a_model(dataset),
                'alone': [targets(alone), targets(DataLoader(alone, batch_size=None))],
                'without end': first_batches(dataset, epochs=None),
                'by workers': [targets(by_workers) for _ in range(3)],
                'by persistent workers': [targets(by_persistent) for _ in range(3)],
                'by spawned workers': [targets(by_spawned) for _ in range(2)],
                'by readers': by_readers(dataset, 3),
                'state of workers': [
                    state_of_workers(dataset),
                    state_of_workers(dataset, persistent_workers=True),
                    state_of_workers(dataset, multiprocessing_context='spawn'),
                ],
                'resumed': [
                    resumed(dataset, DataLoader),
                    resumed(dataset, DataLoader, {'num_workers': 2}),
                    resumed(dataset, StatefulDataLoader, num_workers=2),
                    resumed(dataset, StatefulDataLoader, num_workers=2, persistent_workers=True),
                ],
            }
        )
    )


if __name__ == '__main__':
    main(sys.argv[1])
