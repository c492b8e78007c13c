"""Text in TAB-separated columns: each line of a file is a row, of the columns that are wanted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tokcore.corpus.dataset import Block, OpenBinary, Split, WorkItem
from tokcore.corpus.formats.corpus_format import CorpusFormat
from tokcore.corpus.formats.work_items import byte_ranges, read_lines
from tokcore.corpus.rows import MISSING_COLUMN, Reject, Rows
from tokcore.options.option_fields import option
from tokcore.options.values import MOST_COLUMN
from tokcore.options.values import columns as column_pair
from tokcore.text.normalizer import Normalizer

_PAIR = ('inputs', 'targets')


@dataclass(frozen=True)
class Tsv(CorpusFormat):
    """Rows of as many sides as columns; two columns are source and target.

    Attributes:
        columns: which ones, from 0 on, in the order of the sides.

    Raises:
        ValueError: no column, or a negative one.
    """

    columns: tuple[int, ...] = option(
        f'0-based columns of source and target, up to {MOST_COLUMN:,}',
        column_pair,
        'S,T',
        default=(0, 1),
        told_default='0,1',
        changes_bytes=True,
    )

    name = 'tsv'
    what = 'tab-separated columns'
    roles = ('tsv',)
    help = ('pairs in tab-separated columns',)
    reasons = (MISSING_COLUMN,)

    def __post_init__(self):
        if not self.columns or min(self.columns) < 0:
            raise ValueError(
                f'columns must be at least one number from 0 on, not {self.columns!r}'
            )

    @property
    def sides(self) -> tuple[str, ...]:
        if len(self.columns) == len(_PAIR):
            return _PAIR
        return tuple(f'column {column}' for column in self.columns)

    @property
    def key(self) -> tuple[object, ...]:
        return self.columns

    def plan(
        self, split: Split, index: Sequence[tuple[Any, ...]], item_bytes: int
    ) -> list[WorkItem]:
        return byte_ranges(split, item_bytes)

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        return read_lines(item, open_binary, block_bytes, max_line_bytes)

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        from tokcore.corpus.formats.line_rows import long_rows, tsv_rows

        if block.long_lines:
            return long_rows(block.long_lines[0], len(self.sides), block.offset)
        [text] = block.texts
        return tsv_rows(text.data, text.offset, self.columns, normalizer, block.max_line_bytes)

    def explain(self, reject: Reject) -> str:
        return (
            f'the line at byte {reject.offset} has too few columns for '
            f'--columns {",".join(map(str, self.columns))}: {_shown(reject.line)}; '
            'mend the line or choose other columns'
        )


def _shown(line: bytes) -> str:
    text = line.decode('utf-8', 'replace')
    return repr(text if len(text) <= 60 else text[:57] + '...')
