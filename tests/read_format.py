"""A file in memory, read as a job reads it: cut into work items, read as blocks, given as rows."""

import gzip
import io
from dataclasses import dataclass

import google_crc32c

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
from tokcore.text.rows import Normalizer


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
    content: bytes | tuple[bytes, ...],
    item_bytes: int = 1 << 20,
    block_bytes: int = 1 << 20,
    max_line_bytes: int = MAX_LINE_BYTES,
    zipped: bool = False,
    normalizer: Normalizer = UNSTRIPPED_LINES,
) -> Became:
    """Reads a file, or those of a pair; every byte must be read once, every row be accounted for."""
    contents = (content,) if isinstance(content, bytes) else content
    stored = {
        f'corpus{side or ""}': _zipped(each) if zipped else each
        for side, each in enumerate(contents)
    }
    files = tuple(CorpusFile(name, name, len(each), zipped) for name, each in stored.items())
    split = Split('train', corpus_format, (files,))

    def open_binary(path: str) -> io.BytesIO:
        return io.BytesIO(stored[path])

    format_reader(corpus_format).check(files, open_binary)
    index = [
        format_reader(corpus_format).index(part, open_binary)
        for part in index_ranges(split, item_bytes)
    ]
    blocks = [
        block
        for item in plan_items(split, index, item_bytes)
        for block in read_blocks(item, open_binary, block_bytes, max_line_bytes)
    ]
    checksums = [each for block in blocks for each in block_checksums(block)]
    for side, each in enumerate(contents):
        read = join_checksums([checksum for checksum in checksums if checksum.side == side])
        assert (read.bytes, read.crc32c) == (len(each), google_crc32c.value(each))
    found: dict[int, tuple[str, ...] | str] = {}
    empty = 0
    for block in blocks:
        rows = block_rows(block, normalizer)
        assert rows.lines == len(rows) + rows.empty + len(rows.rejects)
        of_block = {reject.offset: reject.reason for reject in rows.rejects}
        for row, known_by in enumerate(rows.offsets.tolist()):
            of_block[known_by] = tuple(side.row(row) for side in rows.sides)
        assert len(of_block) == len(rows) + len(rows.rejects) and not of_block.keys() & found.keys()
        found |= of_block
        empty += rows.empty
    return Became(dict(sorted(found.items())), empty, blocks)


def _zipped(content: bytes) -> bytes:
    """Compresses a text so that its first bytes come one by one."""
    parts = [content[at : at + 1] for at in range(min(len(content), 4))]
    return b''.join(map(gzip.compress, [*parts, content[4:]]))
