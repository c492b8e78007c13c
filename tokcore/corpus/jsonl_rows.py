"""Blocks of JSON lines to rows of strings.

Arrow parses whole blocks without the interpreter lock. A block that it refuses is halved until the
refused lines are alone, and these are parsed by Python's parser, which also says what is wrong with
them: so what becomes of a line depends on that line alone.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from tokcore.corpus.corpus import INVALID_UTF8, MAX_LINE_BYTES, TOO_LONG, Reject, Rows
from tokcore.corpus.field_columns import array_side, extra_features
from tokcore.corpus.fields import (
    FLOAT,
    INT,
    INVALID_JSON,
    LONE_SURROGATE,
    MISSING_FIELD,
    NOT_A_STRING,
    WRONG_TYPE,
    ExtraField,
    FieldPath,
    field_path,
)
from tokcore.corpus.line_index import line_bounds
from tokcore.corpus.line_reading import BEGINNING_BYTES
from tokcore.kernels.bytes import pick_ranges
from tokcore.text.rows import Normalizer, Side
from tokcore.text.unicode import check_rows

_BLANK = b' \t\r'
_BRACE, _CLOSING = b'{}'

_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1


def json_rows(
    data: bytes,
    offset: int,
    paths: Sequence[FieldPath],
    normalizer: Normalizer,
    max_line_bytes: int = MAX_LINE_BYTES,
    kept: Sequence[ExtraField] = (),
) -> Rows:
    """Returns the rows of a block of whole lines that begins at byte `offset` of its file.

    A blank line, or one with an empty string in a field, is empty. Strings may hold line feeds.

    Args:
        data: the lines.
        offset: of the first.
        paths: of the fields, one for each side.
        normalizer: what makes text of strings.
        max_line_bytes: a longer line is a reject.
        kept: the fields that go along.
    """
    text = np.frombuffer(data, np.uint8)
    starts, ends = line_bounds(text)
    wanted = WantedFields(paths, kept)
    bad: dict[int, Unusable] = {
        number: Unusable(TOO_LONG)
        for number in np.flatnonzero(ends - starts > max_line_bytes).tolist()
    }
    is_object = _are_objects(text, starts, ends)
    is_object[list(bad)] = False
    parts = [*_parsed_parts(text, starts, ends, np.flatnonzero(is_object), wanted)]
    known = np.zeros(len(starts), bool)
    for part in parts:
        known[part.numbers] = True
    numbers, values = [], []
    for number in np.flatnonzero(~known).tolist():
        line = data[starts[number] : ends[number]]
        if number in bad or not line.strip(_BLANK):
            continue
        found = values_by_python(line, wanted)
        if isinstance(found, Unusable):
            bad[number] = found
        else:
            numbers.append(number)
            values.append(found)
    if numbers:
        parts.append(_of_values(numbers, values, wanted))
    return _rows_of(_joined(parts, wanted), (data, offset, starts, ends), bad, normalizer, wanted)


@dataclass(frozen=True)
class _Found:
    """Some lines by number, ascending, and an array for each field."""

    numbers: np.ndarray
    arrays: Sequence[pa.Array]


def _rows_of(
    found: _Found,
    block: tuple[bytes, int, np.ndarray, np.ndarray],
    bad: dict[int, Unusable],
    normalizer: Normalizer,
    wanted: WantedFields,
) -> Rows:
    data, offset, starts, ends = block
    columns, unfit = extra_features(found.arrays[len(wanted.texts) :], wanted.kept)
    is_kept = np.ones(len(found.numbers), bool)
    for row, reason in unfit.items():
        bad[int(found.numbers[row])] = Unusable(reason)
        is_kept[row] = False
    sides = [normalizer.apply(array_side(each)).side for each in found.arrays[: len(wanted.texts)]]
    for side in sides:
        is_kept &= side.ends > side.starts
    rows = np.flatnonzero(is_kept)
    places = found.numbers[rows]
    return Rows(
        tuple(each.take(rows) for each in sides),
        offset,
        starts[places],
        len(starts),
        len(starts) - len(places) - len(bad),
        tuple(
            _reject(each, offset + int(starts[number]), data[starts[number] : ends[number]])
            for number, each in sorted(bad.items())
        ),
        extra_features=tuple(each.select(rows) for each in columns),
    )


def _reject(bad: Unusable, at: int, line: bytes) -> Reject:
    if bad.reason == TOO_LONG:
        return Reject(TOO_LONG, 0, at, at, line[:BEGINNING_BYTES], len(line))
    return Reject(bad.reason, 0, at, at + bad.place, line)


def _are_objects(text: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Tells which lines begin and end as an object does, but for a carriage return: bool[lines].

    An object ends where the line does: else two lines could be one object, or one line two.
    """
    if not len(text):
        return np.zeros(len(starts), bool)
    last = ends - 1
    last = last - ((last > starts) & (text[np.maximum(last, 0)] == 13))
    is_object = (last > starts) & (text[np.minimum(starts, len(text) - 1)] == _BRACE)
    return is_object & (text[np.maximum(last, 0)] == _CLOSING)


