"""Pieces by id, the roles of some, and text of ids."""

import pytest

from tokcore.encoding.special_ids import SpecialIds
from tokcore.wordpiece.wordpiece_vocabulary import SPECIAL_TOKENS, WordPieceVocabulary

PIECES = [*SPECIAL_TOKENS, 'it', "'", 's', '##s', '.', ',', 'a']


def text_of(*pieces):
    vocabulary = WordPieceVocabulary([*dict.fromkeys(pieces)])
    return vocabulary.decode(map(vocabulary.id_of, pieces))


def test_roles_are_told_by_name_wherever_they_stand():
    assert WordPieceVocabulary(PIECES).special_ids == SpecialIds(0, 2, 3, 1)
    assert WordPieceVocabulary(['a', '[SEP]']).special_ids == SpecialIds(end=1)
    assert WordPieceVocabulary(['[MASK]', 'a', '[UNK]']).special_tokens == ('[UNK]', '[MASK]')


def test_ids_count_duplicates_and_blank_lines():
    vocabulary = WordPieceVocabulary(['a', '', 'b', 'a'])
    assert vocabulary.vocab_size == 4
    assert [vocabulary.id_of(each) for each in ('a', '', 'b', 'c')] == [3, 1, 2, None]


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
        (["a", "n't", "a", "'m", "'s", "'ve", "'re"], "an't a'm's've're"),
        (["'", 'a', "'"], "' a '"),
        (['a', ';', 'a'], 'a ; a'),
    ],
)
def test_spaces_before_punctuation_are_left_out_as_in_english(pieces, text):
    assert text_of(*pieces) == text


def test_an_id_that_no_piece_has_is_shown_as_unknown():
    vocabulary = WordPieceVocabulary(['a', '', 'b', 'a'])
    assert vocabulary.decode([3, 0, 4, -1, 2]) == 'a [UNK] [UNK] [UNK] b'


def test_the_file_is_a_vocab_txt_or_refused():
    assert WordPieceVocabulary(['[UNK]', 'a', '##a']).dump() == b'[UNK]\na\n##a\n'
    with pytest.raises(ValueError, match="piece 2, 'a', is piece 0 too"):
        WordPieceVocabulary(['a', 'b', 'a']).dump()
