"""Reads files of lines: byte ranges as work items, and their whole lines as blocks.

A line belongs to the range that it starts in. Of a plain file both ends are looked for first, so
that lines are read once and never copied. A compressed file is one item, or as many as its index of
parts allows, and is read as a stream. Lines longer than a job takes are skipped piece by piece and
never held whole; what is kept says where such a line is, and proves that each byte was read once.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import google_crc32c

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.corpus import (
    MAX_LINE_BYTES,
    Block,
    BlockText,
    CorpusFile,
    LongLine,
    OpenBinary,
    Split,
    TextRange,
    WorkItem,
)
from tokcore.corpus.seekable import may_have_index, part_ends, text_from
from tokcore.corpus.storage import PIECE_BYTES, open_stored, read_range
from tokcore.errors import InputError

ITEM_BYTES = 8 << 20
"""The default size of a work item. At 8 to 16 MiB a block's fixed costs vanish; of these the least,
since larger ones hold more memory for each thread and leave the last workers waiting."""

BLOCK_BYTES = ITEM_BYTES
"""The default size of the blocks that a compressed file is read in."""

PlacedLines = tuple[int, bytes | LongLine]
"""Lines, or one that is too long, with the offset of their first byte."""

_LINE_BYTES = 64 << 10
"""What is read at a time to find where a line ends."""

BEGINNING_BYTES = 1000
"""What is kept of a long line: enough to know it again, and a block of nothing but such lines is
still smaller than its text."""


@dataclass(frozen=True)
class PartIndex:
    """A compressed file of which it is to be found out whether it can be cut."""

    file_index: int
    file: CorpusFile
    item_bytes: int
    stored_bytes = 0  # an index is little

    def cuts(self, open_binary: OpenBinary) -> tuple[int, ...]:
        """Returns where ranges of its text end, of as few parts as reach `item_bytes`.

        Nothing if the file has no index, or one of a single range.

        Raises:
            InputError: it cannot be read, or has changed its size.
        """
        cuts: list[int] = []
        start = 0
        ends = part_ends(self.file, open_binary)
        for end in ends:
            if end - start >= self.item_bytes or end == ends[-1] > start:
                cuts.append(end)
                start = end
        return tuple(cuts) if len(cuts) > 1 else ()


def part_indexes(split: Split, item_bytes: int) -> list[PartIndex]:
    """Returns the files of a split of one file a place that may be cut by an index of parts.

    A file that is no larger than an item is one.
    """
    return [
        PartIndex(place, file, item_bytes)
        for place, (file,) in zip(split.file_indexes, split.files, strict=True)
        if may_have_index(file) and file.size > item_bytes
    ]


def byte_ranges(
    split: Split, item_bytes: int, cuts: Sequence[Sequence[int]] | None = None
) -> list[WorkItem]:
    """Cuts a split of one file a place into items of at most so many bytes, in order.

    `cuts` are those of each of `part_indexes`; without, each compressed file is one item.

    Raises:
        ValueError: they are those of other files.
    """
    of_place: dict[int, Sequence[int]] = {}
    if cuts is not None:
        parts = part_indexes(split, item_bytes)
        of_place = {part.file_index: found for part, found in zip(parts, cuts, strict=True)}
    return [
        WorkItem(split.name, split.format, place, (text_range,))
        for place, (file,) in zip(split.file_indexes, split.files, strict=True)
        for text_range in _ranges_of(file, item_bytes, of_place.get(place, ()))
    ]


def read_lines(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[Block]:
    """Yields the blocks of an item of one file, in the order of its lines.

    Raises InputError as `read_blocks` does.
    """
    for found in _read_lines(item, open_binary, block_bytes, max_line_bytes):
        yield line_block(item, max_line_bytes, (found,))


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
        # One byte into the next part, which then holds the byte that tells whether a line starts.
        bounds = [0, *(end + 1 for end in cuts[:-1]), cuts[-1]]
        return [
            TextRange(file, start, end, decompressed=True)
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
) -> Iterator[PlacedLines]:
    [text_range] = item.ranges
    file = text_range.file
    if not file.is_stream:
        yield from read_starting_lines(text_range, open_binary, max_line_bytes)
        return
    offset, pieces = 0, text_pieces(file, open_binary)
    if text_range.decompressed:
        start, end = text_range.start, text_range.end
        text = text_from(file, max(0, start - 1), open_binary)
        placed = starting_lines(text, start, end)
        offset, first = next(placed, (0, b''))
        pieces = itertools.chain([first], (piece for _, piece in placed))
    for lines in whole_lines(pieces, block_bytes, max_line_bytes, offset=offset):
        yield offset, lines
        offset += lines.length if isinstance(lines, LongLine) else len(lines)


def read_counted_lines(
    side: int, text_range: TextRange, open_binary: OpenBinary, max_line_bytes: int
) -> tuple[int, bytes | LongLine]:
    """Returns a range's lines, as many as it says, with the offset of the first.

    More than one are no more than a work item; one of more than `max_line_bytes` is read over.

    Raises:
      InputError: if the file cannot be read, or no longer has these lines.
    """
    from tokcore.corpus.line_index import after_newlines

    file, lines = text_range.file, text_range.lines
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


def read_starting_lines(
    text_range: TextRange, open_binary: OpenBinary, max_line_bytes: int
) -> list[tuple[int, bytes | LongLine]]:
    """Returns the lines that start in a range, with their offset; nothing if there are none.

    Where the last of them crosses the range's end and is longer than `max_line_bytes`, it comes by
    itself.

    Raises:
      InputError: if the file cannot be read, or has changed its size.
    """
    file, start, end = text_range.file, text_range.start, text_range.end
    with open_stored(file, open_binary) as stream:
        # A line starts at `start` if the byte before it is a line feed.
        first = _after_newlines(stream, file, start - 1, end) if start else 0
        if first is None or first == end:
            return []
        feed = _after_newlines(stream, file, end - 1, file.size)
        until = feed or file.size
        last = until
        if until - first > max_line_bytes:
            last = _last_line(stream, file, first, end - 1)
            if until - last - (feed is not None) <= max_line_bytes:
                last = until
        found = []
        if first < last:
            found.append((first, read_range(stream, file, first, last)))
        if last < until:
            found.append((last, long_line(0, last, _pieces(stream, file, last, until))))
    return found


def _read_line(
    stream: BinaryIO, side: int, text_range: TextRange, max_line_bytes: int
) -> tuple[int, bytes | LongLine] | None:
    """A range's only line with its offset; None if it is not there."""
    file, end = text_range.file, text_range.end
    first = _after_newlines(stream, file, text_range.start, end, text_range.skip_lines)
    if first is None:
        return None
    feed = _after_newlines(stream, file, first, end)
    # The file's last line may lack its line feed.
    if feed is None and (end < file.size or first == file.size):
        return None
    until = feed or file.size
    if until - first - (feed is not None) <= max_line_bytes:
        return first, read_range(stream, file, first, until)
    return first, long_line(side, first, _pieces(stream, file, first, until))


