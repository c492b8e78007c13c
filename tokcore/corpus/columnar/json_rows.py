"""Blocks of JSON lines to rows of strings.

Arrow parses whole blocks, without the interpreter's lock. A block that it refuses is halved until
the lines are found that it refuses by themselves, and these are looked at by Python's parser, which
also says what is wrong with them: so what becomes of a line depends on that line alone.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.json as pj

from tokcore.compiled.compilation import read_only
from tokcore.compiled.ragged_bytes import prepend_rows, row_offsets
from tokcore.corpus.columnar.field_paths import FieldPath
from tokcore.corpus.columnar.reasons import (
    INVALID_JSON,
    LONE_SURROGATE,
    MISSING_FIELD,
    NOT_A_STRING,
)
from tokcore.corpus.dataset import MAX_LINE_BYTES
from tokcore.corpus.formats import line_kernels
from tokcore.corpus.long_lines import BEGINNING_BYTES
from tokcore.corpus.rows import INVALID_UTF8, TOO_LONG, Reject, Rows
from tokcore.text.normalizer import Normalizer
from tokcore.text.sides import Side

_BLANK = b' \t\r'
_LINE_FEED = read_only(np.frombuffer(b'\n', np.uint8))


@dataclass(frozen=True)
class _Bad:
    """Why a line is none: the reason, and where in it its UTF-8 breaks."""

    reason: str
    place: int = 0


_Strings = list[list[bytes]]
"""By line the string of each field."""


def json_rows(
    data: bytes,
    offset: int,
    paths: Sequence[FieldPath],
    normalizer: Normalizer,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Rows:
    """Returns the rows of a block of whole lines that begins at byte `offset` of its file.

    A blank line, or one with an empty string in a field, is empty. Strings may hold line feeds.

    Args:
        data: the lines.
        offset: of the first.
        paths: of the fields, one for each side.
        normalizer: what makes text of strings.
        max_line_bytes: a longer line is a reject.
    """
    starts, ends = line_kernels.line_bounds(np.frombuffer(data, np.uint8))
    lines = [data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    bad: dict[int, _Bad] = {
        number: _Bad(TOO_LONG) for number, line in enumerate(lines) if len(line) > max_line_bytes
    }
    wanted = [
        number for number, line in enumerate(lines) if number not in bad and line.strip(_BLANK)
    ]
    numbers, columns = [], [[] for _ in paths]
    for number, strings in _strings(lines, wanted, paths):
        if isinstance(strings, _Bad):
            bad[number] = strings
        else:
            numbers.append(number)
            for column, string in zip(columns, strings, strict=True):
                column.append(string)
    kept = np.ones(len(numbers), bool)
    sides = []
    for column in columns:
        normalized = normalizer.apply(_side(column))
        sides.append(normalized.side)
        kept &= normalized.side.ends > normalized.side.starts
    places = np.array(numbers, np.int64)[kept]
    return Rows(
        tuple(Side(each.text, each.starts[kept], each.ends[kept]) for each in sides),
        offset,
        starts[places],
        len(lines),
        len(lines) - len(places) - len(bad),
        tuple(
            _reject(each, offset + int(starts[number]), lines[number])
            for number, each in sorted(bad.items())
        ),
    )


def _side(strings: Sequence[bytes]) -> Side:
    """Returns strings as rows, a line feed between them."""
    offsets = row_offsets([len(each) for each in strings])
    text = read_only(np.frombuffer(b''.join(strings), np.uint8))
    joined, starts, ends = prepend_rows(
        text, read_only(offsets[:-1].copy()), read_only(offsets[1:].copy()), _LINE_FEED
    )
    return Side(joined, starts + 1, ends)


def _reject(bad: _Bad, at: int, line: bytes) -> Reject:
    if bad.reason == TOO_LONG:
        return Reject(TOO_LONG, 0, at, at, line[:BEGINNING_BYTES], len(line))
    return Reject(bad.reason, 0, at, at + bad.place, line)


def _strings(
    lines: Sequence[bytes], wanted: Sequence[int], paths: Sequence[FieldPath]
) -> Iterator[tuple[int, list[bytes] | _Bad]]:
    """Yields of each wanted line its number and strings, or why it has none."""
    schema = _schema(paths)
    waiting = [list(wanted)] if wanted else []
    while waiting:
        part = waiting.pop()
        found = _parsed([lines[number] for number in part], schema, paths)
        if found is not None:
            for number, strings in zip(part, found, strict=True):
                if None in strings:
                    yield number, _by_python(lines[number], paths)
                else:
                    yield number, strings
        elif len(part) == 1:
            yield part[0], _by_python(lines[part[0]], paths)
        else:
            middle = len(part) // 2
            waiting += [part[middle:], part[:middle]]


def _parsed(
    lines: Sequence[bytes], schema: pa.Schema, paths: Sequence[FieldPath]
) -> list[list[bytes | None]] | None:
    """Returns the strings of lines, or None if there is anything odd about any of them."""
    stripped = [line.strip(_BLANK) for line in lines]
    # An object ends where the line does: else two lines could be one object, or one line two.
    if not all(line.startswith(b'{') and line.endswith(b'}') for line in stripped):
        return None
    data = b'\n'.join(stripped)
    try:
        data.decode('utf-8')
        table = pj.read_json(
            io.BytesIO(data),
            pj.ReadOptions(use_threads=False, block_size=max(1, min(len(data) + 1, (1 << 31) - 1))),
            pj.ParseOptions(
                explicit_schema=schema,
                newlines_in_values=False,
                unexpected_field_behavior='ignore',
            ),
        )
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    if table.num_rows != len(lines):
        return None
    columns = [_column(table, path).cast(pa.binary()).to_pylist() for path in paths]
    return [list(row) for row in zip(*columns, strict=True)]


def _schema(paths: Sequence[FieldPath]) -> pa.Schema:
    tree: dict = {}
    for path in paths:
        node = tree
        for name in path[:-1]:
            node = node.setdefault(name, {})
            if node is None:
                return pa.schema([('\0', pa.string())])  # a string and an object: nothing fits
        if isinstance(node.get(path[-1]), dict):
            return pa.schema([('\0', pa.string())])
        node[path[-1]] = None

    def kind(node: dict | None) -> pa.DataType:
        if node is None:
            return pa.string()
        return pa.struct([(name, kind(below)) for name, below in node.items()])

    return pa.schema([(name, kind(below)) for name, below in tree.items()])


def _column(table: pa.Table, path: FieldPath) -> pa.Array:
    column = table.column(path[0]).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    for name in path[1:]:
        column = pa.compute.struct_field(column, [name])
    return column


def _by_python(line: bytes, paths: Sequence[FieldPath]) -> list[bytes] | _Bad:
    try:
        found = json.loads(line.decode('utf-8').strip(' \t\r'))
    except UnicodeDecodeError as error:
        return _Bad(INVALID_UTF8, error.start)
    except (ValueError, RecursionError):
        return _Bad(INVALID_JSON)
    if not isinstance(found, dict):
        return _Bad(INVALID_JSON)
    strings = []
    for path in paths:
        value = found
        for name in path:
            if not isinstance(value, dict) or name not in value:
                return _Bad(MISSING_FIELD)
            value = value[name]
        if not isinstance(value, str):
            return _Bad(NOT_A_STRING)
        try:
            strings.append(value.encode())
        except UnicodeEncodeError:
            return _Bad(LONE_SURROGATE)
    return strings
