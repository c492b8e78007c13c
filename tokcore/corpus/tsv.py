"""Text in TAB-separated columns: each line of a file is a row of the chosen columns.

Columns are chosen by number, or by the names in the file's first line.
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.corpus import (
    MISSING_COLUMN,
    Block,
    CorpusFile,
    OpenBinary,
    Reject,
    Rows,
    Split,
    WorkItem,
)
from tokcore.corpus.fields import EXTRA_FIELD_REASONS, INVALID_CSV, ExtraFieldOptions
from tokcore.corpus.formats import LinesOfOneFile
from tokcore.corpus.line_reading import PartIndex, byte_ranges
from tokcore.errors import InputError
from tokcore.options import MOST_COLUMN, option
from tokcore.options import columns as column_pair
from tokcore.text.rows import Normalizer

_MOST_SIDES = 2

_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Tsv(ExtraFieldOptions, LinesOfOneFile):
    """Rows of as many sides as columns; two columns are source and target.

    Attributes:
        columns: which ones, from 0 on or by name, in the order of the sides.
        header: whether the first line of each file names its columns.
        quoting: `csv` where fields may stand in quotes.
        keep_tabs: whether the last column asked for is the rest of its line.

    Raises:
        InputError: options that do not go together.
        ValueError: no column, or a negative one.
    """

    columns: tuple[int | str, ...] = option(
        f'column of the text, or of source and target: 0-based, up to {MOST_COLUMN:,}, or by name '
        'with --header',
        column_pair,
        'S,T',
        default=(0, 1),
        default_help='0,1',
        changes_bytes=True,
    )

    header: bool = option(
        'the first line of each file names its columns, and is no row',
        None,
        default=False,
        default_help='no',
    )
    quoting: Literal['none', 'csv'] = option(
        'csv: a field in double quotes may hold tabs, line feeds, and quotes as two of them; such '
        'a file is read by one worker',
        ('none', 'csv'),
        default='none',
        default_help='none',
    )

    keep_tabs: bool = option(
        'the last column asked for, by its place in the line, is the rest of the line: tabs in it '
        'are text',
        None,
        default=False,
        default_help='no',
    )

    name = 'tsv'
    what = 'tab-separated columns'
    roles = ('tsv',)
    help = ('pairs in tab-separated columns',)
    reasons = (INVALID_CSV, MISSING_COLUMN, *EXTRA_FIELD_REASONS)

    def __post_init__(self):
        numbers = [each for each in self.columns if isinstance(each, int)]
        if not self.columns or min(numbers, default=0) < 0:
            raise ValueError(f'columns must be at least one number from 0 on, not {self.columns!r}')
        if self.keep_tabs and self._is_quoted:
            raise InputError(
                '--keep-tabs is for --quoting none, since quotes keep tabs; leave it out'
            )
        self.check_extra_fields(len(self.columns))

    @property
    def forbidden_characters(self) -> str:
        return '' if self.quoting == 'csv' else '\n'

    @property
    def sides(self) -> tuple[str, ...]:
        if len(self.columns) <= _MOST_SIDES:
            return self.sides_of(len(self.columns))
        return tuple(f'column {column}' for column in self.columns)

    @property
    def key(self) -> tuple[object, ...]:
        newer = (item for pair in self._newer.items() for item in pair)
        return (*self.columns, *newer, *self.extra_field_key)

    @property
    def options(self) -> dict[str, object]:
        return {'columns': self.columns, **self._newer, **self.extra_field_options}

    @property
    def _newer(self) -> dict[str, object]:
        """Newer options, of which nothing is recorded while they have their defaults."""
        asked = {'header': self.header, 'quoting': self.quoting, 'keep_tabs': self.keep_tabs}
        return {name: value for name, value in asked.items() if value not in (False, 'none')}

    @property
    def _is_quoted(self) -> bool:
        return self.quoting == 'csv'

    def check(self, files: tuple[CorpusFile, ...], open_binary: OpenBinary) -> None:
        if self.header:
            self._with_numbers(files[0], open_binary)
        elif names := [each for each in self._all_columns if isinstance(each, str)]:
            raise InputError(
                f'{", ".join(names)} is a name, and not a number from 0 on; give --header if the '
                'first line names the columns'
            )

    @property
    def _all_columns(self) -> list[int | str]:
        """Those of the text, then those that go along."""
        kept = (each.field for each in self.extra_fields)
        return [*self.columns, *(int(each) if each.isdecimal() else each for each in kept)]

    def _with_numbers(self, file: CorpusFile, open_binary: OpenBinary) -> Tsv:
        """Returns the format for one file, with the numbers of named columns."""
        numbers = column_numbers(file, open_binary, self._all_columns, self._is_quoted)
        of_text = len(self.columns)
        further = [
            f'{number}={each.name}:{each.kind}'
            for number, each in zip(numbers[of_text:], self.extra_fields, strict=True)
        ]
        label = None if self.label is None else f'{numbers[of_text]}:{self.extra_fields[0].kind}'
        keep = tuple(further if label is None else further[1:])
        return dataclasses.replace(self, columns=numbers[:of_text], keep=keep, label=label)

    def index_ranges(self, split: Split, item_bytes: int) -> Sequence[PartIndex]:
        return () if self._is_quoted else super().index_ranges(split, item_bytes)

    def plan(
        self, split: Split, index: Sequence[tuple[Any, ...]], item_bytes: int
    ) -> list[WorkItem]:
        if self._is_quoted:
            return byte_ranges(split, max([1, *(file.size for (file,) in split.files)]))
        return super().plan(split, index, item_bytes)

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        if self.header:
            [text_range] = item.ranges
            of_file = self._with_numbers(text_range.file, open_binary)
            item = dataclasses.replace(item, format=of_file)
        if self._is_quoted:
            from tokcore.corpus.tsv_rows import read_quoted

            return read_quoted(item, open_binary, block_bytes, max_line_bytes)
        return super().read(item, open_binary, block_bytes, max_line_bytes)

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        from tokcore.corpus.line_rows import long_rows, tsv_rows

        [text] = block.texts
        data, offset = text.data, text.offset
        if block.long_lines:
            if self.header and not offset:
                return tsv_rows(b'', offset, self.columns, normalizer)
            return long_rows(block.long_lines[0], len(self.sides), block.offset)
        if self.header and not offset:
            offset = data.find(b'\n') + 1 or len(data)
            data = data[offset:]
        if self._is_quoted:
            from tokcore.corpus.tsv_rows import quoted_rows

            rows = quoted_rows(
                data, offset, self.columns, normalizer, block.max_line_bytes, self.extra_fields
            )
        else:
            rows = tsv_rows(
                data,
                offset,
                self.columns,
                normalizer,
                block.max_line_bytes,
                self.extra_fields,
                self.keep_tabs,
            )
        behind = offset - text.offset
        if not behind:
            return rows
        # Places of rows count from the block's begin, and that is the header's.
        return dataclasses.replace(rows, offset=text.offset, line_starts=rows.line_starts + behind)

    def explain(self, reject: Reject) -> str:
        if reject.reason == INVALID_CSV:
            return (
                f'the record at byte {reject.offset} is no CSV, with a lone carriage return or a '
                f'quote that is not closed: {_shown(reject.line)}; mend it, or give --on-error=skip'
            )
        columns = ','.join(map(str, self._all_columns))
        if reject.reason in EXTRA_FIELD_REASONS:
            said = self.explain_extra_field(reject.reason)
        else:
            said = f'has too few columns for --columns {columns}'
        return (
            f'the line at byte {reject.offset} {said}: {_shown(reject.line)}; '
            'mend the line or choose other columns'
        )


def _shown(line: bytes) -> str:
    text = line.decode('utf-8', 'replace')
    return repr(text if len(text) <= 60 else text[:57] + '...')


def column_numbers(
    file: CorpusFile, open_binary: OpenBinary, columns: Sequence[int | str], is_quoted: bool
) -> tuple[int, ...]:
    """Returns the numbers of columns, of which some are given by name.

    Raises:
        InputError: the file cannot be read, or its header lacks a name or has it twice.
    """
    names = _header(file, open_binary, is_quoted)
    found = []
    for column in columns:
        if isinstance(column, str) and names.count(column) != 1:
            said = 'no column' if column not in names else 'several columns'
            raise InputError(
                f'{file.path} has {said} {column!r} in its header, which is {", ".join(names[:50])}; '
                'choose others with --columns'
            )
        found.append(names.index(column) if isinstance(column, str) else column)
    return tuple(found)


def _header(file: CorpusFile, open_binary: OpenBinary, is_quoted: bool) -> list[str]:
    line = b''
    for piece in text_pieces(file, open_binary):
        line += piece
        if b'\n' in piece or len(line) > _MOST_BYTES:
            break
    line = line.partition(b'\n')[0].removesuffix(b'\r').removeprefix(b'\xef\xbb\xbf')
    try:
        text = line[:_MOST_BYTES].decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f'{file.path}: the header is not UTF-8 at byte {error.start}; mend it'
        ) from error
    return _quoted_names(file, text) if is_quoted else text.split('\t')


def _quoted_names(file: CorpusFile, text: str) -> list[str]:
    # A line follows, which is read too if a quote is not closed.
    reader = csv.reader([text + '\n', ''], delimiter='\t')
    try:
        csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
        names = next(reader)
    except csv.Error as error:
        raise InputError(f'{file.path}: the header is no CSV ({error}); mend it') from error
    if reader.line_num > 1:
        raise InputError(f'{file.path}: a quote in the header is not closed in its line; mend it')
    return names
