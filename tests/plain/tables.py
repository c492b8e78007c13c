"""The rules of columns by name, of columns in quotes and of Parquet, and such files, drawn."""

import codecs
import csv
import io
import random
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from tokcore.text.normalizers import T2T_LINES
from tokcore.text.rows import Normalizer

from . import drawn_text
from .lines import NamedText, Reject, SplitRows, single_rows

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


def named_rows(
    files: Sequence[NamedText], wanted: str, longest: int, normalizer: Normalizer = T2T_LINES
) -> SplitRows | None:
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
        # As many bytes in one blank line, so that all offsets stay.
        blank = b' ' * len(header) + feed
        text = NamedText(file.name, blank + rest)
        rows = single_rows([text], columns, longest, normalizer=normalizer)
        too_long = [each for each in rows.rejects if each.offset == 0]
        found.lines += rows.lines - 1
        found.empty += rows.empty - (not too_long)
        found.rows += rows.rows
        found.offsets += rows.offsets
        found.rejects += rows.rejects[len(too_long) :]
    return found


def draw_quoted_columns(dice: random.Random) -> bytes:
    """Returns records as Python's csv writes them, or with quotes anywhere."""
    if dice.random() < 0.3:
        return b''.join(dice.choices(_QUOTED_PIECES, k=dice.choice([1, 9, 50])))
    text = io.StringIO(newline='')
    for _ in range(dice.choice([1, 3, 20, 60, 200])):
        writer = csv.writer(
            text, delimiter='\t', lineterminator=dice.choice(['\n', '\r\n']),
            quoting=dice.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
        )  # fmt: skip
        writer.writerow([_cell(dice) for _ in range(dice.choice([2, 3, 3, 1]))])
    return text.getvalue().encode()


_QUOTED_PIECES = [
    b'a', b'b', b'"', b'"', b'\t', b'\t', b'\n', b'\r\n', b' ', b'\xff', 'é'.encode(), b'\0',
    b'"x"\t"y"\n', b'a\tb\n',
]  # fmt: skip


def quoted_rows(
    files: Sequence[NamedText], longest: int, normalizer: Normalizer = T2T_LINES
) -> SplitRows:
    """Returns the rows of the first two columns, whose records are those of Python's csv.

    It must not refuse any of them, as it does a lone carriage return outside of quotes.
    """
    found = SplitRows()
    for file in files:
        mark = codecs.BOM_UTF8 if file.text.startswith(codecs.BOM_UTF8) else b''
        # csv gets lines, and takes as many as a record has, and one more at the end: this becomes part of
        # the last record if a quote is not closed.
        lines = file.text.removeprefix(mark).split(b'\n')
        lines = [line + b'\n' for line in lines[:-1]] + [lines[-1]] * bool(lines[-1]) + [b'the end']
        reader = csv.reader((line.decode('latin-1') for line in lines), delimiter='\t')
        first, offset = 0, 0
        for fields in reader:
            record = b''.join(lines[first : min(reader.line_num, len(lines) - 1)])
            if first == len(lines) - 1:
                break
            record = record if first else mark + record
            is_open = reader.line_num == len(lines)
            cells, reject = _judged_record(file, offset, record, fields, is_open, longest)
            found.add(offset, cells, [reject] if reject else [], normalizer)
            first, offset = reader.line_num, offset + len(record)
    return found


def _judged_record(
    file: NamedText, offset: int, record: bytes, fields: Sequence[str], is_open: bool, longest: int
) -> tuple[list[str], Reject | None]:
    line = record.removesuffix(b'\n')
    text = line if offset else line.removeprefix(codecs.BOM_UTF8)
    reason, damage, cells = '', 0, ['']
    if len(line) > longest:
        reason = 'too_long'
    elif is_open:
        reason = 'invalid_csv'
    else:
        try:
            text.decode()
        except UnicodeDecodeError as error:
            reason, damage = 'invalid_utf8', len(line) - len(text) + error.start
        else:
            if not text.decode().strip():
                pass
            elif len(fields) < 2:
                reason = 'missing_column'
            else:
                cells = [field.encode('latin-1').decode() for field in fields[:2]]
    return cells, Reject(reason, file.name, offset, line, damage=damage) if reason else None