def _parsed_parts(
    text: np.ndarray, starts: np.ndarray, ends: np.ndarray, lines: np.ndarray, wanted: WantedFields
) -> Iterator[_Found]:
    """Yields what Arrow makes of lines, those that are odd left out, in order."""
    schema = _schema(wanted)
    waiting = [lines] if schema is not None and len(lines) else []
    while waiting:
        part = waiting.pop()
        arrays = _parsed(_lines_of(text, starts[part], ends[part]), schema, wanted)
        if arrays is not None:
            whole = np.ones(len(part), bool)
            for each in arrays:
                if each.null_count:
                    whole &= each.is_valid().to_numpy(zero_copy_only=False)
            if not whole.all():
                arrays = [each.filter(pa.array(whole)) for each in arrays]
            yield _Found(part[whole], arrays)
        elif len(part) > 1:
            middle = len(part) // 2
            waiting += [part[middle:], part[:middle]]


def _lines_of(text: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> Side:
    """Returns lines with what parts them, and nothing else."""
    first, last = int(starts[0]), int(ends[-1])
    if len(starts) == 1 or (starts[1:] - ends[:-1] == 1).all():
        return Side(text[first:last], starts - first, ends - first)
    with_feeds = np.minimum(ends + 1, len(text))
    joined, offsets = pick_ranges(text, starts, with_feeds)
    return Side(joined, offsets[:-1], offsets[1:] - (with_feeds - ends))


def _parsed(lines: Side, schema: pa.Schema, wanted: WantedFields) -> list[pa.Array] | None:
    """Returns the arrays of lines, or None if there is anything odd about any of them."""
    damaged = np.zeros(len(lines.starts), np.uint8)
    check_rows(lines.text, lines.starts, lines.ends, damaged)
    if damaged.any():
        return None
    data = lines.text
    try:
        table = pj.read_json(
            io.BytesIO(data),
            pj.ReadOptions(use_threads=False, block_size=max(1, min(len(data) + 1, (1 << 31) - 1))),
            pj.ParseOptions(
                explicit_schema=schema,
                newlines_in_values=False,
                unexpected_field_behavior='ignore',
            ),
        )
    except pa.ArrowException:
        return None
    if table.num_rows != len(lines.starts):
        return None
    return [
        _column(table, path, kind) for path, kind in zip(wanted.paths, wanted.types, strict=True)
    ]


def _joined(parts: Sequence[_Found], wanted: WantedFields) -> _Found:
    """Returns all parts as one, by number."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return _of_values([], [], wanted)
    numbers = np.concatenate([each.numbers for each in parts])
    arrays = [pa.concat_arrays(each) for each in zip(*(each.arrays for each in parts), strict=True)]
    if (numbers[1:] > numbers[:-1]).all():
        return _Found(numbers, arrays)
    order = np.argsort(numbers)
    return _Found(numbers[order], [each.take(pa.array(order)) for each in arrays])


def _of_values(
    numbers: Sequence[int], values: Sequence[Sequence[object]], wanted: WantedFields
) -> _Found:
    columns = zip(*values, strict=True) if values else [()] * len(wanted.paths)
    arrays = [
        pa.array(column, _stored(kind)) for column, kind in zip(columns, wanted.types, strict=True)
    ]
    return _Found(np.array(numbers, np.int64), arrays)


def _stored(kind: pa.DataType) -> pa.DataType:
    return pa.large_binary() if pa.types.is_string(kind) else kind


def _schema(wanted: WantedFields) -> pa.Schema | None:
    """Returns the fields as Arrow has them; None if one is to be of two types, as no line has it."""
    tree: dict = {}
    for path, kind in zip(wanted.paths, wanted.types, strict=True):
        node = tree
        for name in path[:-1]:
            node = node.setdefault(name, {})
            if not isinstance(node, dict):
                return None
        if node.setdefault(path[-1], kind) != kind:
            return None

    def type_of(node: dict | pa.DataType) -> pa.DataType:
        if isinstance(node, dict):
            return pa.struct([(name, type_of(below)) for name, below in node.items()])
        return node

    return pa.schema([(name, type_of(below)) for name, below in tree.items()])


def _column(table: pa.Table, path: FieldPath, kind: pa.DataType) -> pa.Array:
    column = table.column(path[0]).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    for name in path[1:]:
        column = pa.compute.struct_field(column, [name])
    return column.cast(_stored(kind))


@dataclass(frozen=True)
class Unusable:
    """Why a line is no row: the reason, and where in it its UTF-8 breaks."""

    reason: str
    place: int = 0


@dataclass(frozen=True)
class WantedFields:
    """The fields of an object: those of text, then those that go along."""

    texts: Sequence[FieldPath]
    kept: Sequence[ExtraField]

    @property
    def paths(self) -> list[FieldPath]:
        return [*self.texts, *(field_path(each.field) for each in self.kept)]

    @property
    def types(self) -> list[pa.DataType]:
        numbers = {INT: pa.int64(), FLOAT: pa.float64()}
        kept = [
            pa.string() if each.labels else numbers.get(each.kind, pa.string())
            for each in self.kept
        ]
        return [pa.string()] * len(self.texts) + kept


def values_by_python(line: bytes, wanted: WantedFields) -> list[object] | Unusable:
    """Returns the values of one line, bytes or numbers, or why it has none: the rule for all lines."""
    try:
        found = json.loads(line.decode('utf-8').strip(' \t\r'))
    except UnicodeDecodeError as error:
        return Unusable(INVALID_UTF8, error.start)
    except (ValueError, RecursionError):
        return Unusable(INVALID_JSON)
    if not isinstance(found, dict):
        return Unusable(INVALID_JSON)
    values = []
    for number, path in enumerate(wanted.paths):
        value = found
        for name in path:
            if not isinstance(value, dict) or name not in value:
                return Unusable(MISSING_FIELD)
            value = value[name]
        is_text = number < len(wanted.texts)
        kept = None if is_text else wanted.kept[number - len(wanted.texts)]
        value = _fitting(value, kept)
        if value is None:
            return Unusable(NOT_A_STRING if is_text else WRONG_TYPE)
        if isinstance(value, str):
            try:
                value = value.encode()
            except UnicodeEncodeError:
                return Unusable(LONE_SURROGATE)
        values.append(value)
    return values


def _fitting(value: object, kept: ExtraField | None) -> object | None:
    """Returns a value as its field is to have it, or None if it does not fit."""
    if kept is None or kept.labels or kept.kind not in (INT, FLOAT):
        return value if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if kept.kind == INT:
        return value if isinstance(value, int) and _SMALLEST <= value <= _LARGEST else None
    try:
        return float(value) if math.isfinite(float(value)) else None
    except OverflowError:
        return None
