"""Tokenizers from Python, and a WordPiece vocabulary of one's own text."""

import collections
import re
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_pieces import plain_ids

from tokcore import learn
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.text.bert_plain import bert_tokens
from tokcore.tokenizers import (
    WordPieceTokenizer,
    learn_wordpiece_vocabulary,
    load_tokenizer,
)
from tokcore.wordpiece.options import SPECIAL_TOKENS, WordPieceOptions
from tokcore.wordpiece.scheme import WordPieceScheme
from tokcore.wordpiece.vocabulary import WordPieceVocabulary

TEXTS = [
    'Der Fluß fließt,\nund der Stein bleibt.',
    '  wer geht, der fließt nicht; wer bleibt, bleibt ',
    '字字 und 字',
    '',
    'Größe und große Flüsse',
] * 30

SMALL = {'vocab_size': 60, 'min_count_range': (1, 1000)}

PIECES = [*SPECIAL_TOKENS, 'un', '##able', 'a', '##a', 'é', '字', '.', 'mask', '[', ']', 'É']
VOCABULARY = WordPieceVocabulary(PIECES)

letters = st.sampled_from('aéÉ字.un[MASK] \n')


def learned(texts, scheme=WordPieceScheme(), **options):
    """The learner's own answer for the words that plain Python finds."""
    words = collections.Counter(word for text in texts for word in scheme.tokens(text))
    table = TokenTable.from_items(words.items())
    return scheme.learn(table, WordPieceOptions(**options), lambda *_: None).vocabulary.pieces


def test_it_is_what_the_learner_gives_for_the_words_of_the_texts():
    found = learn_wordpiece_vocabulary(TEXTS, **SMALL)
    assert found.pieces == learned(TEXTS, **SMALL)
    assert found.pieces[:5] == ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')
    assert {'bleibt', 'der', '字'} < set(found.pieces)


def test_words_are_found_as_asked_for():
    options = {'lower_case': False, 'strip_accents': True, 'split_cjk': False}
    found = learn_wordpiece_vocabulary(TEXTS, **options, **SMALL)
    assert found.pieces == learned(TEXTS, WordPieceScheme.of(**options), **SMALL)
    assert {'D', '##字'} < set(found.pieces)


def test_it_does_not_matter_how_many_texts_are_counted_at_once(monkeypatch):
    expected = learn_wordpiece_vocabulary(TEXTS, **SMALL).pieces
    for size in (1, 70):
        monkeypatch.setattr(learn, '_BLOCK_BYTES', size)
        assert learn_wordpiece_vocabulary(iter(TEXTS), **SMALL).pieces == expected


def test_what_is_not_text_is_refused_by_its_place(tmp_path):
    with pytest.raises(InputError, match='^text 1 has a lone surrogate at character 2'):
        learn_wordpiece_vocabulary(['a', 'bc\udc80'], **SMALL)
    path = tmp_path / 'bad.txt'
    path.write_bytes(b'good\nb\xffd\n')
    with pytest.raises(InputError, match=re.escape(str(path)) + '.* UTF-8'):
        learn_wordpiece_vocabulary(paths=[path], **SMALL)
    with pytest.raises(InputError, match='nothing.txt cannot be read'):
        learn_wordpiece_vocabulary(paths=[tmp_path / 'nothing.txt'], **SMALL)
    with pytest.raises(TypeError, match='put a single one in a list'):
        learn_wordpiece_vocabulary('a text', **SMALL)


def names(ids):
    return [PIECES[id_] for id_ in ids]


def test_text_stands_between_cls_and_sep_unless_these_are_not_wanted():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    assert names(tokenizer.encode(' Unable  a.')) == ['[CLS]', 'un', '##able', 'a', '.', '[SEP]']
    assert names(tokenizer.encode('aa', add_special_tokens=False)) == ['a', '##a']
    assert names(tokenizer.encode('')) == ['[CLS]', '[SEP]']
    assert WordPieceTokenizer(WordPieceVocabulary(['a', '[UNK]'])).encode('a b') == [0, 1]


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


@given(st.one_of(st.text(), st.text(letters)), st.booleans(), st.booleans())
def test_ids_are_those_of_the_definition(text, lower_case, allowed):
    tokenizer = WordPieceTokenizer(VOCABULARY, lower_case=lower_case, allow_special_tokens=allowed)
    special = SPECIAL_TOKENS if allowed else ()
    words = bert_tokens(text, 'bert', lower_case, None, True, special)
    assert tokenizer.encode(text, add_special_tokens=False) == plain_ids(words, PIECES)


@settings(max_examples=20)
@given(st.text(st.characters(exclude_categories=[])))
def test_lone_surrogates_are_not_words(text):
    without = ''.join(each for each in text if not '\ud800' <= each <= '\udfff')
    tokenizer = WordPieceTokenizer(VOCABULARY)
    assert tokenizer.encode(text) == tokenizer.encode(without)


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


def test_the_case_of_a_file_with_capitals_is_stated(tmp_path):
    path = tmp_path / 'vocab.txt'
    path.write_bytes(VOCABULARY.dump())
    with pytest.raises(InputError, match=r'give --no-lower-case or --lower-case \(lower_case='):
        load_tokenizer(path)
    for lower_case, piece in [(False, 'É'), (True, '[UNK]')]:
        scheme = WordPieceScheme.of(lower_case=lower_case)
        assert load_tokenizer(path, lower_case=lower_case).tokenize('É') == [piece]
        assert load_tokenizer(path, scheme).tokenize('É') == [piece]
    (tmp_path / 'tokenizer_config.json').write_text('{"do_lower_case": false}')
    assert load_tokenizer(path).tokenize('É') == ['É']


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
