"""vocab.txt: a piece a line; foreign oddities are read as transformers does, not written."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.errors import InputError
from tokcore.wordpiece.vocab_txt import (
    MOST_BYTES,
    MOST_PIECE_BYTES,
    dump_pieces,
    is_vocab_txt,
    parse_pieces,
)
from tokcore.wordpiece.wordpiece_vocabulary import SPECIAL_TOKENS

whole_pieces = st.text(st.characters(codec='utf-8', exclude_characters='\r\n'), min_size=1).filter(
    lambda piece: piece == piece.strip()
)


def test_a_line_each_and_a_line_feed_at_the_end():
    assert dump_pieces(['[UNK]', 'é', '##字']) == '[UNK]\né\n##字\n'.encode()
    assert parse_pieces('[UNK]\né\n##字\n'.encode(), 'v') == ['[UNK]', 'é', '##字']


@given(st.lists(whole_pieces, min_size=1, unique=True))
def test_what_is_written_is_read_again(pieces):
    assert parse_pieces(dump_pieces(pieces), 'v') == pieces


@pytest.mark.parametrize(
    ('data', 'pieces'),
    [
        (b'a\nb', ['a', 'b']),
        (b'a\r\nb\rc\n', ['a', 'b', 'c']),
        (b'a\n\nb\n\n', ['a', '', 'b', '']),
        (b'\n', ['']),
        (b'a\na\n', ['a', 'a']),
        (b' a\tb \n', [' a\tb ']),
        ('a\u2028b\x85\x0bc\n'.encode(), ['a\u2028b\x85\x0bc']),
        ('\ufeffa\n'.encode(), ['\ufeffa']),
    ],
)
def test_foreign_files_are_read_as_they_stand(data, pieces):
    assert parse_pieces(data, 'v') == pieces


def test_what_is_no_vocabulary_is_refused_and_the_place_told():
    with pytest.raises(InputError, match='^some.txt: the vocabulary file is empty; give a vocab'):
        parse_pieces(b'', 'some.txt')
    with pytest.raises(InputError, match='^some.txt: line 3 is not UTF-8 at byte offset 6; give'):
        parse_pieces(b'a\r\nb\rc\xff\n', 'some.txt')


def test_what_no_vocabulary_is_as_large_as_is_refused_before_it_is_taken_apart():
    longest = b'x' * MOST_PIECE_BYTES
    assert parse_pieces(b'a\n' + longest, 'v')[1] == longest.decode()
    with pytest.raises(InputError, match='^v: line 3 has more than 4,096 bytes; give'):
        parse_pieces(b'a\r\nb\r\nx' + longest + b'\nc\n', 'v')
    with pytest.raises(InputError, match='^v: the vocabulary file has 16,777,217 bytes'):
        parse_pieces(b'x' * (MOST_BYTES + 1), 'v')


@pytest.mark.parametrize(
    ('pieces', 'sentence'),
    [
        (['a', 'b', 'a'], "piece 2, 'a', is piece 0 too, which"),
        (['a', ''], "piece 1, '', is empty, which"),
        (['a\u3000'], "piece 0, 'a\\u3000', has white space at its ends, which"),
        (['a\n'], "piece 0, 'a\\n', has white space"),
        (['a\rb'], "piece 0, 'a\\rb', has a line end, which"),
        (['a', '\ud800'], "piece 1, '\\ud800', has a lone surrogate, which a vocab.txt"),
    ],
)
def test_what_readers_would_take_otherwise_is_not_written(pieces, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        dump_pieces(pieces)


def test_the_marks_of_the_format():
    ours = [*SPECIAL_TOKENS, 'a', '##a']
    assert is_vocab_txt(dump_pieces(ours))
    assert is_vocab_txt('\r\n'.join(ours).encode())
    for missing in ('[UNK]', '[CLS]', '[SEP]', '##a'):
        assert not is_vocab_txt(dump_pieces([piece for piece in ours if piece != missing]))
    assert not is_vocab_txt(b"'<pad>'\n'<EOS>'\n'[UNK]'\n'[CLS]'\n'[SEP]'\n'##a'\n")
    assert not is_vocab_txt(b'')
