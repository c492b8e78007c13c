"""The rows of a block that are used: those that its dataset's filters keep, up to its limit.

Text that a filter changed goes through the normalizer again, as if it had been read so. Rows keep
their order and their features; dropped rows are counted by filter.
"""

from __future__ import annotations

import collections
import dataclasses
import sys
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tokcore.corpus.corpus import (
    Block,
    DroppedRow,
    Reject,
    RowFilter,
    RowLimits,
    Rows,
    Split,
    split_of,
)
from tokcore.corpus.formats import block_rows, format_reader
from tokcore.corpus.order_keys import rows_within, without_left_out
from tokcore.errors import InputError
from tokcore.filters.registry import load_filters
from tokcore.filters.user_function import PIECES, RowError
from tokcore.text.rows import Normalizer, Side

MOST_NUMBERS = (1 << 44) // PIECES
"""The most rows of a file where each may become several: `order_keys` takes
identities of 44 bits."""


def select_rows(block: Block, splits: Sequence[Split], normalizer: Normalizer) -> Rows:
    """Returns the rows of a block after filtering, up to the end of its dataset, that are not left out.

    Rows after the end are only counted; no filter sees them.

    Raises:
        InputError: a user's filter fails.
    """
    split = split_of(splits, block.split, block.file_index)
    if split is None:
        return block_rows(block, normalizer)
    rows = _selected(block, split, normalizer)
    return without_left_out(split.left_out, rows, block.file_index)


