"""Rows of reading what was written, one core."""

from collections.abc import Iterator

from ..contenders import OURS, Contender, Row
from ..corpora import MIXED
from ..inputs import Inputs
from ..scale import Scale

_LOADERS = {
    'grain': 'array_records',
    'tf.data': 'tensorflow_data',
    'MosaicML streaming': 'mosaic_streaming',
    'litdata': 'lit_data',
}
"""By label the modules of loaders."""


def reading_rows(scale: Scale) -> Iterator[Row]:
    """Yields the rows of batches, by both rules, of rows by their numbers, and of a dataset opened."""

    def options(inputs: Inputs) -> dict:
        return inputs.word_dataset(scale.large_vocabulary)

    yield Row(
        f'batches/{MIXED}',
        "an epoch of batches of 64 pairs by NMT's rule",
        MIXED,
        Contender(OURS, 'stages.reading:batches', options, cores=1),
        (
            Contender('TensorFlow on text', 'peers.nmt_text:batches', options, cores=1),
            Contender('.tensorflow', 'stages.reading:by_tensorflow', options, cores=1),
        ),
        {'TensorFlow on text': 5, '.tensorflow': 2},
    )
    yield Row(
        f'budget/{MIXED}',
        'an epoch of batches of 4,096 tokens',
        MIXED,
        Contender(OURS, 'stages.reading:budget', options, cores=1),
        tuple(
            Contender(label, f'peers.{module}:budget', options, cores=1)
            for label, module in _LOADERS.items()
        ),
        dict.fromkeys(_LOADERS, 3),
        patience='wait',
    )
    for name, task, what in (
        ('row', 'one_by_one', 'each by itself'),
        ('rows', 'many_at_once', '1,024 in a call'),
    ):
        yield Row(
            f'{name}/{MIXED}',
            f'100,000 random pairs by their numbers, {what}',
            MIXED,
            Contender(OURS, f'stages.reading:{task}', options, cores=1),
            (Contender('ArrayRecord', f'peers.array_records:{task}', options, cores=1),),
            {'ArrayRecord': 2},
            patience='wait',
        )

    def many_options(inputs: Inputs) -> dict:
        return {'folder': inputs.many_shards(scale.opened_rows)}

    yield Row(
        f'open/{MIXED}',
        f'a dataset of {scale.opened_rows:,} rows in 100 shards opened',
        MIXED,
        Contender(OURS, 'stages.reading:opened', many_options, cores=1),
        (Contender('import tensorflow', 'peers.nmt_text:imported', many_options, cores=1),),
        {'import tensorflow': 1},
    )
