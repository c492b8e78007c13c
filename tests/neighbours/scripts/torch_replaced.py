"""A dataset that is replaced while it is read, as `batches` and by loaders. Arguments: its folder, and another's.

Each reader has a copy, in whose place the other dataset is put once a batch of it is read. Prints by readers the rows
that were read, and what was raised.
"""

import json
import os
import shutil
import sys
from pathlib import Path

from torch.utils.data import DataLoader

from tokcore import InputError, open_dataset

READERS = {
    'batches': None,
    'no workers': {'num_workers': 0},
    'workers': {'num_workers': 2, 'multiprocessing_context': 'fork'},
    'spawned workers': {'num_workers': 2, 'multiprocessing_context': 'spawn'},
}


def replace(folder, other):
    """As a command publishes: files one by one, and the manifest last."""
    (folder / 'tokbeam.json').unlink()
    for path in sorted(other.iterdir(), key=lambda path: path.name == 'tokbeam.json'):
        shutil.copyfile(path, folder / 'part')
        os.replace(folder / 'part', folder / path.name)


def read_while_replaced(batches, folder, other):
    """The rows that are read, of which the first batch's before it is replaced, and what is raised."""
    rows, told = [], {}
    try:
        for number, batch in enumerate(batches):
            if number == 0:
                replace(folder, other)
            lengths = batch['targets_length'].tolist()
            rows += [row[:length] for row, length in zip(batch['targets'].tolist(), lengths)]
    except Exception as error:
        told = {'is_input_error': isinstance(error, InputError), 'sentence': str(error)}
    return {'folder': str(folder), 'rows': rows, **told}


def main(folder, other):
    told = {}
    arguments = {'tokens_per_batch': 5, 'seed': 1}
    for name, options in READERS.items():
        copy = Path(shutil.copytree(folder, f'{folder} {name}'))
        dataset = open_dataset(copy)
        if options is None:
            batches = dataset.batches('train', **arguments)
        else:
            batches = DataLoader(dataset.torch('train', **arguments), batch_size=None, **options)
        told[name] = read_while_replaced(batches, copy, Path(other))
    print(json.dumps(told))


if __name__ == '__main__':
    main(*sys.argv[1:])
