"""A file in memory, read as a job reads it: cut into work items, read as blocks, given as rows."""

import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace

import google_crc32c

from tokcore.corpus.corpus import (
    MAX_LINE_BYTES,
    Block,
    BlockText,
    CorpusFile,
    OpenBinary,
    Rows,
    Split,
    WorkItem,
)
from tokcore.corpus.formats import (
    CorpusFormat,
    block_rows,
    format_reader,
    index_ranges,
    plan_items,
    read_blocks,
)
from tokcore.corpus.stats import block_checksums, join_checksums
from tokcore.text.normalizers import T2T_LINES, UNSTRIPPED_LINES
from tokcore.text.rows import Normalizer


@dataclass(frozen=True)
class Became:
    """What became of a file's rows.

    Attributes:
        rows: the offset and the texts of each row.
        rejects: the side, offset, reason, position, line, size and number of each reject, in order.
        empty: how many rows are empty.
        missing_side: how many rows have no text for a side.
        blocks: that were read.
        split: with the files.
    """

    rows: list[tuple[int, tuple[str, ...]]]
    rejects: list[tuple[int, int, str, int, bytes, int | None, int | None]]
    empty: int
    missing_side: int
    blocks: list[Block]
    split: Split

    @property
    def found(self) -> dict[int, tuple[str, ...] | str]:
        """By its offset, ascending, the texts of each row, or why it was rejected."""
        found: dict[int, tuple[str, ...] | str] = {each[1]: each[2] for each in self.rejects}
        return dict(sorted({**found, **dict(self.rows)}.items()))


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

    def open_binary(path: str) -> io.BytesIO:
        return io.BytesIO(stored[path])

    format_reader(corpus_format).check(files, open_binary)
    split, blocks = read_files(
        corpus_format, files, open_binary, item_bytes, block_bytes, max_line_bytes
    )
    checksums = [each for block in blocks for each in block_checksums(block)]
    for side, each in enumerate(contents):
        read = join_checksums([checksum for checksum in checksums if checksum.side == side])
        assert (read.bytes, read.crc32c) == (len(each), google_crc32c.value(each))
    became = Became([], [], 0, 0, blocks, split)
    empty = missing_side = 0
    for block in blocks:
        rows = block_rows(block, normalizer)
        assert rows.lines == len(rows) + rows.empty + rows.missing_side + len(rows.rejects)
        became.rows.extend(zip(rows.offsets.tolist(), texts_of(rows), strict=True))
        became.rejects.extend(
            (each.side, each.offset, each.reason, each.position, each.line, each.size, each.number)
            for each in rows.rejects
        )
        empty, missing_side = empty + rows.empty, missing_side + rows.missing_side
    became.rejects.sort()
    offsets = [offset for offset, _ in became.rows]
    assert offsets == sorted(set(offsets))
    return replace(became, empty=empty, missing_side=missing_side)


def read_files(
    corpus_format: CorpusFormat,
    files: tuple[CorpusFile, ...],
    open_binary: OpenBinary,
    item_bytes: int = 1 << 20,
    block_bytes: int = 1 << 20,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> tuple[Split, list[Block]]:
    """Returns a split of files that are read side by side, and its blocks, as a job reads them."""
    split, items = planned(corpus_format, files, open_binary, item_bytes)
    blocks = [
        block
        for item in items
        for block in read_blocks(item, open_binary, block_bytes, max_line_bytes)
    ]
    return split, blocks


def planned(
    corpus_format: CorpusFormat, files: tuple[CorpusFile, ...], open_binary: OpenBinary,
    item_bytes: int,
) -> tuple[Split, list[WorkItem]]:  # fmt: skip
    """Returns a split of files that are read side by side, and its work items."""
    split, reader = Split('train', corpus_format, (files,)), format_reader(corpus_format)
    index = [reader.index(part, open_binary) for part in index_ranges(split, item_bytes)]
    return split, plan_items(split, index, item_bytes)


def rows_of_block(
    declared: CorpusFormat,
    *contents: bytes,
    offsets: Sequence[int] = (0, 0),
    normalizer: Normalizer = T2T_LINES,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Rows:
    """Returns the rows of one block, whose texts begin at these offsets of their files."""
    texts = tuple(map(BlockText, offsets, contents))
    return block_rows(Block('train', declared, 0, texts, max_line_bytes), normalizer)


def texts_of(rows: Rows) -> list[tuple[str, ...]]:
    """Returns the texts of each row."""
    return [tuple(side.row(row) for side in rows.sides) for row in range(len(rows))]


def _zipped(content: bytes) -> bytes:
    """Compresses a text so that its first bytes come one by one."""
    parts = [content[at : at + 1] for at in range(min(len(content), 4))]
    return b''.join(map(gzip.compress, [*parts, content[4:]]))
