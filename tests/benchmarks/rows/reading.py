"""Rows of reading a dataset, on one core."""

from collections.abc import Iterator

from ..contenders import Row, one_core_row
from ..corpora import MIXED
from ..inputs import Inputs
from ..scale import Scale

_LOADERS = {
    'grain': 'grain', 'tf.data': 'tf_data', 'MosaicML streaming': 'mosaic', 'litdata': 'litdata',
}  # fmt: skip
"""The functions of loaders, by label."""


def reading_rows(scale: Scale) -> Iterator[Row]:
    """Yields the rows of batches by two rules, of rows by their numbers, and of opening a dataset."""

    def options(inputs: Inputs) -> dict:
        return inputs.materials.word_dataset(scale.large_vocabulary)

    yield one_core_row(
        f'batches/{MIXED}',
        "an epoch of batches of 64 pairs by NMT's rule",
        MIXED,
        ('stages.reading:batches', options),
        {
            'TensorFlow on text': ('peers.loaders:nmt_batches', 5),
            '.tensorflow': ('stages.reading:by_tensorflow', 2),
        },
    )
    yield one_core_row(
        f'budget/{MIXED}',
        'an epoch of batches of 4,096 tokens',
        MIXED,
        ('stages.reading:budget', options),
        {label: (f'peers.loaders:{name}', 3) for label, name in _LOADERS.items()},
        patience='once',
    )
    for name, task, what in (
        ('row', 'one_by_one', 'each by itself'),
        ('rows', 'many_at_once', '1,024 in a call'),
    ):
        yield one_core_row(
            f'{name}/{MIXED}',
            f'100,000 random pairs by their numbers, {what}',
            MIXED,
            (f'stages.reading:{task}', options),
            {'ArrayRecord': (f'peers.loaders:{task}', 2)},
            patience='once',
        )

    def many_options(inputs: Inputs) -> dict:
        return {'folder': inputs.materials.many_shards(scale.opened_rows)}

    yield one_core_row(
        f'open/{MIXED}',
        f'a dataset of {scale.opened_rows:,} rows in 100 shards opened',
        MIXED,
        ('stages.reading:opened', many_options),
        {'import tensorflow': ('peers.loaders:tensorflow_import', 1)},
    )
