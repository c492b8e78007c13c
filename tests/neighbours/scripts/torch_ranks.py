"""Batches in two processes of `torch.distributed`. Argument: the folder of a dataset.

Prints for each rank the targets, as lists, and what was warned of, by what was done.
"""

import contextlib
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path

import torch
import torch.distributed
from torch.utils.data import DataLoader

from tokcore import open_dataset

ARGUMENTS = {'tokens_per_batch': 256, 'seed': 3}
RANKS = 2


@contextlib.contextmanager
def warned():
    """The list of the warnings, after they came."""
    messages = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        yield messages
    said = [str(warning.message) for warning in caught]
    messages += [each for each in said if ' ranks ' in each]


def read(dataset, **arguments):
    """The targets of an epoch, and the warnings of it and the next one."""
    batches = dataset.torch('train', **arguments, **ARGUMENTS)
    with warned() as messages:
        targets, _ = ([batch['targets'].tolist() for batch in batches] for _ in range(2))
    return {'targets': targets, 'warned': messages}


def raised_by_a_forked_worker(dataset):
    """The warning as an error, since it cannot be caught in another process."""
    with warnings.catch_warnings():
        warnings.filterwarnings('error', '.* ranks ')
        try:
            next(iter(by_a_worker(dataset, 'fork')))
        except UserWarning as warning:
            return str(warning)
    return ''


def warned_of_a_spawned_worker(dataset):
    with warned() as messages:
        next(iter(by_a_worker(dataset, 'spawn')))
    return messages


def by_a_worker(dataset, method):
    batches = dataset.torch('train', **ARGUMENTS)
    return DataLoader(batches, batch_size=None, num_workers=1, multiprocessing_context=method)


def run(rank, folder, shared):
    store = f'file://{shared}/store'
    torch.distributed.init_process_group('gloo', store, rank=rank, world_size=RANKS)
    dataset = open_dataset(folder)
    readers = {
        'num_readers': torch.distributed.get_world_size(),
        'reader_index': torch.distributed.get_rank(),
    }
    found = {
        'alike': read(dataset),
        'divided': read(dataset, **readers),
        'by a forked worker': raised_by_a_forked_worker(dataset),
        'of a spawned worker': warned_of_a_spawned_worker(dataset),
    }
    Path(shared, str(rank)).write_text(json.dumps(found))
    torch.distributed.destroy_process_group()


def main(folder):
    os.environ['GLOO_SOCKET_IFNAME'] = 'lo'
    with tempfile.TemporaryDirectory() as shared:
        torch.multiprocessing.spawn(run, (folder, shared), RANKS)
        ranks = [json.loads(Path(shared, str(rank)).read_text()) for rank in range(RANKS)]
    print(json.dumps(ranks))


if __name__ == '__main__':
    main(sys.argv[1])
