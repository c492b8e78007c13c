"""Reads JSON lines: blocks of lines to rows of strings.

Arrow parses whole blocks without the interpreter lock. A block that it refuses is halved until the
refused lines are alone; Python's parser parses these, and finds what is wrong with them. So the result
of a line depends on that line alone.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from tokcore.corpus.arrow_columns import array_side, extra_features
from tokcore.corpus.corpus import INVALID_UTF8, TOO_LONG, Block, Reject, Rows
from tokcore.corpus.declarations import JsonLines
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
    FieldsToRead,
)
from tokcore.corpus.line_reading import LineReader
from tokcore.corpus.line_rows import finish_rows, line_bounds, long_rows, mark_bytes, reject_of
from tokcore.kernels.bytes import pick_ranges
from tokcore.text.rows import Normalizer, Side
from tokcore.text.unicode import check_rows

_BLANK = b' \t\r'
_BRACE, _CLOSING = b'{}'

_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1


class JsonLinesReader(LineReader):
    """Reads the fields of one or two texts, and extra fields, from objects."""

    format: JsonLines
    rows_are_of_lines = True

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        """Returns the rows of a block of whole lines.

        A blank line, or one with a blank string as a text, is empty, whatever values the extra fields
        have. Strings may hold line feeds.
        """
        declared = self.format
        if block.long_lines:
            return long_rows(block)
        data, offset, fields = block.texts[0].data, block.offset, declared.fields_to_read
        text = np.frombuffer(data, np.uint8)
        bounds, _ = line_bounds(text)
        starts, ends = bounds[:-1], bounds[1:] - 1
        unusable = {
            line: _Unusable(TOO_LONG)
            for line in np.flatnonzero(ends - starts > block.max_line_bytes).tolist()
        }
        mark = mark_bytes(data, offset)
        text_starts = np.maximum(starts, mark) if mark else starts
        is_object = _are_objects(text, text_starts, ends)
        is_object[list(unusable)] = False
        parts = [*_parsed_parts(text, text_starts, ends, np.flatnonzero(is_object), fields)]
        is_parsed = np.zeros(len(starts), bool)
        for part in parts:
            is_parsed[part.lines] = True
        lines, values = [], []
        for line in np.flatnonzero(~is_parsed).tolist():
            line_data = data[text_starts[line] : ends[line]]
            if line in unusable or not line_data.strip(_BLANK):
                continue
            parsed = _values_by_python(line_data, fields, int(text_starts[line] - starts[line]))
            if isinstance(parsed, _Unusable):
                unusable[line] = parsed
            elif parsed is not None:
                lines.append(line)
                values.append(parsed)
        if lines or not parts:
            parts.append(_of_values(lines, values, fields))
        joined = _joined(parts)

        def reject(line: int, reason: str, damage: int = 0) -> Reject:
            start, end = int(starts[line]), int(ends[line])
            return reject_of(reason, offset + start, data[start:end], damage=damage)

        texts, extra = joined.arrays[: len(fields.texts)], joined.arrays[len(fields.texts) :]
        sides = [normalizer.apply(array_side(array)).side for array in texts]
        features, reasons = extra_features(extra, fields.extra)
        rejects = {line: reject(line, why.reason, why.position) for line, why in unusable.items()}
        unfit = {row: reject(int(joined.lines[row]), reason) for row, reason in reasons.items()}
        return finish_rows(offset, starts, joined.lines, sides, rejects, features, unfit)


class _Unusable(NamedTuple):
    """Why a line is not a row: the reason, and the position in it where its UTF-8 breaks."""

    reason: str
    position: int = 0


class _ParsedLines(NamedTuple):
    """Some lines by number, ascending, and an array for each field."""

    lines: np.ndarray
    arrays: Sequence[pa.Array]


def _are_objects(text: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Returns which lines begin and end as an object, with or without a carriage return: bool[lines].

    Arrow gets only these: otherwise two lines could be one object, or one line two objects.
    """
    if not len(text):
        return np.zeros(len(starts), bool)
    last = ends - 1
    last = last - ((last > starts) & (text[np.maximum(last, 0)] == 13))
    is_object = (last > starts) & (text[np.minimum(starts, len(text) - 1)] == _BRACE)
    return is_object & (text[np.maximum(last, 0)] == _CLOSING)


def _parsed_parts(
    text: np.ndarray, starts: np.ndarray, ends: np.ndarray, lines: np.ndarray, fields: FieldsToRead
) -> Iterator[_ParsedLines]:
    """Yields the lines that Arrow parses, in order, without those that it refuses or that lack a field."""
    schema = _schema(fields)
    waiting = [lines] if schema is not None and len(lines) else []
    while waiting:
        part = waiting.pop()
        arrays = _parsed(_lines_of(text, starts[part], ends[part]), schema, fields)
        if arrays is not None:
            is_complete = np.ones(len(part), bool)
            for array in arrays:
                if array.null_count:
                    is_complete &= array.is_valid().to_numpy(zero_copy_only=False)
            if not is_complete.all():
                arrays = [array.filter(pa.array(is_complete)) for array in arrays]
            yield _ParsedLines(part[is_complete], arrays)
        elif len(part) > 1:
            middle = len(part) // 2
            waiting += [part[middle:], part[:middle]]


