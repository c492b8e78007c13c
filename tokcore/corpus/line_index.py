"""The line index of a bitext: the byte where the n-th line of each file begins.

The same byte range of the two files of a pair holds different lines. Before a pair can be cut, a first
pass therefore counts the line feeds in each small chunk of both files. The sums show which chunk has
the n-th line feed; who reads from that chunk on finds its exact byte.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.corpus import CorpusFile, OpenBinary, Split
from tokcore.corpus.storage import PIECE_BYTES, open_stored, read_range

_CHUNKS_PER_ITEM = 16
"""With so many, an item is filled to at least 14/16 on its fuller side, and at most 1/16 of it is read in
vain. With half as many the waste doubles; with twice as many the index does."""

_UNIT_BYTES = 8 << 20
"""The least that one task counts, however small the work items: with less, the overhead of a task takes
longer than its reading."""


@dataclass(frozen=True)
class IndexRange:
    """What one task counts: chunks of `chunk_bytes` of an uncompressed file, or a whole stream."""

    split: str
    side: int  # 0 source, 1 target
    file_index: int
    file: CorpusFile
    start: int
    end: int
    chunk_bytes: int

    @property
    def stored_bytes(self) -> int:
        """The stored bytes that are read."""
        return self.end - self.start


@dataclass(frozen=True, eq=False)
class LineCount:
    """The line feeds of a range."""

    range: IndexRange
    newlines: np.ndarray  # int64[chunks]; one number for a gzip file
    text_bytes: int  # decompressed
    ends_with_newline: bool


@dataclass(frozen=True, eq=False)
class LineIndex:
    """The index of one whole file."""

    file: CorpusFile
    chunk_bytes: int
    newlines_before: np.ndarray  # int64[chunks + 1]: in all chunks before; the last is the total
    lines: int  # a last line without line feed is a line
    text_bytes: int

    def chunk_of(self, line: int) -> int:
        """Returns the chunk with the line feed before a (0-based) line."""
        return max(0, int(np.searchsorted(self.newlines_before, line)) - 1)

    def start_of(self, chunk: int) -> int:
        """Returns the byte where a chunk begins; the file's size for those past the end."""
        return min(chunk * self.chunk_bytes, self.file.size)


def index_items(split: Split, item_bytes: int, unit_bytes: int = _UNIT_BYTES) -> list[IndexRange]:
    """Returns the ranges to be counted before a bitext can be cut; empty files have none."""
    chunk = max(1, item_bytes // _CHUNKS_PER_ITEM)
    step = chunk * max(1, max(item_bytes, unit_bytes) // chunk)
    ranges = []
    for file_index, pair in zip(split.file_indexes, split.files, strict=True):
        for side, file in enumerate(pair):
            unit = max(1, file.size) if file.is_stream else step
            size = unit if file.is_stream else file.size
            ranges += [
                IndexRange(
                    split.name, side, file_index, file, start, min(start + unit, file.size), chunk
                )
                for start in range(0, size, unit)
            ]
    return ranges


def count_lines(range: IndexRange, open_binary: OpenBinary) -> LineCount:
    """Counts the line feeds of a range.

    Raises:
        InputError: the file cannot be read, has changed its size, or is compressed and cut off or
            damaged.
    """
    return count_pieces(range, range_pieces(range, open_binary))


def range_pieces(range: IndexRange, open_binary: OpenBinary) -> Iterator[bytes]:
    """Yields the text of a range; raises InputError as `count_lines`."""
    if range.file.is_stream:
        yield from text_pieces(range.file, open_binary)
        return
    with open_stored(range.file, open_binary) as stream:
        position = range.start
        while position < range.end:
            end = min(position + PIECE_BYTES, range.end)
            yield read_range(stream, range.file, position, end)
            position = end


def count_pieces(range: IndexRange, pieces: Iterable[bytes]) -> LineCount:
    """Counts the line feeds of a range, whose text is given in pieces."""
    is_stream = range.file.is_stream
    chunks = 1 if is_stream else -(-(range.end - range.start) // range.chunk_bytes)
    newlines = np.zeros(chunks, np.int64)
    piece, position = b'', 0
    for piece in pieces:
        positions = np.flatnonzero(np.frombuffer(piece, np.uint8) == ord('\n'))
        if is_stream:
            newlines[0] += len(positions)
        else:
            first = position // range.chunk_bytes
            counts = np.bincount((positions + position) // range.chunk_bytes - first)
            newlines[first : first + len(counts)] += counts
        position += len(piece)
    return LineCount(range, newlines, position, piece.endswith(b'\n'))


def join_counts(file: CorpusFile, counts: Iterable[LineCount]) -> LineIndex:
    """Joins the counts of one file, in any order, to its index.

    Raises:
        ValueError: they do not cover the file exactly.
    """
    counts = sorted(counts, key=lambda count: count.range.start)
    end = 0
    for count in counts:
        if count.range.file != file or count.range.start != end:
            raise ValueError(f'line counts of {file.name} have a gap or overlap at byte {end}')
        end = count.range.end
    if end != file.size:
        raise ValueError(f'line counts of {file.name} end at byte {end} of {file.size}')
    text_bytes = sum(count.text_bytes for count in counts)
    newlines = np.concatenate([np.zeros(1, np.int64), *(count.newlines for count in counts)])
    newlines_before = np.cumsum(newlines)
    unfinished = text_bytes > 0 and not counts[-1].ends_with_newline
    return LineIndex(
        file=file,
        chunk_bytes=counts[0].range.chunk_bytes if counts else 1,
        newlines_before=newlines_before,
        lines=int(newlines_before[-1]) + unfinished,
        text_bytes=text_bytes,
    )
