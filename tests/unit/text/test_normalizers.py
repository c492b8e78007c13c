"""Lines as Tensor2Tensor has them, stripped, unstripped, or in a normal form of Unicode."""

import pickle
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rows_of_text import side_of

from tokcore.text.normalizers import (
    T2T_LINES,
    UNSTRIPPED_LINES,
    StrippedLines,
    UnstrippedLines,
)

FORMS = [None, 'NFC', 'NFKC']
ODD = (
    'e\u0301\u0327\u0345é\u212bÅﬁ，字한\u1100\u1161\u11a8\u0958\u09c7\u09be\u0344'
    '\U0001d15e\U00011099\U000110ba'
)
ANY = st.one_of(st.characters(exclude_categories=['Cs']), st.sampled_from(' \t\r\x85' + ODD))
ANY_LINES_TEXT = st.lists(
    st.one_of(
        st.text(ANY).map(str.encode),
        st.text(st.sampled_from(ODD), max_size=80).map(str.encode),
        st.binary(max_size=12),
    ).map(lambda line: line.replace(b'\n', b'')),
    max_size=8,
)

PIECES = [
    b' ', b'\t', b'\r', b'\n', b'\x1c', b'a', b'Zz9', b'_', b'x' * 70, b'\xff', b'\xe5\xad',
    b'\xe5\r\xad\x97', *(each.encode() for each in '\xa0\u3000\ufeffé字😀'),
]  # fmt: skip
rows = st.lists(st.sampled_from(PIECES), max_size=8).map(b''.join)
gaps = st.sampled_from([b'\n', b'\t', b'\n\n\n', b'\n\xff\xff\n', b'\t\xc3\t', b'\r\n'])


def lines_as_rows(lines):
    return side_of(lines, [b'\n'] * len(lines), b'\n')


@given(ANY_LINES_TEXT, st.sampled_from(FORMS))
@example(['한'.encode() * 30, '\u1100\u1161'.encode() * 30, b'x' * 63 + 'é'.encode()], 'NFC')
@example([b' \t', b'\r', '\u3000\x85\x1f'.encode(), b' \xff', b' a', '\u3000字 '.encode()], None)
def test_any_unstripped_lines(lines, form):
    rows = lines_as_rows(lines)
    found = UnstrippedLines(form).apply(rows)
    side = found.side
    assert len(side) == len(lines)
    # Rows stand in their order.
    assert (side.starts[1:] >= side.ends[:-1]).all()
    for row, line in enumerate(lines):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            assert found.damages[row] == rows.starts[row] + error.start
            assert side.row(row) == ''
        else:
            assert row not in found.damages
            assert side.row(row) == unstripped(text, form)


def unstripped(text, form):
    """The text of a row, which is empty if it has nothing but white space."""
    if not text.strip():
        return ''
    return unicodedata.normalize(form, text) if form else text


def test_no_normal_form_has_white_space_alone_of_other_text():
    for form in ('NFC', 'NFKC'):
        for code in range(0x110000):
            text = unicodedata.normalize(form, chr(code))
            assert chr(code).isspace() == (not text.strip())


@pytest.mark.parametrize('form', FORMS)
def test_normal_text_is_not_copied(form):
    rows = lines_as_rows([b'\tplain  \r', '字é한 Ω'.encode(), b'', b' '])
    side = UnstrippedLines(form).apply(rows).side
    assert np.shares_memory(side.text, rows.text)
    assert [side.row(row) for row in range(4)] == ['\tplain  \r', '字é한 Ω', '', '']


def test_it_is_known_by_its_form():
    assert (UNSTRIPPED_LINES.name, dict(UNSTRIPPED_LINES.options)) == ('unstripped-lines', {})
    made = UnstrippedLines('NFKC')
    assert (made.name, dict(made.options)) == ('unstripped-lines', {'form': 'NFKC'})
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(ValueError, match=r"'NFD' is not a form; there are NFC and NFKC, and None"):
        UnstrippedLines('NFD')


def plain(row):
    """The text of a row, or where its bytes break, each '\\r' being dropped before."""
    kept = [place for place, byte in enumerate(row) if byte != ord('\r')]
    try:
        return bytes(row[place] for place in kept).decode().strip()
    except UnicodeDecodeError as error:
        return kept[error.start]


@given(st.lists(st.tuples(rows, gaps), max_size=12))
@example([(b' a\nb\r\n', b'\n'), (b'', b'\n'), (b'\r \r', b'\n'), (b'\xe5\xad', b'\t')])
def test_each_row_is_what_it_would_be_alone(drawn):
    given_rows = side_of(*([each[part] for each in drawn] for part in (0, 1)), b'\n')
    found = T2T_LINES.apply(given_rows)
    expected = [plain(row) for row, _ in drawn]
    texts = [found.side.row(index) for index in range(len(found.side))]
    assert texts == [each if isinstance(each, str) else '' for each in expected]
    assert found.damages == {
        index: int(given_rows.starts[index]) + place
        for index, place in enumerate(expected)
        if isinstance(place, int)
    }


@given(st.lists(st.tuples(rows, gaps), max_size=12))
@example([(b' a\nb\r\n', b'\n\xff\xff\n'), (b' \r', b'\n\xff\xff\n'), (b'\xe5\xad', b'\t')])
def test_each_unstripped_row_is_what_it_would_be_alone(drawn):
    given_rows = side_of(*([each[part] for each in drawn] for part in (0, 1)), b'\n')
    found = UNSTRIPPED_LINES.apply(given_rows)
    for index, (row, _) in enumerate(drawn):
        alone = UNSTRIPPED_LINES.apply(lines_as_rows([row.replace(b'\n', b'\r')]))
        assert found.side.row(index).replace('\n', '\r') == alone.side.row(0)
        assert (index in found.damages) == bool(alone.damages)


@given(ANY_LINES_TEXT, st.sampled_from([None, '\r\n ']))
@example([b' \t ', b' \r', '\u3000'.encode(), '\x85a \r'.encode()], '\r\n ')
def test_any_stripped_lines(lines, only):
    rows = lines_as_rows(lines)
    found = StrippedLines(only).apply(rows)
    side = found.side
    for row, line in enumerate(lines):
        rest = side.text[side.starts[row] : side.ends[row]].tobytes()
        try:
            text = line.decode()
            assert rest.decode() == (text.strip(only) if text.strip() else '')
        except UnicodeDecodeError as error:
            assert found.damages[row] == rows.starts[row] + error.start and rest == b''
        else:
            assert row not in found.damages
