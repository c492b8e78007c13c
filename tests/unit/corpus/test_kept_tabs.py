"""Columns of which the last is the rest of its line."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tokcore.corpus.columnar.tsv import Tsv
from tokcore.corpus.features.kept_fields import KeptField
from tokcore.corpus.formats.line_rows import tsv_rows
from tokcore.errors import InputError
from tokcore.text.t2t_lines import T2T_LINES

cell = st.one_of(st.text(st.sampled_from('ab 字\r'), max_size=4), st.just('x' * 70))
line = st.lists(cell, max_size=6).map('\t'.join)


COLUMNS = [(0,), (1,), (0, 1), (1, 0), (2, 0), (1, 1), (0, 3)]


def plain_row(line, columns):
    """The texts of a line, a word if it is none."""
    text = line.replace('\r', '')
    if not text.strip():
        return 'empty'
    fields = text.split('\t', max(columns))
    if len(fields) <= max(columns):
        return 'missing_column'
    cells = tuple(fields[column].strip() for column in columns)
    return cells if all(cells) else 'empty'


@settings(max_examples=300, deadline=None)
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
    field = KeptField('2', 'note', 'bytes')
    rows = tsv_rows(b'a\tb\tc\td\r\n', 0, (0,), T2T_LINES, kept=[field], keep_tabs=True)
    [note] = rows.kept
    assert (rows.sides[0].row(0), note.values.row(0)) == ('a', 'c\td')


def test_quotes_keep_tabs_by_themselves():
    with pytest.raises(InputError, match='--keep-tabs is for --quoting none'):
        Tsv(quoting='csv', keep_tabs=True)


def test_who_does_not_ask_for_it_has_the_fingerprints_of_before():
    assert 'keep_tabs' not in Tsv().key and 'keep_tabs' not in Tsv().options
    assert Tsv(keep_tabs=True).key != Tsv().key
