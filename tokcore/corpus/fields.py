r"""The options that choose fields of a row: its texts, its label, and extra features.

A field is written as `text` or `translation.en`, with `\.` for a dot within a name.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tokcore.errors import InputError
from tokcore.object_stores import ObjectReader, bucket_of, is_object
from tokcore.options import option, shown
from tokcore.regular_files import read_regular

INVALID_JSON, MISSING_FIELD, NOT_A_STRING, LONE_SURROGATE = (
    'invalid_json',
    'missing_field',
    'not_a_string',
    'lone_surrogate',
)
"""Reasons of JSON lines."""

INVALID_CSV = 'invalid_csv'
"""The reason of columns with CSV's quotes."""

NULL = 'null'
"""The reason of Parquet."""

FieldPath = tuple[str, ...]
"""The names from the outermost to the innermost."""

_DOT = re.compile(r'(?<!\\)\.')

WRONG_TYPE, UNKNOWN_LABEL = 'wrong_type', 'unknown_label'
"""Reasons to leave out a row for the value of an extra field."""

EXTRA_FIELD_REASONS = (UNKNOWN_LABEL, WRONG_TYPE)

BYTES, INT, FLOAT = 'bytes', 'int', 'float'
TARGETS = 'targets'

_WORD = re.compile(
    r'(?P<field>[^=]+?)(?:=(?P<name>.+?))?(?::(?P<kind>bytes|int|float))?', re.DOTALL
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


def _field_pair(text: str) -> tuple[str, ...]:
    """Parses one field, or source and target with a comma between them; a type of option."""
    names = tuple(text.split(','))
    try:
        paths = [field_path(name) for name in names]
    except ValueError:
        paths = []
    if not 1 <= len(paths) <= 2 or len(set(paths)) < len(paths):
        raise argparse.ArgumentTypeError(
            f'{shown(text)} is neither a field, as text, nor two, as translation.en,translation.zh'
        )
    return names


def labels_option() -> Any:
    """Returns the option with the names of labels, for all formats whose rows may have a label."""
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
    """Parses fields with their kinds, as `id,score:float`; a type of option."""
    words = tuple(text.split(','))
    try:
        names = [_parse_extra_field(word).name for word in words]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'{shown(text)} is not a list of fields, as id, score:float or meta.id=id:int'
        ) from None
    for name in names:
        if name in ('inputs', TARGETS):
            raise argparse.ArgumentTypeError(f'{name} is the name of what the text becomes')
        if names.count(name) > 1:
            raise argparse.ArgumentTypeError(f'{shown(name)} is named twice')
    return words


def _label_field(text: str) -> str:
    """Checks a field with a number, as `label` or `score:float`; a type of option."""
    match = _WORD.fullmatch(text)
    if ',' in text or not match or match['name'] or match['kind'] == BYTES:
        raise argparse.ArgumentTypeError(
            f'{shown(text)} is not the field of a label, as label, stars:int or score:float'
        )
    return text


class LabelNames(tuple):
    """The lines of a file of labels; a label's number is its index."""

    path: str = ''


def label_names(path: str) -> LabelNames:
    """Reads a file with the name of a label on each line; a type of option."""
    local = path
    try:
        for beginning, fetch in fetchers.items():
            if path.startswith(beginning):
                local, path = fetch(path)
        data = ObjectReader(*bucket_of(local)).read() if is_object(local) else read_regular(local)
        text = data.decode().removeprefix('\ufeff')
        names = LabelNames(text.replace('\r\n', '\n').removesuffix('\n').split('\n'))
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
            problem = 'is on two lines' if name else 'is not a name'
            raise argparse.ArgumentTypeError(
                f'{shown(path)}, line {number + 1}: {shown(name)} {problem}'
            )
    names.path = path
    return names


fetchers: dict[str, Callable[[str], tuple[str, str]]] = {}
"""By how an address begins, what returns a local path and the full address; `pipelines` adds the Hub's."""


