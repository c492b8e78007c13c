"""Blocks of whole lines to rows: every line becomes a row, is empty, or is a reject.

Lines end at '\\n' only. What text a line is, and whether it is empty or no text at all, says the
normalizer; a line that is too long is that, whatever else it may be, and nobody looks at it.
Nothing is lost, and each row and each reject knows its place.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.corpus.corpus import (
    INVALID_UTF8,
    MAX_LINE_BYTES,
    MISSING_COLUMN,
    TOO_LONG,
    ExtraFeature,
    LongLine,
    Reject,
    Rows,
)
from tokcore.corpus.fields import ExtraField
from tokcore.corpus.line_index import MISSING_COLUMN_CODE, cut_columns, line_bounds
from tokcore.corpus.line_reading import BEGINNING_BYTES
from tokcore.text.rows import Normalizer, Side


@dataclass(frozen=True)
class BlockLines:
    """The lines of a block, from byte `offset` of its file on."""

    data: bytes
    offset: int
    starts: np.ndarray  # int64[lines] in `data`
    ends: np.ndarray  # int64[lines]: without the '\n'
    too_long: frozenset[int]

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def text(self) -> np.ndarray:
        return np.frombuffer(self.data, np.uint8)

    def side(self) -> Side:
        """The lines as rows; those that are too long are empty."""
        ends = self.ends
        if self.too_long:
            ends = ends.copy()
            longest = list(self.too_long)
            ends[longest] = self.starts[longest]
        return Side(self.text, self.starts, ends)

    def reject(self, line: int, reason: str, side: int, damage: int | None = None) -> Reject:
        """The reject of a line; `damage` is where in `data` its UTF-8 breaks."""
        start, end = int(self.starts[line]), int(self.ends[line])
        at = self.offset + start
        if reason == TOO_LONG:
            beginning = self.data[start : min(end, start + BEGINNING_BYTES)]
            return Reject(reason, side, at, at, beginning, end - start)
        position = at if damage is None else self.offset + damage
        return Reject(reason, side, at, position, self.data[start:end])


def lines_of(data: bytes, offset: int, max_line_bytes: int) -> BlockLines:
    """Returns the lines of a block that begins at byte `offset` of its file."""
    starts, ends = line_bounds(np.frombuffer(data, np.uint8))
    too_long = frozenset()
    if len(data) > max_line_bytes:
        too_long = frozenset(np.flatnonzero(ends - starts > max_line_bytes).tolist())
    return BlockLines(data, offset, starts, ends, too_long)


def select_lines(
    lines: BlockLines, is_kept: np.ndarray, sides: Sequence[Side], rejects: Iterator[Reject]
) -> Rows:
    """Returns as rows the lines of each side that `is_kept` (bool[lines]) says.

    `rejects`, in the order of the lines, are of others; what is left is empty.
    """
    left_out = tuple(rejects)
    line_starts = lines.starts
    if not is_kept.all():
        kept = np.flatnonzero(is_kept)
        sides = [side.take(kept) for side in sides]
        line_starts = line_starts[kept]
    return Rows(
        sides=tuple(sides),
        offset=lines.offset,
        line_starts=line_starts,
        lines=len(lines),
        empty=len(lines) - len(line_starts) - len(left_out),
        rejects=left_out,
    )


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


def tsv_rows(
    data: bytes,
    offset: int,
    columns: tuple[int, ...],
    normalizer: Normalizer,
    max_line_bytes: int = MAX_LINE_BYTES,
    kept: Sequence[ExtraField] = (),
    keep_tabs: bool = False,
) -> Rows:
    """Returns the rows of a block of TAB-separated lines, one side for each 0-based column.

    A blank line, or one with a blank wanted column, is empty; a line that has too few columns is a
    reject, and so is one where a column that goes along (`kept`, by number) does not fit its kind.
    With `keep_tabs` the last of all these columns is the rest of its line, whatever tabs are in it.
    Raises ValueError if no column or a negative one is asked for.
    """
    if not columns or min(columns) < 0:
        raise ValueError(f'columns must be at least one number from 0 on, not {columns!r}')
    lines = lines_of(data, offset, max_line_bytes)
    wanted = sorted({*columns, *(int(each.field) for each in kept)})
    rows = lines.side()
    starts = np.empty((len(lines), len(wanted)), np.int64)
    ends = np.empty((len(lines), len(wanted)), np.int64)
    coverage = np.empty(len(lines), np.uint8)
    columns_there = np.array(wanted, np.int64)
    cut_columns(rows.text, rows.starts, rows.ends, columns_there, keep_tabs, starts, ends, coverage)
    cells = normalizer.apply(Side(rows.text, starts.reshape(-1), ends.reshape(-1)))
    given = starts, ends
    shape = len(wanted), len(lines)
    starts = np.ascontiguousarray(cells.side.starts.reshape(starts.shape).T)
    ends = np.ascontiguousarray(cells.side.ends.reshape(shape[::-1]).T)
    texts = [*map(wanted.index, columns)]
    is_kept = (ends[texts] > starts[texts]).all(axis=0)
    damages = {}
    for cell in sorted(cells.damages, reverse=True):  # the first of a line is kept
        damages[cell // len(wanted)] = cells.damages[cell]
    missing = _look_at_whole_lines(rows, coverage, damages, normalizer)
    is_kept[list(damages)] = False
    reasons = dict.fromkeys(missing, MISSING_COLUMN)
    going_along: list[ExtraFeature] = []
    if kept:
        from tokcore.corpus.field_columns import extra_features_of_cells

        rows_kept = np.flatnonzero(is_kept)
        cells_kept = [
            Side(rows.text, *(bounds[rows_kept, wanted.index(int(each.field))] for bounds in given))
            for each in kept
        ]
        going_along, unfit = extra_features_of_cells(cells_kept, kept)
        reasons |= {int(rows_kept[row]): reason for row, reason in unfit.items()}
        fits = np.ones(len(rows_kept), bool)
        fits[list(unfit)] = False
        is_kept[rows_kept[~fits]] = False
        going_along = [each.select(fits) for each in going_along]
    rejects = (
        lines.reject(line, reasons[line], 0)
        if line in reasons
        else line_reject([lines], [damages], line)
        for line in sorted({*reasons, *damages, *lines.too_long})
    )
    sides = [Side(cells.side.text, starts[row], ends[row]) for row in texts]
    found = select_lines(lines, is_kept, sides, rejects)
    return dataclasses.replace(found, extra_features=tuple(going_along)) if kept else found


def _look_at_whole_lines(
    rows: Side, coverage: np.ndarray, damages: dict[int, int], normalizer: Normalizer
) -> set[int]:
    """Looks at lines of which the wanted columns do not tell all.

    Damage in other columns is added to `damages`. Returns the lines that lack a column and are
    neither damaged nor blank.
    """
    doubtful = np.union1d(np.flatnonzero(coverage), np.array(list(damages), np.int64))
    if not len(doubtful):
        return set()
    whole = normalizer.apply(rows.take(doubtful))
    damages.update((int(doubtful[row]), place) for row, place in whole.damages.items())
    has_text = whole.side.ends > whole.side.starts
    lacking = doubtful[has_text & (coverage[doubtful] == MISSING_COLUMN_CODE)]
    return set(lacking.tolist()) - damages.keys()


def bitext_rows(
    source: bytes,
    source_offset: int,
    target: bytes,
    target_offset: int,
    normalizer: Normalizer,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Rows:
    """Returns the rows of two blocks aligned line by line, with two sides.

    A pair with a blank side is empty; if both sides are invalid UTF-8, or both too long, the source
    is reported. Raises ValueError if the blocks differ in their number of lines.
    """
    files = (
        lines_of(source, source_offset, max_line_bytes),
        lines_of(target, target_offset, max_line_bytes),
    )
    if len(files[0]) != len(files[1]):
        raise ValueError(
            f'the source block has {len(files[0])} lines and the target block {len(files[1])}'
        )
    normalized = [normalizer.apply(lines.side()) for lines in files]
    sides = [each.side for each in normalized]
    is_kept = (sides[0].ends > sides[0].starts) & (sides[1].ends > sides[1].starts)
    rejects = line_rejects(files, [each.damages for each in normalized])
    return select_lines(files[0], is_kept, sides, rejects)


def line_rejects(
    files: Sequence[BlockLines], damages: Sequence[Mapping[int, int]]
) -> Iterator[Reject]:
    """The rejects of lines of a file, or of a pair, that are too long or not UTF-8."""
    bad = {line for lines in files for line in lines.too_long}.union(*damages)
    return (line_reject(files, damages, line) for line in sorted(bad))


def line_reject(
    files: Sequence[BlockLines], damages: Sequence[Mapping[int, int]], line: int
) -> Reject:
    """The reject of a line that is too long or not UTF-8, of the first file where it is."""
    for side, lines in enumerate(files):
        if line in lines.too_long:
            return lines.reject(line, TOO_LONG, side)
    side = next(side for side, found in enumerate(damages) if line in found)
    return files[side].reject(line, INVALID_UTF8, side, damages[side][line])


def long_rows(line: LongLine, sides: int, offset: int) -> Rows:
    """Returns what a line becomes that was read over, or its pair, as rows of so many sides.

    `offset` is that of the line in the (source) file.
    """
    nothing = Side(*(np.empty(0, kind) for kind in (np.uint8, np.int64, np.int64)))
    reject = Reject(TOO_LONG, line.side, line.offset, line.offset, line.beginning, line.bytes)
    return Rows((nothing,) * sides, offset, np.empty(0, np.int64), 1, 0, (reject,))