def _after_newlines(
    stream: BinaryIO, file: CorpusFile, start: int, end: int, count: int = 1
) -> int | None:
    """The place behind the `count`-th line feed of bytes [start, end) of a file, None if fewer."""
    from tokcore.corpus.line_index import after_newlines

    if not count:
        return start
    for place in range(start, end, _LINE_BYTES):
        piece = read_range(stream, file, place, min(place + _LINE_BYTES, end))
        found = after_newlines(piece, count)
        if found is not None:
            return place + found
        count -= piece.count(b'\n')
    return None


def _last_line(stream: BinaryIO, file: CorpusFile, start: int, end: int) -> int:
    """The place behind the last line feed of bytes [start, end) of a file, or `start`."""
    for place in range(end, start, -_LINE_BYTES):
        piece_start = max(start, place - _LINE_BYTES)
        piece = read_range(stream, file, piece_start, place)
        if b'\n' in piece:
            return piece_start + piece.rindex(b'\n') + 1
    return start


def _pieces(stream: BinaryIO, file: CorpusFile, start: int, end: int) -> Iterator[bytes]:
    for place in range(start, end, PIECE_BYTES):
        yield read_range(stream, file, place, min(place + PIECE_BYTES, end))


def whole_lines(
    pieces: Iterable[bytes],
    block_bytes: int,
    max_line_bytes: int = MAX_LINE_BYTES,
    side: int = 0,
    offset: int = 0,
) -> Iterator[bytes | LongLine]:
    r"""Joins and cuts the pieces of a text into blocks of whole lines.

    A block is as few lines as have `block_bytes` bytes together. Where the last of these is longer
    than `max_line_bytes`, the block ends before it, and what is kept of that line, as one of the
    given side in a text whose first byte here is at `offset`, comes by itself. So blocks depend on the text alone. The last one may be smaller and
    lack its line feed. Memory: the larger of a block and its longest line, twice.

    >>> list(whole_lines([b'a\nb', b'b\n\nc'], 3))
    [b'a\nbb\n', b'\nc']

    Raises:
      ValueError: if `block_bytes` is below 1.
    """
    if block_bytes < 1:
        raise ValueError(f'block_bytes must be at least 1, not {block_bytes}')
    return _whole_lines(pieces, block_bytes, max_line_bytes, side, offset)


