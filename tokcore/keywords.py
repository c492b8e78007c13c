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
from tokcore.options import Declared, Kind, declared, min_count_range, shown


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
    if value is None and not _is_none_typed(declaration.option.kind):
        raise TypeError(f'{call}: {declaration.key} is None; leave it out, or give a value')
    return None if value is None else option_value(declaration, value, f'{call}: {declaration.key}')


def _is_none_typed(kind: Any) -> bool:
    """Whether an option is None where `none` is typed."""
    try:
        return callable(kind) and kind('none') is None
    except argparse.ArgumentTypeError:
        return False


def option_value(declaration: Declared, value: Any, name: str) -> Any:
    """Returns the value of an option from one of Python or of a job file.

    Args:
        declaration: the option.
        value: a number, a string as it is typed, True or False for a flag, or several.
        name: of the option in errors.

    Raises:
        TypeError: the value is of another type.
        InputError: the option cannot have this value.
    """
    kind = declaration.option.kind
    if not declaration.option.many:
        return _single_value(kind, value, name)
    is_one = isinstance(value, (str, int, float, os.PathLike, Mapping))
    if not is_one and not isinstance(value, Iterable):
        raise _wrong_type(value, name, 'a string, or several')
    return tuple(_single_value(kind, word, name) for word in ([value] if is_one else value))


def _single_value(kind: Any, value: Any, name: str) -> Any:
    if kind is None:
        if not isinstance(value, bool):
            raise _wrong_type(value, name, 'true or false')
        return value
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(kind, tuple):
        if not isinstance(value, str):
            raise _wrong_type(value, name, f'one of {", ".join(kind)}')
        if value not in kind:
            raise InputError(f'{name} is {shown(value)}; {nearest(value, kind)}')
        return value
    is_sequence = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    if not is_sequence and (isinstance(value, bool) or not isinstance(value, (str, int, float))):
        raise _wrong_type(value, name, 'a word or a number')
    words = [str(word) for word in value] if is_sequence else [str(value)]
    separator = ':' if kind is min_count_range else ','
    if is_sequence and separator == ',' and any(',' in word for word in words):
        raise InputError(f'{name}: a comma separates words; leave it out of one')
    try:
        parsed = kind(separator.join(words))
    except argparse.ArgumentTypeError as error:
        raise InputError(f'{name}: {error}') from None
    if is_sequence and not isinstance(parsed, tuple):
        raise _wrong_type(value, name, 'a single word or number')
    return parsed


def _wrong_type(value: object, name: str, expected: str) -> TypeError:
    return TypeError(
        f'{name} is {expected}, not {shown(repr(value))} of type {type(value).__name__}'
    )
