"""The lines of one file of a pair that were read and still wait for those of the other."""

import collections

import numpy as np

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.corpus import LongLine, OpenBinary, TextRange
from tokcore.corpus.line_reading import whole_lines
from tokcore.corpus.storage import PIECE_BYTES


class LineQueue:
    """The lines of a file that were read but not yet paired.

    A line that is too long has its place among them, but no bytes.
    """

    def __init__(
        self,
        side: int,
        text_range: TextRange,
        open_binary: OpenBinary,
        block_bytes: int,
        max_line_bytes: int,
    ):
        self.path = text_range.file.path
        self.offset = 0  # of the first line held
        self.ends = np.zeros(0, np.int64)  # of each line held, counted from the first
        self.exhausted = False
        self._held = bytearray()
        self._taken = 0  # lines
        self._long: collections.deque[tuple[int, LongLine]] = collections.deque()  # (line, ...)
        self._chunks = whole_lines(
            text_pieces(text_range.file, open_binary),
            min(block_bytes, PIECE_BYTES),
            max_line_bytes,
            side,
        )

    def __len__(self) -> int:
        return len(self.ends)

    def read_more(self) -> None:
        chunk = next(self._chunks, b'')
        self.exhausted = not chunk
        if isinstance(chunk, LongLine):
            self._long.append((self._taken + len(self), chunk))
            self.ends = np.append(self.ends, len(self._held))
            return
        ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord('\n')) + 1
        if chunk and not chunk.endswith(b'\n'):
            ends = np.append(ends, len(chunk))
        self.ends = np.concatenate([self.ends, ends + len(self._held)])
        self._held += chunk

    def block_lines(self, block_bytes: int) -> int:
        """Returns how many lines fill a block, at most; there may be fewer at hand."""
        full = 1 + int(np.searchsorted(self.ends, block_bytes))
        if self._long:
            # A line that is too long is a block of its own.
            full = min(full, max(1, self._long[0][0] - self._taken))
        return full

    def take(self, lines: int) -> tuple[int, bytes | LongLine]:
        """Returns the first lines with their offset; they are `block_lines` or fewer."""
        offset = self.offset
        if self._long and self._long[0][0] == self._taken:
            _, taken = self._long.popleft()
            self.ends = self.ends[1:]
            self.offset += taken.length
        else:
            end = int(self.ends[lines - 1])
            with memoryview(self._held) as held:
                taken = bytes(held[:end])
            del self._held[:end]
            self.ends = self.ends[lines:] - end
            self.offset += end
        self._taken += lines
        return offset, taken
