"""The filters by name, with options after colons, as in `length:1:200`.

A list of filters is checked when the command line is parsed, without importing any filter. To add
one, write a `RowFilter` in a new module, and add it to `_KINDS` with a function that parses its
options, and with its help: what it does, its unit, and an example. Any other name with a colon is a
user's function, `package.module:function`.
"""

from __future__ import annotations

import argparse
import difflib
import functools
import importlib
import re
import typing
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tokcore.corpus.corpus import FilterSpec
from tokcore.errors import InputError
from tokcore.options import LARGEST_INT32, format_number, shown

if typing.TYPE_CHECKING:
    from tokcore.corpus.corpus import RowFilter

_RULES = 'tokcore.filters.rules'

_MOST_NAME_BYTES = 120
"""A file name has 255 bytes, and also names the split and the dataset."""

MOST_RATIO = 1_000

_NUMBER = re.compile(r'[0-9]{1,10}', re.ASCII)
_FRACTION = re.compile(r'[0-9]{1,4}(\.[0-9]{1,4})?', re.ASCII)
_SIDES = {'source': 0, 'target': 1}
_CODE = re.compile(r'[A-Z][a-z]{3}', re.ASCII)


def filter_forms() -> tuple[str, ...]:
    """Returns the syntax of each filter, in the order of the help."""
    return (*(kind.form for kind in _KINDS.values()), 'MODULE:FUNCTION')


def filter_table() -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Returns (syntax, what it does, in what unit, examples) of each filter, in the order of the help.

    Syntax, specs and texts in examples are between backquotes.
    """
    return [
        *(
            (f'`{kind.form}`', kind.does, kind.unit, tuple(map(str, kind.examples)))
            for kind in _KINDS.values()
        ),
        (
            '`MODULE:FUNCTION`',
            'calls your function, which returns the row, another row, or None to drop it',
            'the texts of a row, as strings',
            ('`mine:no_links` calls `no_links` of `mine.py`',),
        ),
    ]


def filter_names() -> tuple[str, ...]:
    """Returns the names of all filters except users' functions."""
    return tuple(_KINDS)


def filter_list(text: str) -> tuple[str, ...]:
    """Filters separated by commas, in the order in which they are applied; may be empty."""
    specs = tuple(spec.strip() for spec in text.split(',')) if text.strip() else ()
    for spec in specs:
        try:
            _parse(spec)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return specs


def filter_specs(specs: Sequence[str]) -> tuple[FilterSpec, ...]:
    """Returns filters as a `Split` has them, with the stamps that they have on this machine.

    Raises:
        InputError: a user's function cannot be imported.
    """
    return tuple(FilterSpec(spec, make_filter(spec).stamp) for spec in specs)


@functools.lru_cache(maxsize=64)
def load_filters(specs: tuple[FilterSpec, ...]) -> tuple[RowFilter, ...]:
    """Returns the filters of a split; each process makes them once.

    Raises:
        InputError: a filter's stamp differs from the one where the job was started.
    """
    filters = tuple(make_filter(spec.spec) for spec in specs)
    for spec, row_filter in zip(specs, filters, strict=True):
        if row_filter.stamp != spec.stamp:
            raise InputError(
                f'the filter {spec.spec} is another here ({row_filter.stamp}) than where the job was '
                f'begun ({spec.stamp}); give all workers the same versions of what it is made of'
            )
    return filters


def try_filters(specs: tuple[FilterSpec, ...], sides: int) -> None:
    """Applies filters to an empty block of rows with so many sides.

    Raises:
        InputError: a filter is not for such rows.
    """
    import numpy as np

    from tokcore.kernels.jit import read_only
    from tokcore.text.rows import Side

    empty = Side(*(read_only(np.empty(0, dtype)) for dtype in (np.uint8, np.int64, np.int64)))
    for row_filter in load_filters(specs):
        row_filter.apply((empty,) * sides)


@dataclass(frozen=True)
class Example:
    """A row that a filter drops or changes.

    Attributes:
        spec: the filter with its options.
        row: a text, or the two of a pair.
        result: the rows that are made of it; none if it is dropped.
    """

    spec: str
    row: tuple[str, ...]
    result: tuple[tuple[str, ...], ...] = ()

    def __str__(self) -> str:
        made = ' and '.join(map(_texts, self.result))
        does = f'makes {_texts(self.row)} into {made}' if made else f'drops {_texts(self.row)}'
        return f'`{self.spec}` {does}'


def _texts(row: Sequence[str]) -> str:
    """Returns texts between backquotes, with the escapes of Python where normal forms differ."""
    return ' ⇥ '.join(f'`{"".join(map(_visible, text))}`' for text in row)


def _visible(character: str) -> str:
    is_ambiguous = unicodedata.decomposition(character) or unicodedata.combining(character)
    return ascii(character)[1:-1] if is_ambiguous else character


