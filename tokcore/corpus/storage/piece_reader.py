"""A stream of pieces of bytes as a file that can only be read on."""

import contextlib
import io
import tarfile
from collections.abc import Iterator


class PieceReader(io.RawIOBase):
    """Pieces of bytes, none of them empty, as a file."""

    def __init__(self, pieces: Iterator[bytes]):
        self._pieces = pieces
        self._left = memoryview(b'')
        self._most: int | None = None  # bytes that may still be read; None: any number

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        if not self._left:
            self._left = memoryview(next(self._pieces, b''))
        size = min(len(self._left), len(buffer))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        if self._most is not None:
            self._most -= size
            if self._most < 0:
                raise tarfile.ReadError('a header that is far too large')
        return size

    @contextlib.contextmanager
    def at_most(self, size: int) -> Iterator[None]:
        """Raises tarfile.ReadError where more is read within."""
        self._most = size
        yield
        self._most = None