def _lines_of(text: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> Side:
    """Returns a text of these lines alone, a line feed after each."""
    first, last = int(starts[0]), int(ends[-1])
    if len(starts) == 1 or (starts[1:] - ends[:-1] == 1).all():
        return Side(text[first:last], starts - first, ends - first)
    with_feeds = np.minimum(ends + 1, len(text))
    joined, offsets = pick_ranges(text, starts, with_feeds)
    return Side(joined, offsets[:-1], offsets[1:] - (with_feeds - ends))


def _parsed(lines: Side, schema: pa.Schema, fields: FieldsToRead) -> list[pa.Array] | None:
    """Returns the array of each field, or None if Arrow cannot parse any of the lines as Python does."""
    damaged = np.zeros(len(lines.starts), np.uint8)
    check_rows(lines.text, lines.starts, lines.ends, damaged)
    if damaged.any():
        return None
    data = lines.text
    try:
        table = pj.read_json(
            io.BytesIO(data.data),
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
    return [_column(table, *each) for each in zip(fields.paths, _types(fields), strict=True)]


def _joined(parts: Sequence[_ParsedLines]) -> _ParsedLines:
    """Returns one or more parts as one, in the order of lines."""
    if len(parts) == 1:
        return parts[0]
    lines = np.concatenate([part.lines for part in parts])
    columns = zip(*(part.arrays for part in parts), strict=True)
    arrays = [pa.concat_arrays(column) for column in columns]
    if (lines[1:] > lines[:-1]).all():
        return _ParsedLines(lines, arrays)
    order = np.argsort(lines)
    return _ParsedLines(lines[order], [array.take(pa.array(order)) for array in arrays])


def _types(fields: FieldsToRead) -> list[pa.DataType]:
    """Returns the type of each field: strings or numbers."""
    numbers = {INT: pa.int64(), FLOAT: pa.float64()}
    extra = [
        pa.string() if field.labels else numbers.get(field.kind, pa.string())
        for field in fields.extra
    ]
    return [pa.string()] * len(fields.texts) + extra


def _of_values(
    lines: Sequence[int], values: Sequence[Sequence[object]], fields: FieldsToRead
) -> _ParsedLines:
    columns = zip(*values, strict=True) if values else [()] * len(fields.paths)
    arrays = map(pa.array, columns, map(_stored, _types(fields)))
    return _ParsedLines(np.array(lines, np.int64), [*arrays])


def _stored(kind: pa.DataType) -> pa.DataType:
    return pa.large_binary() if pa.types.is_string(kind) else kind


def _schema(fields: FieldsToRead) -> pa.Schema | None:
    """Returns the fields as a schema; None if one would have two types, which no line can have."""
    tree: dict = {}
    for path, kind in zip(fields.paths, _types(fields), strict=True):
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
    for name in path[1:]:
        column = pa.compute.struct_field(column, [name])
    return column.cast(_stored(kind))


def _values_by_python(
    line: bytes, fields: FieldsToRead, position: int = 0
) -> list[object] | _Unusable | None:
    """Returns the values of one line, bytes or numbers, or why it has none: the rule for all lines.

    None if it is empty: its text is blank, and extra fields have any values. `position` is that of
    `line` in the line as it is stored.
    """
    try:
        parsed = json.loads(line.decode('utf-8').strip(' \t\r'))
    except UnicodeDecodeError as error:
        return _Unusable(INVALID_UTF8, position + error.start)
    except (ValueError, RecursionError):
        return _Unusable(INVALID_JSON)
    if not isinstance(parsed, dict):
        return _Unusable(INVALID_JSON)
    values: list[object] = []
    is_blank = False  # one of the texts
    unfit = None  # the reason of the first extra field whose value does not fit
    for number, path in enumerate(fields.paths):
        value: Any = parsed
        for name in path:
            if not isinstance(value, dict) or name not in value:
                return _Unusable(MISSING_FIELD)
            value = value[name]
        is_text = number < len(fields.texts)
        extra = None if is_text else fields.extra[number - len(fields.texts)]
        value = _of_kind(value, extra)
        reason = None
        if value is None:
            reason = NOT_A_STRING if is_text else WRONG_TYPE
        if isinstance(value, str):
            is_blank = is_blank or (is_text and not value.strip())
            try:
                value = value.encode()
            except UnicodeEncodeError:
                reason = LONE_SURROGATE
        if reason and is_text:
            return _Unusable(reason)
        unfit = unfit or reason
        values.append(value)
    if unfit is None:
        return values
    return None if is_blank else _Unusable(unfit)


def _of_kind(value: object, field: ExtraField | None) -> object | None:
    """Returns a value of a text (None) or of an extra field; None if it is of another kind."""
    if field is None or field.labels or field.kind not in (INT, FLOAT):
        return value if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if field.kind == INT:
        return value if isinstance(value, int) and _SMALLEST <= value <= _LARGEST else None
    try:
        return float(value) if math.isfinite(float(value)) else None
    except OverflowError:
        return None
