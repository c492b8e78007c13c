r"""Blocks of whole lines to rows: each line is a row, is empty, or is rejected.

'\n' or '\r\n' ends a line; a '\r' elsewhere is text, also at the end of a last line without '\n'. A
byte order mark at the start of a file belongs to no row. The normalizer decides which text a line is,
whether it is empty, and whether it is text at all. A line that is too long is rejected as such, and
not looked at.
"""

import codecs
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.corpus.corpus import (
    INVALID_UTF8,
    MAX_LINE_BYTES,
    TOO_LONG,
    Block,
    LongLine,
    Reject,
    Rows,
)
from tokcore.corpus.line_reading import BEGINNING_BYTES, LineReader
from tokcore.kernels.jit import kernel, kernel_without_allocation
from tokcore.kernels.simd import CHUNK, byte_range_mask, popcount, trailing_zeros
from tokcore.text.rows import Normalizer, Side

_CHUNK = np.uint64(CHUNK)
_0, _1, _2 = np.uint64(0), np.uint64(1), np.uint64(2)


class PlainTextReader(LineReader):
    """Reads plain text, whose lines are rows of one side."""

    rows_are_of_lines = True

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        if block.long_lines:
            return long_rows(block.long_lines[0], 1, block.offset)
        [text] = block.texts
        return text_rows(text.data, text.offset, normalizer, block.max_line_bytes)


def text_rows(
    data: bytes, offset: int, normalizer: Normalizer, max_line_bytes: int = MAX_LINE_BYTES
) -> Rows:
    """Returns the rows of a block of whole lines that begins at byte `offset` of its file.

    `text_rows(b' a\\r\\n\\nb', 10, T2T_LINES)` has the rows 'a' and 'b' at the offsets 10 and 15,
    and one empty line. The last line may lack its '\\n'. The rows have one side.
    """
    lines = lines_of(data, offset, max_line_bytes)
    normalized = normalizer.apply(lines.side())
    side = normalized.side
    rejects = line_rejects([lines], [normalized.damages])
    return select_lines(lines, side.ends > side.starts, [side], rejects)


@dataclass(frozen=True)
class BlockLines:
    """The lines of a block, from byte `offset` of its file on."""

    data: bytes
    offset: int
    bounds: np.ndarray  # int64[lines + 1] in `data`: see `line_bounds`
    text_ends: np.ndarray  # int64[lines]
    too_long: frozenset[int]

    def __len__(self) -> int:
        return len(self.text_ends)

    @property
    def starts(self) -> np.ndarray:
        return self.bounds[:-1]

    @property
    def text(self) -> np.ndarray:
        return np.frombuffer(self.data, np.uint8)

    def side(self) -> Side:
        """Returns the text of the lines as rows; those that are too long are empty."""
        starts, ends = self.starts, self.text_ends
        if mark := mark_bytes(self.data, self.offset):
            starts = np.maximum(starts, mark)
        if self.too_long:
            ends = ends.copy()
            too_long = list(self.too_long)
            ends[too_long] = starts[too_long]
        return Side(self.text, starts, ends)

    def reject(self, line: int, reason: str, side: int, damage: int | None = None) -> Reject:
        """Returns the reject of a line; `damage` is the position in `data` where its UTF-8 breaks."""
        start, end = int(self.bounds[line]), int(self.bounds[line + 1]) - 1
        offset = self.offset + start
        if reason == TOO_LONG:
            beginning = self.data[start : min(end, start + BEGINNING_BYTES)]
            return Reject(reason, side, offset, offset, beginning, end - start)
        position = offset if damage is None else self.offset + damage
        return Reject(reason, side, offset, position, self.data[start:end])


def lines_of(data: bytes, offset: int, max_line_bytes: int) -> BlockLines:
    """Returns the lines of a block that begins at byte `offset` of its file."""
    bounds, text_ends = line_bounds(np.frombuffer(data, np.uint8))
    too_long: frozenset[int] = frozenset()
    if len(data) > max_line_bytes:
        too_long = frozenset(np.flatnonzero(np.diff(bounds) - 1 > max_line_bytes).tolist())
    return BlockLines(data, offset, bounds, text_ends, too_long)


def mark_bytes(data: bytes, offset: int) -> int:
    """Returns the length of the byte order mark at a file's start, which belongs to no row, or 0.

    `data` begins at byte `offset` of the file, and has whole lines.
    """
    return len(codecs.BOM_UTF8) if not offset and data.startswith(codecs.BOM_UTF8) else 0


