"""The options of formats whose rows have fields that may go along with a text, or be its label."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from tokcore.corpus.features.kept_fields import (
    INT,
    TARGETS,
    UNKNOWN_LABEL,
    WRONG_TYPE,
    KeptField,
    kept_field,
    kept_fields,
    label_field,
    label_names,
)
from tokcore.errors import InputError
from tokcore.options.option_fields import option

FURTHER_REASONS = (UNKNOWN_LABEL, WRONG_TYPE)


def labels_option() -> dataclasses.Field:
    """Returns the option of the labels' names, of all formats whose rows may have a label."""
    return option(
        'with --label or --line-labels: a file with a name on each line; labels are names then, '
        'and the targets their places from 0 on',
        label_names,
        'FILE',
        default=None,
        told_default='none',
        changes_bytes=True,
    )


@dataclass(frozen=True, kw_only=True)
class FurtherFields:
    """What a format with fields may be asked for beside the text.

    Attributes:
        keep: fields that become features, with their names and kinds as they are typed.
        label: the field that the targets are; the text is the inputs then.
        labels: the names that stand in it, of the numbers from 0 on.
    """

    keep: tuple[str, ...] = option(
        'further fields, which become features of each example by their own names or by others: '
        'bytes, or int64 or floats where :int or :float follows',
        kept_fields,
        'F[=NAME][:KIND],…',
        default=(),
        told_default='none',
        changes_bytes=True,
    )
    label: str | None = option(
        'field with a whole number, or with any number where :float follows: it is the targets, '
        'and the text the inputs',
        label_field,
        'FIELD',
        default=None,
        told_default='none',
        changes_bytes=True,
    )
    labels: tuple[str, ...] | None = labels_option()

    def check_further(self, texts: int) -> None:
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
        if self.labels and kept_field(self.label, INT).kind != INT:
            raise InputError('--labels are names of whole numbers, and --label asks for floats')

    @property
    def further(self) -> dict[str, object]:
        """What is asked for, by name, for manifests and fingerprints: nothing by default."""
        asked = {'keep': self.keep, 'label': self.label, 'labels': self.labels}
        return {name: value for name, value in asked.items() if value}

    @property
    def further_key(self) -> tuple[object, ...]:
        """The same as plain values."""
        return tuple(
            tuple(value) if isinstance(value, tuple) else value
            for pair in self.further.items()
            for value in pair
        )

    @property
    def kept(self) -> tuple[KeptField, ...]:
        """The fields that go along, the label first."""
        found = [kept_field(each) for each in self.keep]
        if self.label is not None:
            of_label = kept_field(self.label, INT)
            labels = tuple(self.labels or ())
            found.insert(0, dataclasses.replace(of_label, name=TARGETS, labels=labels))
        return tuple(found)

    def sides_of(self, texts: int) -> tuple[str, ...]:
        """Returns what so many texts of a row become."""
        if self.label is not None:
            return ('inputs',)
        return ('targets',) if texts == 1 else ('inputs', 'targets')

    def said_of_further(self, reason: str) -> str:
        """Returns what an error says of a row left out for one of `FURTHER_REASONS`."""
        if reason == UNKNOWN_LABEL:
            return f'has a label in {self.label} that is none of the {len(self.labels or ())} names'
        asked = [*([self.label] if self.label else []), *self.keep]
        return f'has a value that does not fit one of the fields {",".join(asked)}'
