"""Rows of corpus formats: one core compared with a script, and two cores with one."""

from collections.abc import Iterator

from ..contenders import OURS, Contender, Row
from ..corpora import ENGLISH, LARGE
from ..inputs import Inputs
from ..scale import Scale
from ..stages.formats import FORMATS

_SCRIPT = 'json.loads + re + Counter'
_ITERPARSE = 'iterparse + re + Counter'
_ONE = 'one core'


def format_rows(scale: Scale) -> Iterator[Row]:
    """Yields the rows of JSON lines, Parquet and TMX, and extra ones of lines and columns."""
    for kind, corpus, script, reads, task, target in (
        ('jsonl', LARGE, _SCRIPT, 'jsonl', 'count_json', 4),
        ('parquet', LARGE, _SCRIPT, 'jsonl', 'count_json', 10),
        ('tmx', ENGLISH, _ITERPARSE, 'tmx', 'count_tmx', 5),
    ):
        yield Row(
            f'formats/{kind}/1',
            f'count the texts of {kind}, from the file',
            corpus,
            Contender(OURS, 'stages.formats:count', _options(kind, 1), cores=1),
            (
                Contender(
                    script,
                    f'peers.scripts:{task}',
                    lambda inputs, reads=reads: {'path': inputs.as_format(reads)},
                    cores=1,
                ),
            ),
            {script: target},
            patience='once',
            runs=3,
        )
    for kind in [each for each in FORMATS if each != 'tmx']:  # TMX is read as one stream
        yield Row(
            f'formats/{kind}/2',
            f'count the texts of {kind}, two threads',
            LARGE,
            Contender(OURS, 'stages.formats:count', _options(kind, 2)),
            (Contender(_ONE, 'stages.formats:count', _options(kind, 1)),),
            {_ONE: 1.5},
            patience='wait',
            runs=3,
            is_extra=kind in ('text', 'tsv'),
        )


def _options(kind: str, threads: int):
    def options(inputs: Inputs) -> dict:
        return {'kind': kind, 'path': inputs.as_format(kind), 'threads': threads}

    return options
