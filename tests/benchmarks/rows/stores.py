"""The row of a build with everything on an object store of this machine, compared with its disk."""

from collections.abc import Iterator

from ..contenders import OURS, Contender, Row
from ..corpora import ENGLISH
from ..inputs import Inputs
from ..scale import Scale

_ON_DISK = 'on this disk'


def store_rows(scale: Scale) -> Iterator[Row]:
    """Yields the row of a build on a store."""
    yield Row(
        'store/build',
        'build with inputs, work and output on S3 (moto, in another process)',
        ENGLISH,
        Contender(OURS, 'stages.stores:build', lambda inputs: _options(inputs, scale, True)),
        (
            Contender(
                _ON_DISK, 'stages.stores:build', lambda inputs: _options(inputs, scale, False)
            ),
        ),
        {_ON_DISK: 1 / 3},
        runs=scale.long_runs,
        patience='wait',
        is_extra=True,
    )


def _options(inputs: Inputs, scale: Scale, on_store: bool) -> dict:
    return {
        'text': inputs.text,
        'vocabulary_size': scale.small_vocabulary,
        'output': inputs.output('stored'),
        'on_store': on_store,
    }
