"""Values of options, as a command line or a job file has them, become dataclasses of options."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from typing import Any, TypeVar

from tokcore.errors import InputError
from tokcore.options import Choice, Kind, declared, flag, shown

_Options = TypeVar('_Options')

_MOST_CHARACTERS = 400
"""Of an error: argparse repeats values, which may be of any length."""


class Parser(argparse.ArgumentParser):
    """Knows no abbreviations, and raises InputError where argparse would end the process."""

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, allow_abbrev=False, **keywords)

    def error(self, message: str):
        if len(message) > _MOST_CHARACTERS:
            message = message[:_MOST_CHARACTERS] + '…'
        raise InputError(f'{message} (see {self.prog} --help)')


def options_from(kind: type[_Options], values: Mapping[str, object]) -> _Options:
    """Returns an instance with the values of its options, or their defaults.

    Args:
        kind: a dataclass of options.
        values: by `Declared.key`; those of other dataclasses are ignored.

    Raises:
        InputError: an option without a default has no value.
    """
    return kind(**field_values(kind, values))


def field_values(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the same as keyword arguments, for a subclass with more fields."""
    arguments = {}
    for declaration in declared(kind):
        key = declaration.key
        if key in values:
            value = values[key]
            arguments[declaration.field] = tuple(value) if isinstance(value, list) else value
        elif declaration.default is MISSING:
            raise InputError(f'{flag(key)} is missing')
    return arguments


def refuse_misplaced(kinds: Sequence[Kind], given: Mapping[str, object]) -> None:
    """Refuses options that do not go with the others, or with the chosen dataclass.

    Args:
        kinds: dataclasses of options.
        given: values by `Declared.key`; empty ones count as not given.

    Raises:
        InputError: an option goes with another one, which is not given; both are named.
    """
    values = _nonempty(given)
    for kind in kinds:
        if isinstance(kind, Choice):
            value = values.get(kind.by.replace('-', '_'))
            refuse_unchosen(kind, values, None if value is None else str(value))
    declarations = [
        declaration for kind in kinds for declaration in declared(kind) if declaration.key in values
    ]
    names = {declaration.name for declaration in declarations}
    inputs = [flag(declaration.name) for declaration in declarations if declaration.option.reads]
    for declaration in declarations:
        partners = declaration.option.goes_with
        if partners and not names.intersection(partners):
            fitting = ' or '.join(flag(name) for name in partners)
            instead = f', not with {" and ".join(inputs)}' if inputs else ''
            raise InputError(f'{flag(declaration.name)} goes with {fitting}{instead}')


def _nonempty(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if value not in ('', (), [], None)}


def refuse_unchosen(choice: Choice, given: Mapping[str, object], chosen: str | None) -> None:
    """Refuses options and words that the chosen dataclass of options does not have.

    Args:
        choice: dataclasses of options.
        given: values by `Declared.key`; empty ones count as not given.
        chosen: the value of the option that chooses; None is its default.

    Raises:
        InputError: there is one.
    """
    values = _nonempty(given)
    own = {declaration.name: declaration for declaration in declared(choice.chosen(chosen))}
    for declaration in declared(choice):
        if declaration.key not in values:
            continue
        if declaration.name not in own:
            by = flag(choice.by)
            fitting = [
                f'{by}={value}'
                for value, kind in choice.kinds.items()
                if declaration.name in {option.name for option in declared(kind)}
            ]
            raise InputError(
                f'{flag(declaration.name)} goes with {" or ".join(fitting)}, not with '
                f'{by}={next(iter(choice.kinds)) if chosen is None else chosen}'
            )
        words, value = own[declaration.name].option.kind, values[declaration.key]
        if isinstance(words, tuple) and value not in words:
            raise InputError(
                f'argument {flag(declaration.name)}: {shown(str(value))} is none of {", ".join(words)}'
            )