def starting_lines(pieces: Iterable[bytes], start: int, end: int) -> Iterator[tuple[int, bytes]]:
    r"""Yields the lines of a text that start in its bytes [start, end), in pieces with their offset.

    `pieces` are of the text from the byte before `start` on, if there is one: it tells whether a line
    starts there. No more of them is taken than is needed.

    >>> list(starting_lines([b'a\nb', b'b\n\nc'], 1, 6))
    [(2, b'b'), (3, b'b\n\n')]
    """
    offset, begun = max(0, start - 1), not start
    for piece in pieces:
        first = 0
        if not begun:
            first = piece.find(b'\n') + 1
            begun = first > 0
            if offset + (first if begun else len(piece)) >= end:
                return
        until = piece.find(b'\n', max(first, end - 1 - offset)) + 1 if begun else 0
        if begun and first < len(piece):
            yield offset + first, piece[first : until or len(piece)]
        if until:
            return
        offset += len(piece)


class _OpenBlock:
    """The block that is being filled, from the pieces of a text."""

    def __init__(self, block_bytes: int):
        self._block_bytes = block_bytes
        self._held: list[bytes] = []
        self._last = 0  # where its last line begins
        self.size = 0
        self.is_whole = False

    def take(self, piece: bytes, start: int) -> int:
        """Takes piece[start:] as far as it belongs here; returns where it does not any more."""
        end = piece.find(b'\n', max(start, start + self._block_bytes - 1 - self.size)) + 1
        self.is_whole = end > 0
        end = end or len(piece)
        last = piece.rfind(b'\n', start, end - self.is_whole) + 1
        if last:
            self._last = self.size + last - start
        self._held.append(piece[start:end])
        self.size += end - start
        return end

    def ends_in_longer(self, max_line_bytes: int) -> bool:
        """Tells whether the line that makes it whole, or will, has more bytes than that so far."""
        held = self.size - self.is_whole - self._last
        return self.size >= self._block_bytes and held > max_line_bytes

    def cut(self) -> tuple[bytes, bytes]:
        """Returns the lines before the last one, and that."""
        data = self.data()
        return data[: self._last], data[self._last :]

    def data(self) -> bytes:
        return b''.join(self._held)


def _whole_lines(
    pieces: Iterable[bytes], block_bytes: int, max_line_bytes: int, side: int, offset: int
) -> Iterator[bytes | LongLine]:
    # The offset is that of the block.
    block = _OpenBlock(block_bytes)
    over: LongLineReader | None = None  # takes a line that is too long
    for piece in pieces:
        start = 0
        while start < len(piece):
            if over is None:
                start = block.take(piece, start)
                if block.ends_in_longer(max_line_bytes):
                    before, begun = block.cut()
                    block = _OpenBlock(block_bytes)
                    offset += len(before)
                    over = LongLineReader(side, offset)
                    over.add(begun)
                    del begun
                    if before:
                        yield before
                elif block.is_whole:
                    yield block.data()
                    offset += block.size
                    block = _OpenBlock(block_bytes)
            else:
                start = over.take(piece, start)
            if over is not None and over.is_ended:
                line = over.line()
                yield line
                offset += line.length
                over = None
    if over is not None:
        yield over.line()
    elif block.size:
        yield block.data()


class LongLineReader:
    """Takes a line piece by piece, and forgets all but its beginning.

    Args:
        side: 0 source, 1 target.
        offset: of its first byte in the decompressed file.
    """

    def __init__(self, side: int, offset: int):
        self._side, self._offset = side, offset
        self._length = self._crc32c = 0
        self._beginning = b''
        self.is_ended = False

    def add(self, piece: bytes) -> None:
        """Takes the next bytes of the line; its line feed ends it."""
        self._crc32c = google_crc32c.extend(self._crc32c, piece)
        self._length += len(piece)
        self._beginning += piece[: BEGINNING_BYTES - len(self._beginning)]
        self.is_ended = piece.endswith(b'\n')

    def take(self, piece: bytes, start: int) -> int:
        """Takes piece[start:] up to the line's end; returns where that is."""
        end = piece.find(b'\n', start) + 1 or len(piece)
        self.add(piece[start:end])
        return end

    def line(self) -> LongLine:
        """Returns what was read, be it ended or the last of its file."""
        size = self._length - self.is_ended
        beginning = self._beginning[:size]
        return LongLine(self._side, self._offset, size, self._length, self._crc32c, beginning)


def long_line(side: int, offset: int, pieces: Iterable[bytes]) -> LongLine:
    r"""Returns what is kept of a line that is given in pieces, with its line feed if it has one.

    >>> long_line(0, 5, [b'ab', b'c\n']).bytes
    3
    """
    reader = LongLineReader(side, offset)
    for piece in pieces:
        reader.add(piece)
    return reader.line()


def is_longer(line: bytes, most: int) -> bool:
    """Tells whether a line has more than so many bytes before its line feed."""
    return len(line) - line.endswith(b'\n') > most
