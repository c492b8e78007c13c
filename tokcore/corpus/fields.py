r"""Named fields of a row: which are its text, its label, and the features of its example.

A name is typed as `text` or `translation.en`, with `\.` for a dot within a name.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
from dataclasses import dataclass

from tokcore.errors import InputError
from tokcore.options import option, shown
from tokcore.regular_files import read_regular

INVALID_JSON, MISSING_FIELD, NOT_A_STRING, LONE_SURROGATE = (
    'invalid_json',
    'missing_field',
    'not_a_string',
    'lone_surrogate',
)
"""Of JSON lines."""

INVALID_CSV = 'invalid_csv'
"""Of columns in quotes."""

NULL = 'null'
"""Of Parquet."""

FieldPath = tuple[str, ...]
"""The names from the outermost to the innermost."""

_DOT = re.compile(r'(?<!\\)\.')

WRONG_TYPE, UNKNOWN_LABEL = 'wrong_type', 'unknown_label'
"""Why a row may be left out for a field that goes along."""

EXTRA_FIELD_REASONS = (UNKNOWN_LABEL, WRONG_TYPE)

BYTES, INT, FLOAT = 'bytes', 'int', 'float'
TARGETS = 'targets'

_WORD = re.compile(
    r'(?P<field>[^=]+?)(?:=(?P<name>.+?))?(?::(?P<kind>bytes|int|float))?', re.DOTALL
)


def fields_option() -> dataclasses.Field:
    """Returns the option of which field is the text, or which two are a pair."""
    return option(
        'field of the text, or of source and target, of each object or row; dots lead into objects, '
        '\\. is a dot in a name',
        fields,
        'F[,G]',
        default=('text',),
        default_help='text',
        changes_bytes=True,
    )


def field_path(text: str) -> FieldPath:
    r"""Returns the names of a path; raises ValueError if one is empty.

    >>> field_path('translation.en'), field_path(r'a\.b')
    (('translation', 'en'), ('a.b',))
    """
    names = tuple(name.replace('\\.', '.') for name in _DOT.split(text))
    if not all(names):
        raise ValueError(f'{text!r} has an empty name in it')
    return names


def fields(text: str) -> tuple[str, ...]:
    """One field, or source and target with a comma between them; a kind of option."""
    found = tuple(text.split(','))
    try:
        paths = [field_path(each) for each in found]
    except ValueError:
        paths = []
    if not 1 <= len(paths) <= 2 or len(set(paths)) < len(paths):
        raise argparse.ArgumentTypeError(
            f'{shown(text)} is neither a field, as text, nor two, as translation.en,translation.zh'
        )
    return found


def labels_option() -> dataclasses.Field:
    """Returns the option of the labels' names, of all formats whose rows may have a label."""
    return option(
        'with --label or --line-labels: a file with a name on each line; labels are names then, '
        'and the targets their places from 0 on',
        label_names,
        'FILE',
        default=None,
        default_help='none',
        changes_bytes=True,
    )


def extra_fields(text: str) -> tuple[str, ...]:
    """Fields with their kinds, as `id,score:float`; a kind of option."""
    found = tuple(text.split(','))
    try:
        names = [parse_extra_field(each).name for each in found]
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


class LabelNames(tuple):
    """The lines of a file of labels, in order; a label's number is its place.

    Attributes:
        path: of the file.
    """

    path: str = ''


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


@dataclass(frozen=True, kw_only=True)
class ExtraFieldOptions:
    """What a format with fields may be asked for beside the text.

    Attributes:
        keep: fields that become features, with their names and kinds as they are typed.
        label: the field that the targets are; the text is the inputs then.
        labels: the names that stand in it, of the numbers from 0 on.
    """

    keep: tuple[str, ...] = option(
        'further fields, which become features of each example by their own names or by others: '
        'bytes, or int64 or floats where :int or :float follows',
        extra_fields,
        'F[=NAME][:KIND],…',
        default=(),
        default_help='none',
        changes_bytes=True,
    )
    label: str | None = option(
        'field with a whole number, or with any number where :float follows: it is the targets, '
        'and the text the inputs',
        label_field,
        'FIELD',
        default=None,
        default_help='none',
        changes_bytes=True,
    )
    labels: tuple[str, ...] | None = labels_option()

    def check_extra_fields(self, texts: int) -> None:
        """Refuses what does not go together, for a format with so many texts in a row.

        Raises:
            InputError: names of labels without a label, or a label of a pair or of floats.
        """
        if self.label is None:
            if self.labels:
                raise InputError('--labels goes with --label, which names the field')
            return
        if texts != 1:
            raise InputError('--label is for one text, and two are named; name one')
        if self.labels and parse_extra_field(self.label, INT).kind != INT:
            raise InputError('--labels are names of whole numbers, and --label asks for floats')

    @property
    def extra_field_options(self) -> dict[str, object]:
        """What is asked for, by name, for manifests and fingerprints: nothing by default."""
        asked = {'keep': self.keep, 'label': self.label, 'labels': self.labels}
        return {name: value for name, value in asked.items() if value}

    @property
    def extra_field_key(self) -> tuple[object, ...]:
        """The same as plain values."""
        return tuple(
            tuple(value) if isinstance(value, tuple) else value
            for pair in self.extra_field_options.items()
            for value in pair
        )

    @property
    def extra_fields(self) -> tuple[ExtraField, ...]:
        """The fields that go along, the label first."""
        found = [parse_extra_field(each) for each in self.keep]
        if self.label is not None:
            of_label = parse_extra_field(self.label, INT)
            labels = tuple(self.labels or ())
            found.insert(0, dataclasses.replace(of_label, name=TARGETS, labels=labels))
        return tuple(found)

    def sides_of(self, texts: int) -> tuple[str, ...]:
        """Returns what so many texts of a row become."""
        if self.label is not None:
            return ('inputs',)
        return ('targets',) if texts == 1 else ('inputs', 'targets')

    def explain_extra_field(self, reason: str) -> str:
        """Returns what an error says of a row left out for one of `EXTRA_FIELD_REASONS`."""
        if reason == UNKNOWN_LABEL:
            return f'has a label in {self.label} that is none of the {len(self.labels or ())} names'
        asked = [*([self.label] if self.label else []), *self.keep]
        return f'has a value that does not fit one of the fields {",".join(asked)}'


@dataclass(frozen=True)
class ExtraField:
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


def parse_extra_field(word: str, usual: str = BYTES) -> ExtraField:
    r"""Returns what a word means, of a kind if it says none; raises ValueError if it means nothing.

    >>> kept_field('meta.score=score:float')
    ExtraField(field='meta.score', name='score', kind='float', labels=())
    """
    match = _WORD.fullmatch(word)
    if match is None:
        raise ValueError(f'{word!r} names no field')
    field = match['field']
    return ExtraField(field, match['name'] or field.replace('\\.', '.'), match['kind'] or usual)
