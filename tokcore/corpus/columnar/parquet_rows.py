"""Blocks of columns, as Arrow has them, to rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tokcore.compiled.compilation import read_only
from tokcore.corpus.columnar.reasons import NULL
from tokcore.corpus.dataset import MAX_LINE_BYTES
from tokcore.corpus.features.arrow_sides import array_side
from tokcore.corpus.features.field_paths import FieldPath, field_path
from tokcore.corpus.features.kept_columns import kept_columns
from tokcore.corpus.features.kept_fields import BYTES, KeptField
from tokcore.corpus.long_lines import BEGINNING_BYTES
from tokcore.corpus.rows import INVALID_UTF8, TOO_LONG, Reject, Rows
from tokcore.text.normalizer import Normalizer
from tokcore.text.sides import Side


@dataclass(frozen=True)
class WantedColumns:
    """The columns that are read: those of text, and those that go along."""

    texts: tuple[FieldPath, ...]
    kept: tuple[KeptField, ...]

    @property
    def paths(self) -> list[FieldPath]:
        """Where they are, in this order: a block's columns are these."""
        return [*self.texts, *(field_path(each.field) for each in self.kept)]


def column_rows(
    data: bytes,
    first_row: int,
    wanted: WantedColumns,
    normalizer: Normalizer,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Rows:
    """Returns the rows of a block; they are known by their numbers in the file.

    A row with an empty string in a column is empty. Strings may hold line feeds.

    Args:
        data: record batches in Arrow's stream format, a column for each of the wanted ones.
        first_row: the number of the block's first row.
        wanted: the columns.
        normalizer: what makes text of strings.
        max_line_bytes: a row with a longer string is a reject.
    """
    table = pa.ipc.open_stream(data).read_all()
    columns = [_whole(column) for column in table.columns]
    arrays = [column.cast(pa.large_binary()) for column in columns[: len(wanted.texts)]]
    further = [
        column.cast(pa.large_binary()) if each.labels or each.kind == BYTES else column
        for each, column in zip(wanted.kept, columns[len(arrays) :], strict=True)
    ]
    features, unfit = kept_columns(further, wanted.kept)
    count = table.num_rows
    bad: dict[int, tuple[str, int]] = {}  # by row its reason and side
    given = [array_side(array) for array in arrays]
    sides = []
    for number, side in reversed([*enumerate(given)]):
        too_long = np.flatnonzero(side.ends - side.starts > max_line_bytes)
        ends = side.ends.copy()
        ends[too_long] = side.starts[too_long]  # nobody looks at what is too long
        normalized = normalizer.apply(Side(side.text, side.starts, read_only(ends)))
        sides.insert(0, normalized.side)
        bad |= {row: (INVALID_UTF8, number) for row in normalized.damages}
        bad |= {row: (TOO_LONG, number) for row in too_long.tolist()}
    for number, array in reversed([*enumerate(arrays)]):
        bad |= {row: (NULL, number) for row in _nulls(array)}
    # What goes along is looked at where the text can be used.
    for array in further:
        bad = {row: (NULL, 0) for row in _nulls(array)} | bad
    bad = {row: (reason, 0) for row, reason in unfit.items()} | bad
    is_kept = np.ones(count, bool)
    for side in sides:
        is_kept &= side.ends > side.starts
    is_kept[list(bad)] = False
    kept = np.flatnonzero(is_kept)
    return Rows(
        tuple(Side(side.text, side.starts[kept], side.ends[kept]) for side in sides),
        first_row,
        kept.astype(np.int64),
        count,
        count - len(kept) - len(bad),
        tuple(
            _reject(reason, first_row + row, arrays[side][row].as_py() or b'')
            for row, (reason, side) in sorted(bad.items())
        ),
        kept=tuple(each.taken(kept) for each in features),
    )


def _nulls(array: pa.Array) -> list[int]:
    if not array.null_count:
        return []
    return np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist()


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)


def _reject(reason: str, row: int, value: bytes) -> Reject:
    if reason == TOO_LONG:
        return Reject(reason, 0, row, row, value[:BEGINNING_BYTES], len(value))
    return Reject(reason, 0, row, row, value)
