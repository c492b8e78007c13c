"""Values of JSON, checked against the types that declare them.

A declaration is a type: a dataclass with typed fields for an object, `tuple[T, ...]` for a list,
`dict[str, T]` or `Mapping[str, T]`, `T | None`, `Literal`, `bool`, `int`, `float`, `str`, or `object` for anything.
`Annotated` adds a rule: `Annotated[int, Within(0, 9)]`.
"""

from __future__ import annotations

import dataclasses
import functools
import numbers
import re
import reprlib
import types
import typing
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass
from typing import Annotated

_UNBOUNDED = (1 << 63) - 1
"""The limit of an int64: errors do not mention it, since nobody chose it."""

_TYPE_NAMES: dict[object, str] = {
    bool: 'true or false',
    int: 'a whole number',
    float: 'a number',
    str: 'a text',
}


class WrongValue(ValueError):
    """A value is not as declared.

    Attributes:
        where: its place, `files[3].rows`; '' for the whole value.
        shown: the value, shortened.
        expected: what it must be; '' if it is missing.
    """

    def __init__(self, where: str, shown: str, expected: str):
        self.where, self.shown, self.expected = where, shown, expected
        sentence = f'{where or "it"} is {shown}'
        super().__init__(f'{sentence} and not {expected}' if expected else sentence)


@dataclass(frozen=True)
class Within:
    """The rule for a whole number from `least` to `most`; None: no limit."""

    least: int
    most: int | None = None

    def __str__(self) -> str:
        if self.most is None or self.most >= _UNBOUNDED:
            return f'{self.least} or more'
        return f'a whole number from {self.least} to {self.most}'

    def allows(self, value: int) -> bool:
        return self.least <= value and (self.most is None or value <= self.most)


@dataclass(frozen=True)
class Matches:
    """The rule for a text that a regular expression matches whole; errors describe it in words."""

    pattern: str
    description: str

    def __str__(self) -> str:
        return self.description

    def allows(self, value: str) -> bool:
        return re.fullmatch(self.pattern, value, re.DOTALL) is not None


# Names that lead to no place outside the folder.
_PLAIN = '(?!\\.{1,2}(?:/|$))[^/\0\ud800-\udc7f\udd00-\udfff]+'
FileName = Annotated[str, Matches(_PLAIN, 'the name of a file in the folder')]
FilePath = Annotated[
    str,
    Matches(f'{_PLAIN}(?:/{_PLAIN})?', 'the name of a file in the folder, or in a folder in it'),
]


def checked(value: object, declared: object, where: str = '', is_whole: bool = False) -> typing.Any:
    """Returns a value as it is declared: lists as tuples, objects as instances of dataclasses.

    Args:
        value: of JSON; numbers may be of NumPy's types.
        declared: the type.
        where: the value's place, for errors.
        is_whole: whether objects have only names that are declared; else others are ignored.

    Raises:
        WrongValue: it is not as declared.
    """
    if declared is object or (type(value) is declared and declared in _TYPE_NAMES):
        return value
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if origin is typing.Annotated:
        result = checked(value, arguments[0], where, is_whole)
        for rule in arguments[1:]:
            if not rule.allows(result):
                raise WrongValue(where, shown(value), str(rule))
        return result
    if origin in (typing.Union, types.UnionType):
        return _one_of(value, arguments, where, is_whole)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise WrongValue(where, shown(value), 'a list')
        return tuple(
            checked(item, arguments[0], f'{where}[{k}]', is_whole) for k, item in enumerate(value)
        )
    if origin in (dict, Mapping):
        return {
            name: checked(item, arguments[1], _below(where, name), is_whole)
            for name, item in _object(value, where).items()
        }
    if origin is typing.Literal:
        if not any(type(value) is type(choice) and value == choice for choice in arguments):
            raise WrongValue(where, shown(value), ' or '.join(map(repr, arguments)))
        return value
    if isinstance(declared, type) and dataclasses.is_dataclass(declared):
        return declared(**fields_of(value, declared, where, is_whole=is_whole))
    return _scalar(value, declared, where)


def fields_of(
    value: object,
    declared: type,
    where: str = '',
    only: Collection[str] | None = None,
    is_whole: bool = False,
) -> dict[str, typing.Any]:
    """Returns the fields of a dataclass that an object has, by name, as they are declared.

    Args:
        value: the object.
        declared: the dataclass.
        where: the object's place, for errors.
        only: the fields to return; None: all.
        is_whole: as of `checked`.

    Raises:
        WrongValue: a field is not as declared, or is missing and has no default.
    """
    items = _object(value, where)
    result: dict[str, typing.Any] = {}
    fields = _fields(declared)
    if is_whole and (others := items.keys() - fields.keys()):
        raise WrongValue(_below(where, min(others)), 'unknown', '')
    for name, (hint, is_required) in fields.items():
        if only is not None and name not in only:
            continue
        if name in items:
            result[name] = checked(items[name], hint, _below(where, name), is_whole)
        elif only is not None or is_required:
            raise WrongValue(_below(where, name), 'missing', '')
    return result


def shown(value: object) -> str:
    """Returns a value for an error, shortened, whatever it is."""
    if isinstance(value, int) and value.bit_length() > 128:
        # Python may refuse to write so many digits.
        return f'a number of {value.bit_length()} bits'
    return reprlib.repr(value)


@functools.cache
def _fields(declared: type) -> dict[str, tuple[object, bool]]:
    """Returns the type of each field of a dataclass, and whether it has no default."""
    hints = typing.get_type_hints(declared, include_extras=True)
    return {
        field.name: (hints[field.name], field.default is field.default_factory is MISSING)
        for field in dataclasses.fields(declared)
    }


def _below(where: str, name: str) -> str:
    name = name if len(name) <= 60 else f'{name[:57]}...'
    return f'{where}.{name}' if where else name


def _object(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise WrongValue(where, shown(value), 'an object with names')
    return value


def _one_of(value: object, choices: tuple[object, ...], where: str, is_whole: bool) -> object:
    if value is None and type(None) in choices:
        return None
    errors = []
    for choice in choices:
        if choice is not type(None):
            try:
                return checked(value, choice, where, is_whole)
            except WrongValue as error:
                errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    raise WrongValue(where, shown(value), ' or '.join(error.expected for error in errors))


def _scalar(value: object, declared: object, where: str) -> object:
    import numpy as np  # `--help` does not wait for it

    is_bool = isinstance(value, (bool, np.bool_))
    if declared is bool and is_bool:
        return bool(value)
    if isinstance(value, numbers.Integral) and not is_bool:
        if declared is bool and value in (0, 1):
            return bool(value)
        if declared is int:
            return int(value)
    if declared is float and isinstance(value, numbers.Real) and not is_bool:
        return float(value)
    if declared is str and isinstance(value, str):
        return value
    if declared not in _TYPE_NAMES:
        raise TypeError(f'{declared!r} does not declare a value of JSON')
    raise WrongValue(where, shown(value), _TYPE_NAMES[declared])
