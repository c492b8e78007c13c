"""A WordPiece vocabulary's ids, and vocab.txt."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.encoding.vocabulary import SpecialIds
from tokcore.errors import InputError
from tokcore.wordpiece.options import SPECIAL_TOKENS
from tokcore.wordpiece.vocabulary import (
    MOST_BYTES,
    MOST_PIECE_BYTES,
    WordPieceVocabulary,
    is_vocab_txt,
    parse_pieces,
)

whole_pieces = st.text(st.characters(codec='utf-8', exclude_characters='\r\n'), min_size=1).filter(
    lambda piece: piece == piece.strip()
)

PIECES = [*SPECIAL_TOKENS, 'it', "'", 's', '##s', '.', ',', 'a']


@given(st.lists(whole_pieces, min_size=1, unique=True))
def test_what_is_written_is_read_again(pieces):
    data = WordPieceVocabulary(pieces).dump()
    assert data == ''.join(f'{piece}\n' for piece in pieces).encode()
    assert parse_pieces(data, 'v') == pieces


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
        ('\ufeffa\n\ufeffb\n'.encode(), ['a', '\ufeffb']),
    ],
)
def test_foreign_files_are_read_as_they_stand(data, pieces):
    assert parse_pieces(data, 'v') == pieces


LONGEST = b'x' * MOST_PIECE_BYTES


@pytest.mark.parametrize(
    ('data', 'said'),
    [
        (b'', 'the vocabulary file is empty; give a vocab'),
        (b'a\r\nb\rc\xff\n', 'line 3 is not UTF-8 at byte offset 6; give'),
        (b'a\r\nb\r\nx' + LONGEST + b'\nc\n', 'line 3 has more than 4,096 bytes; give'),
        (b'x' * (MOST_BYTES + 1), 'the vocabulary file has 16,777,217 bytes'),
    ],
    ids=['empty', 'not UTF-8', 'long line', 'large'],
)
def test_what_is_not_a_vocabulary_is_refused(data, said):
    assert parse_pieces(b'a\n' + LONGEST, 'v')[1] == LONGEST.decode()
    with pytest.raises(InputError, match=f'^some.txt: {said}'):
        parse_pieces(data, 'some.txt')


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
        WordPieceVocabulary(pieces).dump()


def test_the_marks_of_the_format():
    ours = [*SPECIAL_TOKENS, 'a', '##a']
    assert is_vocab_txt(WordPieceVocabulary(ours).dump())
    assert is_vocab_txt('\r\n'.join(ours).encode())
    for missing in ('[UNK]', '[CLS]', '[SEP]', '##a'):
        others = [piece for piece in ours if piece != missing]
        assert not is_vocab_txt(WordPieceVocabulary(others).dump())
    assert not is_vocab_txt(b"'<pad>'\n'<EOS>'\n'[UNK]'\n'[CLS]'\n'[SEP]'\n'##a'\n")
    assert not is_vocab_txt(b'')


def text_of(*pieces):
    vocabulary = WordPieceVocabulary([*dict.fromkeys(pieces)])
    return vocabulary.decode(map(vocabulary.id_of, pieces))


def test_roles_are_told_by_name_wherever_they_stand():
    assert WordPieceVocabulary(PIECES).special_ids == SpecialIds(0, 2, 3, 1)
    assert WordPieceVocabulary(['a', '[SEP]']).special_ids == SpecialIds(end=1)
    assert WordPieceVocabulary(['[MASK]', 'a', '[UNK]']).special_tokens == ('[UNK]', '[MASK]')


def test_pieces_are_joined_and_the_joiner_taken_off():
    assert text_of('[CLS]', 'it', '##s', 'a', '[SEP]') == '[CLS] its a [SEP]'
    assert text_of('##s', 'a') == '##s a'
    assert WordPieceVocabulary(['a', '@b'], '@').decode([0, 1, 0]) == 'ab a'
    assert WordPieceVocabulary(['a']).decode([]) == ''


@pytest.mark.parametrize(
    ('pieces', 'text'),
    [
        (['a', '.', '?', '!', ','], 'a.?!,'),
        (['it', "'", 's'], "it's"),
        (['a', "n't", 'a', "'m", "'s", "'ve", "'re"], "an't a'm's've're"),
        (["'", 'a', "'"], "' a '"),
        (['a', ';', 'a'], 'a ; a'),
    ],
)
def test_spaces_before_punctuation_are_left_out_as_in_english(pieces, text):
    assert text_of(*pieces) == text


def test_an_id_that_no_piece_has_is_shown_as_unknown():
    vocabulary = WordPieceVocabulary(['a', '', 'b', 'a'])
    assert vocabulary.vocab_size == 4
    assert [vocabulary.id_of(each) for each in ('a', '', 'b', 'c')] == [3, 1, 2, None]
    assert vocabulary.decode([3, 0, 4, -1, 2]) == 'a [UNK] [UNK] [UNK] b'
