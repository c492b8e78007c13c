"""The lines of a corpus, counted for each stretch of 8 MiB of text: `index/corpus.jsonl`.

A line for each input of the manifest, in its order, and after these their CRC-32C in hexadecimal:

    [137011, 136480, 8120]

With these counts, a line's number takes one stretch of the file and not all of it. A line is null where rows
are not lines.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import google_crc32c
import numpy as np

from tokcore.checked_json import Within, checked
from tokcore.corpus.archive_reading import pieces_from
from tokcore.corpus.corpus import STRETCH_BYTES, CorpusFile, OpenBinary
from tokcore.corpus.storage import PIECE_BYTES
from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets, runs_of

CORPUS_INDEX = 'index/corpus.jsonl'


FileNewlines = tuple[Annotated[int, Within(0)], ...] | None
"""Line feeds of each stretch of a file; None where rows are not lines."""


def corpus_index(newlines: Sequence[FileNewlines]) -> bytes:
    """Returns the bytes of the file; `newlines` are those of each input."""
    body = ''.join(f'{json.dumps(each)}\n' for each in newlines).encode()
    return body + b'"%08x"\n' % google_crc32c.value(body)


def parse_corpus_index(data: bytes) -> list[FileNewlines] | None:
    """Returns what the file has of each input; None if it is damaged."""
    *lines, end = data.splitlines(keepends=True) or [b'']
    if end != b'"%08x"\n' % google_crc32c.value(data[: -len(end)]):
        return None
    try:
        return [checked(json.loads(line), FileNewlines) for line in lines]
    except ValueError:
        return None


@dataclass(frozen=True)
class TextLines:
    """The lines of a file, by the line feeds of its stretches.

    Attributes:
        file: the file.
        newlines: of each stretch; none where rows are not lines.
        open_binary: opens the file.
        may_be_utf_16: as of `FormatReader`.
    """

    file: CorpusFile
    newlines: Sequence[int]
    open_binary: OpenBinary
    may_be_utf_16: bool = False

    @functools.cached_property
    def before(self) -> np.ndarray:
        """How many line feeds are before each stretch, and in all of them: int64[stretches + 1]."""
        return row_offsets(self.newlines)

    def numbers(self, offsets: np.ndarray) -> np.ndarray:
        """Returns how many line feeds are before some bytes, int64[n], ascending: int64[n].

        One stretch is read for all bytes in it.

        Raises:
            InputError: the file ends before.
        """
        numbers = [np.empty(0, np.int64)]
        for own in runs_of(offsets // STRETCH_BYTES):
            stretch = int(offsets[own.start]) // STRETCH_BYTES
            wanted, text = offsets[own] - stretch * STRETCH_BYTES, bytearray()
            pieces = self._pieces(stretch * STRETCH_BYTES)
            while len(text) < wanted[-1] and (piece := next(pieces, b'')):
                text += piece
            if len(text) < wanted[-1]:
                raise changed(self.file)
            feeds = np.flatnonzero(np.frombuffer(text, np.uint8) == ord('\n'))
            numbers.append(int(self.before[stretch]) + np.searchsorted(feeds, wanted))
        return np.concatenate(numbers)

    def bounds(self, number: int) -> tuple[int, int] | None:
        """Returns where a line begins and ends, by its number from 0; None if there are not so many."""
        if not 0 <= number <= self.before[-1]:
            return None
        stretch = max(0, int(np.searchsorted(self.before, number)) - 1)
        left, at, text = number - int(self.before[stretch]), stretch * STRETCH_BYTES, bytearray()
        for piece in itertools.chain(self._pieces(at), [None]):
            text += piece or b''
            if piece is not None and len(text) < STRETCH_BYTES:
                continue  # the line begins in this stretch, or at its end
            start = after_newlines(bytes(text), left)
            if start is not None and (end := text.find(b'\n', start) + 1):
                return at + start, at + end
        return None if start is None or start == len(text) else (at + start, at + len(text))

    def _pieces(self, offset: int) -> Iterator[bytes]:
        return pieces_from(self.file, offset, self.open_binary, self.may_be_utf_16)


FileLines = Sequence[TextLines]
"""Those of files that are read side by side."""


def after_newlines(data: bytes, count: int, start: int = 0) -> int | None:
    r"""Returns the position after the `count`-th line feed from `start` on; None if there are fewer.

    >>> after_newlines(b'a\nb\nc\n', 2)
    4
    """
    if count == 0:
        return start
    for piece_start in range(start, len(data), PIECE_BYTES):
        size = min(PIECE_BYTES, len(data) - piece_start)
        is_newline = np.frombuffer(data, np.uint8, size, piece_start) == ord('\n')
        in_piece = int(np.count_nonzero(is_newline))
        if in_piece >= count:
            return piece_start + int(np.flatnonzero(is_newline)[count - 1]) + 1
        count -= in_piece
    return None


def changed(file: CorpusFile) -> InputError:
    """Returns the error for a file that is not the one that rows were made of."""
    return InputError(
        f'{file.path} has changed since the rows were made of it; `tokbeam verify --rerun all --job JOB.toml` '
        'names what differs'
    )
