"""Reads files of lines: byte ranges as work items, whole lines as blocks.

A line belongs to the range in which it starts. In an uncompressed file both ends of a range's lines
are looked for first, so that lines are read once and never copied. A compressed file is one item, or
several if it has an index of its parts, and is read as a stream. A line longer than a job allows is
read piece by piece and never kept whole: a `LongLine` says where it is, and has its checksum.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, BinaryIO

import google_crc32c
import numpy as np

from tokcore.corpus.archive_reading import member_text, text_pieces
from tokcore.corpus.corpus import (
    MAX_LINE_BYTES,
    STRETCH_BYTES,
    Block,
    BlockText,
    CorpusFile,
    LongLine,
    MemberFile,
    OpenBinary,
    Split,
    TextRange,
    WorkItem,
)
from tokcore.corpus.formats import FormatReader
from tokcore.corpus.seekable import can_seek, may_have_index, part_ends, text_from
from tokcore.corpus.storage import open_stored, read_pieces, read_range
from tokcore.corpus.stretches import FileLines, after_newlines
from tokcore.errors import InputError

Lines = tuple[int, bytes | LongLine]
"""The offset of some lines and their bytes, or of one line that is too long."""

_LINE_BYTES = 64 << 10
"""The bytes read at a time in looking for the end of a line."""

BEGINNING_BYTES = 1000
"""The beginning of a long line that is kept: enough to recognize the line, and a block with nothing but
such lines is still smaller than its text."""


class LineReader(FormatReader):
    """Reads formats whose rows are lines of one file, wherever the file is cut."""

    def index_ranges(self, split: Split, item_bytes: int) -> Sequence[_PartIndex]:
        return [
            _PartIndex(file_index, file, item_bytes)
            for file_index, (file,) in zip(split.file_indexes, split.files, strict=True)
            if may_have_index(file) and file.size > item_bytes
        ]

    def index(self, part: _PartIndex, open_binary: OpenBinary) -> tuple[Any, ...]:
        """Returns where the ranges of a compressed file's text end, each of as few parts as reach a size.

        Empty if the file has no index, or if all of it is one range. Raises InputError as `part_ends`.
        """
        cuts: list[int] = []
        start = 0
        ends = part_ends(part.file, open_binary)
        for end in ends:
            if end - start >= part.item_bytes or end == ends[-1] > start:
                cuts.append(end)
                start = end
        return tuple(cuts) if len(cuts) > 1 else ()

    def plan(
        self, split: Split, index: Sequence[tuple[Any, ...]], item_bytes: int
    ) -> list[WorkItem]:
        indexed = zip(self.index_ranges(split, item_bytes), index, strict=True)
        return byte_ranges(split, item_bytes, {part.file_index: cuts for part, cuts in indexed})

    def items_at(self, whole: WorkItem, offsets: np.ndarray, lines: FileLines) -> list[WorkItem]:
        """Returns the lines after the line feeds of one stretch after another, if the file can be cut."""
        [own] = lines
        if not can_seek(own.file, own.open_binary):
            return super().items_at(whole, offsets, lines)
        items = []
        for stretch in np.unique(np.maximum(offsets - 1, 0) // STRETCH_BYTES).tolist():
            is_later, end = int(stretch > 0), (stretch + 1) * STRETCH_BYTES + 1
            if not own.file.compressed:  # otherwise its size is not that of the text
                end = min(end, own.file.size)
            start, first_line = stretch * STRETCH_BYTES + is_later, own.before[stretch] + is_later
            ranges = (TextRange(own.file, start, end, packed_bytes=0),)
            items.append(dataclasses.replace(whole, ranges=ranges, first_line=int(first_line)))
        return items

    def beginning(self, item: WorkItem, size: int) -> WorkItem:
        [text_range] = item.ranges
        if text_range.file.is_stream or text_range.end - text_range.start <= size:
            return item
        first = dataclasses.replace(text_range, end=text_range.start + size)
        return dataclasses.replace(item, ranges=(first,))

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        file = item.ranges[0].file
        most_bytes = min(block_bytes - 1, max_line_bytes)
        if isinstance(file, MemberFile) and not file.compressed and file.size <= most_bytes:
            if text := member_text(file, open_binary):
                texts = (BlockText(0, text),)
                yield Block(item.split, item.format, item.file_index, texts, max_line_bytes)
            return
        for lines in _read_lines(item, open_binary, block_bytes, max_line_bytes):
            yield line_block(item, max_line_bytes, (lines,))


@dataclass(frozen=True)
class _PartIndex:
    """A compressed file that may have an index of parts, between which it can be cut."""

    file_index: int
    file: CorpusFile
    item_bytes: int
    stored_bytes = 0  # an index is small


def byte_ranges(
    split: Split, item_bytes: int, cuts: Mapping[int, Sequence[int]] = MappingProxyType({})
) -> list[WorkItem]:
    """Cuts a split, of files read one by one, into items of at most `item_bytes`, in order.

    `cuts` has, by file index, where the ranges of a compressed file's text end; without it, such a file is
    one item.
    """
    return [
        WorkItem(split.name, split.format, file_index, (text_range,))
        for file_index, (file,) in zip(split.file_indexes, split.files, strict=True)
        for text_range in _ranges_of(file, item_bytes, cuts.get(file_index, ()))
    ]


def line_block(item: WorkItem, max_line_bytes: int, sides: tuple[Lines, ...]) -> Block:
    """Returns the block of lines of one file, or of the same lines of two files."""
    if any(isinstance(lines, LongLine) for _, lines in sides):
        # Each side is one line here, and the other one may be too long too.
        sides = tuple(
            (offset, long_line(side, offset, [lines]))
            if isinstance(lines, bytes) and len(lines) - lines.endswith(b'\n') > max_line_bytes
            else (offset, lines)
            for side, (offset, lines) in enumerate(sides)
        )
    return Block(
        item.split,
        item.format,
        item.file_index,
        tuple(
            BlockText(offset, b'' if isinstance(lines, LongLine) else lines)
            for offset, lines in sides
        ),
        max_line_bytes,
        tuple(lines for _, lines in sides if isinstance(lines, LongLine)),
    )


def _ranges_of(file: CorpusFile, item_bytes: int, cuts: Sequence[int]) -> list[TextRange]:
    if cuts:
        # Each cut is one byte after a part's end: the range's own part then has the byte before its
        # start, which shows whether a line starts there.
        bounds = [0, *(end + 1 for end in cuts[:-1]), cuts[-1]]
        return [
            TextRange(
                file,
                start,
                end,
                packed_bytes=end * file.size // cuts[-1] - start * file.size // cuts[-1],
            )
            for start, end in itertools.pairwise(bounds)
        ]
    if file.is_stream:
        return [TextRange(file, 0, file.size)]
    return [
        TextRange(file, start, min(start + item_bytes, file.size))
        for start in range(0, file.size, item_bytes)
    ]


def _read_lines(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[Lines]:
    [text_range] = item.ranges
    file = text_range.file
    if not file.is_stream:
        yield from _read_starting_lines(text_range, open_binary, max_line_bytes)
        return
    offset, pieces = 0, text_pieces(file, open_binary)
    if text_range.packed_bytes is not None:
        start, end = text_range.start, text_range.end
        text = text_from(file, max(0, start - 1), open_binary)
        starting = starting_lines(text, start, end)
        offset, first = next(starting, (0, b''))
        pieces = itertools.chain([first], (piece for _, piece in starting))
    for lines in whole_lines(pieces, block_bytes, max_line_bytes, offset=offset):
        yield offset, lines
        offset += lines.length if isinstance(lines, LongLine) else len(lines)


def read_counted_lines(
    side: int, text_range: TextRange, open_binary: OpenBinary, max_line_bytes: int
) -> Lines:
    """Returns the lines of a range that has a number of lines.

    Several lines fit in a work item; a single one of more than `max_line_bytes` is not kept.

    Raises:
        InputError: the file cannot be read, or no longer has these lines.
    """
    file, lines = text_range.file, text_range.counted_lines
    with open_stored(file, open_binary) as stream:
        if lines == 1 and text_range.end - text_range.start > max_line_bytes:
            line = _read_line(stream, side, text_range, max_line_bytes)
            if line is not None:
                return line
        else:
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


def _read_starting_lines(
    text_range: TextRange, open_binary: OpenBinary, max_line_bytes: int
) -> list[Lines]:
    """Returns the lines that start in a range; empty if there are none.

    If the last one crosses the range's end and is longer than `max_line_bytes`, it is an element of
    its own.

    Raises:
        InputError: the file cannot be read, or has changed its size.
    """
    file, start, end = text_range.file, text_range.start, text_range.end
    with open_stored(file, open_binary) as stream:
        # A line starts at `start` if the byte before it is a line feed.
        first = _after_newlines(stream, file, start - 1, end) if start else 0
        if first is None or first == end:
            return []
        newline = _after_newlines(stream, file, end - 1, file.size)
        until = newline or file.size
        last = until
        if until - first > max_line_bytes:
            last = _last_line(stream, file, first, end - 1)
            if until - last - (newline is not None) <= max_line_bytes:
                last = until
        lines: list[Lines] = []
        if first < last:
            lines.append((first, read_range(stream, file, first, last)))
        if last < until:
            lines.append((last, long_line(0, last, read_pieces(stream, file, last, until))))
    return lines


def _read_line(
    stream: BinaryIO, side: int, text_range: TextRange, max_line_bytes: int
) -> Lines | None:
    """Returns the only line of a range; None if the file has no such line."""
    file, end = text_range.file, text_range.end
    first = _after_newlines(stream, file, text_range.start, end, text_range.skip_lines)
    if first is None:
        return None
    newline = _after_newlines(stream, file, first, end)
    # The file's last line may lack its line feed.
    if newline is None and (end < file.size or first == file.size):
        return None
    until = newline or file.size
    if until - first - (newline is not None) <= max_line_bytes:
        return first, read_range(stream, file, first, until)
    return first, long_line(side, first, read_pieces(stream, file, first, until))


def _after_newlines(
    stream: BinaryIO, file: CorpusFile, start: int, end: int, count: int = 1
) -> int | None:
    """Returns the offset after the `count`-th line feed of bytes [start, end); None if fewer."""
    if not count:
        return start
    for offset in range(start, end, _LINE_BYTES):
        piece = read_range(stream, file, offset, min(offset + _LINE_BYTES, end))
        after = after_newlines(piece, count)
        if after is not None:
            return offset + after
        count -= piece.count(b'\n')
    return None


def _last_line(stream: BinaryIO, file: CorpusFile, start: int, end: int) -> int:
    """Returns the offset after the last line feed of bytes [start, end) of a file, or `start`."""
    for piece_end in range(end, start, -_LINE_BYTES):
        piece_start = max(start, piece_end - _LINE_BYTES)
        piece = read_range(stream, file, piece_start, piece_end)
        if b'\n' in piece:
            return piece_start + piece.rindex(b'\n') + 1
    return start


def whole_lines(
    pieces: Iterable[bytes],
    block_bytes: int,
    max_line_bytes: int = MAX_LINE_BYTES,
    side: int = 0,
    offset: int = 0,
) -> Iterator[bytes | LongLine]:
    r"""Joins and cuts the pieces of a text into blocks of whole lines.

    A block has as few lines as reach `block_bytes` bytes. If the last of these is longer than
    `max_line_bytes`, the block ends before it, and the line follows as a `LongLine` of `side`, with
    offsets that count from `offset`, that of the first byte here. The blocks do not depend on the
    pieces. The last block may be smaller and lack its line feed. Memory: twice the larger of a block
    and the longest line that is held.

    >>> list(whole_lines([b'a\nb', b'b\n\nc'], 3))
    [b'a\nbb\n', b'\nc']
    """
    block = _OpenBlock(block_bytes)  # begins at `offset`
    long: LongLineReader | None = None  # reads a line that is too long
    for piece in pieces:
        start = 0
        while start < len(piece):
            if long is None:
                start = block.add(piece, start)
                if block.last_line_is_longer(max_line_bytes):
                    before, beginning = block.cut()
                    block = _OpenBlock(block_bytes)
                    offset += len(before)
                    long = LongLineReader(side, offset)
                    long.add(beginning)
                    del beginning
                    if before:
                        yield before
                elif block.is_complete:
                    yield block.data()
                    offset += block.size
                    block = _OpenBlock(block_bytes)
            else:
                end = piece.find(b'\n', start) + 1 or len(piece)
                long.add(piece[start:end])
                start = end
            if long is not None and long.is_complete:
                line = long.line()
                yield line
                offset += line.length
                long = None
    if long is not None:
        yield long.line()
    elif block.size:
        yield block.data()


def starting_lines(pieces: Iterable[bytes], start: int, end: int) -> Iterator[tuple[int, bytes]]:
    r"""Yields the lines that start in bytes [start, end) of a text, as pieces with their offset.

    `pieces` are the text from the byte before `start` on, which shows whether a line starts there, or
    from its beginning. No more of them are read than needed.

    >>> list(starting_lines([b'a\nb', b'b\n\nc'], 1, 6))
    [(2, b'b'), (3, b'b\n\n')]
    """
    offset, has_begun = max(0, start - 1), not start
    for piece in pieces:
        first = 0
        if not has_begun:
            first = piece.find(b'\n') + 1
            has_begun = first > 0
            if offset + (first if has_begun else len(piece)) >= end:
                return
        until = piece.find(b'\n', max(first, end - 1 - offset)) + 1 if has_begun else 0
        if has_begun and first < len(piece):
            yield offset + first, piece[first : until or len(piece)]
        if until:
            return
        offset += len(piece)


class _OpenBlock:
    """A block that is filled with pieces of a text."""

    def __init__(self, block_bytes: int):
        self._block_bytes = block_bytes
        self._pieces: list[bytes] = []
        self._last = 0  # where its last line begins
        self.size = 0
        self.is_complete = False

    def add(self, piece: bytes, start: int) -> int:
        """Adds the part of piece[start:] that belongs to the block; returns where that ends."""
        end = piece.find(b'\n', max(start, start + self._block_bytes - 1 - self.size)) + 1
        self.is_complete = end > 0
        end = end or len(piece)
        last = piece.rfind(b'\n', start, end - self.is_complete) + 1
        if last:
            self._last = self.size + last - start
        self._pieces.append(piece[start:end])
        self.size += end - start
        return end

    def last_line_is_longer(self, max_line_bytes: int) -> bool:
        """Returns whether the line that completes the block already has more bytes than allowed."""
        last_bytes = self.size - self.is_complete - self._last
        return self.size >= self._block_bytes and last_bytes > max_line_bytes

    def cut(self) -> tuple[bytes, bytes]:
        """Returns the lines before the last one, and the last one."""
        data = self.data()
        return data[: self._last], data[self._last :]

    def data(self) -> bytes:
        return b''.join(self._pieces)


class LongLineReader:
    """Reads a line piece by piece, and keeps only its beginning, its length and its checksum.

    Args:
        side: 0 source, 1 target.
        offset: of its first byte in the decompressed file.
    """

    def __init__(self, side: int, offset: int):
        self._side, self._offset = side, offset
        self._length = self._crc32c = 0
        self._beginning = b''
        self.is_complete = False

    def add(self, piece: bytes) -> None:
        """Adds the next bytes of the line; a line feed completes it."""
        self._crc32c = google_crc32c.extend(self._crc32c, piece)
        self._length += len(piece)
        self._beginning += piece[: BEGINNING_BYTES - len(self._beginning)]
        self.is_complete = piece.endswith(b'\n')

    def line(self) -> LongLine:
        """Returns the line, complete or the last of its file."""
        size = self._length - self.is_complete
        beginning = self._beginning[:size]
        return LongLine(self._side, self._offset, size, self._length, self._crc32c, beginning)


def long_line(side: int, offset: int, pieces: Iterable[bytes]) -> LongLine:
    r"""Returns the `LongLine` of a line in pieces, with its line feed if it has one.

    >>> long_line(0, 5, [b'ab', b'c\n']).nbytes
    3
    """
    reader = LongLineReader(side, offset)
    for piece in pieces:
        reader.add(piece)
    return reader.line()
