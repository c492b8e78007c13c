"""Columns by name, columns in quotes, Parquet: drawn, with the rows that they are."""

import csv
import io
import random
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from . import drawn_text
from .line_rules import NamedText, Reject, SplitRows, add_row, single_rows

_NAMES = ('en', 'zh', 'id', 'a b', 'é', '')


def draw_named_columns(dice: random.Random) -> tuple[bytes, str]:
    """Returns columns with a header, and which two are wanted."""
    names = dice.sample(_NAMES, dice.randint(2, 4))
    wanted = [name for name in names if name]
    dice.shuffle(wanted)
    header = '\t'.join(names).encode() + dice.choice([b'\n', b'\r\n'])
    if dice.random() < 0.1:
        header = b'\xef\xbb\xbf' + header
    return header + drawn_text.text(dice, len(names)), ','.join(wanted[:2])


def named_rows(files: Sequence[NamedText], wanted: str, longest: int) -> SplitRows | None:
    """Returns the rows of such files, or None if they must be refused."""
    found = SplitRows()
    for file in files:
        header, feed, rest = file.text.partition(b'\n')
        try:
            names = header.removesuffix(b'\r').removeprefix(b'\xef\xbb\xbf').decode().split('\t')
        except UnicodeDecodeError:
            return None
        if any(names.count(name) != 1 for name in wanted.split(',')):
            return None
        columns = [names.index(name) for name in wanted.split(',')]
        # As many bytes in one blank line, so that all places stay.
        blank = b' ' * len(header) + feed
        rows = single_rows([NamedText(file.name, blank + rest)], columns, longest)
        too_long = [each for each in rows.rejects if each.offset == 0]
        found.lines += rows.lines - 1
        found.empty += rows.empty - (not too_long)
        found.rows += rows.rows
        found.rejects += rows.rejects[len(too_long) :]
    return found


def draw_quoted_columns(dice: random.Random, name: str, longest: int) -> tuple[bytes, SplitRows]:
    """Returns records as Python's csv writes them, and the rows of their first two columns."""
    data, found = b'', SplitRows()
    terminator = dice.choice(['\n', '\r\n'])
    for _ in range(dice.choice([1, 3, 20, 60, 200])):
        cells = [_cell(dice) for _ in range(dice.choice([2, 3, 3, 1]))]
        text = io.StringIO(newline='')
        quoting = dice.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
        csv.writer(text, delimiter='\t', lineterminator=terminator, quoting=quoting).writerow(cells)
        record = text.getvalue().encode()
        found.lines += 1
        line = record.removesuffix(b'\n')
        reason = 'missing_column' if len(cells) < 2 else ''
        if not line.strip(b' \t\r\n\v\f'):
            reason, cells = '', ['']
        if len(line) > longest:
            reason = 'too_long'
        texts = [cell.replace('\r', '') for cell in cells[:2]]
        add_row(found, texts, [Reject(reason, name, len(data), line)] if reason else [])
        data += record
    return data, found


def _cell(dice: random.Random) -> str:
    cell = drawn_text.sentence(dice)
    for piece in ('"', '\t', '\n', '""', '\r\n', 'é"\n', ''):
        if dice.random() < 0.1:
            place = dice.randint(0, len(cell))
            cell = cell[:place] + piece + cell[place:]
    return '' if dice.random() < 0.05 else cell


_CODECS = ('none', 'snappy', 'gzip', 'zstd', 'lz4', 'brotli')


def draw_parquet(
    dice: random.Random, name: str, longest: int
) -> tuple[bytes, list[str], SplitRows | None]:
    """Returns a file, its options, and its rows: None if its columns do not hold text."""
    sides = dice.choice([1, 2])
    count = dice.choice([0, 1, 5, 40, 300])
    nulls = dice.choice([0, 0, 0.1])
    columns = [
        [None if dice.random() < nulls else _cell(dice) for _ in range(count)] for _ in range(sides)
    ]
    types = [dice.choice(_TYPES) for _ in range(sides)]
    arrays = [_array(values, kind) for values, kind in zip(columns, types, strict=True)]
    fields = ['text', 'trans']
    table = {'id': pa.array(range(count), pa.int64())}
    paths = []
    for field, array in zip(fields, arrays, strict=False):
        if dice.random() < 0.3:
            table[field] = pa.StructArray.from_arrays([array], ['in.side'])
            paths.append(f'{field}.in\\.side')
        else:
            table[field] = array
            paths.append(field)
    is_wrong = dice.random() < 0.1
    if is_wrong:
        paths[0] = dice.choice(['id', 'nothing', 'text.more', 'text\\.more'])
    sink = io.BytesIO()
    pq.write_table(
        pa.table(table),
        sink,
        row_group_size=dice.choice([1, 7, 1000]),
        compression=dice.choice(_CODECS),
        use_dictionary=dice.random() < 0.5,
        data_page_version=dice.choice(['1.0', '2.0']),
        data_page_size=dice.choice([64, 1 << 20]),
        write_page_checksum=dice.random() < 0.5,
    )
    found = SplitRows(lines=count)
    for number, row in enumerate(zip(*columns, strict=True)):
        add_row(found, *_row(row, name, number, longest))
    return sink.getvalue(), ['--fields', ','.join(paths)], None if is_wrong else found


def _row(
    row: Sequence[str | None], name: str, number: int, longest: int
) -> tuple[list[str], list[Reject]]:
    cells = [(cell or '').replace('\r', '') for cell in row]
    if None in row:
        return cells, [Reject('null', name, number, b'', 'row')]
    for cell in row:
        if len(cell.encode()) > longest:
            return cells, [Reject('too_long', name, number, cell.encode(), 'row')]
    return cells, []


_TYPES = (pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string()))


def _array(values: Sequence[str | None], kind: pa.DataType) -> pa.Array:
    if kind == pa.binary():
        return pa.array([None if each is None else each.encode() for each in values], kind)
    if pa.types.is_dictionary(kind):
        return pa.array(values, pa.string()).dictionary_encode()
    return pa.array(values, kind)
