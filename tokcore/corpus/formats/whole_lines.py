"""A stream of text cut to whole lines, and into blocks of them, whatever pieces it comes in."""

from collections.abc import Iterable, Iterator

from tokcore.corpus.dataset import MAX_LINE_BYTES, LongLine
from tokcore.corpus.long_lines import LongLineReader


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


def starting_lines(
    pieces: Iterable[bytes], start: int, end: int
) -> Iterator[tuple[int, bytes]]:
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
