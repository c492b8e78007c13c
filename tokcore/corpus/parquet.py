"""Parquet: each row of a file is a row, of one column or two; its number identifies it."""

from __future__ import annotations

from dataclasses import dataclass

from tokcore.corpus.corpus import Reject
from tokcore.corpus.fields import EXTRA_FIELD_REASONS, NULL, ExtraFieldOptions, fields_option
from tokcore.corpus.formats import CorpusFormat


@dataclass(frozen=True)
class Parquet(ExtraFieldOptions, CorpusFormat):
    r"""Rows of one side or two, of columns of strings, or of bytes that are UTF-8.

    Attributes:
        fields: of the text; a dot leads into a struct, `\.` is a dot in a name.
    """

    fields: tuple[str, ...] = fields_option()

    name = 'parquet'
    what = 'Parquet'
    roles = ('parquet',)
    help = ('Parquet files, a row each',)
    reader = 'tokcore.corpus.parquet_reading:ParquetReader'
    reasons = (NULL, *EXTRA_FIELD_REASONS)
    takes_any_text = False
    identity = 'row'

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

    def explain(self, reject: Reject) -> str:
        if reject.reason in EXTRA_FIELD_REASONS:
            problem = self.explain_extra_field(reject.reason)
        else:
            names = ','.join((*self.fields, *(field.field for field in self.extra_fields)))
            problem = f'has nothing in one of the columns {names}'
        return (
            f'row {reject.offset} {problem}; mend it, choose other columns, or give --on-error=skip'
        )