def select_lines(
    lines: BlockLines, is_row: np.ndarray, sides: Sequence[Side], rejects: Iterator[Reject]
) -> Rows:
    """Returns the lines where `is_row`, bool[lines], as rows with the text of `sides`.

    `rejects`, in the order of the lines, are of other lines; all that remain are empty.
    """
    rejected = tuple(rejects)
    line_starts = lines.starts
    if not is_row.all():
        selected = np.flatnonzero(is_row)
        sides = [side.take(selected) for side in sides]
        line_starts = line_starts[selected]
    return Rows(
        sides=tuple(sides),
        offset=lines.offset,
        line_starts=line_starts,
        lines=len(lines),
        empty=len(lines) - len(line_starts) - len(rejected),
        rejects=rejected,
    )


def line_rejects(
    files: Sequence[BlockLines], damages: Sequence[Mapping[int, int]]
) -> Iterator[Reject]:
    """Returns the rejects of the lines of a file, or of a pair, that are too long or not UTF-8."""
    rejected = {line for lines in files for line in lines.too_long}.union(*damages)
    return (line_reject(files, damages, line) for line in sorted(rejected))


def line_reject(
    files: Sequence[BlockLines], damages: Sequence[Mapping[int, int]], line: int
) -> Reject:
    """Returns the reject of a line that is too long or not UTF-8, in the first such file."""
    for side, lines in enumerate(files):
        if line in lines.too_long:
            return lines.reject(line, TOO_LONG, side)
    side = next(side for side, of_file in enumerate(damages) if line in of_file)
    return files[side].reject(line, INVALID_UTF8, side, damages[side][line])


def long_rows(line: LongLine, sides: int, offset: int) -> Rows:
    """Returns no rows of so many sides, and the reject of a line that is too long.

    `offset` is that of the line in the (source) file.
    """
    nothing = Side(np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64))
    reject = Reject(TOO_LONG, line.side, line.offset, line.offset, line.beginning, line.nbytes)
    return Rows((nothing,) * sides, offset, np.empty(0, np.int64), 1, 0, (reject,))


@kernel_without_allocation
def count_buffer_lines(data):
    """Returns the number of lines; the last may lack its '\\n'."""
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
    """Returns the bounds of lines, int64[lines + 1], and where the text of each ends, int64[lines].

    Line i begins at bounds[i], and its '\\n' is at bounds[i + 1] - 1; or would be, if the last line lacks
    it. The text ends before the '\\n' or '\\r\\n', or with the data.
    """
    lines = count_buffer_lines(data)
    bounds = np.empty(lines + 3, np.int64)
    text_ends = np.empty(lines + 2, np.int64)
    bounds[0] = 0
    _find_ends(data, bounds, text_ends)
    # `_find_ends` may have written anything after the last '\n'.
    if lines > 0 and data[len(data) - 1] != 0x0A:
        bounds[lines] = len(data) + 1
        text_ends[lines - 1] = len(data)
    return bounds[: lines + 1], text_ends[:lines]


@kernel_without_allocation
def _find_ends(data, bounds, text_ends):
    """Fills in where each line that has a '\\n' ends, for `line_bounds`.

    Both arrays have two more elements than needed, with any values then. Two ends are written for each
    64 bytes, even if there are fewer: a branch on their number is mispredicted too often.
    """
    line = _0
    position, end = _0, np.uint64(len(data))
    while position + _CHUNK <= end:
        newlines = byte_range_mask(data, position, 0x0A, 0x0A)
        next_line = line + popcount(newlines)
        _write_end(data, position + trailing_zeros(newlines), line, bounds, text_ends)
        newlines &= newlines - _1
        _write_end(data, position + trailing_zeros(newlines), line + _1, bounds, text_ends)
        newlines &= newlines - _1
        line += _2
        while newlines != _0:
            _write_end(data, position + trailing_zeros(newlines), line, bounds, text_ends)
            line += _1
            newlines &= newlines - _1
        line = next_line
        position += _CHUNK
    while position < end:
        if data[position] == 0x0A:
            _write_end(data, position, line, bounds, text_ends)
            line += _1
        position += _1


@kernel_without_allocation
def _write_end(data, end, line, bounds, text_ends):
    """Writes the end of a line whose '\\n' is at `end`, which is at most the size of the data."""
    bounds[line + _1] = np.int64(end + _1)
    before = end - np.uint64(end > _0)
    text_ends[line] = np.int64(end) - np.int64(data[before] == 0x0D)
