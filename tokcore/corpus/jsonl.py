"""JSON lines: each line of a file is an object, of which one field is a text, or two are a pair."""

from __future__ import annotations

from dataclasses import dataclass

from tokcore.corpus.corpus import Block, Reject, Rows
from tokcore.corpus.fields import (
    EXTRA_FIELD_REASONS,
    INVALID_JSON,
    LONE_SURROGATE,
    MISSING_FIELD,
    NOT_A_STRING,
    ExtraFieldOptions,
    field_path,
    fields_option,
)
from tokcore.corpus.formats import LinesOfOneFile
from tokcore.text.rows import Normalizer

_SAID = {
    INVALID_JSON: 'is no JSON object',
    MISSING_FIELD: 'lacks a field of {fields}',
    NOT_A_STRING: 'has no string in a field of {fields}',
    LONE_SURROGATE: 'has half of a surrogate pair in a field of {fields}',
}


@dataclass(frozen=True)
class JsonLines(ExtraFieldOptions, LinesOfOneFile):
    r"""Rows of a side or two; of a name that an object has twice the last counts, as in Python.

    Attributes:
        fields: which ones; dots lead into objects, `\.` is a dot in a name.
    """

    fields: tuple[str, ...] = fields_option()

    name = 'jsonl'
    what = 'JSON lines'
    roles = ('jsonl',)
    help = ('JSON lines, an object on each line',)
    reasons = (*_SAID, *EXTRA_FIELD_REASONS)
    takes_any_text = False

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

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        from tokcore.corpus.jsonl_rows import json_rows
        from tokcore.corpus.line_rows import long_rows

        if block.long_lines:
            return long_rows(block.long_lines[0], len(self.sides), block.offset)
        [text] = block.texts
        paths = tuple(map(field_path, self.fields))
        return json_rows(
            text.data, text.offset, paths, normalizer, block.max_line_bytes, self.extra_fields
        )

    def explain(self, reject: Reject) -> str:
        line = reject.line.decode('utf-8', 'replace')
        shown = repr(line if len(line) <= 60 else line[:57] + '...')
        return (
            f'the line at byte {reject.offset} {self._said(reject.reason)}: {shown}; mend the line, '
            'choose other fields, or give --on-error=skip'
        )

    def _said(self, reason: str) -> str:
        if reason in EXTRA_FIELD_REASONS:
            return self.explain_extra_field(reason)
        fields = (*self.fields, *(each.field for each in self.extra_fields))
        return _SAID[reason].replace('{fields}', ','.join(fields))
