"""What the scheme unigram refuses, and the tokens that it counts."""

import numpy as np
import pytest
from jobs import refuse, write
from rows_of_text import side_of

import tokcore
from tokcore.corpus.corpus import Rows
from tokcore.counts.sampling import RowsToCount
from tokcore.errors import InputError
from tokcore.foreign_tokenizers.sentences import check_words
from tokcore.schemes import find_scheme

LEARNING = ['--scheme', 'unigram', '--vocab-size', 40]
REFUSED = {
    'split_by_whitespace=false': 'counts of words do not have the order',
    'treat-whitespace-as-suffix': 'counts of words do not have the order',
    'add-dummy-prefix=false': 'counts of words do not have the order',
    'input-sentence-size=1000': 'give --vocab-sample',
    'split-digits': 'its results have not been compared',
}


@pytest.fixture
def command(tmp_path):
    text = write(tmp_path / 'text', b'the cat sat\n' * 9)
    return ['vocab', *LEARNING, '--text', text, '--output', tmp_path / 'x.model']


@pytest.mark.parametrize('option', REFUSED)
def test_options_that_cannot_be_had_are_refused_with_the_reason(command, option):
    key = option.partition('=')[0].replace('-', '_')
    name = '--' + key.replace('_', '-')
    assert f'--scheme unigram has no {name}: {REFUSED[option]}' in refuse(*command, f'--{option}')
    with pytest.raises(InputError, match='--scheme unigram has no'):
        tokcore.learn_vocabulary(['a b'], 'unigram', vocab_size=20, **{key: False})


@pytest.mark.parametrize(
    ('options', 'said'),
    [
        (['--control-symbols', 'a,b', '--user-defined-symbols', 'b'], 'define b again'),
        (['--control-symbols', '<unk>'], 'define <unk> again'),
        (['--character-coverage', '0.5'], 'is not a number from 0.98 to 1'),
        (['--shrinking-factor', 'half'], 'is not a number from 0.5 to 0.95'),
        (['--num-threads', '0'], 'is not a whole number from 1 to 1,024'),
        (['--normalization-rule-name', 'nfkc'], 'nfkc'),
    ],
    ids=str,
)
def test_values_that_cannot_be_are_refused(command, options, said):
    assert said in refuse(*command, *options)


def test_counts_without_a_last_word_and_other_tokens_are_refused(tmp_path):
    table = write(tmp_path / 'counts.txt', b'the 3\n')
    said = refuse('vocab', *LEARNING, '--counts', table, '--output', tmp_path / 'x.model')
    assert 'do not say which word is the last' in said
    for token in ('the', 'the▂', '\u0081'):
        odd = tokcore.TokenTable.from_items([('▁a▁', 1), (token, 3)])
        odd = tokcore.TokenTable(odd.data, odd.offsets, odd.counts, last_word=b'')
        with pytest.raises(InputError, match='is not of --scheme unigram'):
            check_words(odd)


def test_a_vocabulary_of_another_kind_is_refused(tmp_path):
    path = write(tmp_path / 'vocab.txt', b'[UNK]\nthe\n')
    said = refuse('encode', '--scheme', 'unigram', '--vocab', path, '--text', path, '--name', 'x')
    assert 'is not a SentencePiece model' in said or '--output' in said


def test_names_of_meta_pieces_are_replaced_longest_first():
    scheme = find_scheme('unigram', control_symbols='<s>x', user_defined_symbols='a▁b')
    texts = {
        '<s>xy <s> </s': ['▁\x1fy▁', '▁\x1f▁', '▁</s\0'],
        'a b': ['▁\x1f\0'],
        'a': ['▁a\0'],
        '': [],
        ' ': ['\0'],
        '▅': [],
        'x' * 5000: [],
    }
    assert {text: scheme.tokens(text) for text in texts} == texts
    identity = find_scheme(scheme, normalization_rule_name='identity')
    assert identity.tokens('xa▁b c') == ['▁x\x1f▁', '▁c\0']


def test_rows_that_are_left_out_are_counted_by_reason_on_any_side():
    words = find_scheme('unigram', max_sentence_length=10).pre_tokenizer
    source = side_of(['a', 'x' * 11, 'b', 'c ▅', '▅' * 9])
    target = side_of(['d', 'e', '▅', 'f', 'g'])
    rows = Rows((source, target), 0, np.arange(5), 5, 0, ())
    kept = words.reject_rows(RowsToCount(rows, rows.sides), (0, 1))
    assert kept.sides is kept.rows.sides and len(kept.rows) == 1
    assert kept.rows.filtered == {'longer_than_max_sentence_length': 2, 'has_u_2585': 2}
    alone = words.reject_rows(RowsToCount(rows, rows.sides), (1,))
    assert len(alone.rows) == 4 and alone.rows.filtered['has_u_2585'] == 1
