"""The schemes by name. Each is imported when it is needed, so that `--help` stays fast."""

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
"""The names of the vocabulary files of datasets, as a regular expression."""

_MODULES = {
    'subword': 'tokcore.subword.scheme',
    'wordpiece': 'tokcore.wordpiece.scheme',
    'bpe': 'tokcore.bpe.scheme',
    'word': 'tokcore.word.scheme',
    'byte': 'tokcore.byte.scheme',
}
"""By scheme the module with its `SCHEME`."""


def register(name: str, module: str) -> None:
    """Adds a scheme: `register('reverse', 'package.module')`, where the module has a `SCHEME`.

    This process sends the scheme to its workers, which must be able to import the module.
    """
    _MODULES[name] = module


def scheme_names() -> tuple[str, ...]:
    """Returns the values of `--scheme`, the default first."""
    return tuple(_MODULES)


def find_scheme(name: str = DEFAULT_SCHEME) -> Scheme:
    """Returns a scheme with its default options.

    Raises:
        KeyError: there is no scheme of this name.
    """
    return importlib.import_module(_MODULES[name]).SCHEME
