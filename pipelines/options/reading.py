"""Values of options, as a command line or a job file has them, become dataclasses of options."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING
from typing import Any, TypeVar

from tokcore.errors import InputError
from tokcore.options import Choice, Declared, declared, did_you_mean, flag, shown

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

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, not_one_of(str(value), map(str, action.choices)))


def not_one_of(word: str, words: Iterable[str]) -> str:
    """Returns the sentence that refuses a word, with the one that may be meant."""
    known = list(words)
    sentence = f'{shown(word)} is not one of {", ".join(known)}'
    return '; '.join(filter(None, [sentence, did_you_mean(word, known)]))


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


def refuse_misplaced(kinds: Sequence[type], given: Mapping[str, object]) -> None:
    """Refuses options that do not go with the others.

    Args:
        kinds: dataclasses of options.
        given: values by `Declared.key`; empty ones count as not given.

    Raises:
        InputError: an option goes with another one, which is not given; both are named.
    """
    present = [each for kind in kinds for each in declared(kind) if _is_given(each, given)]
    names = {each.name for each in present}
    inputs = [flag(each.name) for each in present if each.option.reads]
    for each in present:
        partners = each.option.goes_with
        if partners and not names.intersection(partners):
            fitting = ' or '.join(map(flag, partners))
            instead = f', not with {" and ".join(inputs)}' if inputs else ''
            raise InputError(f'{flag(each.name)} goes with {fitting}{instead}')


def refuse_unchosen(choice: Choice, given: Mapping[str, object], chosen: str) -> None:
    """Refuses options and words that the chosen dataclass of options does not have.

    Args:
        choice: dataclasses of options.
        given: values by `Declared.key`; empty ones count as not given.
        chosen: the value of the option that chooses.

    Raises:
        InputError: there is one.
    """
    by, known = flag(choice.by), {each.name: each for each in declared(choice.kinds[chosen])}
    for each in declared(choice):
        if not _is_given(each, given):
            continue
        if each.name not in known:
            fitting = [
                f'{by}={value}'
                for value, kind in choice.kinds.items()
                if each.name in {other.name for other in declared(kind)}
            ]
            raise InputError(
                f'{flag(each.name)} goes with {" or ".join(fitting)}, not with {by}={chosen}'
            )
        words, value = known[each.name].option.kind, given[each.key]
        if isinstance(words, tuple) and value not in words:
            raise InputError(f'argument {flag(each.name)}: {not_one_of(str(value), words)}')


def _is_given(declaration: Declared, given: Mapping[str, object]) -> bool:
    return given.get(declaration.key) not in ('', (), [], None)
