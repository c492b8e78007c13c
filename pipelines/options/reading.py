"""Values of options, as a command line or a job file has them, become dataclasses of options."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from typing import Any, TypeVar

from tokcore.errors import InputError
from tokcore.options import Choice, Declared, Kind, as_typed, declared, flag, shown

_Options = TypeVar('_Options')


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
            arguments[declaration.field] = tuple(value) if declaration.option.many else value
        elif declaration.default is MISSING:
            raise InputError(f'{flag(key)} is missing')
    return arguments


def option_value(declaration: Declared, value: object, name: str | None = None) -> object:
    """Returns the value of an option from a job file.

    The file has a number or a string, as users type it; true or false for an option that is typed
    without a value; a list where an option takes several.

    Args:
        declaration: the option.
        value: as the file has it.
        name: of the option in errors; None: as it is typed.

    Raises:
        InputError: the option cannot have this value.
    """
    name = name or flag(declaration.name)
    if declaration.option.many:
        words = value if isinstance(value, list) else [value]
        return tuple(_single_value(declaration, word, name) for word in words)
    return _single_value(declaration, value, name)


def _single_value(declaration: Declared, value: object, name: str) -> object:
    kind = declaration.option.kind
    if kind is None:
        if not isinstance(value, bool):
            raise InputError(f'{name} is true or false, not {shown(str(value))}')
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise InputError(f'{name} is a word or a number, not {shown(str(value))}')
    word = str(value)
    if not callable(kind):
        if word not in kind:
            raise InputError(f'{name}: {shown(word)} is none of {", ".join(kind)}')
        return word
    try:
        return kind(word)
    except argparse.ArgumentTypeError as error:
        raise InputError(f'{name}: {error}') from None


def settle_choice(
    choice: Choice, given: Mapping[str, object], value: str | None
) -> dict[str, object]:
    """Returns the values that were given, after it is known which dataclass is chosen.

    Args:
        choice: dataclasses of options.
        given: values by `Declared.key`; those `as_typed` become values of the chosen dataclass.
        value: of the option that chooses.

    Raises:
        InputError: an option of another dataclass, or a value that the option cannot have.
    """
    _refuse_unchosen(choice, _nonempty(given), value)
    values = dict(given)
    typed = {
        declaration.name: declaration.option.many
        for declaration in declared(choice)
        if declaration.option.kind is as_typed
    }
    for declaration in declared(choice.chosen(value)):
        words = given.get(declaration.key)
        if typed.get(declaration.name) and isinstance(words, (list, tuple)):
            words = list(words) if declaration.option.many or len(words) != 1 else words[0]
        # A value that is not a word or a list has been settled before.
        if declaration.name in typed and isinstance(words, (str, list)):
            try:
                values[declaration.key] = option_value(declaration, words)
            except InputError as error:
                raise InputError(f'argument {error}') from None
    return values


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
            _refuse_unchosen(kind, values, None if value is None else str(value))
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


def _refuse_unchosen(choice: Choice, values: Mapping[str, object], chosen: str | None) -> None:
    own = {declaration.name for declaration in declared(choice.chosen(chosen))}
    for declaration in declared(choice):
        if declaration.key in values and declaration.name not in own:
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
