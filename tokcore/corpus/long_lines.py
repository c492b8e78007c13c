"""Lines longer than a job takes: read over piece by piece, so that none of them is ever held whole.

What is kept of such a line says where it is and proves that each of its bytes was read once.
"""

from collections.abc import Iterable

import google_crc32c

from tokcore.corpus.dataset import LongLine

BEGINNING_BYTES = 1000
"""What is kept of a long line: enough to know it again, and a block of nothing but such lines is
still smaller than its text."""


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
