"""Work items of files of lines: byte ranges of which no content is known, and their blocks.

A line belongs to the range that it starts in. A gzip file is one item, and only that is read as a
stream; everything else is one range, read once it is known where its lines begin and end. No more
is held than an item, or a line as long as is allowed: longer ones are read over.
"""

from collections.abc import Iterator

from tokcore.corpus.dataset import (
    Block,
    BlockText,
    CorpusFile,
    LongLine,
    OpenBinary,
    Split,
    TextRange,
    WorkItem,
)
from tokcore.corpus.formats.line_ranges import read_starting_lines
from tokcore.corpus.formats.whole_lines import whole_lines
from tokcore.corpus.long_lines import is_longer, long_line
from tokcore.corpus.storage.corpus_text import text_pieces

ITEM_BYTES = 8 << 20
"""The default size of a work item. At 8 to 16 MiB a block's fixed costs vanish; of these the least,
since larger ones hold more memory for each thread and leave the last workers waiting."""

BLOCK_BYTES = ITEM_BYTES
"""The default size of the blocks that a gzip file is read in."""

PlacedLines = tuple[int, bytes | LongLine]
"""Lines, or one that is too long, with the offset of their first byte."""


def byte_ranges(split: Split, item_bytes: int) -> list[WorkItem]:
    """Cuts a split of one file a place into items of at most so many bytes, in order."""
    return [
        WorkItem(split.name, split.format, place, (text_range,))
        for place, (file,) in zip(split.places, split.files, strict=True)
        for text_range in _ranges_of(file, item_bytes)
    ]


def _ranges_of(file: CorpusFile, item_bytes: int) -> list[TextRange]:
    if file.compressed:
        return [TextRange(file, 0, file.size)]
    return [
        TextRange(file, start, min(start + item_bytes, file.size))
        for start in range(0, file.size, item_bytes)
    ]


def read_lines(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[Block]:
    """Yields the blocks of an item of one file, in the order of its lines.

    Raises InputError as `read_blocks` does.
    """
    for found in _read_lines(item, open_binary, block_bytes, max_line_bytes):
        yield line_block(item, max_line_bytes, (found,))


def _read_lines(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[PlacedLines]:
    [text_range] = item.ranges
    file = text_range.file
    if not file.compressed:
        yield from read_starting_lines(text_range, open_binary, max_line_bytes)
        return
    offset = 0
    for lines in whole_lines(text_pieces(file, open_binary), block_bytes, max_line_bytes):
        yield offset, lines
        offset += lines.length if isinstance(lines, LongLine) else len(lines)


def line_block(item: WorkItem, max_line_bytes: int, sides: tuple[PlacedLines, ...]) -> Block:
    """Returns the block of lines of a file, or of the same lines of all files of a place."""
    if any(isinstance(lines, LongLine) for _, lines in sides):
        # Here a side is a line, and that of the other file may be too long too.
        sides = tuple(
            (offset, long_line(side, offset, [lines]))
            if isinstance(lines, bytes) and is_longer(lines, max_line_bytes)
            else (offset, lines)
            for side, (offset, lines) in enumerate(sides)
        )
    return Block(
        item.split,
        item.format,
        item.place,
        tuple(
            BlockText(offset, b'' if isinstance(lines, LongLine) else lines)
            for offset, lines in sides
        ),
        max_line_bytes,
        tuple(lines for _, lines in sides if isinstance(lines, LongLine)),
    )
