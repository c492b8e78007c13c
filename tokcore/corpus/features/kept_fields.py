"""Which further fields of a row become features of its example, and of which kind."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass

from tokcore.errors import InputError
from tokcore.options.values import shown
from tokcore.regular_files import read_regular

BYTES, INT, FLOAT = 'bytes', 'int', 'float'
TARGETS = 'targets'

WRONG_TYPE, UNKNOWN_LABEL = 'wrong_type', 'unknown_label'
"""Why a row may be left out for a field that goes along."""

_WORD = re.compile(
    r'(?P<field>[^=]+?)(?:=(?P<name>.+?))?(?::(?P<kind>bytes|int|float))?', re.DOTALL
)


@dataclass(frozen=True)
class KeptField:
    """A field that goes along.

    Attributes:
        field: as it is typed: with dots and backslashes, or a column's name or number.
        name: of the feature.
        kind: `bytes`, `int` for int64, or `float` for 32 bits of it.
        labels: what the numbers stand for, if the field holds names.
    """

    field: str
    name: str
    kind: str
    labels: tuple[str, ...] = ()


class LabelNames(tuple):
    """The lines of a file of labels, in order; a label's number is its place.

    Attributes:
        path: of the file.
    """

    path: str = ''


def kept_field(word: str, usual: str = BYTES) -> KeptField:
    r"""Returns what a word means, of a kind if it says none; raises ValueError if it means nothing.

    >>> kept_field('meta.score=score:float')
    KeptField(field='meta.score', name='score', kind='float', labels=())
    """
    match = _WORD.fullmatch(word)
    if match is None:
        raise ValueError(f'{word!r} names no field')
    field = match['field']
    return KeptField(field, match['name'] or field.replace('\\.', '.'), match['kind'] or usual)


def kept_fields(text: str) -> tuple[str, ...]:
    """Fields with their kinds, as `id,score:float`; a kind of option."""
    found = tuple(text.split(','))
    try:
        names = [kept_field(each).name for each in found]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'{shown(text)} are no fields, as id, score:float or meta.id=id:int'
        ) from None
    for name in names:
        if name in ('inputs', TARGETS):
            raise argparse.ArgumentTypeError(f'{name} is the name of what the text becomes')
        if names.count(name) > 1:
            raise argparse.ArgumentTypeError(f'{shown(name)} is named twice')
    return found


def label_field(text: str) -> str:
    """A field with a number, as `label` or `score:float`; a kind of option."""
    match = _WORD.fullmatch(text)
    if ',' in text or not match or match['name'] or match['kind'] == BYTES:
        raise argparse.ArgumentTypeError(
            f'{shown(text)} is no field of a label, as label, stars:int or score:float'
        )
    return text


def label_names(path: str) -> LabelNames:
    """A file with the name of a label on each line; a kind of option."""
    try:
        text = read_regular(path).decode()
        names = LabelNames(text.removesuffix('\n').replace('\r\n', '\n').split('\n'))
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise argparse.ArgumentTypeError(f'{shown(path)} cannot be read ({reason})') from None
    except UnicodeDecodeError as error:
        raise argparse.ArgumentTypeError(
            f'{shown(path)} is not UTF-8 at byte {error.start}'
        ) from None
    for number, name in enumerate(names):
        if not name or name in names[:number]:
            what = 'stands on two lines' if name else 'is no name'
            raise argparse.ArgumentTypeError(
                f'{shown(path)}, line {number + 1}: {shown(name)} {what}'
            )
    names.path = path
    return names
