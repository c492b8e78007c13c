"""Columns by number or by the names of a header, and tabs that are kept."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from read_format import became_of

from tokcore.corpus.fields import ExtraField
from tokcore.corpus.tsv import Tsv
from tokcore.corpus.tsv_reading import tsv_rows
from tokcore.errors import InputError
from tokcore.text.normalizers import T2T_LINES

NAMED = Tsv(('en', 'zh'), header=True)
QUOTED = Tsv(('en', 'zh'), header=True, quoting='csv')
BOM = b'\xef\xbb\xbf'

CELLS = st.text(st.characters(exclude_categories=['Cs'], exclude_characters='\t\n'), max_size=5)
SIZES = st.sampled_from([1, 5, 30, 1 << 20])

cell = st.one_of(st.text(st.sampled_from('ab 字\r'), max_size=4), st.just('x' * 70))
line = st.lists(cell, max_size=6).map('\t'.join)

COLUMNS = [(0,), (1,), (0, 1), (1, 0), (2, 0), (1, 1), (0, 3)]


@given(
    st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=12),
    st.permutations(['id', 'en', 'zh']),
    st.sampled_from([b'\n', b'\r\n']),
    st.sampled_from([b'', BOM]),
    st.tuples(SIZES, SIZES),
    st.booleans(),
)
def test_columns_are_found_by_their_names(rows, names, ending, bom, sizes, zipped):
    header = bom + '\t'.join(names).encode() + ending
    lines = ['\t'.join(row).encode() for row in rows]
    content = header + b''.join(line + b'\n' for line in lines)
    became = became_of(NAMED, content, *sizes, zipped=zipped)
    expected, place = {}, len(header)
    for row, line in zip(rows, lines, strict=True):
        texts = row[names.index('en')], row[names.index('zh')]
        if all(texts):
            expected[place] = texts
        place += len(line) + 1
    assert became.found == expected
    assert became.empty == len(rows) - len(expected)


@pytest.mark.parametrize('chosen', [NAMED, QUOTED])
@pytest.mark.parametrize('content', [b'en\tzh', b'en\tzh\n', BOM + b'en\tzh\r\n', b'en\tzh\tid\n'])
@pytest.mark.parametrize('zipped', [False, True])
def test_a_file_with_nothing_but_a_header_has_no_row(chosen, content, zipped):
    for item_bytes in (1, 1 << 20):
        became = became_of(chosen, content, item_bytes, zipped=zipped)
        assert (became.found, became.empty) == ({}, 0)


def test_numbers_do_with_a_header_too():
    became = became_of(Tsv((1, 0), header=True), b'any\tthing\na\tb\n')
    assert became.found == {10: ('b', 'a')}


@pytest.mark.parametrize('chosen', [NAMED, QUOTED])
@pytest.mark.parametrize(
    ('header', 'said'),
    [
        (b'', "has no column 'en' in its header"),
        (b'en\tfr\n', "has no column 'zh' in its header, which is en, fr; choose others"),
        (b'en\tzh \n', "has no column 'zh'"),
        (b'en\tzh\tzh\n', "has several columns 'zh' in its header, which is en, zh, zh"),
        (b'\nen\tzh\n', "has no column 'en'"),
        (b'en\t\xff\tzh\n', 'the header is not UTF-8 at byte 3; mend it'),
    ],
)
def test_a_header_without_the_names_or_with_one_twice_is_refused(chosen, header, said):
    with pytest.raises(InputError) as refused:
        became_of(chosen, header + b'a\tb\n' * bool(header))
    assert said in str(refused.value)


def test_a_name_that_two_other_columns_have_does_no_harm():
    assert became_of(NAMED, b'x\tx\ten\tzh\n1\t2\ta\tb\n').found == {10: ('a', 'b')}


def test_names_say_that_there_is_a_header():
    assert became_of(Tsv(('en', 'zh')), b'en\tzh\na\tb\n').found == {6: ('a', 'b')}
    assert not Tsv((0, 1)).header


@pytest.mark.parametrize('item_bytes', [1, 20, 1 << 20])
@pytest.mark.parametrize('zipped', [False, True])
def test_a_header_longer_than_a_line_may_be_is_still_no_row(item_bytes, zipped):
    header = b'en\tzh\t' + b'x' * 50 + b'\n'
    became = became_of(
        NAMED, header + b'a\tb\n', item_bytes, item_bytes, max_line_bytes=10, zipped=zipped
    )
    assert (became.found, became.empty) == ({len(header): ('a', 'b')}, 0)


@pytest.mark.parametrize('block_bytes', [1, 10, 1 << 20])
@pytest.mark.parametrize('zipped', [False, True])
def test_names_in_quotes_are_those_that_csv_reads(block_bytes, zipped):
    chosen = Tsv(('e"n', 'z\th'), header=True, quoting='csv')
    content = b'"e""n"\t"z\th"\r\na\t"b\n"\n'
    became = became_of(chosen, content, block_bytes=block_bytes, zipped=zipped)
    assert became.found == {14: ('a', 'b\n')}


@pytest.mark.parametrize('block_bytes', [1, 1 << 20])
def test_quotes_are_those_of_text_where_none_are_asked_for(block_bytes):
    found = became_of(NAMED, b'en\tzh\n"a\t"b"\n', block_bytes=block_bytes).found
    assert found == {6: ('"a', '"b"')}


@pytest.mark.parametrize(
    ('header', 'said'),
    [
        (b'en\t"zh\n"\n', 'a quote in the header is not closed in its line; mend it'),
        (b'en\tzh\t"', 'a quote in the header is not closed in its line; mend it'),
        (b'e\rn\tzh\n', 'the header is not CSV'),
    ],
)
def test_a_quoted_header_that_is_not_a_line_of_csv_is_refused(header, said):
    with pytest.raises(InputError) as refused:
        became_of(QUOTED, header)
    assert said in str(refused.value)


def plain_row(line, columns):
    """The texts of a line, or a word that says why it is not a row."""
    text = line.replace('\r', '')
    if not text.strip():
        return 'empty'
    fields = text.split('\t', max(columns))
    if len(fields) <= max(columns):
        return 'missing_column'
    cells = tuple(fields[column].strip() for column in columns)
    return cells if all(cells) else 'empty'


@given(st.lists(line, max_size=8), st.sampled_from(COLUMNS))
@example(['a\tb\tc\td'], (0, 1))
@example(['a\tb\tc\td'], (2, 0))
@example(['\ta\tb', 'a\t\tb', 'a\t', 'a'], (0, 1))
def test_the_last_column_is_the_rest_of_the_line(lines, columns):
    data = ''.join(f'{each}\n' for each in lines).encode()
    rows = tsv_rows(data, 0, columns, T2T_LINES, keep_tabs=True)
    found = [tuple(side.row(number) for side in rows.sides) for number in range(len(rows))]
    wanted = [plain_row(each, columns) for each in lines]
    assert found == [each for each in wanted if isinstance(each, tuple)]
    assert rows.empty == wanted.count('empty')
    assert [each.reason for each in rows.rejects] == ['missing_column'] * len(rows.rejects)
    assert len(rows.rejects) == wanted.count('missing_column')


def test_it_may_be_a_field_that_goes_along():
    field = ExtraField('2', 'note', 'bytes')
    rows = tsv_rows(b'a\tb\tc\td\r\n', 0, (0,), T2T_LINES, extra_fields=[field], keep_tabs=True)
    [note] = rows.extra_features
    assert (rows.sides[0].row(0), note.values.row(0)) == ('a', 'c\td')


def test_quotes_keep_tabs_by_themselves():
    with pytest.raises(InputError, match='--keep-tabs is for --quoting none'):
        Tsv(quoting='csv', keep_tabs=True)


def test_who_does_not_ask_for_it_has_the_fingerprints_of_before():
    assert 'keep_tabs' not in Tsv().key and 'keep_tabs' not in Tsv().options
    assert Tsv(keep_tabs=True).key != Tsv().key
