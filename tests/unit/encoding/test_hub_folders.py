"""Folders of tokenizers: which file is the vocabulary, and what is refused."""

import json
import re

import pytest

from tokcore.encoding.hub_folders import config_beside, vocabulary_in_folder
from tokcore.errors import InputError


def found(*names, **configs):
    files = {f'hub/{name}.json': json.dumps(value).encode() for name, value in configs.items()}
    return vocabulary_in_folder('hub/', [*names, *(f'{name}.json' for name in configs)], files.get)


@pytest.mark.parametrize(
    ('names', 'file', 'others'),
    [
        (['vocab.txt', 'tokenizer.json', 'x'], 'tokenizer.json', ['vocab.txt']),
        (
            ['tokenizer.model', 'merges.txt', 'vocab.json', 'tokenizer.json', 'tekken.json'],
            'tokenizer.json',
            ['tekken.json', 'tokenizer.model', 'vocab.json'],
        ),
        (['tekken.json', 'vocab.json'], 'tekken.json', []),  # no merges.txt
        (['tokenizer.model', 'merges.txt'], 'tokenizer.model', []),
        (['merges.txt', 'vocab.json'], 'vocab.json', []),
        (['vocab.txt', 'README.md'], 'vocab.txt', []),
        (['tiktoken.model', 'tokenization_kimi.py'], 'tiktoken.model', []),
        (['qwen.tiktoken', 'README.md'], 'qwen.tiktoken', []),
        (['spiece.model'], 'spiece.model', []),
        (['sentencepiece.bpe.model'], 'sentencepiece.bpe.model', []),
        (
            ['sentencepiece.bpe.model', 'tokenizer.json', 'b.tiktoken', 'a.tiktoken'],
            'tokenizer.json',
            ['sentencepiece.bpe.model', 'a.tiktoken', 'b.tiktoken'],
        ),
    ],
)
def test_the_file_that_is_taken(names, file, others):
    assert found(*names) == (f'hub/{file}', others, None)


def in_dataset(*sides, side=None, **changes):
    records = [{'side': each, 'name': f'{each}/v', 'scheme': 'word', **changes} for each in sides]
    files = {'hub/tokbeam.json': json.dumps({'format': 9, 'vocabularies': records}).encode()}
    return vocabulary_in_folder('hub/', ['tokbeam.json', 'vocab.txt'], files.get, side)


def test_a_dataset_names_its_vocabulary():
    for side in (None, 'inputs', 'targets'):
        path, others, record = in_dataset('both', side=side, scheme_options={'split': 't2t'})
        assert (path, others) == ('hub/both/v', [])
        assert (record.scheme, record.scheme_options) == ('word', {'split': 't2t'})
    for side in ('inputs', 'targets'):
        assert in_dataset('inputs', 'targets', side=side).path == f'hub/{side}/v'
    with pytest.raises(InputError, match=r'^hub/ has several .*: hub/inputs/v and hub/targets/v$'):
        in_dataset('inputs', 'targets')
    # One of counts, or of a scheme without vocabularies, names none.
    assert in_dataset().path == 'hub/vocab.txt'


@pytest.mark.parametrize('name', ['../v', '/v', 'a/../v', 'a/b/c', '', '.', 5])
def test_a_dataset_names_no_file_elsewhere(name):
    with pytest.raises(InputError, match=r'^hub/tokbeam\.json is not a manifest of tokbeam'):
        in_dataset('both', name=name)


@pytest.mark.parametrize(
    'data',
    [b'{', b'[]', b'[' * 100_000, b'\xff', b'{"vocabularies": 5}', b'{"vocabularies": [{}]}'],
)
def test_damaged_manifests(data):
    with pytest.raises(InputError, match=r'^hub/tokbeam\.json is not a manifest of tokbeam'):
        vocabulary_in_folder('hub', ['tokbeam.json'], {'hub/tokbeam.json': data}.get)


def test_several_without_tokenizer_json_are_told():
    with pytest.raises(InputError, match=r'^hub/ holds tekken\.json and tokenizer\.model, and no '):
        found('tokenizer.model', 'tekken.json')
    with pytest.raises(InputError, match=r'holds gpt2\.tiktoken and multilingual\.tiktoken, and'):
        found('multilingual.tiktoken', 'gpt2.tiktoken')


def test_none_is_told():
    for names in ([], ['vocab.json'], ['merges.txt'], ['model.safetensors']):
        with pytest.raises(InputError, match='give the path of the vocabulary file itself'):
            found(*names)


@pytest.mark.parametrize(
    'name', ['vocab.json', 'vocab.txt', 'spiece.model', 'sentencepiece.bpe.model']
)
def test_classes_that_cut_text_otherwise_are_refused_by_name(name):
    names = [name, 'merges.txt']
    for config in (
        {'tokenizer_config': {'tokenizer_class': 'OddTokenizerFast'}},
        {'config': {'tokenizer_class': 'OddTokenizer'}},
        {'tokenizer_config': {}, 'config': {'model_type': 'OddTokenizer'}},
    ):
        place = f'hub/{[*config][-1]}.json'
        with pytest.raises(InputError, match=f'^{re.escape(place)} says OddTokenizer, whose ids'):
            found(*names, **config)
        assert found('tokenizer.json', *names, **config)[0] == 'hub/tokenizer.json'
    own = {
        'vocab.json': 'GPT2TokenizerFast', 'vocab.txt': 'BertTokenizer', 'spiece.model': 'T5Tokenizer',
    }.get(name, 'PreTrainedTokenizerFast')  # fmt: skip
    assert found(*names, tokenizer_config={'tokenizer_class': own})[0] == f'hub/{name}'
    # The tokenizer's class goes before the model's type.
    config = {'tokenizer_config': {'tokenizer_class': own}, 'config': {'model_type': 'odd'}}
    assert found(*names, **config)[0] == f'hub/{name}'


@pytest.mark.parametrize('data', [b'{', b'[]', b'[' * 100_000, b'\xff'])
def test_damaged_configurations(data):
    files = {'hub/tokenizer_config.json': data}
    with pytest.raises(InputError, match=r'^hub/tokenizer_config\.json is not'):
        vocabulary_in_folder('hub', ['vocab.txt'], files.get)


def test_what_is_beside_a_file():
    states = {'do_lower_case': False}
    for config, expected in (
        (states, states),
        ({**states, "tokenizer_class": "BertTokenizer"}, {**states, "tokenizer_class": "BertTokenizer"}),
        ({**states, 'tokenizer_class': 'EsmTokenizer'}, {}),
    ):  # fmt: skip
        files = {'a/tokenizer_config.json': json.dumps(config).encode()}
        assert config_beside('a/vocab.txt', files.get) == expected
    assert config_beside('vocab.txt', {'config.json': b'{'}.get) == {}
