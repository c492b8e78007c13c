"""The rows of a block that are used: those that its dataset's filters leave, up to its limit.

Text that a filter changed goes through the normalizer again, as if it had been read so. Rows keep
their order and their features; dropped rows are counted by filter.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.corpus.corpus import Block, DroppedRow, Reject, Rows, Split, split_of
from tokcore.corpus.filters.registry import made_filters
from tokcore.corpus.filters.row_filter import Filtered, RowFilter, RowLimits, UnfitRow
from tokcore.corpus.filters.user_function import PIECES, RowError
from tokcore.corpus.formats import block_rows
from tokcore.errors import InputError
from tokcore.kernels.jit import read_only
from tokcore.text.rewriting import join_lines
from tokcore.text.rows import Normalizer, Side

MOST_NUMBERS = (1 << 44) // PIECES
"""Rows of a file that can be told apart then: `order_keys` takes identities of 44 bits."""


def select_rows(block: Block, splits: Sequence[Split], normalizer: Normalizer) -> Rows:
    """Returns a block's rows as filters leave them, but for those behind its dataset's end.

    The latter are only counted, and no filter sees them.

    Args:
        block: whole rows.
        splits: the corpus.
        normalizer: what makes text of rows.

    Raises:
        InputError: a user's filter fails.
    """
    rows = block_rows(block, normalizer)
    split = split_of(splits, block.split, block.file_index)
    if split is None:
        return rows
    end = None
    if split.end is not None and block.file_index >= split.end[0]:
        end = split.end[1] if block.file_index == split.end[0] else 0
        # The end may be between rows that come of one, which then is filtered.
        rows = _before(rows, -(-end // identity_step(split)))
    if not split.filters:
        return rows
    rows = filtered_rows(rows, split, block, normalizer)
    return rows if end is None else _pieces_before(rows, end)


def find_end(
    blocks: Iterable[Block], split: Split, normalizer: Normalizer
) -> tuple[int, int] | None:
    """Returns place and identity behind the last row that is taken; None if there are no more rows.

    Args:
        blocks: of the dataset, in the order of places and rows; no more are taken than are needed.
        split: the dataset; `max_examples` are those that its filters leave.
        normalizer: what makes text of rows.

    Raises:
        InputError: a user's filter fails.
    """
    left = split.max_examples
    for block in blocks:
        rows = block_rows(block, normalizer)
        if split.filters:
            rows = filtered_rows(rows, split, block, normalizer)
        if len(rows) >= left:
            return block.file_index, int(rows.identities[left - 1]) + 1
        left -= len(rows)
    return None


def _pieces_before(rows: Rows, end: int) -> Rows:
    """The rows whose identities are before one."""
    kept = int(np.searchsorted(rows.identities, end))
    return dataclasses.replace(
        rows.select(slice(kept)), beyond_max_examples=rows.beyond_max_examples + len(rows) - kept
    )


def _before(rows: Rows, end: int) -> Rows:
    """The rows before a place of their (first) file.

    Of a pair that is left out for what stands in its second file, nobody knows where it is in the
    first one: it stays.
    """
    kept = int(np.searchsorted(rows.offsets, end))
    rejects = tuple(each for each in rows.rejects if each.side or each.offset < end)
    return dataclasses.replace(
        rows.select(slice(kept)),
        rejects=rejects,
        beyond_max_examples=len(rows) - kept + len(rows.rejects) - len(rejects),
    )


def identity_step(split: Split) -> int:
    """Returns how far apart the identities of two rows are that follow each other in a file."""
    by_number = split.format.identity == 'row'
    if by_number and any(each.makes_several for each in made_filters(split.filters)):
        return PIECES
    return 1


@dataclass(frozen=True)
class _Taken:
    """Rows on their way.

    Attributes:
        sides: their texts.
        rows: int64[…], not descending: which of the block's rows each came from.
    """

    sides: tuple[Side, ...]
    rows: np.ndarray


def filtered_rows(rows: Rows, split: Split, block: Block, normalizer: Normalizer) -> Rows:
    """Returns what is left of rows. Those of which a filter makes what is no row are rejected.

    Args:
        rows: of the block.
        split: whose filters they go through.
        block: whole rows.
        normalizer: what made text of the rows.

    Raises:
        InputError: a user's function fails or makes more than a worker can hold, or more rows come
            of one than can be told apart.
    """
    place = block.file_index
    limits = RowLimits(block.max_line_bytes, block.format.forbidden_characters)
    taken = _Taken(rows.sides, np.arange(len(rows)))
    filtered: collections.Counter[str] = collections.Counter()
    added = 0
    dropped: list[tuple[int, DroppedRow]] = []
    rejects: list[Reject] = []
    for each in made_filters(split.filters):
        try:
            found = each.within(limits).apply(taken.sides)
        except RowError as error:
            what = _line(rows, taken.rows[error.row], split, place)
            raise InputError(f'{what}: {error}') from error
        sides = _made_anew(taken.sides, found, normalizer)
        stays = np.ones(len(found.rows), bool) if found.is_wanted is None else found.is_wanted
        for side in sides:
            stays = stays & (side.ends > side.starts)
        gone = np.ones(len(taken.rows), bool)
        gone[found.rows] = False
        added += len(found.rows) - len(taken.rows) + int(np.count_nonzero(gone))
        gone[[unfit.row for unfit in found.unfit]] = False
        rejects += [_reject(unfit, rows, taken) for unfit in found.unfit]
        filtered[each.name] += int(np.count_nonzero(gone) + np.count_nonzero(~stays))
        if split.keeps_dropped:
            dropped += _dropped(each, rows, taken, gone)
            dropped += _dropped(each, rows, _Taken(sides, taken.rows[found.rows]), ~stays)
        if not stays.all():
            sides = tuple(side.take(stays) for side in sides)
            found = Filtered(sides, found.rows[stays])
        taken = _Taken(sides, taken.rows[found.rows])
    made = dataclasses.replace(
        rows,
        sides=taken.sides,
        line_starts=rows.line_starts[taken.rows],
        extra_features=tuple(column.select(taken.rows) for column in rows.extra_features),
        filtered={name: count for name, count in sorted(filtered.items()) if count},
        added=added,
        rejects=(*rows.rejects, *sorted(rejects, key=lambda each: each.offset)),
        dropped=tuple(each for _, each in sorted(dropped, key=lambda each: each[0])),
    )
    if not any(each.makes_several for each in made_filters(split.filters)):
        return made
    first = block.texts[0]
    end = first.offset + len(first.data)
    return dataclasses.replace(
        made, assigned_identities=_identities(rows, taken.rows, split, place, end)
    )


def _identities(
    rows: Rows, came_from: np.ndarray, split: Split, place: int, end: int
) -> np.ndarray:
    """Returns an identity for each row that came of those given: int64[…], ascending."""
    numbers = np.arange(len(came_from)) - np.searchsorted(came_from, came_from)
    offsets = rows.offsets
    step = identity_step(split)
    if step == 1:
        # An offset that is no row's beginning is nobody's, up to where the next row begins.
        room = np.append(offsets, end)[1:] - offsets
    else:
        room = np.full(len(offsets), step)
        if len(offsets) and offsets[-1] >= MOST_NUMBERS:
            raise InputError(
                f'{_line(rows, -1, split, place)} is beyond the {MOST_NUMBERS} rows that a file '
                'may have with a filter that makes several of one; split the file'
            )
    wrong = np.flatnonzero(numbers >= room[came_from])
    if len(wrong):
        row = came_from[wrong[0]]
        count = np.count_nonzero(came_from == row)
        raise InputError(
            f'{_line(rows, row, split, place)}: filters made {count} rows of it, and there can be '
            f'{room[row]} at most; let the filter make fewer, or cut the text before'
        )
    return offsets[came_from] * step + numbers


def _line(rows: Rows, row: int, split: Split, place: int) -> str:
    """Where a row of a block stands, for errors."""
    by_number = split.format.identity == 'row'
    what = 'row' if by_number else 'the line that starts at byte'
    return f'{split.files_at(place)[0].path}: {what} {int(rows.offsets[row])}'


def _made_anew(
    given: tuple[Side, ...], found: Filtered, normalizer: Normalizer
) -> tuple[Side, ...]:
    """Returns what a filter made, normalized again where it changed anything."""
    return tuple(
        after if _is_part(before, after, found.rows) else _normalized(after, normalizer)
        for before, after in zip(given, found.sides, strict=True)
    )


def _is_part(before: Side, after: Side, rows: np.ndarray) -> bool:
    """Tells whether each row is the text of the one that it came from."""
    return (
        _address(after.text) == _address(before.text)
        and np.array_equal(after.starts, before.starts[rows])
        and np.array_equal(after.ends, before.ends[rows])
    )


def _address(text: np.ndarray) -> tuple[int, int]:
    return text.ctypes.data, len(text)


def _normalized(side: Side, normalizer: Normalizer) -> Side:
    """Returns rows, which may stand anywhere in their text, one after another and normalized."""
    joined = join_lines(*map(read_only, (side.text, side.starts, side.ends)))
    return normalizer.apply(Side(*map(read_only, joined))).side


def _reject(unfit: UnfitRow, rows: Rows, taken: _Taken) -> Reject:
    """A row that a filter could not make one of, with what the filter was given."""
    at = int(rows.offsets[taken.rows[unfit.row]])
    given = '\t'.join(side.row(unfit.row) for side in taken.sides)
    return Reject(unfit.reason, 0, at, at, given.encode(), why=unfit.why)


def _dropped(
    by: RowFilter, rows: Rows, taken: _Taken, which: np.ndarray
) -> Iterator[tuple[int, DroppedRow]]:
    """Yields rows that a filter dropped, each with the number of the block's row it came from."""
    for row in np.flatnonzero(which).tolist():
        first = int(taken.rows[row])
        texts = tuple(side.row(row) for side in taken.sides)
        yield first, DroppedRow(by.name, int(rows.offsets[first]), texts)
