"""The scheme: options, its file's marks, and which words and models they choose."""

import pickle
import re
from contextlib import nullcontext

import pytest

from tokcore.encoding.vocabulary import Template
from tokcore.errors import InputError
from tokcore.options import recorded
from tokcore.wordpiece.options import SPECIAL_TOKENS
from tokcore.wordpiece.scheme import SCHEME, WordPieceEncodingOptions, WordPieceScheme
from tokcore.wordpiece.vocabulary import WordPieceVocabulary

VOCABULARY = WordPieceVocabulary([*SPECIAL_TOKENS, 'x', '##x'])


def test_its_options_are_recorded_by_the_names_that_are_typed():
    assert recorded(SCHEME) == {
        'normalizer': 'bert',
        'lower_case': True,
        'strip_accents': 'auto',
        'split_cjk': True,
    }
    assert recorded(WordPieceEncodingOptions()) == {}
    asked = WordPieceEncodingOptions(max_word_length=7, allow_special_tokens=True)
    assert recorded(asked) == {'max_word_length': 7, 'allow_special_tokens': True}


def test_it_is_made_of_the_names_in_python_too():
    assert WordPieceScheme.of() == SCHEME == pickle.loads(pickle.dumps(SCHEME))
    assert WordPieceScheme.of('bert-original', False, True, False) == WordPieceScheme(
        'bert-original', False, 'yes', False
    )
    assert WordPieceScheme.of(strip_accents=False).strip_accents == 'no'
    with pytest.raises(ValueError, match="'t5' is not a normalizer; give bert or bert-orig"):
        WordPieceScheme.of('t5')


def test_records_say_which_words_there_are():
    assert SCHEME.rules.normalizer.name == 'stripped-lines'
    assert SCHEME.rules.pre_tokenizer.name == 'bert'
    assert WordPieceScheme.of('bert-original').rules.pre_tokenizer.name == 'bert-original'
    assert SCHEME.rules != WordPieceScheme.of(lower_case=False).rules


def test_the_longest_word_goes_with_the_normalizer_unless_asked_for():
    asked = WordPieceEncodingOptions(max_word_length=3)
    original = WordPieceScheme.of('bert-original')
    for scheme, options, longest in (
        (SCHEME, None, 100), (original, None, 200), (SCHEME, asked, 3), (original, asked, 3),
    ):  # fmt: skip
        model = scheme.encoding_parts(VOCABULARY, options)[1]
        assert model.state.max_word_length == longest
        assert model.state.trie is VOCABULARY.model.state.trie


def test_a_row_stands_between_the_tokens_that_are_there():
    assert SCHEME.template(VOCABULARY) == Template((2,), (3,))
    assert SCHEME.template(WordPieceVocabulary(['a', '[SEP]'])) == Template((), (1,))
    assert SCHEME.template(VOCABULARY, '$A [PAD]') == Template((), (0,))


@pytest.mark.parametrize(
    ('pieces', 'said'),
    [
        (['the', 'The', 'THE'], "v has 'The', which no lower-cased text becomes"),
        (['##É'], "v has '##É'"),
        (['the', '##é', '字', '[unused1]', '[Q1]', '<S>'], None),
    ],
)
def test_a_file_with_capitals_needs_the_option(pieces, said):
    data = WordPieceVocabulary([*SPECIAL_TOKENS, *pieces]).dump()
    SCHEME.refuse_unstated(data, 'v', {'lower_case'})
    with pytest.raises(InputError, match=re.escape(said)) if said else nullcontext():
        SCHEME.refuse_unstated(data, 'v', {'strip_accents'})


def test_plain_tokens_are_of_the_same_rules():
    assert list(SCHEME.tokens('Été, [MASK] 漢字')) == ['ete', ',', '[', 'mask', ']', '漢', '字']
    cased = WordPieceScheme.of(lower_case=False, split_cjk=False)
    assert list(cased.tokens('Été 漢字')) == ['Été', '漢字']


def test_the_vocabulary_to_compile_with_spells_its_characters():
    vocabulary = SCHEME.vocabulary_of('aé字')
    ids = vocabulary.ids
    assert ids.keys() >= {*SPECIAL_TOKENS, 'a', 'é', '字', '##a', '##é', '##字'}
    assert SCHEME.parse(vocabulary.dump(), 'v').pieces == vocabulary.pieces


def test_words_of_the_paper_have_no_tokenizer_json():
    assert {*SCHEME.tokenizer_files(VOCABULARY)} == {*SCHEME.tokenizer_file_names} != set()
    original = WordPieceScheme.of('bert-original')
    assert original.tokenizer_files(VOCABULARY) == {} and original.tokenizer_file_names == ()
