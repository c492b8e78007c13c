"""BERT's tokenizer in Python: what its users call."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_pieces import plain_ids

from tokcore.errors import InputError
from tokcore.text.bert.plain_bert_tokens import bert_tokens
from tokcore.wordpiece.tokenizer import WordPieceTokenizer
from tokcore.wordpiece.wordpiece_vocabulary import SPECIAL_TOKENS, WordPieceVocabulary

PIECES = [*SPECIAL_TOKENS, 'un', '##able', 'a', '##a', 'é', '字', '.', 'mask', '[', ']', 'É']
VOCABULARY = WordPieceVocabulary(PIECES)


def names(ids):
    return [PIECES[id_] for id_ in ids]


def test_text_stands_between_cls_and_sep_unless_these_are_not_wanted():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    assert names(tokenizer.encode(' Unable  a.')) == ['[CLS]', 'un', '##able', 'a', '.', '[SEP]']
    assert names(tokenizer.encode('aa', add_special_tokens=False)) == ['a', '##a']
    assert names(tokenizer.encode('')) == ['[CLS]', '[SEP]']
    assert WordPieceTokenizer(WordPieceVocabulary(['a', '[UNK]'])).encode('a b') == [0, 1]


def test_pieces_and_text_of_ids():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    assert tokenizer.tokenize('Unable xyz 字字.') == ['un', '##able', '[UNK]', '字', '字', '.']
    assert tokenizer.decode(tokenizer.encode('Unable a.')) == '[CLS] unable a. [SEP]'
    assert tokenizer.vocab['##a'] == PIECES.index('##a')
    assert tokenizer.vocab_size == len(PIECES)


def test_options_are_those_of_the_scheme():
    assert WordPieceTokenizer(VOCABULARY).tokenize('ÉA') == ['[UNK]']
    assert WordPieceTokenizer(VOCABULARY, strip_accents=False).tokenize('ÉA') == ['é', '##a']
    assert WordPieceTokenizer(VOCABULARY, lower_case=False).tokenize('É É') == ['É', 'É']
    assert WordPieceTokenizer(VOCABULARY, split_cjk=False).tokenize('字字 字') == ['[UNK]', '字']
    assert WordPieceTokenizer(VOCABULARY, max_word_length=2).tokenize('aa aaa') == [
        'a', '##a', '[UNK]'
    ]  # fmt: skip
    a_hundred_and_one = 'a' * 101
    assert WordPieceTokenizer(VOCABULARY).tokenize(a_hundred_and_one) == ['[UNK]']
    original = WordPieceTokenizer(VOCABULARY, normalizer='bert-original')
    assert original.tokenize(a_hundred_and_one) == ['a'] + 100 * ['##a']


def test_special_tokens_in_text_are_text_unless_they_are_allowed():
    assert WordPieceTokenizer(VOCABULARY).tokenize('a[MASK]a') == ['a', '[', 'mask', ']', 'a']
    allowing = WordPieceTokenizer(VOCABULARY, allow_special_tokens=True)
    assert allowing.tokenize('a[MASK]a [mask]') == ['a', '[MASK]', 'a', '[', 'mask', ']']


def test_a_token_that_the_vocabulary_lacks_is_not_cut_out():
    pieces = ['[UNK]', '[', ']', 'mask', '[SEP]']
    allowing = WordPieceTokenizer(WordPieceVocabulary(pieces), allow_special_tokens=True)
    assert allowing.tokenize('[MASK][SEP]') == ['[', 'mask', ']', '[SEP]']


letters = st.sampled_from('aéÉ字.un[MASK] \n')


@settings(deadline=None)
@given(st.one_of(st.text(), st.text(letters)), st.booleans(), st.booleans())
def test_ids_are_those_of_the_definition(text, lower_case, allowed):
    tokenizer = WordPieceTokenizer(
        VOCABULARY, lower_case=lower_case, allow_special_tokens=allowed
    )
    special = SPECIAL_TOKENS if allowed else ()
    words = bert_tokens(text, 'bert', lower_case, None, True, special)
    assert tokenizer.encode(text, add_special_tokens=False) == plain_ids(words, PIECES)


@settings(deadline=None, max_examples=20)
@given(st.text(st.characters(exclude_categories=[])))
def test_lone_surrogates_are_no_words(text):
    without = ''.join(each for each in text if not '\ud800' <= each <= '\udfff')
    tokenizer = WordPieceTokenizer(VOCABULARY)
    assert tokenizer.encode(text) == tokenizer.encode(without)


def test_long_text_is_encoded_as_short_text_is():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    text = 'Unable 字 a. ' * 50_000
    ids = tokenizer.encode('Unable 字 a. ', add_special_tokens=False)
    assert tokenizer.encode(text, add_special_tokens=False) == ids * 50_000
    assert tokenizer.tokenize(f'a {"x" * 1_000_000} a') == ['a', '[UNK]', 'a']


def test_threads_share_a_tokenizer():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    expected = tokenizer.encode('unable a 字')
    found = []

    def encode():
        found.extend(tokenizer.encode('unable a 字') for _ in range(200))

    threads = [threading.Thread(target=encode) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 800


def test_a_file_is_loaded_with_options(tmp_path):
    path = tmp_path / 'vocab.txt'
    path.write_bytes(VOCABULARY.dump())
    assert WordPieceTokenizer.load(path).tokenize('É') == ['[UNK]']
    assert WordPieceTokenizer.load(str(path), lower_case=False).tokenize('É') == ['É']
    with pytest.raises(InputError, match='nothing.txt: the vocabulary cannot be read .*give the p'):
        WordPieceTokenizer.load(tmp_path / 'nothing.txt')


def test_without_an_unknown_token_the_word_is_named():
    tokenizer = WordPieceTokenizer(WordPieceVocabulary(['a', '##b']))
    with pytest.raises(ValueError, match=r"the word 'abc', from 'c' on.*give a vocabulary with"):
        tokenizer.encode('a abc')
    assert tokenizer.encode('a ab') == [0, 0, 1]
