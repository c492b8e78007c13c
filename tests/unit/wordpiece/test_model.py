"""Words to ids: greedy longest match, all or nothing."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_pieces import plain_ids

from tokcore.encoding.kernels import NO_ROOM, MissedTokens, larger_workspace, segment_tokens
from tokcore.kernels.bytes import with_margin
from tokcore.text.pre_tokenizer import RowPart, ScannedTokens
from tokcore.wordpiece.vocabulary import WordPieceVocabulary

VOCABULARY = [
    '[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', 'un', '##aff', '##able', 'a', '##a', '字', '##字',
    'unaffable', '##affab', '##le', '##', 'é',
]  # fmt: skip

letters = st.sampled_from('abé字𝄞#')
words = st.text(letters, min_size=1, max_size=12)
pieces = st.lists(
    st.one_of(st.text(letters, max_size=4), st.text(letters, max_size=4).map('##{}'.format)),
    max_size=40,
)


def segmented(words, vocabulary, joiner='##', max_word_length=100, room=1):
    """The ids of each word; the workspace has room for this many words at first."""
    model = WordPieceVocabulary(vocabulary, joiner).model_for(max_word_length)
    data = [word.encode('utf-8', 'surrogatepass') for word in words]
    ends = np.cumsum([len(each) for each in data]).astype(np.uint64)
    starts = np.concatenate([np.zeros(1, np.uint64), ends])[:-1]
    text = with_margin(np.frombuffer(b''.join(data), np.uint8))
    tokens = ScannedTokens(text, starts, ends, np.zeros(1, np.int64))
    size = int(ends[-1]) if data else 0
    missed = MissedTokens(np.arange(len(data), dtype=np.uint64), len(data), size)
    work = model.workspace(len(data))
    number, failure = segment_tokens(tokens, missed, model.state, work)
    if failure == NO_ROOM:
        work = larger_workspace(missed, model.state, work)
        number, failure = segment_tokens(tokens, missed, model.state, work)
    if failure:
        raise ValueError(model.describe_failure(words[number], failure))
    bounds = work.id_bounds[: len(data) + 1].tolist()
    return [work.ids[start:end].tolist() for start, end in itertools.pairwise(bounds)]


@pytest.mark.parametrize(
    ('word', 'pieces'),
    [
        ('unaffable', ['unaffable']),
        ('aaffable', ['a', '##affab', '##le']),  # '##aff ##able' would spell it too
        ('unaffablea', ['unaffable', '##a']),
        *[(word, ['[UNK]']) for word in ('unx', 'unaffabl', 'x', 'aé', '[MAS', 'a##')],
        ('é', ['é']),
        ('é字', ['é', '##字']),
        ('[MASK]', ['[MASK]']),  # a special token is a piece like others
        ('[MASK]a', ['[MASK]', '##a']),
        ('##a', ['##a']),
        ('##', ['##']),
    ],
)
def test_the_longest_pieces_are_taken_from_the_left(word, pieces):
    [ids] = segmented([word], VOCABULARY)
    assert [VOCABULARY[id_] for id_ in ids] == pieces


def test_of_equal_pieces_the_last_has_its_id_and_blank_ones_match_nothing():
    assert segmented(['a', 'b'], ['[UNK]', 'a', '', 'b', 'a']) == [[4], [3]]


@pytest.mark.parametrize('letter', 'a字')
def test_words_of_more_code_points_than_the_limit_are_unknown(letter):
    vocabulary = ['[UNK]', letter, f'##{letter}']
    fits, over = segmented([letter * 100, letter * 101], vocabulary)
    assert fits == [1] + 99 * [2] and over == [0]
    assert segmented([letter * 3, letter * 4], vocabulary, '##', 3) == [[1, 2, 2], [0]]


def test_any_joiner_will_do():
    assert segmented(['ab', 'aab'], ['[UNK]', 'a', '@b', '@ab'], '@') == [[1, 2], [1, 3]]
    assert segmented(['ab'], ['[UNK]', 'a', 'b'], '') == [[1, 2]]
    assert segmented(['ab'], ['[UNK]', 'a', 'ab', 'aa'], 'a') == [[2]]


@given(pieces, st.lists(words, min_size=1, max_size=9), st.sampled_from(['##', '#', 'a', '']))
def test_ids_are_those_of_the_definition(pieces, words, joiner):
    vocabulary = ['[UNK]', *pieces]
    found = segmented(words, vocabulary, joiner, 9)
    assert found == [plain_ids([word], vocabulary, joiner, 9) for word in words]


@given(st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=60))
def test_all_of_unicode_is_found_again(words):
    vocabulary = ['[UNK]', *words]
    assert segmented(words, vocabulary) == [plain_ids([word], vocabulary) for word in words]


def test_a_large_vocabulary_finds_each_of_its_pieces():
    syllables = [f'{a}{b}' for a in 'bcdfghklmnprst' for b in 'aeiou']
    words = [f'{a}{b}{c}' for a in syllables for b in syllables for c in syllables[::9]]
    vocabulary = ['[UNK]', *words, *(f'##{word}' for word in words)]
    joined = [f'{one}{two}' for one, two in zip(words, words[::-1], strict=True)]
    ids = range(1, len(words) + 1)
    assert segmented(words, vocabulary) == [[id_] for id_ in ids]
    assert segmented(joined, vocabulary) == [[id_, 2 * len(words) + 1 - id_] for id_ in ids]


def long_token(word, vocabulary, max_word_length=100):
    text = with_margin(np.frombuffer(b'  ' + word.encode(), np.uint8))
    model = WordPieceVocabulary(vocabulary).model_for(max_word_length)
    part = RowPart(text, 2, 2 + len(word.encode()), True)
    return [id_ for ids in model.segment_long_token(part) for id_ in ids.tolist()]


def test_a_long_token_is_unknown_or_cut_like_others():
    vocabulary = ['[UNK]', '𝄞', '##𝄞']
    assert long_token('𝄞' * 300, vocabulary) == [0]
    assert long_token('𝄞' * 300, vocabulary, 300) == [1] + 299 * [2]
    assert long_token('𝄞' * 300 + 'x', vocabulary, 400) == [0]
    assert long_token('x' * 3_000_000, vocabulary) == [0]


def test_without_an_unknown_token_a_word_that_cannot_be_spelt_is_named():
    vocabulary = ['a', '##b']
    assert segmented(['a', 'ab'], vocabulary) == [[0], [0, 1]]
    with pytest.raises(ValueError, match=r"spell the word 'abxé', from 'xé' on.*with \[UNK\]"):
        segmented(['a', 'abxé'], vocabulary)
    with pytest.raises(ValueError, match="spell the word 'ab{5}'"):
        segmented(['abbbbb'], vocabulary, '##', 3)
    with pytest.raises(ValueError, match=r"'ab{59}'…, from 'xb{59}'… on"):
        long_token('a' + 'b' * 600 + 'x' + 'b' * 600, vocabulary, 2000)