def _selected(block: Block, split: Split, normalizer: Normalizer) -> Rows:
    rows = block_rows(block, normalizer)
    if split.key_range is not None:
        rows = rows_within(split.key_range, rows, block.file_index)
    end = None
    if split.end is not None and block.file_index >= split.end[0]:
        end = split.end[1] if block.file_index == split.end[0] else 0
        makes_several = any(row_filter.makes_several for row_filter in load_filters(split.filters))
        step = PIECES if split.format.identity == 'row' and makes_several else 1
        # The end may be between rows made from one row, which then must be filtered.
        rows = _rows_before(rows, -(-end // step), block)
    if not split.filters:
        return rows
    rows = _filter_rows(rows, split, block, normalizer)
    if end is None:
        return rows
    count = int(np.searchsorted(rows.identities, end))
    return dataclasses.replace(
        rows.select(slice(count)), beyond_max_examples=rows.beyond_max_examples + len(rows) - count
    )


def find_end(
    blocks: Iterable[Block], split: Split, normalizer: Normalizer
) -> tuple[int, int] | None:
    """Returns the file index and identity just after the last row of a dataset with a limit.

    None if the dataset has no more rows than that.

    Args:
        blocks: of the dataset, in the order of files and rows; read only as far as needed.
        split: the dataset; `max_examples` counts the rows that its filters keep.
        normalizer: turns rows into text.

    Raises:
        InputError: a user's filter fails.
    """
    left = split.max_examples
    if left is None:
        return None
    for block in blocks:
        rows = block_rows(block, normalizer)
        if split.filters:
            rows = _filter_rows(rows, split, block, normalizer)
        if len(rows) >= left:
            return block.file_index, int(rows.identities[left - 1]) + 1
        left -= len(rows)
    return None


def _rows_before(rows: Rows, end: int, block: Block) -> Rows:
    """Returns the rows of a block before an offset in its (first) file.

    The rejects of a second file without the lines of the first all stay: which rows they are is not known.
    """
    count = int(np.searchsorted(rows.offsets, end))
    ends = [end, _same_line(block, end) if block.format.rows_are_lines else sys.maxsize]
    rejects = tuple(reject for reject in rows.rejects if reject.offset < ends[reject.side])
    return dataclasses.replace(
        rows.select(slice(count)),
        rejects=rejects,
        beyond_max_examples=len(rows) - count + len(rows.rejects) - len(rejects),
    )


def _same_line(block: Block, end: int) -> int:
    """Returns the offset in the last file after the lines that begin before an offset in the first."""
    first, last = block.texts[0], block.texts[-1]
    if end <= first.offset:
        return last.offset
    lines = first.data.count(b'\n', 0, end - 1 - first.offset)  # and one that begins after these
    ends = np.flatnonzero(np.frombuffer(last.data, np.uint8) == ord('\n'))
    return last.offset + int(ends[lines]) + 1 if lines < len(ends) else sys.maxsize


def _filter_rows(rows: Rows, split: Split, block: Block, normalizer: Normalizer) -> Rows:
    """Returns the rows that all filters of a split keep; unfit rows become rejects.

    Raises:
        InputError: a user's function fails, makes more than a worker can hold, or makes more rows
            from one than there are identities for.
    """
    file_index = block.file_index
    limits = RowLimits(block.max_line_bytes, block.format.forbidden_characters)
    sides = rows.sides
    sources = np.arange(len(rows))  # not descending: the row of the block that each was made from
    dropped_by: collections.Counter[str] = collections.Counter()
    added = 0
    dropped: list[tuple[int, DroppedRow]] = []
    rejects: list[Reject] = []
    filters = load_filters(split.filters)
    for row_filter in filters:
        try:
            result = row_filter.with_limits(limits).apply(sides)
        except RowError as error:
            where = _describe_row(rows, sources[error.row], split, file_index)
            raise InputError(f'{where}: {error}') from error
        before = sides
        sides = tuple(
            new if _is_selection(old, new, result.rows) else normalizer.apply(new.joined()).side
            for old, new in zip(before, result.sides, strict=True)
        )
        stays = np.ones(len(result.rows), bool) if result.is_kept is None else result.is_kept
        for side in sides:
            stays = stays & (side.ends > side.starts)
        is_gone = np.ones(len(sources), bool)
        is_gone[result.rows] = False
        added += len(result.rows) - len(sources) + int(np.count_nonzero(is_gone))
        is_gone[[unfit.row for unfit in result.unfit]] = False
        for unfit in result.unfit:
            offset = int(rows.offsets[sources[unfit.row]])
            line = '\t'.join(side.row(unfit.row) for side in before)
            rejects.append(Reject(unfit.reason, 0, offset, offset, line.encode(), why=unfit.why))
        dropped_by[row_filter.name] += int(np.count_nonzero(is_gone) + np.count_nonzero(~stays))
        old_sources, sources = sources, sources[result.rows]
        if split.keeps_dropped:
            dropped += _dropped_rows(row_filter, rows, before, old_sources, is_gone)
            dropped += _dropped_rows(row_filter, rows, sides, sources, ~stays)
        if not stays.all():
            sides, sources = tuple(side.take(stays) for side in sides), sources[stays]
    filtered = dataclasses.replace(
        rows,
        sides=sides,
        line_starts=rows.line_starts[sources],
        extra_features=tuple(column.select(sources) for column in rows.extra_features),
        filtered={name: count for name, count in sorted(dropped_by.items()) if count},
        added=added,
        rejects=(*rows.rejects, *sorted(rejects, key=lambda reject: reject.offset)),
        dropped=tuple(row for _, row in sorted(dropped, key=lambda source_row: source_row[0])),
    )
    if not any(row_filter.makes_several for row_filter in filters):
        return filtered
    first, bounds = block.texts[0], format_reader(block.format).bounds_of_units(block)
    # Where a block has its units as columns, its bytes are not those of the file.
    end = first.offset + len(first.data)
    if bounds is not None and len(bounds[1]):
        end = int(bounds[1][-1])
    identities = _identities(rows, sources, split, file_index, end)
    return dataclasses.replace(filtered, assigned_identities=identities)


def _identities(
    rows: Rows, sources: np.ndarray, split: Split, file_index: int, end: int
) -> np.ndarray:
    """Returns an identity for each row made from `rows`, whose text ends at `end`.

    As int64[…], ascending.
    """
    numbers = np.arange(len(sources)) - np.searchsorted(sources, sources)
    offsets = rows.offsets
    step = PIECES if split.format.identity == 'row' else 1
    if step == 1:
        # The offsets between the starts of two rows are free.
        room = np.append(offsets, end)[1:] - offsets
    else:
        room = np.full(len(offsets), step)
        if len(offsets) and offsets[-1] >= MOST_NUMBERS:
            raise InputError(
                f'{_describe_row(rows, -1, split, file_index)} is beyond the {MOST_NUMBERS} rows that a '
                'file may have with a filter that makes several of one; split the file'
            )
    too_many = np.flatnonzero(numbers >= room[sources])
    if len(too_many):
        row = sources[too_many[0]]
        count = np.count_nonzero(sources == row)
        raise InputError(
            f'{_describe_row(rows, row, split, file_index)}: filters made {count} rows of it, and there '
            f'can be {room[row]} at most; let the filter make fewer, or cut the text before'
        )
    return offsets[sources] * step + numbers


def _describe_row(rows: Rows, row: int, split: Split, file_index: int) -> str:
    what = 'row' if split.format.identity == 'row' else 'the line that starts at byte'
    return f'{split.files_at(file_index)[0].path}: {what} {int(rows.offsets[row])}'


def _is_selection(before: Side, after: Side, rows: np.ndarray) -> bool:
    """Returns whether each row has exactly the text of the row that it was made from."""
    return (
        after.text.ctypes.data == before.text.ctypes.data
        and len(after.text) == len(before.text)
        and np.array_equal(after.starts, before.starts[rows])
        and np.array_equal(after.ends, before.ends[rows])
    )


def _dropped_rows(
    row_filter: RowFilter,
    rows: Rows,
    sides: tuple[Side, ...],
    sources: np.ndarray,
    is_dropped: np.ndarray,
) -> Iterator[tuple[int, DroppedRow]]:
    """Yields the rows that a filter dropped, each with its source row in the block."""
    for row in np.flatnonzero(is_dropped).tolist():
        source = int(sources[row])
        texts = tuple(side.row(row) for side in sides)
        yield source, DroppedRow(row_filter.name, int(rows.offsets[source]), texts)
