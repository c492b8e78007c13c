"""Options as keyword arguments of Python calls: named as on the command line, with Python's values.

    keyword_fields(BpeScheme, {'pre_tokenizer': 'cl100k'})  # {'pre_tokenizer_kind': 'cl100k'}

A value is a number, a string as it is typed, True or False for a flag, or a sequence where several
words are typed with commas or colons between them.
"""

from __future__ import annotations

import argparse
import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tokcore.errors import InputError
from tokcore.options import Declared, Kind, as_typed, declared, min_count_range, shown

_WITH_COLONS = (min_count_range,)
"""Kinds of options whose words are typed with colons between them."""


def keyword_fields(kind: type, arguments: Mapping[str, object], call: str) -> dict[str, Any]:
    """Returns keyword arguments as fields of a dataclass of options.

    Args:
        kind: the dataclass.
        arguments: the arguments, by `Declared.key`.
        call: the name of what was called, for errors.

    Raises:
        TypeError: an argument is not an option of it, or has a value of another type.
        InputError: an option cannot have this value.
    """
    by_key = {declaration.key: declaration for declaration in declared(kind)}
    for name in arguments:
        if name not in by_key:
            raise unknown_keyword(name, by_key, call)
    return {
        by_key[name].field: keyword_value(by_key[name], value, call)
        for name, value in arguments.items()
    }


def split_keywords(
    kinds: Sequence[Kind], arguments: Mapping[str, object], call: str
) -> list[dict[str, object]]:
    """Returns for each dataclass the arguments that are its options.

    Raises:
        TypeError: an argument is an option of none of them.
    """
    keys = [{declaration.key for declaration in declared(kind)} for kind in kinds]
    for name in arguments:
        if not any(name in own for own in keys):
            raise unknown_keyword(name, {key for own in keys for key in own}, call)
    return [{name: arguments[name] for name in arguments if name in own} for own in keys]


def unknown_keyword(name: str, known: Iterable[str], call: str) -> TypeError:
    """Returns the error about an argument that is not an option, with the nearest of those there are."""
    known = sorted(known)
    if not known:
        return TypeError(f'{call} has no option {name!r}; it has no options at all')
    return TypeError(f'{call} has no option {name!r}; {nearest(name, known)}')


def nearest(name: str, known: Sequence[str]) -> str:
    """Returns the end of an error about an unknown name: the nearest known one, or all of them."""
    near = difflib.get_close_matches(name, known, n=1)
    return f'did you mean {near[0]!r}?' if near else f'there are {", ".join(known)}'


def keyword_value(declaration: Declared, value: Any, call: str) -> Any:
    """Returns the value of an option as its dataclass has it; raises as `keyword_fields`."""
    if value is declaration.default:
        return value
    if value is None:
        return _parsed_none(declaration, call)
    if declaration.option.many:
        words = [value] if isinstance(value, (str, os.PathLike)) else value
        if not isinstance(words, Iterable):
            raise _wrong_type(declaration, value, call, 'a string, or several')
        return tuple(_single_value(declaration, word, call) for word in words)
    return _single_value(declaration, value, call)


def _parsed_none(declaration: Declared, call: str) -> None:
    """Returns None if that is what the option has where `none` is typed."""
    kind = declaration.option.kind
    try:
        has_none = callable(kind) and kind is not as_typed and kind('none') is None
    except argparse.ArgumentTypeError:
        has_none = False
    if not has_none:
        raise TypeError(f'{call}: {declaration.key} is None; leave it out, or give a value')


def _single_value(declaration: Declared, value: Any, call: str) -> Any:
    kind = declaration.option.kind
    if kind is None:
        if not isinstance(value, bool):
            raise _wrong_type(declaration, value, call, 'True or False')
        return value
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(kind, tuple):
        if not isinstance(value, str):
            raise _wrong_type(declaration, value, call, f'one of {", ".join(kind)}')
        if value not in kind:
            raise InputError(f'{call}: {declaration.key} is {shown(value)}; {nearest(value, kind)}')
        return value
    if kind is as_typed:
        return value
    is_sequence = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    if is_sequence:
        return _joined_value(declaration, value, call)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _wrong_type(declaration, value, call, 'a word or a number')
    return _parsed(declaration, str(value), call)


def _joined_value(declaration: Declared, value: Sequence[object], call: str) -> Any:
    """Returns the value that a sequence stands for: its words are typed with a separator."""
    words = [str(word) for word in value]
    if words and declaration.option.kind in _WITH_COLONS:
        return _parsed(declaration, ':'.join(words), call)
    if any(',' in word for word in words):
        raise InputError(f'{call}: {declaration.key}: a comma separates words; leave it out of one')
    parsed = _parsed(declaration, ','.join(words), call)
    if isinstance(parsed, tuple):
        return parsed
    raise _wrong_type(declaration, value, call, 'a single word or number')


def _parsed(declaration: Declared, word: str, call: str) -> Any:
    kind = declaration.option.kind
    assert callable(kind)
    try:
        return kind(word)
    except argparse.ArgumentTypeError as error:
        raise InputError(f'{call}: {declaration.key}: {error}') from None


def _wrong_type(declaration: Declared, value: object, call: str, expected: str) -> TypeError:
    return TypeError(
        f'{call}: {declaration.key} is {expected}, not {shown(repr(value))} of type '
        f'{type(value).__name__}'
    )