@dataclass(frozen=True, kw_only=True)
class ExtraFieldOptions:
    """The options of a format with more fields than those of its texts.

    Attributes:
        keep: fields that become features, with their names and kinds as the user wrote them.
        label: the field that becomes the targets; the text becomes the inputs then.
        labels: the names of the numbers from 0 on, if the label's field holds names.
    """

    keep: tuple[str, ...] = option(
        'other fields, which become features of each example by their own names or by others: '
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
        _label_field,
        'FIELD',
        default=None,
        default_help='none',
        changes_bytes=True,
    )
    labels: tuple[str, ...] | None = labels_option()

    def check_extra_fields(self, texts: int) -> None:
        """Checks that the options go together, in a format with so many texts in a row.

        Raises:
            InputError: names of labels without a label, a label of a pair, or names of floats.
        """
        if self.label is None:
            if self.labels:
                raise InputError('--labels needs --label, which names the field')
            return
        if texts != 1:
            raise InputError('--label is for one text, and two are named; name one')
        if self.labels and _parse_extra_field(self.label, INT).kind != INT:
            raise InputError('--labels are names of whole numbers, and --label has floats')

    @property
    def extra_field_options(self) -> dict[str, object]:
        """The options that are not the defaults, for manifests and fingerprints."""
        options = {'keep': self.keep, 'label': self.label, 'labels': self.labels}
        return {name: value for name, value in options.items() if value}

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
        """The fields that become features, the label first."""
        fields = [_parse_extra_field(word) for word in self.keep]
        if self.label is not None:
            label = _parse_extra_field(self.label, INT)
            labels = tuple(self.labels or ())
            fields.insert(0, dataclasses.replace(label, name=TARGETS, labels=labels))
        return tuple(fields)

    def sides_of(self, texts: int) -> tuple[str, ...]:
        """Returns the features that so many texts of a row become."""
        if self.label is not None:
            return ('inputs',)
        return ('targets',) if texts == 1 else ('inputs', 'targets')

    def explain_extra_field(self, reason: str) -> str:
        """Returns the text of an error about a row left out for one of `EXTRA_FIELD_REASONS`."""
        if reason == UNKNOWN_LABEL:
            return (
                f'has a label in {self.label} that is not one of the {len(self.labels or ())} names'
            )
        fields = [*([self.label] if self.label else []), *self.keep]
        has_texts = any(field.kind == BYTES for field in self.extra_fields)
        hint = ' (numbers are kept as FIELD:int or FIELD:float)' if has_texts else ''
        return f'has a value that does not fit one of the fields {",".join(fields)}{hint}'


@dataclass(frozen=True)
class NamedFieldOptions(ExtraFieldOptions):
    r"""The options of a format whose rows have fields by name, as objects and tables do.

    Attributes:
        fields: of the text; a dot leads into an object, `\.` is a dot in a name.
    """

    fields: tuple[str, ...] = option(
        'field of the text, or of source and target, of each object or row; dots lead into objects, '
        '\\. is a dot in a name',
        _field_pair,
        'F[,G]',
        default=('text',),
        default_help='text',
        changes_bytes=True,
    )

    def __post_init__(self):
        self.check_extra_fields(len(self.fields))

    @property
    def sides(self) -> tuple[str, ...]:
        return self.sides_of(len(self.fields))

    @property
    def key(self) -> tuple[object, ...]:
        return (*self.fields, *self.extra_field_key)

    @property
    def options(self) -> dict[str, object]:
        return {'fields': self.fields, **self.extra_field_options}

    @property
    def fields_to_read(self) -> FieldsToRead:
        return FieldsToRead(tuple(map(field_path, self.fields)), self.extra_fields)

    @property
    def field_names(self) -> str:
        """All fields that are read, for messages."""
        return ','.join((*self.fields, *(field.field for field in self.extra_fields)))


@dataclass(frozen=True)
class ExtraField:
    """A field that becomes a feature in addition to the text.

    Attributes:
        field: as the user wrote it: with dots and backslashes, or a column's name or number.
        name: of the feature.
        kind: `bytes`, `int` for int64, or `float` for 32 bits of it.
        labels: the names of the numbers from 0 on, if the field holds names.
    """

    field: str
    name: str
    kind: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class FieldsToRead:
    """The fields that are read from each object or row: those of texts, then the extra fields."""

    texts: Sequence[FieldPath]
    extra: Sequence[ExtraField] = ()

    @property
    def paths(self) -> list[FieldPath]:
        return [*self.texts, *(field_path(field.field) for field in self.extra)]


def _parse_extra_field(word: str, default_kind: str = BYTES) -> ExtraField:
    r"""Parses a field with its name and kind; raises ValueError if it has no name.

    >>> _parse_extra_field('meta.score=score:float')
    ExtraField(field='meta.score', name='score', kind='float', labels=())
    """
    match = _WORD.fullmatch(word)
    if match is None:
        raise ValueError(f'{word!r} names no field')
    field = match['field']
    name = match['name'] or field.replace('\\.', '.')
    return ExtraField(field, name, match['kind'] or default_kind)
