"""Words as `str.split` finds them; pieces come back from lines whatever they hold, and hold no white
space there."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scanned_tokens import laid_out, scanned

from tokcore.text.whitespace import SpacePreTokenizer, escape_piece, unescape_piece

LETTERS_AND_SPACES = st.sampled_from('ab é字😀\xa0\u2003\u2028\u3000\t\x1c\x85\n\r' + '0')
ROWS = st.one_of(
    st.text(st.characters(exclude_categories=['Cs']), max_size=150),
    st.lists(LETTERS_AND_SPACES, max_size=200).map(''.join),
    st.lists(LETTERS_AND_SPACES, min_size=2, max_size=3).flatmap(
        lambda few: st.lists(st.sampled_from(few), max_size=250).map(''.join)
    ),
)
SPLITS = [SpacePreTokenizer('unicode'), SpacePreTokenizer(), SpacePreTokenizer('space', True)]

PIECES = st.one_of(st.text(), st.text(st.sampled_from('\\ 3 29;\t\x85\u3000a')))


@given(
    rows=st.lists(ROWS, min_size=1, max_size=5),
    pre_tokenizer=st.sampled_from(SPLITS),
    between=st.sampled_from([b'', b'\n', b' ', b'a', '\u3000'.encode(), b'\xa0\x80\x80' * 30]),
    room=st.sampled_from([1, 2, 5, 31, 64, 1_000]),
)
@example([' ' * 64, 'a' * 64, 'a ' * 32, ' a' * 32, '\u3000' * 64], SPLITS[0], b'', 1)
@example(['abc' + '\xa0a' * 1_100], SPLITS[0], b'', 1_024)
def test_words_are_those_of_plain_python(rows, pre_tokenizer, between, room):
    found = scanned(laid_out(rows, between), pre_tokenizer, room)
    assert found == [pre_tokenizer.tokens(row) for row in rows]


@pytest.mark.parametrize('space', ['\xa0', '\u2028', '\u3000', '\u1680', ' ', '\t'])
def test_a_call_may_continue_at_every_place_of_white_space(space):
    rows = [
        'b' * length + f'{space}a' * words + after
        for length in range(8)
        for words in range(14, 34)
        for after in ('', space, f'{space * 30}a')
    ]
    for room in (1, 9, 16, 22):
        assert scanned(laid_out(rows), SPLITS[0], room) == [row.split() for row in rows]


@given(PIECES)
def test_every_piece_comes_back(piece):
    shown = escape_piece(piece)
    assert not any(character.isspace() for character in shown)
    assert unescape_piece(shown) == piece


def test_only_what_must_be_is_escaped():
    assert escape_piece('a b') == '\\32;'.join('ab')
    assert escape_piece('a\\b') == 'a\\b'
    assert escape_piece('\\32;') == '\\92;32;'
    assert escape_piece('\\ ') == '\\92;\\32;'
