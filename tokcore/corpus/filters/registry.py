"""Which filters there are: each by its name, with options behind colons, as `length:1:200`.

A list of them is checked where it is typed, for which none of them is imported. To add one: a
`RowFilter` in a module of its own, and a line of `_KINDS` with a function that reads its options.
What has a colon and is none of these is a user's own, `package.module:function`.
"""

from __future__ import annotations

import argparse
import difflib
import functools
import importlib
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tokcore.corpus.dataset import AskedFilter
from tokcore.corpus.filters.filter_options import (
    english_options,
    form_options,
    length_options,
    no_options,
    ratio_options,
    script_options,
)
from tokcore.errors import InputError
from tokcore.options.values import shown

if typing.TYPE_CHECKING:
    from tokcore.corpus.filters.row_filter import RowFilter


@dataclass(frozen=True)
class _Kind:
    """How a filter is asked for.

    Attributes:
        form: as errors show it.
        origin: its module, and the class in it.
        options: makes the class's fields of the words behind its name; ValueError says why not.
    """

    form: str
    origin: str
    options: Callable[[Sequence[str]], Mapping[str, object]]


_RULES = 'tokcore.corpus.filters.rules'

_KINDS = {
    'length': _Kind('length:MIN:MAX[:tokens]', f'{_RULES}.lengths:Length', length_options),
    'ratio': _Kind('ratio:R[:tokens]', f'{_RULES}.lengths:Ratio', ratio_options),
    'different': _Kind('different', f'{_RULES}.lengths:Different', no_options),
    'script': _Kind(
        'script:CODE:SHARE[:source|target]', f'{_RULES}.scripts:Script', script_options
    ),
    **{
        form: _Kind(
            form, f'{_RULES}.normal_forms:NormalForm', functools.partial(form_options, form)
        )
        for form in ('nfc', 'nfd', 'nfkc', 'nfkd')
    },
    'paracrawl': _Kind('paracrawl', f'{_RULES}.paracrawl:ParaCrawl', no_options),
    'clean_en_xx': _Kind(
        'clean_en_xx[:source|target]',
        'tokcore.corpus.filters.clean_en_xx:CleanEnXx',
        english_options,
    ),
}

_MOST_NAME_BYTES = 120
"""Of 255 that a file's name may have; it names split, dataset and filter."""

_OWN = 'a function of your own as package.module:function'


def filter_forms() -> tuple[str, ...]:
    """Returns how each filter is asked for, in the order of the help."""
    return (*(each.form for each in _KINDS.values()), 'MODULE:FUNCTION')


def filter_names() -> tuple[str, ...]:
    """Returns the names of all filters but users' own."""
    return tuple(_KINDS)


def filter_list(text: str) -> tuple[str, ...]:
    """Filters with commas between them, in the order in which they act; none if it is empty."""
    specs = tuple(each.strip() for each in text.split(',')) if text.strip() else ()
    for each in specs:
        try:
            _read(each)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return specs


def make_filter(spec: str) -> RowFilter:
    """Returns a filter by what was typed.

    Raises:
        InputError: a user's function cannot be imported.
        ValueError: there is none such.
    """
    kind, options = _read(spec)
    if kind is None:
        from tokcore.corpus.filters.users_function import UsersFunction

        near = _nearest(spec)
        return UsersFunction.imported(spec, f', or give {near}, if that is meant' if near else '')
    module, _, name = kind.origin.partition(':')
    return getattr(importlib.import_module(module), name)(**options)


def asked_filters(specs: Sequence[str]) -> tuple[AskedFilter, ...]:
    """Returns filters as a `Split` has them, with the stamps that they have here.

    Raises:
        InputError: a user's function cannot be imported.
    """
    return tuple(AskedFilter(each, make_filter(each).stamp) for each in specs)


@functools.lru_cache(maxsize=64)
def made_filters(asked: tuple[AskedFilter, ...]) -> tuple[RowFilter, ...]:
    """Returns the filters of a split, made once in a process.

    Raises:
        InputError: one that is another here than where the job was begun.
    """
    made = tuple(make_filter(each.spec) for each in asked)
    for each, found in zip(asked, made, strict=True):
        if found.stamp != each.stamp:
            raise InputError(
                f'the filter {each.spec} is another here ({found.stamp}) than where the job was '
                f'begun ({each.stamp}); give all workers the same versions of what it is made of'
            )
    return made


def try_filters(asked: tuple[AskedFilter, ...], sides: int) -> None:
    """Applies filters to no rows of so many sides.

    Raises:
        InputError: one is not for such rows.
    """
    import numpy as np

    from tokcore.compiled.compilation import read_only
    from tokcore.text.sides import Side

    nothing = Side(*(read_only(np.empty(0, kind)) for kind in (np.uint8, np.int64, np.int64)))
    for each in made_filters(asked):
        each.apply((nothing,) * sides)


def _nearest(spec: str) -> str | None:
    """Returns the form of the filter that may have been meant."""
    found = difflib.get_close_matches(spec.partition(':')[0].lower(), _KINDS, 1, 0.5)
    return _KINDS[found[0]].form if found else None


def _read(spec: str) -> tuple[_Kind | None, Mapping[str, object]]:
    """Returns the kind of a filter, None for a user's own, and its options; ValueError as said."""
    name, *words = spec.split(':')
    if name in _KINDS:
        kind = _KINDS[name]
        try:
            return kind, kind.options(words)
        except ValueError as error:
            raise ValueError(f'{shown(spec)}: {error}; it is {kind.form}') from None
    parts = [*name.split('.'), *words]
    if len(words) == 1 and all(each.isidentifier() for each in parts):
        if len(spec.encode()) > _MOST_NAME_BYTES:
            raise ValueError(
                f'{shown(spec)} has more than {_MOST_NAME_BYTES} bytes, and files of what is '
                'dropped are called so; give the function a shorter name'
            )
        return None, {}
    near = _nearest(spec)
    told = f'did you mean {near}?' if near else f'there are {", ".join(_KINDS)}, and {_OWN}'
    raise ValueError(f'there is no filter {shown(spec)}; {told}')