@dataclass(frozen=True)
class _Kind:
    """One filter, its syntax, and its help.

    Attributes:
        form: the syntax, for messages.
        origin: its `module:class`.
        options: parses the words after the name into fields of the class; ValueError says why not.
        does: what it does to rows.
        unit: what it counts or compares, the default first.
        examples: rows that it drops or changes.
    """

    form: str
    origin: str
    options: Callable[[Sequence[str]], Mapping[str, object]]
    does: str
    unit: str
    examples: tuple[Example, ...]


def _length_options(words: Sequence[str]) -> dict[str, object]:
    """Parses limits of lengths: `1:200`, `1:200:tokens`."""
    words, tokens = _split_unit(words)
    if len(words) != 2:
        raise ValueError('it takes two lengths')
    least, most = map(_number, words)
    if least > most:
        raise ValueError(f'{least} is more than {most}')
    return {'least': least, 'most': most, 'tokens': tokens}


def _ratio_options(words: Sequence[str]) -> dict[str, object]:
    """Parses the limit of a ratio: `3`, `1.5:tokens`."""
    words, tokens = _split_unit(words)
    if len(words) != 1:
        raise ValueError('it takes one ratio')
    ratio = _fraction(words[0])
    if ratio is None or not 1 <= ratio <= MOST_RATIO:
        raise ValueError(
            f'{shown(words[0])} is not a ratio from 1 to {format_number(MOST_RATIO)}, with four decimals at '
            'most'
        )
    return {'most': ratio, 'tokens': tokens}


def _no_options(words: Sequence[str]) -> dict[str, object]:
    """Parses the options of a filter that has none."""
    if words:
        raise ValueError('it takes no options')
    return {}


def _script_options(words: Sequence[str]) -> dict[str, object]:
    """Parses the share of a script: `Latn:0.5`, `Hani:0.3:target`."""
    if len(words) not in (2, 3):
        raise ValueError('it takes a code of ISO 15924 and a share')
    code, share = words[0], _fraction(words[1])
    if not _CODE.fullmatch(code):
        raise ValueError(f'{shown(code)} is not a code of ISO 15924, as Latn, Cyrl or Hani')
    from tokcore.text.unicode import is_script

    if not is_script(code):
        raise ValueError(f'Unicode has no script {code}, as Latn, Cyrl or Hani')
    if share is None or not 0 <= share <= 1:
        raise ValueError(
            f'{shown(words[1])} is not a share from 0 to 1, with four decimals at most'
        )
    return {'code': code, 'least': share, 'side': _side(words[2:])}


def _form_options(form: str, words: Sequence[str]) -> dict[str, object]:
    """Returns the options of a normal form, whose name is the form."""
    return {**_no_options(words), 'form': form.upper()}


def _english_options(words: Sequence[str]) -> dict[str, object]:
    """Parses the English side: `source`, `target`, or nothing, for the source."""
    if len(words) > 1:
        raise ValueError('it takes a side and nothing else')
    return {'english': _side(words) or 0}


def _side(words: Sequence[str]) -> int | None:
    if words and words[0] not in _SIDES:
        raise ValueError(f'{shown(words[0])} is not a side, which is source or target')
    return _SIDES[words[0]] if words else None


def _split_unit(words: Sequence[str]) -> tuple[list[str], bool]:
    """Returns the words without a unit at the end, and whether the unit is tokens."""
    if words and words[-1] in ('tokens', 'characters'):
        return list(words[:-1]), words[-1] == 'tokens'
    return list(words), False


def _number(word: str) -> int:
    number = int(word) if _NUMBER.fullmatch(word) else None
    if number is None or number > LARGEST_INT32:
        raise ValueError(
            f'{shown(word)} is not a whole number from 0 to {format_number(LARGEST_INT32)}'
        )
    return number


def _fraction(word: str) -> Fraction | None:
    return Fraction(word) if _FRACTION.fullmatch(word) else None


_LENGTHS = 'characters (code points); with `:tokens`, words between white space'

_FORM_EXAMPLES = {
    'nfc': ('e\u0301', '\xe9'),
    'nfd': ('\xe9', 'e\u0301'),
    'nfkc': ('\ufb01 \xbd', 'fi 1\u20442'),
    'nfkd': ('\ufb01 \xe9', 'fi e\u0301'),
}

