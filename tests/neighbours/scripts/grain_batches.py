"""Batches of a dataset by grain: alone, mapped, mixed, prefetched, resumed. Argument: its folder.

Prints targets, as lists, by what was done.
"""

import json
import sys

import grain
from grain.experimental import ThreadPrefetchIterDataset

from tokcore import open_dataset


def targets(batches):
    return [batch['targets'].tolist() for batch in batches]


def resumed_after(batches, given):
    """The rest after some batches, and as another iterator has it from the state in JSON."""
    first, second = iter(batches), iter(batches)
    for _ in range(given):
        next(first)
    state = json.loads(json.dumps(first.get_state()))
    second.set_state(state)
    return [targets(next(each) for _ in range(8)) for each in (first, second)]


def doubled(batch):
    return {**batch, 'targets': batch['targets'] * 2}


def main(folder):
    dataset = open_dataset(folder)
    batches = dataset.grain('train', tokens_per_batch=256, seed=3)
    endless = dataset.grain('train', tokens_per_batch=300, epochs=None)
    mapped = batches.map(doubled)
    mixed = grain.IterDataset.mix([batches, endless], [1, 2])
    prefetched = ThreadPrefetchIterDataset(mapped, prefetch_buffer_size=4)
    by_workers = mapped.mp_prefetch(grain.MultiprocessingOptions(num_workers=2))
    labels = dataset.grain('train', for_model='seq2seq', tokens_per_batch=256, seed=3)
    one, two = iter(batches), iter(batches)
    side_by_side = [[next(each)['targets'].tolist() for each in (one, one, two)] for _ in range(2)]
    print(
        json.dumps(
            {
                'alone': targets(batches),
                'again': targets(batches),
                'labels': [batch['labels'].tolist() for batch in labels],
                'side by side': side_by_side,
                'mapped': targets(mapped),
                'prefetched': targets(prefetched),
                'by workers': targets(by_workers),
                'resumed': {
                    name: resumed_after(each, 5)
                    for name, each in [
                        ('alone', batches),
                        ('mixed', mixed),
                        ('prefetched', prefetched),
                        ('by workers', by_workers),
                    ]
                },
            }
        )
    )


if __name__ == '__main__':
    main(sys.argv[1])
