"""Reading a work item: blocks of whole lines, each with the place of its first byte.

The blocks of all items hold every byte of a file once, whatever the items' size. Only gzip is read
as a stream; everything else is one range, read once it is known where its lines begin and end. No
more is held than an item, or a line as long as is allowed: longer ones are read over.
"""

from collections.abc import Iterator

from tokcore.corpus.dataset import MAX_LINE_BYTES, Block, LongLine, OpenBinary, WorkItem
from tokcore.corpus.formats.line_queue import LineQueue
from tokcore.corpus.formats.line_ranges import read_counted_lines, read_starting_lines
from tokcore.corpus.formats.line_rows import bitext_rows, long_rows, text_rows, tsv_rows
from tokcore.corpus.formats.whole_lines import whole_lines
from tokcore.corpus.formats.work_items import ITEM_BYTES
from tokcore.corpus.long_lines import is_longer, long_line
from tokcore.corpus.rows import Rows
from tokcore.corpus.storage.gzip_text import text_pieces
from tokcore.errors import InputError

BLOCK_BYTES = ITEM_BYTES
"""The default size of the blocks that a gzip file is read in."""


def read_blocks(
    item: WorkItem,
    open_binary: OpenBinary,
    block_bytes: int = BLOCK_BYTES,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Block]:
    """Yields a work item's blocks in the order of lines.

    A plain item is one block, or none if no line starts in it. A gzip file gives blocks of as
    few lines as reach `block_bytes` (for a pair: on one side or the other). A line of more than
    `max_line_bytes` bytes that a block has no room for is a block of its own and not held; others
    are `block_rows`' to find.

    Raises:
      InputError: if a file cannot be read, has changed since it was planned, is a gzip file cut off
        or damaged, or has another number of lines than the other file of its pair.
      ValueError: if `block_bytes` or `max_line_bytes` is below 1.
    """
    if min(block_bytes, max_line_bytes) < 1:
        raise ValueError(
            'block_bytes and max_line_bytes must be at least 1, not '
            f'{block_bytes} and {max_line_bytes}'
        )
    read = _read_lines if item.target is None else _read_pairs
    found = read(item, open_binary, block_bytes, max_line_bytes)
    return (_block(item, max_line_bytes, lines) for lines in found)


def block_rows(block: Block) -> Rows:
    """Returns a block's rows by the line rules of its kind."""
    if block.long_lines:
        sides = {'text': 1, 'tsv': len(block.columns), 'bitext': 2}[block.kind]
        return long_rows(block.long_lines[0], sides, block.offset)
    most = block.max_line_bytes
    if block.kind == 'bitext':
        return bitext_rows(block.data, block.offset, block.target, block.target_offset, most)
    if block.kind == 'tsv':
        return tsv_rows(block.data, block.offset, block.columns, most)
    return text_rows(block.data, block.offset, most)


_Lines = tuple[int, bytes | LongLine]
"""Lines, or one that is too long, with the offset of their first byte."""


def _block(item: WorkItem, max_line_bytes: int, sides: tuple[_Lines, ...]) -> Block:
    """A block of lines of a file, or of the same lines of both files of a pair."""
    if any(isinstance(lines, LongLine) for _, lines in sides):
        # Here a side is a line, and that of the other file may be too long too.
        sides = tuple(
            (offset, long_line(side, offset, [lines]))
            if isinstance(lines, bytes) and is_longer(lines, max_line_bytes)
            else (offset, lines)
            for side, (offset, lines) in enumerate(sides)
        )
    texts = [b'' if isinstance(lines, LongLine) else lines for _, lines in sides]
    return Block(
        item.split,
        item.kind,
        item.columns,
        item.place,
        sides[0][0],
        texts[0],
        sides[1][0] if item.target else 0,
        texts[1] if item.target else None,
        max_line_bytes,
        tuple(lines for _, lines in sides if isinstance(lines, LongLine)),
    )


def _read_lines(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[tuple[_Lines]]:
    file = item.source.file
    if not file.compressed:
        for found in read_starting_lines(item.source, open_binary, max_line_bytes):
            yield (found,)
        return
    offset = 0
    for lines in whole_lines(text_pieces(file, open_binary), block_bytes, max_line_bytes):
        yield ((offset, lines),)
        offset += lines.length if isinstance(lines, LongLine) else len(lines)


def _read_pairs(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[tuple[_Lines, _Lines]]:
    sides = item.source, item.target
    if any(side.file.compressed for side in sides):
        yield from _stream_pairs(item, open_binary, block_bytes, max_line_bytes)
        return
    yield tuple(
        read_counted_lines(number, side, open_binary, max_line_bytes)
        for number, side in enumerate(sides)
    )


def _stream_pairs(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[tuple[_Lines, _Lines]]:
    source, target = queues = [
        LineQueue(number, side, open_binary, block_bytes, max_line_bytes)
        for number, side in enumerate((item.source, item.target))
    ]
    paired = 0
    while True:
        # The lines of the block that is full on one side first; with fewer at hand, read on.
        full = min(queue.block_lines(block_bytes) for queue in queues)
        behind, ahead = sorted(queues, key=lambda queue: (len(queue), queue.exhausted))
        if len(behind) < full:
            if not behind.exhausted:
                behind.read_more()
                continue
            if len(ahead) > len(behind):
                raise InputError(
                    f'{behind.path} ends after {paired + len(behind)} lines but {ahead.path} goes '
                    'on; the two files of a pair must have the same number of lines'
                )
            full = len(behind)
        if not full:
            break
        yield source.take(full), target.take(full)
        paired += full
    if item.source.lines not in (None, paired):
        raise InputError(
            f'{source.path} and {target.path} have {paired} lines but had {item.source.lines} when '
            'their lines were counted; run again when nothing writes to them any more'
        )
