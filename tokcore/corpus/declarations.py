"""The declarations of the formats: their options, the names of their files, and their error messages.

`formats` explains what a declaration is, and lists these. Their readers are in other modules, since
`--help` imports the declarations and must not import numpy.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from tokcore.corpus.contents import PARQUET, XML
from tokcore.corpus.corpus import MISSING_COLUMN, OUTSIDE_SEGMENT, UNMATCHED_SEGMENT, Reject
from tokcore.corpus.fields import (
    EXTRA_FIELD_REASONS,
    INT,
    INVALID_CSV,
    INVALID_JSON,
    LONE_SURROGATE,
    MISSING_FIELD,
    NOT_A_STRING,
    NULL,
    TARGETS,
    UNKNOWN_LABEL,
    ExtraField,
    ExtraFieldOptions,
    NamedFieldOptions,
    labels_option,
)
from tokcore.corpus.formats import CorpusFormat
from tokcore.errors import InputError
from tokcore.options import LANGUAGE, MOST_COLUMN, option, shown
from tokcore.options import columns as column_pair


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
    """Rows of two sides: the n-th line of each of two files is a side of the n-th row."""

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

    Each line of a file is a text, and the same line of another file is its label, as in Tensor2Tensor's
    `text2class_txt_iterator`. The files are cut and paired as bitext is.

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


@dataclass(frozen=True)
class Tsv(ExtraFieldOptions, CorpusFormat):
    """Rows of as many sides as columns of a line; two columns are source and target.

    Attributes:
        columns: of the text, by 0-based number or by name, in the order of the sides.
        header: whether the first line of each file names its columns, and is not a row; it is so where a
            column is chosen by name.
        quoting: `csv` if fields may be in double quotes.
        keep_tabs: whether the last of the columns, by its position in the line, is the rest of it.

    Raises:
        InputError: options that do not go together, or the column of a field is too large.
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
        for word in (field.field for field in self.extra_fields):
            if word.isdecimal() and (len(word) > 9 or int(word) > MOST_COLUMN):
                raise InputError(
                    f'{shown(word)} of --keep or --label is not a column from 0 to {MOST_COLUMN:,}; '
                    'give another'
                )
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


_JSON_PROBLEMS = {
    INVALID_JSON: 'is not a JSON object',
    MISSING_FIELD: 'lacks a field of {fields}',
    NOT_A_STRING: 'has no string in a field of {fields}',
    LONE_SURROGATE: 'has half of a surrogate pair in a field of {fields}',
}


@dataclass(frozen=True)
class JsonLines(NamedFieldOptions, CorpusFormat):
    """Rows of one side or two: each line is an object, of which one field is a text, or two are a pair.

    For example, `{"en": "one", "zh": "一"}` is a pair of the fields `en` and `zh`. If an object has a field
    twice, the last one counts, as in Python.
    """

    name = 'jsonl'
    what = 'JSON lines'
    roles = ('jsonl',)
    help = ('JSON lines, an object on each line',)
    reader = 'tokcore.corpus.jsonl_reading:JsonLinesReader'
    reasons = (*_JSON_PROBLEMS, *EXTRA_FIELD_REASONS)
    takes_any_text = False

    def explain(self, reject: Reject) -> str:
        if reject.reason in EXTRA_FIELD_REASONS:
            problem = self.explain_extra_field(reject.reason)
        else:
            problem = _JSON_PROBLEMS[reject.reason].replace('{fields}', self.field_names)
        return (
            f'the line at byte {reject.offset} {problem}: {reject.excerpt}; mend the line, '
            'choose other fields, or give --on-error=skip'
        )


@dataclass(frozen=True)
class Parquet(NamedFieldOptions, CorpusFormat):
    """Rows of one side or two, of columns of strings, or of bytes that are UTF-8; known by their numbers."""

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


Entities = Literal['keep', 'decode']


@dataclass(frozen=True)
class Sgm(Bitext):
    """Rows of two sides, the segments of two files, as in WMT's development sets.

    Where the same lines of both files have the segments with the same ids, a line is a segment, from
    `<seg` to `</seg>`, or markup, which is an empty row, as in Tensor2Tensor's `compile_data`. Such files
    are cut and paired as bitext is, by line numbers. Segments of other files are paired by their ids.

    Attributes:
        entities: `decode` replaces character references by the characters.
    """

    entities: Entities = option(
        'decode: &amp;, &lt;, &gt;, &quot;, &apos; and numbers as &#233; become characters; keep: '
        'they stay, as in Tensor2Tensor',
        get_args(Entities),
        default='keep',
        default_help='keep',
        changes_bytes=True,
    )

    name = 'sgm'
    what = 'SGM, two aligned files of segments'
    endings = ('.sgm', '.sgml', '.xml')
    reader = 'tokcore.corpus.segment_lines:SgmReader'
    reasons = (OUTSIDE_SEGMENT, UNMATCHED_SEGMENT)
    takes_any_text = False

    def explain(self, reject: Reject) -> str:
        if reject.why:
            return f'{reject.why}; mend it at byte {reject.offset}, or give --on-error=skip'
        return (
            f'the line at byte {reject.offset} has text outside of <seg>…</seg>: {reject.excerpt}; put '
            'each segment on one line, or give --on-error=skip'
        )


