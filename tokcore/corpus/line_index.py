"""The line index of a bitext: where in each file the line of a given number begins.

Byte ranges of the two files of a pair hold different lines, so before a pair can be cut, a first
pass counts the line feeds in each small chunk of both files. The sums tell in which chunk the n-th
line feed lies; its exact byte is found by whoever reads from that chunk on. The kernels here find
the lines of a block and their TAB-separated columns, 64 bytes at a time.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.corpus import CorpusFile, OpenBinary, Split
from tokcore.corpus.storage import PIECE_BYTES, open_stored, read_range
from tokcore.kernels.jit import kernel, kernel_without_allocation
from tokcore.kernels.simd import CHUNK, byte_range_mask, popcount, trailing_zeros

CHUNKS_PER_ITEM = 16
"""Chunks to a work item: an item is then filled to 14/16 or more on its fuller side and reads at
most 1/16 in vain; half of it wastes twice that, twice of it doubles the index."""

UNIT_BYTES = 8 << 20
"""The least that is counted at a time, however small the work items: below, a task's overhead
outweighs its reading."""

_CHUNK = np.uint64(CHUNK)
_0, _1, _2 = np.uint64(0), np.uint64(1), np.uint64(2)

# What `cut_columns` says of a line.
COVERED = 0
WITH_OTHERS = 1
MISSING_COLUMN_CODE = 2


@dataclass(frozen=True)
class IndexRange:
    """What is counted at a time: chunks of `chunk_bytes` of a plain file, or a whole stream."""

    split: str
    side: int  # 0 source, 1 target
    file_index: int
    file: CorpusFile
    start: int
    end: int
    chunk_bytes: int

    @property
    def stored_bytes(self) -> int:
        """How much of the file as it is stored."""
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
        """Returns the chunk whose line feeds include the one before this line (0-based)."""
        return max(0, int(np.searchsorted(self.newlines_before, line)) - 1)

    def start_of(self, chunk: int) -> int:
        """Returns the byte where a chunk begins; the file's size for those past the end."""
        return min(chunk * self.chunk_bytes, self.file.size)


