"""Which corpus formats there are. A format's module is imported when the format is asked for."""

import functools
import importlib

from tokcore.corpus.formats.corpus_format import CorpusFormat
from tokcore.corpus.rows import OF_ALL_FORMATS

_ORIGINS = {
    'bitext': 'tokcore.corpus.formats.bitext:Bitext',
    'tsv': 'tokcore.corpus.columnar.tsv:Tsv',
    'jsonl': 'tokcore.corpus.columnar.json_lines:JsonLines',
    'parquet': 'tokcore.corpus.columnar.parquet:Parquet',
    'sgm': 'tokcore.corpus.markup.sgm:Sgm',
    'tmx': 'tokcore.corpus.tmx.tmx:Tmx',
    'tmx-lines': 'tokcore.corpus.tmx.tmx_lines:TmxLines',
    'labelled': 'tokcore.corpus.labelled.labelled:Labelled',
    'text': 'tokcore.corpus.formats.lines:Lines',
}
"""By name, in the order of the help: the module, and the class in it."""


def register(name: str, origin: str) -> None:
    """Adds a format, `register('paragraphs', 'package.module:Paragraphs')`.

    It holds for this process; in those of other workers its module must be importable.
    """
    _ORIGINS[name] = origin


def format_names() -> tuple[str, ...]:
    """Returns the names of all formats."""
    return tuple(_ORIGINS)


def corpus_format(name: str) -> type[CorpusFormat]:
    """Returns a format: called with its options it gives what a `Split` takes.

    Raises:
        ValueError: there is none of this name.
    """
    if name not in _ORIGINS:
        raise ValueError(f'format {name!r} is none of {", ".join(_ORIGINS)}')
    return _loaded(_ORIGINS[name])


@functools.cache
def _loaded(origin: str) -> type[CorpusFormat]:
    module, _, attribute = origin.partition(':')
    return getattr(importlib.import_module(module), attribute)


def all_formats() -> tuple[type[CorpusFormat], ...]:
    """Returns all formats."""
    return tuple(map(corpus_format, _ORIGINS))


def all_reasons() -> tuple[str, ...]:
    """Returns for which reasons lines may be left out, in alphabetical order."""
    of_formats = {reason for each in all_formats() for reason in each.reasons}
    return tuple(sorted({*OF_ALL_FORMATS, *of_formats}))