def _cell(dice: random.Random) -> str:
    cell = drawn_text.sentence(dice)
    for piece in ('"', '\t', '\n', '""', '\r\n', 'é"\n', ''):
        if dice.random() < 0.1:
            at = dice.randint(0, len(cell))
            cell = cell[:at] + piece + cell[at:]
    return '' if dice.random() < 0.05 else cell


_CODECS = ('none', 'snappy', 'gzip', 'zstd', 'lz4', 'brotli')
_KINDS = (
    pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int8(), pa.large_string()), pa.binary(), pa.large_binary(),
    pa.dictionary(pa.int32(), pa.binary()),
)  # fmt: skip


def draw_parquet(dice: random.Random) -> tuple[bytes, list[str]]:
    """Returns a file and the fields of its texts, which a tenth of the files do not have."""
    count = dice.choice([0, 1, 5, 40, 100])
    table = {'id': pa.array(range(count), pa.int64())}
    fields = []
    for name in ['text', 'trans'][: dice.choice([1, 2])]:
        array = _column(dice, count)
        fields.append(name)
        if dice.random() < 0.3:
            is_null = [dice.random() < 0.1 for _ in range(count)]
            array = pa.StructArray.from_arrays(
                [array, table['id']], ['in.side', 'other'], mask=pa.array(is_null, pa.bool_())
            )
            fields[-1] = f'{name}.in\\.side'
        table[name] = array
    if dice.random() < 0.1:
        fields[0] = dice.choice(['id', 'nothing', 'text.more', 'text\\.more'])
    sink = io.BytesIO()
    pq.write_table(
        pa.table(table),
        sink,
        row_group_size=dice.choice([1, 7, 1000]),
        compression=dice.choice(_CODECS),
        use_dictionary=dice.random() < 0.5,
        data_page_version=dice.choice(['1.0', '2.0']),
        data_page_size=dice.choice([1, 64, 1 << 20]),
        write_page_checksum=dice.random() < 0.5,
        store_schema=dice.random() < 0.5,
    )
    return sink.getvalue(), fields


def _column(dice: random.Random, count: int) -> pa.Array:
    kind, nulls = dice.choice(_KINDS), dice.choice([0, 0, 0.1])
    values: list = [None if dice.random() < nulls else _cell(dice) for _ in range(count)]
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    if 'binary' in str(plain):
        damage = dice.choice([b'', b'', b'\xff'])
        values = [None if each is None else each.encode() + damage for each in values]
    if values.count(None) == count:
        kind = plain  # Arrow cannot write empty dictionaries in several row groups
    return pa.array(values, kind)


def parquet_rows(
    files: Sequence[NamedText], fields: Sequence[str], longest: int,
    normalizer: Normalizer = T2T_LINES,
) -> SplitRows | None:  # fmt: skip
    """Returns the rows of files as pyarrow reads them; None if they do not have these fields of text."""
    found = SplitRows()
    for file in files:
        table = pq.read_table(io.BytesIO(file.text))
        columns = []
        for name, *inner in (each.replace('\\.', '\0').split('.') for each in fields):
            if name not in ('text', 'trans') or inner not in ([], ['in\0side']):
                return None
            values = table[name].to_pylist()
            columns.append([(each or {}).get('in.side') for each in values] if inner else values)
        for number, row in enumerate(zip(*columns, strict=True)):
            values = [each.encode() if isinstance(each, str) else each for each in row]
            judged = [_judged_value(each, longest) for each in values]
            wrong = [(reason, value or b'') for reason, value in zip(judged, values) if reason]
            wrong.sort(key=lambda each: each[0] != 'null')  # the first side that is null or wrong
            rejects = [Reject(reason, file.name, number, value, 'row') for reason, value in wrong]
            cells = [''] if wrong else [each.decode() for each in values]
            found.add(number, cells, rejects[:1], normalizer)
    return found


def _judged_value(value: bytes | None, longest: int) -> str:
    if value is None:
        return 'null'
    if len(value) > longest:
        return 'too_long'
    try:
        value.decode()
    except UnicodeDecodeError:
        return 'invalid_utf8'
    return ''
