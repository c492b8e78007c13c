"""Blocks of whole lines to rows of stripped text, as Tensor2Tensor reads text through `tf.gfile`.

Lines end at '\\n' only, every '\\r' is dropped, what is left must be strict UTF-8, and Unicode
whitespace is stripped at both ends. Every line becomes a row, is counted as empty, or is a reject
with its place and reason: nothing is lost. What is too long is that, whatever else it may be. Rows
are places in the block's text; nothing is copied.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.corpus.dataset import MAX_LINE_BYTES, LongLine
from tokcore.corpus.formats import line_kernels
from tokcore.corpus.long_lines import BEGINNING_BYTES
from tokcore.corpus.rows import INVALID_UTF8, MISSING_COLUMN, TOO_LONG, Reason, Reject, Rows, Side
from tokcore.corpus.utf8_damage import find_damage
from tokcore.text.unicode_tables import whitespace_table

_BYTE_KINDS = read_only(line_kernels.byte_classes())


@dataclass(frozen=True)
class _Lines:
    data: bytes
    offset: int
    borders: np.ndarray  # int64[lines + 1] in `data`
    damaged: np.ndarray  # uint8[lines]: 1 for those in `damages` or `too_long`
    damages: dict[int, int]  # where in `data` a line's UTF-8 breaks
    too_long: frozenset[int]
    text: np.ndarray  # `data` without '\r'
    text_borders: np.ndarray  # int64[lines + 1] in `text`

    def __len__(self) -> int:
        return len(self.damaged)

    def reject(self, line: int, reason: Reason, side: int) -> Reject:
        start, end = self.borders[line : line + 2].tolist()
        end -= self.data.endswith(b'\n', start, end)
        at = self.offset + start
        if reason == TOO_LONG:
            beginning = self.data[start : min(end, start + BEGINNING_BYTES)]
            return Reject(reason, side, at, at, beginning, end - start)
        damage = self.offset + self.damages.get(line, start)
        return Reject(reason, side, at, damage, self.data[start:end])


def _scan(data: bytes, offset: int, max_line_bytes: int) -> _Lines:
    text = np.frombuffer(data, np.uint8)
    lines = line_kernels.count_lines(text)
    borders = np.empty(lines + 1, np.int64)
    damaged = np.zeros(lines, np.uint8)
    text_borders = borders
    returns = line_kernels.scan_lines(text, _BYTE_KINDS, borders, damaged)
    too_long = _too_long(data, borders, max_line_bytes)
    damaged[too_long] = 0
    damages = {}
    for line in np.flatnonzero(damaged).tolist():
        start, end = borders[line : line + 2].tolist()
        damage = find_damage(data[start:end])
        if damage is None:
            damaged[line] = 0
        else:
            damages[line] = start + damage
    damaged[too_long] = 1
    if returns:
        text, text_borders = line_kernels.drop_returns(text, read_only(borders), returns)
    return _Lines(
        data,
        offset,
        borders,
        damaged,
        damages,
        frozenset(too_long.tolist()),
        read_only(text),
        read_only(text_borders),
    )


def _too_long(data: bytes, borders: np.ndarray, max_line_bytes: int) -> np.ndarray:
    """The lines of more bytes than that, before their '\n': int64[...]."""
    if len(data) <= max_line_bytes:
        return np.empty(0, np.int64)
    sizes = np.diff(borders) - 1
    sizes[-1] += not data.endswith(b'\n')
    return np.flatnonzero(sizes > max_line_bytes)


def _strip(lines: _Lines) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    verdicts = np.empty(len(lines), np.uint8)
    starts = np.empty(len(lines), np.int64)
    ends = np.empty(len(lines), np.int64)
    line_kernels.strip_lines(
        lines.text,
        lines.text_borders,
        read_only(lines.damaged),
        whitespace_table(),
        verdicts,
        starts,
        ends,
    )
    return verdicts, starts, ends


def _rows(
    lines: _Lines,
    verdicts: np.ndarray,
    columns: list[tuple[np.ndarray, np.ndarray, np.ndarray]],
    rejects: Iterator[Reject],
) -> Rows:
    """Keeps the lines whose verdict says so, in each (text, starts, ends) of `columns`."""
    line_starts = lines.borders[:-1]
    if verdicts.any():
        kept = np.flatnonzero(verdicts == line_kernels.KEPT)
        columns = [(text, starts[kept], ends[kept]) for text, starts, ends in columns]
        line_starts = line_starts[kept]
    return Rows(
        sides=tuple(Side(*column) for column in columns),
        offset=lines.offset,
        line_starts=line_starts,
        lines=len(lines),
        empty=int(np.count_nonzero(verdicts == line_kernels.EMPTY)),
        rejects=tuple(rejects),
    )


def text_rows(data: bytes, offset: int, max_line_bytes: int = MAX_LINE_BYTES) -> Rows:
    """Returns the rows of a block of whole lines that begins at byte `offset` of its file.

    `text_rows(b' a\\r\\n\\nb', 10)` has the rows 'a' and 'b' at the offsets 10 and 15, and one
    empty line. The last line may lack its '\\n'. The rows have one side.
    """
    lines = _scan(data, offset, max_line_bytes)
    verdicts, starts, ends = _strip(lines)
    invalid = np.flatnonzero(verdicts == line_kernels.INVALID).tolist()
    rejects = (_invalid((lines,), line) for line in invalid)
    return _rows(lines, verdicts, [(lines.text, starts, ends)], rejects)


def tsv_rows(
    data: bytes, offset: int, columns: tuple[int, ...], max_line_bytes: int = MAX_LINE_BYTES
) -> Rows:
    """Returns the rows of a block of TAB-separated lines, one side for each 0-based column.

    A blank line, or one with a blank wanted column, is empty; a line that has too few columns is a
    reject. Raises ValueError if no column or a negative one is asked for.
    """
    if not columns or min(columns) < 0:
        raise ValueError(f'columns must be at least one number from 0 on, not {columns!r}')
    lines = _scan(data, offset, max_line_bytes)
    verdicts = np.empty(len(lines), np.uint8)
    starts = np.empty((len(columns), len(lines)), np.int64)
    ends = np.empty((len(columns), len(lines)), np.int64)
    line_kernels.cut_columns(
        lines.text,
        lines.text_borders,
        read_only(lines.damaged),
        whitespace_table(),
        np.array(columns, np.int64),
        verdicts,
        starts,
        ends,
    )
    rejects = (
        lines.reject(line, MISSING_COLUMN, 0)
        if verdicts[line] == line_kernels.MISSING_COLUMN
        else _invalid((lines,), line)
        for line in np.flatnonzero(verdicts >= line_kernels.MISSING_COLUMN).tolist()
    )
    sides = [(lines.text, starts[side], ends[side]) for side in range(len(columns))]
    return _rows(lines, verdicts, sides, rejects)


def bitext_rows(
    source: bytes,
    source_offset: int,
    target: bytes,
    target_offset: int,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Rows:
    """Returns the rows of two blocks aligned line by line, with two sides.

    A pair with a blank side is empty; if both sides are invalid UTF-8, or both too long, the source
    is reported. Raises ValueError if the blocks differ in their number of lines.
    """
    files = (
        _scan(source, source_offset, max_line_bytes),
        _scan(target, target_offset, max_line_bytes),
    )
    if len(files[0]) != len(files[1]):
        raise ValueError(
            f'the source block has {len(files[0])} lines and the target block {len(files[1])}'
        )
    stripped = [_strip(lines) for lines in files]
    verdicts = np.maximum(stripped[0][0], stripped[1][0])  # invalid over empty over kept
    invalid = np.flatnonzero(verdicts == line_kernels.INVALID).tolist()
    rejects = (_invalid(files, line) for line in invalid)
    columns = [(lines.text, starts, ends) for lines, (_, starts, ends) in zip(files, stripped)]
    return _rows(files[0], verdicts, columns, rejects)


def _invalid(files: tuple[_Lines, ...], line: int) -> Reject:
    """The reject of a line of a file, or of a pair, that is too long or not UTF-8."""
    for side, lines in enumerate(files):
        if line in lines.too_long:
            return lines.reject(line, TOO_LONG, side)
    side = int(line not in files[0].damages)
    return files[side].reject(line, INVALID_UTF8, side)


def long_rows(line: LongLine, sides: int, offset: int) -> Rows:
    """Returns what a line becomes that was read over, or its pair, as rows of so many sides.

    `offset` is that of the line in the (source) file.
    """
    nothing = Side(*(np.empty(0, kind) for kind in (np.uint8, np.int64, np.int64)))
    reject = Reject(TOO_LONG, line.side, line.offset, line.offset, line.beginning, line.bytes)
    return Rows((nothing,) * sides, offset, np.empty(0, np.int64), 1, 0, (reject,))
