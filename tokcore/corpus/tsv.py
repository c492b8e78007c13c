"""Tab-separated columns: each line of a file is a row of the columns that are chosen.

Columns are chosen by number, or by the names in the file's first line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tokcore.corpus.corpus import MISSING_COLUMN, Reject
from tokcore.corpus.fields import EXTRA_FIELD_REASONS, INVALID_CSV, ExtraFieldOptions
from tokcore.corpus.formats import CorpusFormat
from tokcore.errors import InputError
from tokcore.options import MOST_COLUMN, option
from tokcore.options import columns as column_pair


@dataclass(frozen=True)
class Tsv(ExtraFieldOptions, CorpusFormat):
    """Rows of as many sides as columns; two columns are source and target.

    Attributes:
        columns: of the text, by 0-based number or by name, in the order of the sides.
        header: whether the first line of each file names its columns, and is not a row; it is so where a
            column is chosen by name.
        quoting: `csv` if fields may be in double quotes.
        keep_tabs: whether the last of the columns, by its position in the line, is the rest of it.

    Raises:
        InputError: options that do not go together.
        ValueError: no column, or a negative one.
    """

    columns: tuple[int | str, ...] = option(
        f'column of the text, or of source and target: 0-based, up to {MOST_COLUMN:,}, or by '
        'its name in the first line of each file, which then is not a row',
        column_pair,
        'S,T',
        default=(0, 1),
        default_help='0,1',
        changes_bytes=True,
    )

    header: bool = False
    quoting: Literal['none', 'csv'] = option(
        'csv: a field in double quotes may hold tabs, line feeds, and quotes as two of them; such '
        'a file is read by one worker',
        ('none', 'csv'),
        default='none',
        default_help='none',
    )

    keep_tabs: bool = option(
        'the last of the columns, by its place in the line, is the rest of the line: tabs in it '
        'are text',
        None,
        default=False,
        default_help='no',
    )

    name = 'tsv'
    what = 'tab-separated columns'
    roles = ('tsv',)
    help = ('pairs in tab-separated columns',)
    reader = 'tokcore.corpus.tsv_reading:TsvReader'
    reasons = (INVALID_CSV, MISSING_COLUMN, *EXTRA_FIELD_REASONS)

    def __post_init__(self):
        numbers = [column for column in self.columns if isinstance(column, int)]
        if not self.columns or min(numbers, default=0) < 0:
            raise ValueError(f'columns must be at least one number from 0 on, not {self.columns!r}')
        if self.keep_tabs and self.is_quoted:
            raise InputError(
                '--keep-tabs is for --quoting none, since quotes keep tabs; leave it out'
            )
        self.check_extra_fields(len(self.columns))
        if any(isinstance(column, str) for column in self.all_columns):
            object.__setattr__(self, 'header', True)

    @property
    def forbidden_characters(self) -> str:
        return '' if self.is_quoted else '\n'

    @property
    def sides(self) -> tuple[str, ...]:
        if len(self.columns) <= 2:
            return self.sides_of(len(self.columns))
        return tuple(f'column {column}' for column in self.columns)

    @property
    def key(self) -> tuple[object, ...]:
        changed = (item for pair in self._changed_options.items() for item in pair)
        return (*self.columns, *changed, *self.extra_field_key)

    @property
    def options(self) -> dict[str, object]:
        return {'columns': self.columns, **self._changed_options, **self.extra_field_options}

    @property
    def _changed_options(self) -> dict[str, object]:
        """Options that manifests record only if they are not the defaults."""
        options = {'header': self.header, 'quoting': self.quoting, 'keep_tabs': self.keep_tabs}
        return {name: value for name, value in options.items() if value not in (False, 'none')}

    @property
    def is_quoted(self) -> bool:
        """Whether fields may be in quotes."""
        return self.quoting == 'csv'

    @property
    def all_columns(self) -> list[int | str]:
        """The columns of the text, then those of the extra fields."""
        extra = (field.field for field in self.extra_fields)
        return [*self.columns, *(int(word) if word.isdecimal() else word for word in extra)]

    def explain(self, reject: Reject) -> str:
        if reject.reason == INVALID_CSV:
            return (
                f'the record at byte {reject.offset} is not CSV, with a lone carriage return or a '
                f'quote that is not closed: {reject.excerpt}; mend it, or give --on-error=skip'
            )
        if reject.reason in EXTRA_FIELD_REASONS:
            problem = self.explain_extra_field(reject.reason)
        else:
            columns = ','.join(map(str, self.all_columns))
            problem = f'has too few columns for --columns {columns}'
            problem += '' if b'\t' in reject.line else ', and no tab, which separates columns'
        return (
            f'the line at byte {reject.offset} {problem}: {reject.excerpt}; '
            'mend the line, choose other columns, or leave such lines out with --on-error=skip'
        )