_KINDS = {
    'length': _Kind(
        'length:MIN:MAX[:tokens]',
        f'{_RULES}:Length',
        _length_options,
        'drops rows with a side shorter than MIN or longer than MAX',
        _LENGTHS,
        (
            Example('length:1:5', ('Hello!',)),
            Example('length:1:2:tokens', ('to be or',)),
        ),
    ),
    'ratio': _Kind(
        'ratio:R[:tokens]',
        f'{_RULES}:Ratio',
        _ratio_options,
        'drops pairs in which one side is more than R times as long as the other',
        _LENGTHS,
        (
            Example('ratio:3', ('Hi', 'Guten Tag')),
            Example('ratio:1.5:tokens', ('Hi', 'Guten Tag')),
        ),
    ),
    'different': _Kind(
        'different',
        f'{_RULES}:Different',
        _no_options,
        'drops pairs whose sides are equal',
        'whole texts, byte for byte',
        (Example('different', ('OK', 'OK')),),
    ),
    'script': _Kind(
        'script:CODE:SHARE[:source|target]',
        f'{_RULES}:Script',
        _script_options,
        'drops rows with a side in which less than SHARE of the letters belong to a script (ISO 15924); '
        'a side without letters is kept',
        'letters of both sides, or of the named side',
        (
            Example('script:Latn:0.5', ('Дом, OK',)),
            Example('script:Hani:0.3:target', ('OK', 'OK')),
        ),
    ),
    **{
        form: _Kind(
            form,
            f'{_RULES}:NormalForm',
            functools.partial(_form_options, form),
            f'converts text to the Unicode normal form {form.upper()}; drops nothing',
            'whole texts',
            (Example(form, (before,), ((after,),)),),
        )
        for form, (before, after) in _FORM_EXAMPLES.items()
    },
    'paracrawl': _Kind(
        'paracrawl',
        'tokcore.corpus.entities:ParaCrawl',
        _no_options,
        "replaces ParaCrawl's entities (`&amp;` `&apos;` `&quot;` `&lt;` `&gt;`, also with a blank "
        'after the `&`), as Tensor2Tensor does; drops nothing',
        'entities',
        (Example('paracrawl', ('Q & amp; A',), (('Q & A',),)),),
    ),
    'clean_en_xx': _Kind(
        'clean_en_xx[:source|target]',
        'tokcore.filters.clean_en_xx:CleanEnXx',
        _english_options,
        'drops pairs whose English does not look like a sentence, and splits others into sentences, '
        'as Tensor2Tensor does; the English side is the source, or the named side',
        "Tensor2Tensor's rules of characters and words",
        (Example('clean_en_xx', ('click here', 'hier klicken')),),
    ),
}


def make_filter(spec: str) -> RowFilter:
    """Returns the filter of a spec such as `length:1:200`.

    Raises:
        InputError: a user's function cannot be imported.
        ValueError: there is no such filter.
    """
    kind, options = _parse(spec)
    if kind is None:
        from tokcore.filters.user_function import UserFunction

        near = _closest_form(spec)
        return UserFunction.load(spec, f', or give {near}, if that is meant' if near else '')
    module, _, name = kind.origin.partition(':')
    return getattr(importlib.import_module(module), name)(**options)


def is_code(spec: str) -> bool:
    """Whether a filter is a function of the user's."""
    return spec.partition(':')[0] not in _KINDS


def converting_filters(specs: Sequence[str]) -> tuple[str, ...]:
    """Returns those filters that only convert text; a function of the user's may drop rows."""
    return tuple(spec for spec in specs if not is_code(spec) and not make_filter(spec).drops_rows)


@functools.cache
def makes_several(specs: tuple[FilterSpec, ...]) -> bool:
    """Whether filters may make several rows of one; functions of the user's may, and are not imported."""
    return any(is_code(each.spec) or make_filter(each.spec).makes_several for each in specs)


def _closest_form(spec: str) -> str | None:
    """Returns the syntax of the filter that was probably meant, if there is one."""
    matches = difflib.get_close_matches(spec.partition(':')[0].lower(), _KINDS, 1, 0.5)
    return _KINDS[matches[0]].form if matches else None


def _parse(spec: str) -> tuple[_Kind | None, Mapping[str, object]]:
    """Returns the kind of a filter, None for a user's function, and its options; raises ValueError."""
    name, *words = spec.split(':')
    if name in _KINDS:
        kind = _KINDS[name]
        try:
            return kind, kind.options(words)
        except ValueError as error:
            raise ValueError(f'{shown(spec)}: {error}; it is {kind.form}') from None
    parts = [*name.split('.'), *words]
    if len(words) == 1 and all(part.isidentifier() for part in parts):
        if len(spec.encode()) > _MOST_NAME_BYTES:
            raise ValueError(
                f'{shown(spec)} has more than {_MOST_NAME_BYTES} bytes, and files of '
                'dropped rows have it in their names; give the function a shorter name'
            )
        return None, {}
    near = _closest_form(spec)
    hint = (
        f'did you mean {near}?'
        if near
        else f'there are {", ".join(_KINDS)}, and a function of your own as package.module:function'
    )
    raise ValueError(f'there is no filter {shown(spec)}; {hint}')
