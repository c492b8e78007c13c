"""The development texts by which parity-aware BPE chooses the language of each merge."""

import functools
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.artifacts.counts import CountFiles
from pipelines.files import filesystem
from tokcore.bpe.options import BpeOptions
from tokcore.bpe.scheme import BpeScheme
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.scheme import LearningOptions, Scheme
from tokcore.errors import InputError
from tokcore.learn import count_files


@dataclass(frozen=True)
class DevText:
    """A development text: its path, its tokens, and what is recorded of it and the counts it goes with."""

    path: str
    table: TokenTable
    record: dict[str, object]


def read_dev_texts(
    paths: Sequence[str], counts: CountFiles, scheme: Scheme, learning: LearningOptions
) -> tuple[DevText, ...]:
    """Counts the tokens of the files of `--parity`.

    Raises:
        InputError: there are not as many texts as counts, one cannot be read or has no token, or other
            options do not go with them.
    """
    if not isinstance(scheme, BpeScheme) or not isinstance(learning, BpeOptions):
        raise InputError(f'--parity goes with --scheme bpe, not with {scheme.name}; leave it out')
    if reason := scheme.reason_against_parity(learning):
        raise InputError(f'--parity {reason}')
    if counts.has_weights:
        raise InputError('--parity decides itself how much each language counts; leave weights out')
    if len(paths) != len(counts.datasets):
        raise InputError(
            f'--counts names {len(counts.datasets)} languages, and --parity {len(paths)}; give a text '
            'for each, in the same order'
        )
    texts = []
    for given, dataset in zip(paths, counts.datasets, strict=True):
        path = filesystem.absolute(given)
        data = filesystem.read_bytes(path)
        table = count_files([path], scheme, functools.partial(_opened, data))[0]
        if len(table) == 0:
            raise InputError(f'no token in {path}; --parity needs a text')
        record = {'counts': len(dataset.files), 'text': hashlib.sha256(data).hexdigest()}
        texts.append(DevText(path, table, record))
    return tuple(texts)


def _opened(data: bytes, path: str) -> io.BytesIO:
    return io.BytesIO(data)
