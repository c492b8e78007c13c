"""What is learned from a table by each preset, as its vocabulary."""

import collections

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.bpe.options import BpeOptions
from tokcore.bpe.scheme import SCHEME, BpeScheme
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.learn import count_tokens
from tokcore.schemes import find_scheme
from tokcore.text.patterns import DEFINITIONS
from tokcore.tokenizers import BpeTokenizer


def learned(scheme, counts, **options):
    table = TokenTable.from_items(counts.items())
    return scheme.learn(table, BpeOptions(**options), lambda *_: None).vocabulary


def test_bytes_with_special_tokens_first():
    vocabulary = learned(SCHEME, {'the': 5, ' the': 9}, merges=3, special_tokens=('<pad>',))
    assert vocabulary.id_of('<pad>') == 0 and vocabulary.special_ids.pad == 0
    assert vocabulary.vocab_size == 1 + 256 + 3
    assert BpeTokenizer(vocabulary).tokenize('the the') == ['the', 'Ġthe']
    assert SCHEME.parse(vocabulary.dump(), 'x') == vocabulary


@pytest.mark.parametrize(
    ('scheme', 'asked'),
    [
        (SCHEME, {'total_symbols': True}),
        (BpeScheme(pre_tokenizer_kind='bert'), {}),
        (BpeScheme('subword-nmt', pre_tokenizer_kind='t2t'), {}),
        (BpeScheme('textbook', pattern=('gpt2',)), {}),
    ],
)
def test_what_a_presets_file_cannot_have_is_refused(scheme, asked):
    with pytest.raises(InputError):
        learned(scheme, {'a ,': 1}, merges=1, **asked)


def test_patterns_are_named_or_expressions():
    scheme = find_scheme('bpe', pattern=['individual-digits', 'digits', 'gpt2', r'\w+'])
    assert scheme.patterns == (r'\p{N}', r'\p{N}+', 'gpt2', r'\w+')
    assert find_scheme(scheme, pattern=scheme.pattern) == scheme
    assert (
        find_scheme('bpe', pattern='o200k').rules == find_scheme('bpe', pre_tokenizer='o200k').rules
    )
    assert scheme.rules.pre_tokenizer.options == {
        'pattern': [r'\p{N}', r'\p{N}+', *DEFINITIONS['gpt2'].expressions, r'\w+']
    }
    for name in ('gtp2', ''):
        with pytest.raises(InputError, match='is neither a regular expression nor one of gpt2, '):
            find_scheme('bpe', pattern=name)
    with pytest.raises(InputError, match='a \\[ without its ] at character 2'):
        find_scheme('bpe', pattern='([')
    with pytest.raises(InputError, match='--pattern takes the place of --pre-tokenizer'):
        find_scheme('bpe', pattern='gpt2', pre_tokenizer='gpt2')


def test_a_space_before_texts_is_of_patterns_that_see_whole_texts():
    assert [*find_scheme('bpe', add_prefix_space=True).tokens('a  b')] == [' a', ' ', ' b']
    assert [*find_scheme('bpe', add_prefix_space=True).tokens(' a')] == [' a']
    with pytest.raises(InputError, match='--add-prefix-space goes with the pattern gpt2 or none'):
        find_scheme('bpe', add_prefix_space=True, pattern=['digits', 'gpt2'])


@given(st.lists(st.text('ab 1\t é', max_size=12), max_size=5), st.sampled_from(['gpt2', 'none']))
def test_tokens_with_a_space_before_texts_are_counted(texts, pattern):
    scheme = find_scheme('bpe', add_prefix_space=True, pattern=pattern)
    expected = collections.Counter(
        token for text in texts if text.strip() for token in scheme.tokens(text)
    )
    assert dict(count_tokens(scheme, texts).items()) == expected


@given(st.lists(st.text('ab é,', max_size=12), max_size=5))
def test_tokens_with_an_end_are_counted(texts):
    scheme = BpeScheme('textbook')
    expected = collections.Counter(
        token for text in texts for token in scheme.tokens(text.strip(' '))
    )
    assert dict(count_tokens(scheme, texts).items()) == expected


@pytest.mark.parametrize('preset', ['gpt2', 'cl100k', 'subword-nmt', 'textbook'])
def test_each_preset_has_a_vocabulary_to_compile_with(preset):
    scheme = BpeScheme(preset=preset)
    vocabulary = scheme.vocabulary_of('ab')
    assert scheme.encoder(vocabulary).parts[1] is vocabulary.model
    assert [*scheme.tokens('ab')] == (['ab_'] if preset == 'textbook' else ['ab'])
