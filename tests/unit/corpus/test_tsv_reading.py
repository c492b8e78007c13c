"""`--quoting csv`: records are those of Python's csv, and each is judged by itself."""

import csv
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from read_format import became_of

from tokcore.corpus.corpus import Reject
from tokcore.corpus.tsv import Tsv
from tokcore.errors import InputError

QUOTED = Tsv((0, 1), quoting='csv')

TEXTS = st.text(
    st.one_of(st.sampled_from('ab"\t\n\r'), st.characters(exclude_categories=['Cs'])), max_size=6
)
TABLES = st.lists(st.lists(TEXTS, min_size=1, max_size=4), max_size=12)
SIZES = st.sampled_from([1, 7, 1 << 20])


def as_csv(rows, ending='\r\n', quoting=csv.QUOTE_ALL):
    written = io.StringIO(newline='')
    writer = csv.writer(written, delimiter='\t', lineterminator=ending, quoting=quoting)
    writer.writerows(rows)
    return written.getvalue().encode()


def plain_rows(rows):
    """What becomes of each row, in their order; nothing of those that are empty."""
    for fields in rows:
        if len(fields) < 2:
            yield 'missing_column'
        elif all(map(str.strip, fields[:2])):
            yield tuple(fields[:2])


@given(TABLES, st.sampled_from(['\n', '\r\n']), SIZES, st.booleans())
@example([['a\tb', '"'], ['\n', '""\r\n']], '\n', 1, False)
def test_what_csv_writes_is_read_again(rows, ending, block_bytes, zipped):
    rows = [row for row in rows if any(field.strip(' \t\r\n\v\f"') for field in row)]
    content = as_csv(rows, ending)
    became = became_of(QUOTED, content, block_bytes=block_bytes, zipped=zipped)
    assert [*became.found.values()] == [*plain_rows(rows)]
    assert became.empty == len(rows) - len(became.found)


def plain(data, max_line_bytes):
    """By its place what Python's csv makes of each record; records that are empty lack."""
    # csv is given lines, of which it takes as many as a record has, and one more at the end: it
    # becomes part of the last record if that is not closed.
    lines = data.split(b'\n')
    lines = [line + b'\n' for line in lines[:-1]] + [lines[-1]] * bool(lines[-1]) + [b'the end']
    reader = csv.reader((line.decode('latin-1') for line in lines), delimiter='\t')
    found, first = {}, 0
    for fields in reader:
        place = sum(map(len, lines[:first]))
        record = b''.join(lines[first : min(reader.line_num, len(lines) - 1)]).removesuffix(b'\n')
        if first < len(lines) - 1:
            is_unclosed = reader.line_num == len(lines)
            became = judged(record, fields, is_unclosed, max_line_bytes)
            found |= {} if became == 'empty' else {place: became}
        first = reader.line_num
    return found


def judged(record, fields, is_unclosed, max_line_bytes):
    if len(record) > max_line_bytes:
        return 'too_long'
    if is_unclosed:
        return 'invalid_csv'
    if not record.strip(b' \t\r\n\v\f'):
        return 'empty'
    try:
        fields = [field.encode('latin-1').decode() for field in fields]
        record.decode()
    except UnicodeDecodeError:
        return 'invalid_utf8'
    if len(fields) < 2:
        return 'missing_column'
    return tuple(fields[:2]) if all(map(str.strip, fields[:2])) else 'empty'


ANY = st.lists(
    st.sampled_from([
        b'a', b'b', b'"', b'"', b'\t', b'\t', b'\n', b'\r\n', b' ', b'\xff', 'é'.encode(), b'\0',
        b'"x"\t"y"\n', b'a\tb\n',
    ]),
    max_size=30,
).map(b''.join)  # fmt: skip


@given(ANY, st.sampled_from([(1, 1 << 20), (7, 1 << 20), (1 << 20, 3), (1 << 20, 1 << 20)]))
@example(b'"a\tb\n', (1, 1 << 20))
@example(b'a\t"b"c"d\n"\t\n', (1, 1 << 20))
@example(b'a"b\tc\n', (1, 1 << 20))
def test_any_bytes_are_the_records_that_csv_finds(data, sizes):
    block_bytes, max_line_bytes = sizes
    became = became_of(QUOTED, data, 1, block_bytes, max_line_bytes)
    assert became.found == plain(data, max_line_bytes)


def test_a_file_is_one_item_however_small_items_are():
    content = as_csv([['a\nb', 'c']] * 50)
    assert len(became_of(QUOTED, content, item_bytes=1).blocks) == 1
    assert len(became_of(QUOTED, content, item_bytes=1, block_bytes=1).blocks) > 0


@pytest.mark.parametrize('record', [b'a\rb\tc', b'a\tb\rc', b'"a"\rb\tc', b'a\tb\r\r c'])
def test_a_lone_carriage_return_outside_of_quotes_is_refused_and_nothing_dropped(record):
    found = became_of(QUOTED, b'x\ty\n' + record + b'\nz\tz\n').found
    assert [*found.values()] == [('x', 'y'), 'invalid_csv', ('z', 'z')]


def test_carriage_returns_and_line_feeds_within_quotes_are_text():
    found = became_of(QUOTED, b'"a\r\nb"\t"\rc\r"\r\n').found
    assert found == {0: ('a\r\nb', '\rc\r')}


def test_a_quote_that_nothing_closes_is_not_a_row():
    content = b'x\ty\na\t"b\nc\td\ne\tf\n'
    for block_bytes in (1, 1 << 20):
        found = became_of(QUOTED, content, block_bytes=block_bytes).found
        assert found == {0: ('x', 'y'), 4: 'invalid_csv'}
    said = QUOTED.explain(Reject('invalid_csv', 0, 4, 4, b'a\t"b'))
    assert 'the record at byte 4 is not CSV' in said and 'a quote that is not closed' in said


def test_a_quote_that_nothing_closes_is_not_held_beyond_what_a_line_may_have():
    content = b'x\ty\n"' + b'a line\n' * 400_000
    with pytest.raises(InputError, match='at or after byte 0 has no end .* is a quote not closed'):
        became_of(QUOTED, content, block_bytes=10, max_line_bytes=1000)


def test_a_record_that_is_too_long_is_that_whatever_else_it_may_be():
    long = b'"' + b'\xff\n' * 40 + b'"\r\n'
    found = became_of(QUOTED, b'x\ty\n' + long + b'a\tb\n', max_line_bytes=50).found
    assert found == {0: ('x', 'y'), 4: 'too_long', 4 + len(long): ('a', 'b')}


def test_a_field_may_be_as_long_as_a_line():
    text = 'long ' * 100_000
    assert became_of(QUOTED, as_csv([[text, 'b']])).found == {0: (text, 'b')}


def test_columns_are_chosen_in_any_order():
    content = as_csv([['a', 'b\tb', 'c\nc']])
    assert became_of(Tsv((2, 1), quoting='csv'), content).found == {0: ('c\nc', 'b\tb')}
