"""Values of JSON, checked against the types that declare them.

A declaration is a type: a dataclass with typed fields for an object, `tuple[T, ...]` for a list,
`dict[str, T]`, `T | None`, `Literal`, `bool`, `int`, `str`, or `object` for anything. `Annotated`
adds a rule, `Annotated[int, Within(0, 9)]`.
"""

from __future__ import annotations

import dataclasses
import functools
import numbers
import re
import reprlib
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass

import numpy as np


class WrongValue(ValueError):
    """A value is not what is declared.

    Attributes:
        where: its place, `files[3].rows`; '' for the whole.
        shown: the value, shortened.
        expected: what it must be; '' where it is missing.
    """

    def __init__(self, where: str, shown: str, expected: str):
        self.where, self.shown, self.expected = where, shown, expected
        told = f'{where or "it"} is {shown}'
        super().__init__(f'{told} and not {expected}' if expected else told)


_UNBOUNDED = (1 << 63) - 1
"""A limit that is only NumPy's, and that errors do not tell."""


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
    """The rule for a text that a regular expression matches whole; `what` says it in words."""

    pattern: str
    what: str

    def __str__(self) -> str:
        return self.what

    def allows(self, value: str) -> bool:
        return re.fullmatch(self.pattern, value, re.DOTALL) is not None


def checked(value: object, declared: object, where: str = '') -> typing.Any:
    """Returns a value as it is declared: lists as tuples, objects as instances of dataclasses.

    Args:
        value: of JSON, or of NumPy's types of numbers.
        declared: the type, see above.
        where: the value's place, for errors.

    Raises:
        WrongValue: it is another; only an object's further names are passed over.
    """
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if declared is object:
        return value
    if origin is typing.Annotated:
        found = checked(value, arguments[0], where)
        for rule in arguments[1:]:
            if not rule.allows(found):
                raise WrongValue(where, shown(value), str(rule))
        return found
    if origin in (typing.Union, types.UnionType):
        return _one_of(value, arguments, where)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise WrongValue(where, shown(value), 'a list')
        return tuple(checked(each, arguments[0], f'{where}[{k}]') for k, each in enumerate(value))
    if origin is dict:
        return {
            name: checked(each, arguments[1], _below(where, name))
            for name, each in _names_of(value, where).items()
        }
    if origin is typing.Literal:
        if not any(type(value) is type(each) and value == each for each in arguments):
            raise WrongValue(where, shown(value), ' or '.join(map(repr, arguments)))
        return value
    if dataclasses.is_dataclass(declared):
        return declared(**fields_of(value, declared, where))
    return _plain(value, declared, where)


def fields_of(value: object, declared: type, where: str = '') -> dict[str, typing.Any]:
    """Returns the fields of a dataclass that an object has, by name, as they are declared.

    Raises:
        WrongValue: one is not as it is declared, or lacks and has no default.
    """
    given = _names_of(value, where)
    found: dict[str, typing.Any] = {}
    hints = _hints(declared)
    for field in dataclasses.fields(declared):
        if field.name in given:
            found[field.name] = checked(
                given[field.name], hints[field.name], _below(where, field.name)
            )
        elif field.default is MISSING and field.default_factory is MISSING:
            raise WrongValue(_below(where, field.name), 'missing', '')
    return found


def shown(value: object) -> str:
    """Returns a value for an error: short, whatever it is."""
    if isinstance(value, int) and value.bit_length() > 128:
        return (
            f'a number of {value.bit_length()} bits'  # of which Python may refuse to write digits
        )
    return reprlib.repr(value)


@functools.cache
def _hints(declared: type) -> dict[str, object]:
    return typing.get_type_hints(declared, include_extras=True)


def _below(where: str, name: str) -> str:
    name = name if len(name) <= 60 else f'{name[:57]}...'
    return f'{where}.{name}' if where else name


def _names_of(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value):
        raise WrongValue(where, shown(value), 'an object with names')
    return value


def _one_of(value: object, kinds: tuple[object, ...], where: str) -> object:
    if value is None and type(None) in kinds:
        return None
    errors = []
    for kind in kinds:
        if kind is not type(None):
            try:
                return checked(value, kind, where)
            except WrongValue as error:
                errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    raise WrongValue(where, shown(value), ' or '.join(error.expected for error in errors))


def _plain(value: object, declared: object, where: str) -> object:
    is_bool = isinstance(value, (bool, np.bool_))
    is_whole = isinstance(value, numbers.Integral) and not is_bool
    if declared is bool and (is_bool or (is_whole and value in (0, 1))):
        return bool(value)
    if declared is int and is_whole:
        return int(value)
    if declared is str and isinstance(value, str):
        return value
    names = {bool: 'true or false', int: 'a whole number', str: 'a text'}
    if declared not in names:
        raise TypeError(f'{declared!r} declares nothing of JSON')
    raise WrongValue(where, shown(value), names[declared])
