"""What is learned from a table by each preset, as its vocabulary."""

import pytest

from tokcore.bpe.options import BpeOptions
from tokcore.bpe.scheme import SCHEME, BpeScheme
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.tokenizers import BpeTokenizer


def learned(scheme, counts, **options):
    table = TokenTable.from_items(counts.items())
    return scheme.learn(table, BpeOptions(**options), lambda *_: None).vocabulary


def test_the_textbooks_example():
    counts = {'fast_': 4, 'faster_': 3, 'tall_': 5, 'taller_': 4}
    vocabulary = learned(BpeScheme(preset='textbook'), counts, merges=10)
    assert vocabulary.pieces_in('tallest_') == ['tall', 'e', 's', 't', '_']
    assert vocabulary.pieces_in('fatter_') == ['fa', 't', 't', 'er_']
    assert SCHEME.parse(vocabulary.dump(), 'the codes') == vocabulary


def test_bytes_with_special_tokens_first():
    vocabulary = learned(SCHEME, {'the': 5, ' the': 9}, merges=3, special_token=('<pad>',))
    assert vocabulary.id_of('<pad>') == 0 and vocabulary.special_ids.pad == 0
    assert vocabulary.vocab_size == 1 + 256 + 3
    assert BpeTokenizer(vocabulary).tokenize('the the') == ['the', 'Ġthe']
    assert SCHEME.parse(vocabulary.dump(), 'x') == vocabulary


def test_codes_end_words_by_themselves():
    vocabulary = learned(BpeScheme(preset='subword-nmt'), {'low': 5, 'lower': 2}, merges=2)
    assert vocabulary.merges == (('l', 'o'), ('lo', 'w</w>'))
    assert vocabulary.dump().startswith(b'#version: 0.2\n')


def test_what_a_presets_file_cannot_hold_is_refused():
    with pytest.raises(InputError, match='--total-symbols cannot go with --preset gpt2'):
        learned(SCHEME, {'a': 1}, merges=1, total_symbols=True)


def test_a_file_of_bytes_names_its_pattern():
    with pytest.raises(InputError, match='--pre-tokenizer bert does not go with --preset gpt2'):
        learned(BpeScheme(pre_tokenizer_kind='bert'), {'a': 1}, merges=1)


@pytest.mark.parametrize('preset', ['gpt2', 'cl100k', 'subword-nmt', 'textbook'])
def test_each_preset_has_a_vocabulary_to_compile_with(preset):
    scheme = BpeScheme(preset=preset)
    vocabulary = scheme.vocabulary_of('ab')
    assert scheme.encoder(vocabulary).parts[1] is vocabulary.model
    assert [*scheme.tokens('ab')] == (['ab_'] if preset == 'textbook' else ['ab'])
