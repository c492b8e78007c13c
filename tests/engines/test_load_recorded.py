"""A vocabulary's file is loaded with what is recorded of it, as commands read it."""

import json

import pytest
from jobs import succeed, write

import tokcore


@pytest.fixture
def cased(tmp_path):
    text = write(tmp_path / 'text', b'The cat\nThe Dog\nthe dog sat\n')
    common = '--text', text, '--scheme', 'wordpiece', '--no-lower-case', '--vocab-size', 40
    succeed('vocab', *common, '--output', tmp_path / 'cased.txt')
    succeed('build', *common, '--name', 'd', '--output', tmp_path / 'out')
    vocabulary = tmp_path / 'out' / json.loads((tmp_path / 'out' / 'tokbeam.json').read_bytes())['vocabularies'][0]['name']  # fmt: skip
    succeed(*('encode', '--text', text, '--vocab', tmp_path / 'out', '--name', 'd'), '--output', tmp_path / 'again')  # fmt: skip
    return [tmp_path / 'cased.txt', vocabulary, tmp_path / 'again' / 'tokenizer' / vocabulary.name]


def test_the_case_is_kept_as_the_vocabulary_was_learned(cased):
    for path in cased:
        tokenizer = tokcore.load_tokenizer(path)
        assert ''.join(tokenizer.tokenize('The Dog')).replace('##', '') == 'TheDog', path
        lower = tokcore.load_tokenizer(path, lower_case=True)
        assert 'T' not in ''.join(lower.tokenize('The Dog')), path
