"""Plain text: each line of a file is a row; and what formats of one file of lines have in common."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tokcore.corpus.dataset import Block, OpenBinary, Split, WorkItem
from tokcore.corpus.formats.corpus_format import CorpusFormat
from tokcore.corpus.formats.work_items import PartIndex, byte_ranges, part_indexes, read_lines
from tokcore.corpus.rows import Rows
from tokcore.text.normalizer import Normalizer


class LinesOfOneFile(CorpusFormat):
    """A format whose rows are lines of one file each, wherever it is cut."""

    def index_ranges(self, split: Split, item_bytes: int) -> Sequence[PartIndex]:
        return part_indexes(split, item_bytes)

    def index(self, part: PartIndex, open_binary: OpenBinary) -> tuple[Any, ...]:
        """Returns where a compressed file can be cut, in bytes of its text."""
        return part.cuts(open_binary)

    def plan(
        self, split: Split, index: Sequence[tuple[Any, ...]], item_bytes: int
    ) -> list[WorkItem]:
        return byte_ranges(split, item_bytes, index)

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        return read_lines(item, open_binary, block_bytes, max_line_bytes)


@dataclass(frozen=True)
class Lines(LinesOfOneFile):
    """Rows of one side."""

    name = 'text'
    what = 'plain lines'
    roles = ('text',)
    help = ('text without a source side',)
    sides = ('targets',)
    barred = '\n'
    rows_are_lines = True

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        from tokcore.corpus.formats.line_rows import long_rows, text_rows

        if block.long_lines:
            return long_rows(block.long_lines[0], len(self.sides), block.offset)
        [text] = block.texts
        return text_rows(text.data, text.offset, normalizer, block.max_line_bytes)
