"""JSON lines: each line of a file is an object, of which one field is a text, or two are a pair.

For example, `{"en": "one", "zh": "一"}` is a pair of the fields `en` and `zh`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokcore.corpus.corpus import Reject
from tokcore.corpus.fields import (
    EXTRA_FIELD_REASONS,
    INVALID_JSON,
    LONE_SURROGATE,
    MISSING_FIELD,
    NOT_A_STRING,
    NamedFieldOptions,
)
from tokcore.corpus.formats import CorpusFormat

_PROBLEMS = {
    INVALID_JSON: 'is not a JSON object',
    MISSING_FIELD: 'lacks a field of {fields}',
    NOT_A_STRING: 'has no string in a field of {fields}',
    LONE_SURROGATE: 'has half of a surrogate pair in a field of {fields}',
}


@dataclass(frozen=True)
class JsonLines(NamedFieldOptions, CorpusFormat):
    """Rows of one side or two; of a field that an object has twice the last counts, as in Python."""

    name = 'jsonl'
    what = 'JSON lines'
    roles = ('jsonl',)
    help = ('JSON lines, an object on each line',)
    reader = 'tokcore.corpus.jsonl_reading:JsonLinesReader'
    reasons = (*_PROBLEMS, *EXTRA_FIELD_REASONS)
    takes_any_text = False

    def explain(self, reject: Reject) -> str:
        if reject.reason in EXTRA_FIELD_REASONS:
            problem = self.explain_extra_field(reject.reason)
        else:
            problem = _PROBLEMS[reject.reason].replace('{fields}', self.field_names)
        return (
            f'the line at byte {reject.offset} {problem}: {reject.excerpt}; mend the line, '
            'choose other fields, or give --on-error=skip'
        )
