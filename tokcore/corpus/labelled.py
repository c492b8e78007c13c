"""Labelled texts: a line of one file is a text, and the same line of another its label.

The layout of Tensor2Tensor's `text2class_txt_iterator`. Files are cut and paired as bitext is.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokcore.corpus.bitext import Bitext
from tokcore.corpus.corpus import BlockText, Reject, Rows
from tokcore.corpus.fields import (
    EXTRA_FIELD_REASONS,
    INT,
    TARGETS,
    UNKNOWN_LABEL,
    ExtraField,
    labels_option,
)
from tokcore.text.rows import Normalizer


@dataclass(frozen=True)
class Labelled(Bitext):
    """Rows of one side, the inputs; the targets are a number.

    Attributes:
        labels: the names that the lines hold, of the numbers from 0 on; None: they hold numbers.
    """

    labels: tuple[str, ...] | None = labels_option()

    name = 'labelled'
    what = 'lines with their labels in another file'
    roles = ('labelled_text', 'line_labels')
    help = (
        'text to be classified, a line each',
        'its labels, the same number of files and of lines: whole numbers, or names with --labels',
    )
    sides = ('inputs',)
    reasons = EXTRA_FIELD_REASONS
    takes_any_text = False

    @property
    def kept(self) -> tuple[ExtraField, ...]:
        return (ExtraField(self.roles[1], TARGETS, INT, tuple(self.labels or ())),)

    @property
    def key(self) -> tuple[object, ...]:
        return tuple(self.labels or ())

    @property
    def options(self) -> dict[str, object]:
        return {'labels': self.labels} if self.labels else {}

    def rows_of_lines(
        self, source: BlockText, target: BlockText, normalizer: Normalizer, max_line_bytes: int
    ) -> Rows:
        from tokcore.corpus.labelled_rows import labelled_rows

        return labelled_rows(source, target, self.extra_fields[0], normalizer, max_line_bytes)

    def explain(self, reject: Reject) -> str:
        label = reject.line.decode('utf-8', 'replace')
        shown = repr(label if len(label) <= 60 else label[:57] + '...')
        wrong = 'no whole number of 64 bits'
        if reject.reason == UNKNOWN_LABEL:
            wrong = f'none of the {len(self.labels or ())} names'
        remedy = 'mend the line' if self.labels else 'mend the line, give --labels if it is a name'
        return (
            f'the label at byte {reject.offset} is {wrong}: {shown}; {remedy}, or give '
            '--on-error=skip'
        )
