"""Pieces come back from lines whatever they hold, and hold no white space there."""

from hypothesis import given
from hypothesis import strategies as st

from tokcore.text.whitespace import escape_piece, unescape_piece

PIECES = st.one_of(st.text(), st.text(st.sampled_from('\\ 3 29;\t\x85\u3000a')))


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
