"""Blocks of columns, as Arrow has them, to rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokcore.compiled.compilation import read_only
from tokcore.compiled.ragged_bytes import prepend_rows
from tokcore.corpus.columnar.field_paths import FieldPath
from tokcore.corpus.columnar.reasons import NULL
from tokcore.corpus.dataset import MAX_LINE_BYTES
from tokcore.corpus.long_lines import BEGINNING_BYTES
from tokcore.corpus.rows import INVALID_UTF8, TOO_LONG, Reject, Rows
from tokcore.text.normalizer import Normalizer
from tokcore.text.sides import Side

_LINE_FEED = read_only(np.frombuffer(b'\n', np.uint8))


def column_rows(
    data: bytes,
    first_row: int,
    paths: Sequence[FieldPath],
    normalizer: Normalizer,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Rows:
    """Returns the rows of a block; they are known by their numbers in the file.

    A row with an empty string in a column is empty. Strings may hold line feeds.

    Args:
        data: record batches in Arrow's stream format.
        first_row: the number of the block's first row.
        paths: of the columns, one for each side.
        normalizer: what makes text of strings.
        max_line_bytes: a row with a longer string is a reject.
    """
    table = pa.ipc.open_stream(data).read_all()
    arrays = [text_column(table, path) for path in paths]
    count = table.num_rows
    bad: dict[int, tuple[str, int]] = {}  # by row its reason and side
    given = [_side(array) for array in arrays]
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
        if array.null_count:
            nulls = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))
            bad |= {row: (NULL, number) for row in nulls.tolist()}
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
    )


def text_column(table: pa.Table, path: FieldPath) -> pa.LargeBinaryArray:
    """Returns a column of bytes by its path; null is what is null at any depth."""
    column = table.column(path[0]).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)
    for name in path[1:]:
        column = pc.struct_field(column, [name])
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.large_binary())


def _side(array: pa.LargeBinaryArray) -> Side:
    """Returns strings as rows, a line feed between them."""
    _, offsets, values = array.buffers()
    bounds = np.zeros(1, np.int64)
    if len(array):
        bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    text = np.frombuffer(values, np.uint8) if values else np.empty(0, np.uint8)
    ends = bounds[1:].copy()
    if array.null_count:
        # What stands under a null is none of its row's.
        nulls = array.is_null().to_numpy(zero_copy_only=False)
        ends[nulls] = bounds[:-1][nulls]
    joined, starts, ends = prepend_rows(
        read_only(text), read_only(bounds[:-1].copy()), read_only(ends), _LINE_FEED
    )
    return Side(joined, starts + 1, ends)


def _reject(reason: str, row: int, value: bytes) -> Reject:
    if reason == TOO_LONG:
        return Reject(reason, 0, row, row, value[:BEGINNING_BYTES], len(value))
    return Reject(reason, 0, row, row, value)
