"""Rows of reading what was written, one core."""

from collections.abc import Iterator

from ..contenders import OURS, Contender, Row
from ..corpora import MIXED
from ..inputs import Inputs
from ..scale import Scale


def reading_rows(scale: Scale) -> Iterator[Row]:
    """Yields the rows of batches, by both rules, and of a dataset opened."""

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
