"""From what was given to dataclasses of options: of a command line, or of names with values."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from typing import TypeVar

from tokcore.errors import InputError
from tokcore.options import Choice, Declared, Kind, as_typed, declared, flag, shown

_Options = TypeVar('_Options')


def options_from(kind: type[_Options], values: Mapping[str, object], prefix: str = '') -> _Options:
    """Returns an instance with the values of its options; defaults stand for those that lack.

    Args:
        kind: a dataclass of options.
        values: by `Declared.key`, after the prefix; others are passed over.
        prefix: of the names: `dev_`.

    Raises:
        InputError: one that must be given is not there.
    """
    return kind(**field_values(kind, values, prefix))


def field_values(kind: type, values: Mapping[str, object], prefix: str = '') -> dict[str, object]:
    """Returns the same as arguments, for a dataclass that has these options and more."""
    found = {}
    for each in declared(kind):
        key = prefix + each.key
        if key in values:
            value = values[key]
            found[each.field] = tuple(value) if each.option.many else value
        elif each.default is MISSING:
            raise InputError(f'{flag(key)} is missing')
    return found


def option_value(each: Declared, value: object, called: str | None = None) -> object:
    """Returns what an option becomes by a value as a job file has it, as `read_options` says.

    Args:
        each: the option.
        value: of it.
        called: what errors call the option; None: as it is typed.
    """
    called = called or flag(each.name)
    if each.option.many:
        words = value if isinstance(value, list) else [value]
        return tuple(_one_value(each, word, called) for word in words)
    return _one_value(each, value, called)


def _one_value(each: Declared, value: object, called: str) -> object:
    kind = each.option.kind
    if kind is None:
        if not isinstance(value, bool):
            raise InputError(f'{called} is true or false, not {shown(str(value))}')
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise InputError(f'{called} is a word or a number, not {shown(str(value))}')
    word = str(value)
    if not callable(kind):
        if word not in kind:
            raise InputError(f'{called}: {shown(word)} is none of {", ".join(kind)}')
        return word
    try:
        return kind(word)
    except argparse.ArgumentTypeError as error:
        raise InputError(f'{called}: {error}') from None


def settle_choice(
    choice: Choice, given: Mapping[str, object], value: str | None
) -> dict[str, object]:
    """Returns what was given, where it is known which dataclass of a choice is chosen.

    Args:
        choice: dataclasses of options.
        given: values by `Declared.key`; those `as_typed` become the chosen dataclass's.
        value: of the option that chooses.

    Raises:
        InputError: an option of another dataclass, or a value that cannot be.
    """
    _refuse_unchosen(choice, _there(given), '', value)
    found = dict(given)
    typed = {each.name for each in declared(choice) if each.option.kind is as_typed}
    for each in declared(choice.chosen(value)):
        words = given.get(each.key)
        # What is no word any more was settle_choice before.
        if each.name in typed and isinstance(words, (str, list)):
            try:
                found[each.key] = option_value(each, list(words) if each.option.many else words)
            except InputError as error:
                raise InputError(f'argument {error}') from None
    return found


def refuse_misplaced(kinds: Sequence[Kind], given: Mapping[str, object], prefix: str = '') -> None:
    """Refuses options that do not go with what else was given, or with what was chosen.

    Args:
        kinds: dataclasses of options.
        given: values by `Declared.key`, after the prefix; what was not given is not there, and what
            is empty counts as not given.
        prefix: of the names: `dev_`.

    Raises:
        InputError: an option that goes with another one; both are named.
    """
    there = _there(given)
    for kind in kinds:
        if isinstance(kind, Choice):
            _refuse_unchosen(kind, there, prefix, there.get(kind.by.replace('-', '_')))
    every = [each for kind in kinds for each in declared(kind) if prefix + each.key in there]
    names = {each.name for each in every}
    read = [flag(each.name, prefix) for each in every if each.option.reads]
    for each in every:
        wanted = each.option.goes_with
        if wanted and not names.intersection(wanted):
            fitting = ' or '.join(flag(name, prefix) for name in wanted)
            instead = f', not with {" and ".join(read)}' if read else ''
            raise InputError(f'{flag(each.name, prefix)} goes with {fitting}{instead}')


def _there(given: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in given.items() if value not in ('', (), [], None)}


def _refuse_unchosen(
    choice: Choice, there: Mapping[str, object], prefix: str, value: str | None
) -> None:
    chosen = choice.chosen(value)
    own = {each.name for each in declared(chosen)}
    for each in declared(choice):
        if prefix + each.key in there and each.name not in own:
            by = flag(choice.by)
            fitting = [
                f'{by}={value}'
                for value, kind in choice.kinds.items()
                if each.name in {one.name for one in declared(kind)}
            ]
            now = next(iter(choice.kinds)) if value is None else value
            raise InputError(
                f'{flag(each.name, prefix)} goes with {" or ".join(fitting)}, not with {by}={now}'
            )
