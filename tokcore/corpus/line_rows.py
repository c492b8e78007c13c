r"""Blocks of whole lines to rows: each line is a row, is empty, or is rejected.

'\n' or '\r\n' ends a line; a '\r' elsewhere is text, also at the end of a last line without '\n'. A
byte order mark at the start of a file belongs to no row. The normalizer decides which text a line is,
whether it is empty, and whether it is text at all. A line that is too long is rejected as such, and
not looked at.
"""

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from tokcore.corpus.corpus import (
    INVALID_UTF8,
    MAX_LINE_BYTES,
    TOO_LONG,
    Block,
    ExtraFeature,
    Reject,
    Rows,
)
from tokcore.corpus.line_reading import BEGINNING_BYTES, LineReader
from tokcore.kernels.jit import kernel, kernel_without_allocation
from tokcore.kernels.simd import CHUNK, byte_range_mask, popcount, trailing_zeros
from tokcore.text.rows import Normalizer, Side

_CHUNK = np.uint64(CHUNK)
_0, _1, _2 = np.uint64(0), np.uint64(1), np.uint64(2)

_NONE: Mapping[int, Any] = MappingProxyType({})


class PlainTextReader(LineReader):
    """Reads plain text, whose lines are rows of one side."""

    rows_are_of_lines = True

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        if block.long_lines:
            return long_rows(block)
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
    return rows_of_lines([lines], [normalized.damages], [normalized.side])


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

    def side(self) -> Side:
        """Returns the text of the lines as rows; those that are too long are empty."""
        starts, ends = self.starts, self.text_ends
        if mark := mark_bytes(self.data, self.offset):
            starts = np.maximum(starts, mark)
        if self.too_long:
            ends = ends.copy()
            too_long = list(self.too_long)
            ends[too_long] = starts[too_long]
        return Side(np.frombuffer(self.data, np.uint8), starts, ends)

    def reject(self, line: int, reason: str, side: int, damage: int | None = None) -> Reject:
        """Returns the reject of a line; `damage` is the position in `data` where its UTF-8 breaks."""
        start, end = int(self.bounds[line]), int(self.bounds[line + 1]) - 1
        in_line = 0 if damage is None else damage - start
        return reject_of(reason, self.offset + start, self.data[start:end], side, in_line)


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


def rows_of_lines(
    files: Sequence[BlockLines],
    damages: Sequence[Mapping[int, int]],
    sides: Sequence[Side],
    reasons: Mapping[int, tuple[str, int]] = _NONE,
    features: Sequence[ExtraFeature] = (),
    unfit: Mapping[int, str] = _NONE,
) -> Rows:
    """Returns the rows of the lines of a file, or of the same lines of several files.

    Of several reasons against a line the first one counts: too long, not UTF-8, one of `reasons`, one of
    `unfit`. If it is against the lines of several files, the reject is of the first one.

    Args:
        files: the lines.
        damages: by line, of each file: the position in its data where the UTF-8 breaks.
        sides: of the rows, one for each line; see `finish_rows`.
        reasons: other reasons against lines, each with the number of the file.
        features: as `finish_rows` takes them.
        unfit: reasons against values of extra fields, which are in the last file.
    """
    rejects = {line: files[n].reject(line, reason, n) for line, (reason, n) in reasons.items()}
    for number, lines in reversed([*enumerate(files)]):
        for line, position in damages[number].items():
            rejects[line] = lines.reject(line, INVALID_UTF8, number, position)
    for number, lines in reversed([*enumerate(files)]):
        rejects |= {line: lines.reject(line, TOO_LONG, number) for line in lines.too_long}
    last = len(files) - 1
    bad_values = {line: files[last].reject(line, reason, last) for line, reason in unfit.items()}
    first = files[0]
    return finish_rows(first.offset, first.starts, None, sides, rejects, features, bad_values)


def finish_rows(
    offset: int,
    line_starts: np.ndarray,
    numbers: np.ndarray | None,
    sides: Sequence[Side],
    rejects: Mapping[int, Reject],
    features: Sequence[ExtraFeature] = (),
    unfit: Mapping[int, Reject] = _NONE,
) -> Rows:
    """Returns the rows that have text on all sides and are not rejected.

    Args:
        offset: of the block in its (first) file.
        line_starts: int64[lines], where each line of the block begins in it.
        numbers: int64[n], ascending, the line of each row of `sides`; None: all lines are rows.
        sides: of these rows.
        rejects: by line. All other lines without a row are empty.
        features: of the rows of `sides`.
        unfit: by row, its reject if a value of a feature does not fit; it counts if the row has text on
            all sides and is not rejected otherwise.
    """
    is_row = sides[0].ends > sides[0].starts
    for side in sides[1:]:
        is_row &= side.ends > side.starts
    if rejects:
        rejected = np.array([*rejects], np.int64)
        is_row[rejected if numbers is None else np.isin(numbers, rejected)] = False
    rejects = dict(rejects)
    for row, reject in unfit.items():
        if is_row[row]:
            is_row[row] = False
            rejects[row if numbers is None else int(numbers[row])] = reject
    starts = line_starts if numbers is None else line_starts[numbers]
    if not is_row.all():
        rows = np.flatnonzero(is_row)
        sides, starts = [side.take(rows) for side in sides], starts[rows]
        features = [feature.select(rows) for feature in features]
    return Rows(
        sides=tuple(sides),
        offset=offset,
        line_starts=starts,
        lines=len(line_starts),
        empty=len(line_starts) - len(starts) - len(rejects),
        rejects=tuple(rejects[line] for line in sorted(rejects)),
        extra_features=tuple(features),
    )


def reject_of(reason: str, offset: int, line: bytes, side: int = 0, damage: int = 0) -> Reject:
    """Returns the reject of a line at an offset; `damage` is the position in it where its UTF-8 breaks."""
    if reason == TOO_LONG:
        return Reject(reason, side, offset, offset, line[:BEGINNING_BYTES], len(line))
    return Reject(reason, side, offset, offset + damage, line)


def long_rows(block: Block) -> Rows:
    """Returns no rows, and the reject of the line that a block of a line that is too long has."""
    line, sides = block.long_lines[0], len(block.format.sides)
    nothing = Side(np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64))
    reject = Reject(TOO_LONG, line.side, line.offset, line.offset, line.beginning, line.nbytes)
    return Rows((nothing,) * sides, block.offset, np.empty(0, np.int64), 1, 0, (reject,))


def side_of_strings(strings: Sequence[bytes]) -> Side:
    """Returns strings as rows, with a line feed between them."""
    sizes = np.array([len(string) for string in strings], np.int64)
    ends = np.cumsum(sizes + 1) - 1
    return Side(np.frombuffer(b'\n'.join(strings), np.uint8), ends - sizes, ends)


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
