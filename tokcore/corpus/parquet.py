"""Parquet: each row of a file is a row, of one column or two; it is known by its number.

Files are cut between row groups. What a worker reads of a file it reads twice: its row groups' share
of all bytes, for the checksum of the file, and the pages of the columns that are wanted. A block
holds some rows of these columns, as Arrow's stream format has them.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tokcore.corpus.corpus import (
    Block,
    CorpusFile,
    OpenBinary,
    Reject,
    Rows,
    Split,
    TextRange,
    WorkItem,
)
from tokcore.corpus.fields import (
    EXTRA_FIELD_REASONS,
    NULL,
    ExtraFieldOptions,
    field_path,
    fields_option,
)
from tokcore.corpus.formats import CorpusFormat
from tokcore.text.rows import Normalizer

if typing.TYPE_CHECKING:
    from tokcore.corpus.parquet_reading import WantedColumns


@dataclass(frozen=True)
class _FileRange:
    """A file whose footer is read before its rows."""

    file: CorpusFile

    @property
    def stored_bytes(self) -> int:
        return 0


@dataclass(frozen=True)
class Parquet(ExtraFieldOptions, CorpusFormat):
    r"""Rows of a side or two, of columns of strings or of bytes that are UTF-8.

    Attributes:
        fields: which ones; dots lead into structs, `\.` is a dot in a name.
    """

    fields: tuple[str, ...] = fields_option()

    name = 'parquet'
    what = 'Parquet'
    roles = ('parquet',)
    help = ('Parquet files, a row each',)
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

    def check(self, files: tuple[CorpusFile, ...], open_binary: OpenBinary) -> None:
        self._shares(files[0], open_binary)

    @property
    def _wanted(self) -> WantedColumns:
        from tokcore.corpus.parquet_reading import WantedColumns

        return WantedColumns(tuple(map(field_path, self.fields)), self.extra_fields)

    def _shares(self, file: CorpusFile, open_binary: OpenBinary) -> tuple[int, ...]:
        from tokcore.corpus.parquet_reading import read_shares

        return read_shares(file, open_binary, self._wanted)

    def index_ranges(self, split: Split, item_bytes: int) -> Sequence[_FileRange]:
        return [_FileRange(file) for (file,) in split.files]

    def index(self, part: _FileRange, open_binary: OpenBinary) -> tuple[Any, ...]:
        """Returns where each row group's share of the file begins; the file is cut there."""
        return self._shares(part.file, open_binary)

    def plan(
        self, split: Split, index: Sequence[tuple[Any, ...]], item_bytes: int
    ) -> list[WorkItem]:
        items = []
        for place, (file,), starts in zip(split.file_indexes, split.files, index, strict=True):
            bounds = [0, *starts[1:], file.size]  # the first item has the file's first bytes too
            groups = len(starts)
            first = 0
            while first < max(groups, 1):
                end = min(first + 1, groups)
                while end < groups and bounds[end + 1] - bounds[first] <= item_bytes:
                    end += 1
                text_range = TextRange(
                    file, bounds[first], bounds[end] if groups else file.size, first, end - first
                )
                items.append(WorkItem(split.name, self, place, (text_range,)))
                first = max(end, 1)
        return items

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        from tokcore.corpus.parquet_reading import read_row_groups

        return read_row_groups(item, self._wanted, open_binary, block_bytes, max_line_bytes)

    def first_block(
        self,
        split: Split,
        place: int,
        open_binary: OpenBinary,
        block_bytes: int,
        max_line_bytes: int,
    ) -> Block | None:
        [file] = split.files_at(place)
        starts = self._shares(file, open_binary)
        end = starts[1] if len(starts) > 1 else file.size
        text_range = TextRange(file, 0, end, 0, min(1, len(starts)))
        item = WorkItem(split.name, self, place, (text_range,))
        return next(iter(self.read(item, open_binary, block_bytes, max_line_bytes)), None)

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        from tokcore.corpus.parquet_reading import column_rows

        [text] = block.texts
        return column_rows(text.data, text.offset, self._wanted, normalizer, block.max_line_bytes)

    def explain(self, reject: Reject) -> str:
        if reject.reason in EXTRA_FIELD_REASONS:
            said = self.explain_extra_field(reject.reason)
        else:
            fields = (*self.fields, *(each.field for each in self.extra_fields))
            said = f'has nothing in one of the columns {",".join(fields)}'
        return f'row {reject.offset} {said}; mend it, choose other columns, or give --on-error=skip'
