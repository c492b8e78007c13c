"""The schemes by name. Each is imported when it is needed, so that `--help` stays fast."""

from __future__ import annotations

import dataclasses
import importlib
import typing

from tokcore.errors import InputError
from tokcore.keywords import keyword_fields, nearest
from tokcore.options import LANGUAGE, shown

if typing.TYPE_CHECKING:
    from typing_extensions import Unpack

    from tokcore.encoding.scheme import Scheme
    from tokcore.keyword_types import SchemeKeywords

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
    'unigram': 'tokcore.foreign_tokenizers.unigram_scheme',
    'pretrained': 'tokcore.foreign_tokenizers.scheme',
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


def find_scheme(scheme: str | Scheme = DEFAULT_SCHEME, **options: Unpack[SchemeKeywords]) -> Scheme:
    """Returns a scheme with options, as `find_scheme('bpe', pre_tokenizer='cl100k')`.

    Args:
        scheme: a name; or a scheme, whose options are replaced by those that are given.
        options: those of the command that change the tokens of text, by their names.

    Raises:
        InputError: there is no scheme of this name, or an option cannot have its value.
        TypeError: the scheme has no such option, or it has a value of another type.

    Examples:
        >>> tokcore.find_scheme('bpe', pre_tokenizer='o200k').tokens("It's 9 o'clock")
        ["It's", ' ', '9', ' o', "'clock"]
    """
    if isinstance(scheme, str):
        if scheme not in _MODULES:
            raise InputError(
                f'there is no scheme {shown(scheme)}; {nearest(scheme, scheme_names())}'
            )
        resolved = importlib.import_module(_MODULES[scheme]).SCHEME
    else:
        resolved = scheme
        if not isinstance(getattr(type(scheme), 'name', None), str):
            raise TypeError(f'a scheme is a name or a Scheme, not {scheme!r:.60}')
    if not options:
        return resolved
    fields = keyword_fields(type(resolved), options, f'the scheme {resolved.name}')
    return dataclasses.replace(resolved, **fields)


def schemes_of_file(data: bytes) -> list[str]:
    """Returns the names of the schemes of which a file without a record is a vocabulary, by its form."""
    if find_scheme('subword').recognizes(data):
        return ['subword']  # no other does then, and to import them takes an eighth of a second
    return [name for name in scheme_names() if find_scheme(name).recognizes(data)]