class SgmByIds(Sgm):
    """SGM of two files whose segments are not on the same lines, and are paired by their ids."""

    reader = 'tokcore.corpus.sgm_pairing:SgmPairReader'
    rows_are_lines = False
    has_same_lines = False


Markup = Literal['drop', 'text']

UNDEFINED_ENTITY = 'undefined_entity'

BROKEN_UNIT = 'broken_unit'
"""The unit is not well-formed XML."""


def languages(word: str) -> tuple[str, ...]:
    """One language, or two different ones, as en,zh."""
    codes = tuple(word.split(','))
    are_codes = all(map(re.compile(LANGUAGE).fullmatch, codes))
    if not are_codes or len(codes) > 2 or len({code.lower() for code in codes}) < len(codes):
        raise argparse.ArgumentTypeError(
            f'{shown(word)} is not a language, or two of source and target, as en,zh'
        )
    return codes


@dataclass(frozen=True)
class Tmx(CorpusFormat):
    """Rows of one or two sides: the segments of a translation unit in one or two languages.

    The language of a variant is its `xml:lang`, or without that its `lang`. A regional variant such as
    en-US is used for en if a unit has no variant in en itself; of several that fit equally well, the
    first. A file is read as one stream, as XML must be.

    Attributes:
        languages: of source and target, or of a text.
        markup: `drop` leaves out the inline elements with codes of a native format (`bpt`, `ept`,
            `it`, `ph`, `ut`), `text` keeps their text; text in other elements always stays.
    """

    languages: tuple[str, ...] = option(
        'for TMX: the languages of source and target, or of a text; en takes en-US too',
        languages,
        'A,B',
        default=(),
        default_help='required for TMX',
        changes_bytes=True,
    )
    markup: Markup = option(
        'for TMX: drop codes of a native format in inline elements, or keep them as text',
        get_args(Markup),
        default='drop',
        default_help='drop',
        changes_bytes=True,
    )

    name = 'tmx'
    what = 'TMX'
    roles = ('tmx',)
    help = ('TMX files, a row for each translation unit',)
    reader = 'tokcore.corpus.tmx_reading:TmxReader'
    reasons = (BROKEN_UNIT, UNDEFINED_ENTITY)
    forbidden_characters = '\0'  # XML does not allow it even as a reference
    takes_any_text = False
    content = XML

    def __post_init__(self):
        if not self.languages:
            raise InputError(
                'TMX needs the languages of its segments: give --languages, as en,zh for pairs or en '
                'for text (of a job file the key languages)'
            )

    @property
    def sides(self) -> tuple[str, ...]:
        return ('inputs', 'targets') if len(self.languages) == 2 else ('targets',)

    def explain(self, reject: Reject) -> str:
        if reject.reason == BROKEN_UNIT:
            return (
                f'the unit at byte {reject.offset} is not well-formed XML: {reject.why}; mend it '
                'there, or give --on-error=skip'
            )
        text = reject.line.decode('utf-8', 'replace')
        reference = re.search(r'&(?!(amp|lt|gt|quot|apos|#\w+);)[^;\s]*;?', text)
        name = shown(reference.group()) if reference else 'one'
        return (
            f'the unit at byte {reject.offset} refers to an entity that XML does not define, {name}; '
            'write the character itself, or give --on-error=skip'
        )


@dataclass(frozen=True)
class TmxLines(CorpusFormat):
    """Rows of two sides, from pairs of lines like ` <seg>text</seg>`; other lines are skipped.

    This is the rule of Tensor2Tensor's `paracrawl_v3_pairs` in its `data_generators/cleaner_en_xx.py`, for
    those who want the same pairs: it ignores languages, and does not parse XML.
    """

    name = 'tmx-lines'
    what = 'TMX by lines, as Tensor2Tensor reads it'
    roles = ('tmx_lines',)
    help = ('TMX with each <seg> on a line of its own, in turns source and target',)
    reader = 'tokcore.corpus.segment_lines:TmxLinesReader'
    reasons = (UNMATCHED_SEGMENT,)
    sides = ('inputs', 'targets')
    forbidden_characters = '\n'
    takes_any_text = False
    is_in_job_files_only = True

    def explain(self, reject: Reject) -> str:
        return (
            f'the segment at byte {reject.offset} has no partner after it; is the '
            'file cut off? mend it, or give --on-error=skip'
        )
