"""Formats whose rows are lines: plain text, bitext, and texts with labels.

Of bitext the n-th line of each of two files is a side of the n-th row. Of labelled texts each line of a
file is a text, and the same line of another file is its label: the layout of Tensor2Tensor's
`text2class_txt_iterator`. Both are cut and paired alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tokcore.corpus.corpus import Reject
from tokcore.corpus.fields import (
    EXTRA_FIELD_REASONS,
    INT,
    TARGETS,
    UNKNOWN_LABEL,
    ExtraField,
    labels_option,
)
from tokcore.corpus.formats import CorpusFormat


@dataclass(frozen=True)
class PlainText(CorpusFormat):
    """Rows of one side."""

    name = 'text'
    what = 'plain lines'
    roles = ('text',)
    help = ('text, a line each; without --line-labels it is the targets',)
    reader = 'tokcore.corpus.line_rows:PlainTextReader'
    sides = ('targets',)
    forbidden_characters = '\n'
    rows_are_lines = True


@dataclass(frozen=True)
class Bitext(CorpusFormat):
    """Rows of two sides, each in a file of its own."""

    name = 'bitext'
    what = 'two aligned files'
    roles = ('source', 'target')
    help = (
        'source side, a sentence a line, or <seg>s in documents where the names end in .sgm',
        'target side, the same number of files, with the same lines or ids',
    )
    reader = 'tokcore.corpus.bitext_reading:BitextReader'
    sides: ClassVar[tuple[str, ...]] = ('inputs', 'targets')
    forbidden_characters = '\n'
    rows_are_lines = True


@dataclass(frozen=True)
class Labelled(Bitext):
    """Rows with one side, the inputs; the targets are a number.

    Attributes:
        labels: the names in the lines, for the numbers from 0 on; None if the lines have numbers.
    """

    labels: tuple[str, ...] | None = labels_option()

    name = 'labelled'
    what = 'lines with their labels in another file'
    roles = ('text', 'line_labels')
    help = (
        'text to be classified, a line each',
        'labels of the lines of --text, the same number of files and of lines: whole numbers, or names with --labels',
    )
    sides = ('inputs',)
    reader = 'tokcore.corpus.bitext_reading:LabelledReader'
    reasons = EXTRA_FIELD_REASONS
    takes_any_text = False

    @property
    def extra_fields(self) -> tuple[ExtraField, ...]:
        return (ExtraField(self.roles[1], TARGETS, INT, tuple(self.labels or ())),)

    @property
    def key(self) -> tuple[object, ...]:
        return tuple(self.labels or ())

    @property
    def options(self) -> dict[str, object]:
        return {'labels': self.labels} if self.labels else {}

    def explain(self, reject: Reject) -> str:
        wrong = 'not a whole number of 64 bits'
        if reject.reason == UNKNOWN_LABEL:
            wrong = f'not one of the {len(self.labels or ())} names'
        remedy = 'mend the line' if self.labels else 'mend the line, give --labels if it is a name'
        return (
            f'the label at byte {reject.offset} is {wrong}: {reject.excerpt}; {remedy}, or give '
            '--on-error=skip'
        )
