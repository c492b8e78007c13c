"""Reading a work item: blocks of whole lines, each with the place of its first byte.

The blocks of all items hold every byte of a file once, whatever the items' size. Only gzip is read
as a stream; everything else is one range, read once it is known where its lines begin and end.
"""

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from tokcore.corpus.dataset import Block, CorpusFile, OpenBinary, TextRange, WorkItem
from tokcore.corpus.gzip_text import PIECE_BYTES, text_pieces, whole_lines
from tokcore.corpus.line_index import after_newlines
from tokcore.corpus.rows import Rows, bitext_rows, text_rows, tsv_rows
from tokcore.corpus.stored_file import open_stored, read_range
from tokcore.corpus.work_items import ITEM_BYTES
from tokcore.errors import InputError

BLOCK_BYTES = ITEM_BYTES
"""The default size of the blocks that a gzip file is read in."""

_LINE_BYTES = 64 << 10
"""What is read at a time to find where a line ends."""


def read_blocks(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int = BLOCK_BYTES
) -> Iterator[Block]:
    """Yields a work item's blocks in the order of lines.

    A plain item is one block, or none if no line starts in it. A gzip file gives blocks of as
    few lines as reach `block_bytes` (for a pair: on one side or the other).

    Raises:
      InputError: if a file cannot be read, has changed since it was planned, is a gzip file cut off
        or damaged, or has another number of lines than the other file of its pair.
      ValueError: if `block_bytes` is below 1.
    """
    if block_bytes < 1:
        raise ValueError(f'block_bytes must be at least 1, not {block_bytes}')
    if item.target is None:
        if item.source.file.compressed:
            return _stream_blocks(item, open_binary, block_bytes)
        return _range_blocks(item, open_binary)
    if item.source.file.compressed or item.target.file.compressed:
        return _stream_pair_blocks(item, open_binary, block_bytes)
    return _range_pair_blocks(item, open_binary)


def block_rows(block: Block) -> Rows:
    """Returns a block's rows by the line rules of its kind."""
    if block.kind == 'bitext':
        return bitext_rows(block.data, block.offset, block.target, block.target_offset)
    if block.kind == 'tsv':
        return tsv_rows(block.data, block.offset, block.columns)
    return text_rows(block.data, block.offset)


def _block(
    item: WorkItem, offset: int, data: bytes, target_offset: int = 0, target: bytes | None = None
) -> Block:
    return Block(
        item.split, item.kind, item.columns, item.place, offset, data, target_offset, target
    )


def _range_blocks(item: WorkItem, open_binary: OpenBinary) -> Iterator[Block]:
    file, start, end = item.source.file, item.source.start, item.source.end
    with open_stored(file, open_binary) as stream:
        # A line starts at `start` if the byte before it is a line feed.
        first = _after_newline(stream, file, start - 1, end) if start else 0
        if first is None or first == end:
            return
        last = _after_newline(stream, file, end - 1, file.size) or file.size
        # Both ends are looked for first, so that the block is read once and never copied.
        data = read_range(stream, file, first, last)
    yield _block(item, first, data)


def _after_newline(stream: BinaryIO, file: CorpusFile, start: int, end: int) -> int | None:
    """The place behind the first line feed of bytes [start, end) of a file; None without one."""
    for place in range(start, end, _LINE_BYTES):
        piece = read_range(stream, file, place, min(place + _LINE_BYTES, end))
        if b'\n' in piece:
            return place + piece.index(b'\n') + 1
    return None


def _range_pair_blocks(item: WorkItem, open_binary: OpenBinary) -> Iterator[Block]:
    offset, data = _read_lines(item.source, open_binary)
    target_offset, target = _read_lines(item.target, open_binary)
    yield _block(item, offset, data, target_offset, target)


def _read_lines(text_range: TextRange, open_binary: OpenBinary) -> tuple[int, bytes]:
    """The offset of a range's first line, and its lines."""
    file, lines = text_range.file, text_range.lines
    with open_stored(file, open_binary) as stream:
        data = read_range(stream, file, text_range.start, text_range.end)
    first = after_newlines(data, text_range.skip_lines)
    if first is not None:
        end = after_newlines(data, lines, first)
        if end is None and text_range.end == file.size:
            # The file's last line may lack its line feed.
            last = after_newlines(data, lines - 1, first)
            if last is not None and last < len(data):
                end = len(data)
        if end is not None:
            return text_range.start + first, data[first:end]
    raise InputError(
        f'{file.path} no longer has the {lines} lines after byte {text_range.start} that it had '
        'when its lines were counted; run again when nothing writes to it any more'
    )


def _stream_blocks(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int
) -> Iterator[Block]:
    offset = 0
    for data in whole_lines(text_pieces(item.source.file, open_binary), block_bytes):
        yield _block(item, offset, data)
        offset += len(data)


class _LineQueue:
    """The lines of a file that were read but not yet paired."""

    def __init__(self, text_range: TextRange, open_binary: OpenBinary, block_bytes: int):
        self.path = text_range.file.path
        self.offset = 0  # of the first byte held
        self.ends = np.zeros(0, np.int64)  # of each line held, counted from `offset`
        self.exhausted = False
        self._held = bytearray()
        self._chunks = whole_lines(
            text_pieces(text_range.file, open_binary), min(block_bytes, PIECE_BYTES)
        )

    def __len__(self) -> int:
        return len(self.ends)

    def read_more(self):
        chunk = next(self._chunks, b'')
        self.exhausted = not chunk
        ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord('\n')) + 1
        if chunk and not chunk.endswith(b'\n'):
            ends = np.append(ends, len(chunk))
        self.ends = np.concatenate([self.ends, ends + len(self._held)])
        self._held += chunk

    def take(self, lines: int) -> bytes:
        end = int(self.ends[lines - 1])
        taken = bytes(self._held[:end])
        del self._held[:end]
        self.ends = self.ends[lines:] - end
        self.offset += end
        return taken


def _stream_pair_blocks(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int
) -> Iterator[Block]:
    queues = [_LineQueue(side, open_binary, block_bytes) for side in (item.source, item.target)]
    source, target = queues
    paired = 0
    while True:
        # The lines of the block that is full on one side first; with fewer at hand, read on.
        full = 1 + min(int(np.searchsorted(queue.ends, block_bytes)) for queue in queues)
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
        offsets = source.offset, target.offset
        yield _block(item, offsets[0], source.take(full), offsets[1], target.take(full))
        paired += full
    if item.source.lines not in (None, paired):
        raise InputError(
            f'{source.path} and {target.path} have {paired} lines but had {item.source.lines} when '
            'their lines were counted; run again when nothing writes to them any more'
        )
