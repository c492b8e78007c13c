"""The schemes by name. They are imported when one is asked for: help must not wait for kernels."""

from __future__ import annotations

import importlib
import typing

from tokcore.options import LANGUAGE

if typing.TYPE_CHECKING:
    from tokcore.encoding.scheme import Scheme

DEFAULT_SCHEME = 'subword'

VOCABULARY_FILE = (
    r'vocab\.[^/]+\.(min-count-|merges-)?\d+\.\w+(\.txt|\.json)?'
    rf'(\.inputs|\.targets|\.{LANGUAGE})?'
)
"""The names that schemes give to a dataset's vocabularies, as a regular expression."""

_MODULES = {
    'subword': 'tokcore.subword.scheme',
    'wordpiece': 'tokcore.wordpiece.scheme',
    'bpe': 'tokcore.bpe.scheme',
    'word': 'tokcore.word.scheme',
    'byte': 'tokcore.byte.scheme',
}
"""Where each scheme's `SCHEME` is."""


def register(name: str, module: str) -> None:
    """Adds a scheme, `register('reverse', 'package.module')`; that module has its `SCHEME`.

    It holds for this process, which hands the scheme to its workers; there the module must be
    importable.
    """
    _MODULES[name] = module


def scheme_names() -> tuple[str, ...]:
    """Returns what `--scheme` takes, the default first."""
    return tuple(_MODULES)


def find_scheme(name: str = DEFAULT_SCHEME) -> Scheme:
    """Returns a scheme with its usual options.

    Raises:
        KeyError: there is none of this name.
    """
    return importlib.import_module(_MODULES[name]).SCHEME
