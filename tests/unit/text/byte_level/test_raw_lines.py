r"""Lines that stay as they are, '\r' and blanks at their ends included, or in a normal form."""

import pickle
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tokcore.text.byte_level.raw_lines import RAW_LINES, RawLines
from tokcore.text.sides import Side

FORMS = [None, 'NFC', 'NFKC']
ODD = 'e\u0301\u0327\u0345é\u212bÅﬁ，字한\u1100\u1161\u11a8\u0958\u09c7\u09be\u0344\U0001d15e\U00011099\U000110ba'
LINES = st.lists(
    st.one_of(
        st.text(st.one_of(st.characters(exclude_categories=['Cs']), st.sampled_from(' \t\r\x85' + ODD))).map(
            str.encode
        ),
        st.text(st.sampled_from(ODD), max_size=80).map(str.encode),
        st.binary(max_size=12),
    ).map(lambda line: line.replace(b'\n', b'')),
    max_size=8,
)  # fmt: skip


def laid_out(lines):
    text = np.frombuffer(b''.join(line + b'\n' for line in lines), np.uint8)
    ends = np.cumsum([len(line) + 1 for line in lines], dtype=np.int64) - 1
    return Side(text, ends - [len(line) for line in lines], ends)


@given(LINES, st.sampled_from(FORMS))
@settings(deadline=None, max_examples=300)
@example(['한'.encode() * 30, '\u1100\u1161'.encode() * 30, b'x' * 63 + 'é'.encode()], 'NFC')
def test_any_lines(lines, form):
    rows = laid_out(lines)
    found = RawLines(form).apply(rows)
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
            assert side.row(row) == (unicodedata.normalize(form, text) if form else text)


@pytest.mark.parametrize('form', ['NFC', 'NFKC'])
def test_every_character_between_others(form):
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    lines = [f'e{each}\u0301' for each in characters] + [f'ㅏ{each}\u1161' for each in characters]
    lines = [line.replace('\n', '') for line in lines]
    side = RawLines(form).apply(laid_out([line.encode() for line in lines])).side
    assert [side.row(row) for row in range(len(side))] == [
        unicodedata.normalize(form, line) for line in lines
    ]


@pytest.mark.parametrize('form', FORMS)
def test_normal_text_is_not_copied(form):
    rows = laid_out(['\tplain  \r'.encode(), '字é한 Ω'.encode(), b'', b' '])
    side = RawLines(form).apply(rows).side
    assert np.shares_memory(side.text, rows.text)
    assert [side.row(row) for row in range(4)] == ['\tplain  \r', '字é한 Ω', '', ' ']


def test_damage_between_rows_is_none_of_theirs():
    side = Side(np.frombuffer(b'ab\n\xff\ncd', np.uint8), np.array([0, 5]), np.array([2, 7]))
    found = RAW_LINES.apply(side)
    assert not found.damages and [found.side.row(row) for row in range(2)] == ['ab', 'cd']


def test_no_rows():
    nothing = Side(np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64))
    for form in FORMS:
        assert len(RawLines(form).apply(nothing).side) == 0


def test_it_is_known_by_its_form():
    assert (RAW_LINES.name, dict(RAW_LINES.options)) == ('raw-lines', {})
    made = RawLines('NFKC')
    assert (made.name, dict(made.options)) == ('raw-lines', {'form': 'NFKC'})
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(ValueError, match=r"'NFD' is no form; there are NFC and NFKC, and None"):
        RawLines('NFD')
