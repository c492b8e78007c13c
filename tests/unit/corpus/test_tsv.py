"""Columns where the plain rules draw too little: headers, records in quotes, tabs that are kept."""

import csv
import io

import pytest
from read_format import became_of, rows_of_block

from tokcore.corpus.corpus import Reject
from tokcore.corpus.declarations import Tsv
from tokcore.errors import InputError

NAMED = Tsv(('en', 'zh'), header=True)
QUOTED = Tsv(('en', 'zh'), header=True, quoting='csv')
BOM = b'\xef\xbb\xbf'


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


def test_it_may_be_a_field_that_goes_along():
    rows = rows_of_block(Tsv((0,), keep=('2=note',), keep_tabs=True), b'a\tb\tc\td\r\n')
    [note] = rows.extra_features
    assert (rows.sides[0].row(0), note.values.row(0)) == ('a', 'c\td')


def test_quotes_keep_tabs_by_themselves():
    with pytest.raises(InputError, match='--keep-tabs is for --quoting none'):
        Tsv(quoting='csv', keep_tabs=True)


def test_who_does_not_ask_for_it_has_the_fingerprints_of_before():
    assert 'keep_tabs' not in Tsv().key and 'keep_tabs' not in Tsv().options
    assert Tsv(keep_tabs=True).key != Tsv().key


# Records in quotes.

QUOTED_PAIRS = Tsv((0, 1), quoting='csv')


def as_csv(rows, ending='\r\n', quoting=csv.QUOTE_ALL):
    written = io.StringIO(newline='')
    writer = csv.writer(written, delimiter='\t', lineterminator=ending, quoting=quoting)
    writer.writerows(rows)
    return written.getvalue().encode()


def test_a_file_is_one_item_however_small_items_are():
    content = as_csv([['a\nb', 'c']] * 50)
    assert len(became_of(QUOTED_PAIRS, content, item_bytes=1).blocks) == 1
    assert len(became_of(QUOTED_PAIRS, content, item_bytes=1, block_bytes=1).blocks) > 0


@pytest.mark.parametrize('record', [b'a\rb\tc', b'a\tb\rc', b'"a"\rb\tc', b'a\tb\r\r c'])
def test_a_lone_carriage_return_outside_of_quotes_is_refused_and_nothing_dropped(record):
    found = became_of(QUOTED_PAIRS, b'x\ty\n' + record + b'\nz\tz\n').found
    assert [*found.values()] == [('x', 'y'), 'invalid_csv', ('z', 'z')]


def test_carriage_returns_and_line_feeds_within_quotes_are_text():
    found = became_of(QUOTED_PAIRS, b'"a\r\nb"\t"\rc\r"\r\n').found
    assert found == {0: ('a\r\nb', '\rc\r')}


def test_a_quote_that_nothing_closes_is_not_a_row():
    content = b'x\ty\na\t"b\nc\td\ne\tf\n'
    for block_bytes in (1, 1 << 20):
        found = became_of(QUOTED_PAIRS, content, block_bytes=block_bytes).found
        assert found == {0: ('x', 'y'), 4: 'invalid_csv'}
    said = QUOTED_PAIRS.explain(Reject('invalid_csv', 0, 4, 4, b'a\t"b'))
    assert 'the record at byte 4 is not CSV' in said and 'a quote that is not closed' in said


def test_a_quote_that_nothing_closes_is_not_held_beyond_what_a_line_may_have():
    content = b'x\ty\n"' + b'a line\n' * 400_000
    with pytest.raises(InputError, match='at or after byte 0 has no end .* is a quote not closed'):
        became_of(QUOTED_PAIRS, content, block_bytes=10, max_line_bytes=1000)


def test_a_record_that_is_too_long_is_that_whatever_else_it_may_be():
    long = b'"' + b'\xff\n' * 40 + b'"\r\n'
    found = became_of(QUOTED_PAIRS, b'x\ty\n' + long + b'a\tb\n', max_line_bytes=50).found
    assert found == {0: ('x', 'y'), 4: 'too_long', 4 + len(long): ('a', 'b')}


def test_a_field_may_be_as_long_as_a_line():
    text = 'long ' * 100_000
    assert became_of(QUOTED_PAIRS, as_csv([[text, 'b']])).found == {0: (text, 'b')}


@pytest.mark.parametrize('field', [{'keep': ('65536=id',)}, {'label': '9' * 5_000}])
def test_a_column_of_a_field_has_the_limit_of_those_of_texts(field):
    with pytest.raises(InputError, match='not a column from 0 to 65,535; '):
        Tsv((0,), **field)
    assert Tsv((0,), keep=('65535=id',)).all_columns == [0, 65535]


def test_columns_are_chosen_in_any_order():
    content = as_csv([['a', 'b\tb', 'c\nc']])
    assert became_of(Tsv((2, 1), quoting='csv'), content).found == {0: ('c\nc', 'b\tb')}