def index_items(split: Split, item_bytes: int, unit_bytes: int = UNIT_BYTES) -> list[IndexRange]:
    """Returns what must be counted before a bitext can be cut into items of `item_bytes`.

    Nothing of empty files.
    """
    chunk = max(1, item_bytes // CHUNKS_PER_ITEM)
    step = chunk * max(1, max(item_bytes, unit_bytes) // chunk)
    ranges = []
    for place, pair in zip(split.file_indexes, split.files, strict=True):
        for side, file in enumerate(pair):
            unit = max(1, file.size) if file.is_stream else step
            size = unit if file.is_stream else file.size
            ranges += [
                IndexRange(
                    split.name, side, place, file, start, min(start + unit, file.size), chunk
                )
                for start in range(0, size, unit)
            ]
    return ranges


def count_lines(range: IndexRange, open_binary: OpenBinary) -> LineCount:
    """Counts the line feeds of a range.

    Raises:
      InputError: if the file cannot be read, has changed its size, or is a gzip file cut off or
        damaged.
    """
    count = _count_stream if range.file.is_stream else _count_chunks
    return count(range, open_binary)


def join_counts(file: CorpusFile, counts: Iterable[LineCount]) -> LineIndex:
    """Joins the counts of one file, given in any order, to its index.

    Raises:
      ValueError: if they do not cover the file exactly.
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


def after_newlines(data: bytes, count: int, start: int = 0) -> int | None:
    r"""Returns the place after the `count`-th line feed from `start` on, None if there are fewer.

    >>> after_newlines(b'a\nb\nc\n', 2)
    4
    """
    if count == 0:
        return start
    for piece_start in range(start, len(data), PIECE_BYTES):
        size = min(PIECE_BYTES, len(data) - piece_start)
        is_newline = np.frombuffer(data, np.uint8, size, piece_start) == ord('\n')
        here = int(np.count_nonzero(is_newline))
        if here >= count:
            return piece_start + int(np.flatnonzero(is_newline)[count - 1]) + 1
        count -= here
    return None


def _count_chunks(range: IndexRange, open_binary: OpenBinary) -> LineCount:
    newlines = np.zeros(-(-(range.end - range.start) // range.chunk_bytes), np.int64)
    piece = b''
    position = range.start
    with open_stored(range.file, open_binary) as stream:
        while position < range.end:
            piece = read_range(stream, range.file, position, min(position + PIECE_BYTES, range.end))
            places = np.flatnonzero(np.frombuffer(piece, np.uint8) == ord('\n'))
            first = (position - range.start) // range.chunk_bytes
            chunks = (places + (position - range.start)) // range.chunk_bytes - first
            found = np.bincount(chunks)
            newlines[first : first + len(found)] += found
            position += len(piece)
    return LineCount(range, newlines, range.end - range.start, piece.endswith(b'\n'))


def _count_stream(range: IndexRange, open_binary: OpenBinary) -> LineCount:
    newlines = text_bytes = 0
    piece = b''
    for piece in text_pieces(range.file, open_binary):
        newlines += int(np.count_nonzero(np.frombuffer(piece, np.uint8) == ord('\n')))
        text_bytes += len(piece)
    return LineCount(range, np.array([newlines], np.int64), text_bytes, piece.endswith(b'\n'))


@kernel_without_allocation
def count_buffer_lines(data):
    """The number of lines; the last may lack its '\\n'."""
    total = _0
    position, end = _0, np.uint64(len(data))
    while position + _CHUNK <= end:
        total += popcount(byte_range_mask(data, position, 0x0A, 0x0A))
        position += _CHUNK
    while position < end:
        total += np.uint64(data[position] == 0x0A)
        position += _1
    if end > _0 and data[end - _1] != 0x0A:
        total += _1
    return np.int64(total)


@kernel
def line_bounds(data):
    """Returns where each line begins, and its '\\n' or the data's end is: int64[lines] each."""
    lines = count_buffer_lines(data)
    starts = np.empty(lines, np.int64)
    ends = np.empty(lines + 2, np.int64)
    find_ends(data, ends)
    if lines > 0:
        # Whatever `find_ends` wrote behind the last '\n'.
        if data[len(data) - 1] != 0x0A:
            ends[lines - 1] = len(data)
        starts[0] = 0
    for line in range(1, lines):
        starts[line] = ends[line - 1] + 1
    return starts, ends[:lines]


@kernel_without_allocation
def cut_columns(data, starts, ends, columns, keeps_tabs, cell_starts, cell_ends, coverage):
    """Fills in where each line's wanted columns are, and whether that is all of the line.

    `columns` int64[c], ascending; with `keeps_tabs` the last of them goes on to the line's end.
    `cell_starts`, `cell_ends` int64[lines, c]: a column that is not
    there is no bytes at the line's end. `coverage` uint8[lines]: `COVERED`, `WITH_OTHERS` if there
    are columns that are not wanted, `MISSING_COLUMN_CODE` if too few.
    """
    for line in range(len(starts)):
        end = ends[line]
        start = starts[line]
        column = 0
        found = 0
        coverage[line] = COVERED
        while found < len(columns) and start <= end:
            tab = find_tab(data, start, end)
            if columns[found] == column:
                if keeps_tabs and found + 1 == len(columns):
                    tab = end
                cell_starts[line, found] = start
                cell_ends[line, found] = tab
                found += 1
            else:
                coverage[line] = WITH_OTHERS
            start = tab + 1
            column += 1
        if start <= end:
            coverage[line] = WITH_OTHERS
        if found < len(columns):
            coverage[line] = MISSING_COLUMN_CODE
        for missing in range(found, len(columns)):
            cell_starts[line, missing] = end
            cell_ends[line, missing] = end


@kernel_without_allocation
def find_ends(data, ends):
    """Fills in where each '\\n' is; `ends` has room for two more, which may hold anything then.

    Two are written for each 64 bytes even where there are fewer: how many there are is too often
    guessed wrong.
    """
    line = _0
    position, end = _0, np.uint64(len(data))
    while position + _CHUNK <= end:
        newlines = byte_range_mask(data, position, 0x0A, 0x0A)
        found = line + popcount(newlines)
        ends[line] = np.int64(position + trailing_zeros(newlines))
        newlines &= newlines - _1
        ends[line + _1] = np.int64(position + trailing_zeros(newlines))
        newlines &= newlines - _1
        line += _2
        while newlines != _0:
            ends[line] = np.int64(position + trailing_zeros(newlines))
            line += _1
            newlines &= newlines - _1
        line = found
        position += _CHUNK
    while position < end:
        if data[position] == 0x0A:
            ends[line] = np.int64(position)
            line += _1
        position += _1


@kernel_without_allocation
def find_tab(data, start, end):
    """Where the first TAB of data[start:end] is, else `end`."""
    position, last = np.uint64(start), np.uint64(end)
    while position < last and position + _CHUNK <= np.uint64(len(data)):
        tabs = byte_range_mask(data, position, 0x09, 0x09)
        if tabs != _0:
            return np.int64(min(position + trailing_zeros(tabs), last))
        position += _CHUNK
    while position < last:
        if data[position] == 0x09:
            return np.int64(position)
        position += _1
    return np.int64(last)
