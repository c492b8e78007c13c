"""Parquet: each row of a file is a row, of one column or two; its number identifies it."""

from __future__ import annotations

from dataclasses import dataclass

from tokcore.corpus.contents import PARQUET
from tokcore.corpus.corpus import Reject
from tokcore.corpus.fields import EXTRA_FIELD_REASONS, NULL, NamedFieldOptions
from tokcore.corpus.formats import CorpusFormat


@dataclass(frozen=True)
class Parquet(NamedFieldOptions, CorpusFormat):
    """Rows of one side or two, of columns of strings, or of bytes that are UTF-8."""

    name = 'parquet'
    what = 'Parquet'
    roles = ('parquet',)
    help = ('Parquet files, a row each',)
    reader = 'tokcore.corpus.parquet_reading:ParquetReader'
    reasons = (NULL, *EXTRA_FIELD_REASONS)
    takes_any_text = False
    identity = 'row'
    content = PARQUET

    def explain(self, reject: Reject) -> str:
        if reject.reason in EXTRA_FIELD_REASONS:
            problem = self.explain_extra_field(reject.reason)
        else:
            problem = f'has nothing in one of the columns {self.field_names}'
        return (
            f'row {reject.offset} {problem}; mend it, choose other columns, or give --on-error=skip'
        )
