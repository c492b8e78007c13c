"""A file in memory, read as a job reads it: cut into work items, read as blocks, given as rows."""

import gzip
import io
from dataclasses import dataclass

from tokcore.corpus.corpus import MAX_LINE_BYTES, Block, CorpusFile, Split
from tokcore.corpus.formats import (
    CorpusFormat,
    block_rows,
    format_reader,
    index_ranges,
    plan_items,
    read_blocks,
)
from tokcore.corpus.stats import block_checksums, join_checksums
from tokcore.text.normalizers import UNSTRIPPED_LINES


@dataclass(frozen=True)
class Became:
    """What became of a file's rows.

    Attributes:
        found: by what each row is known by, ascending, its texts or why it was left out.
        empty: how many rows are in neither.
        blocks: that were read.
    """

    found: dict[int, tuple[str, ...] | str]
    empty: int
    blocks: list[Block]


def became_of(
    corpus_format: CorpusFormat,
    content: bytes,
    item_bytes: int = 1 << 20,
    block_bytes: int = 1 << 20,
    max_line_bytes: int = MAX_LINE_BYTES,
    zipped: bool = False,
) -> Became:
    """Reads a file; every byte of it must be read once, and every row be accounted for."""
    stored = gzip.compress(content) if zipped else content
    file = CorpusFile('corpus', 'corpus', len(stored), zipped)
    split = Split('train', corpus_format, ((file,),))

    def open_binary(path: str) -> io.BytesIO:
        assert path == 'corpus'
        return io.BytesIO(stored)

    format_reader(corpus_format).check((file,), open_binary)
    index = [
        format_reader(corpus_format).index(part, open_binary)
        for part in index_ranges(split, item_bytes)
    ]
    blocks = [
        block
        for item in plan_items(split, index, item_bytes)
        for block in read_blocks(item, open_binary, block_bytes, max_line_bytes)
    ]
    read = join_checksums([each for block in blocks for each in block_checksums(block)])
    assert read.bytes == len(content)
    found: dict[int, tuple[str, ...] | str] = {}
    empty = 0
    for block in blocks:
        rows = block_rows(block, UNSTRIPPED_LINES)
        assert rows.lines == len(rows) + rows.empty + len(rows.rejects)
        of_block = {reject.offset: reject.reason for reject in rows.rejects}
        for row, known_by in enumerate(rows.offsets.tolist()):
            of_block[known_by] = tuple(side.row(row) for side in rows.sides)
        assert len(of_block) == len(rows) + len(rows.rejects) and not of_block.keys() & found.keys()
        found |= of_block
        empty += rows.empty
    return Became(dict(sorted(found.items())), empty, blocks)
