"""A corpus is encoded with the file of a trained model: the command takes it as it is."""

import base64
import json

import pytest
from dataset_files import manifest_of, read_shards
from jobs import refuse, succeed

from tokcore.text.byte_level import BYTE_TO_CHARACTER
from tokcore.tokenizers import load_tokenizer

LINES = ['the cat', "It's 12345 字 <|end|>", '', 'the the', 'cafe\u0301 <tool>!']


@pytest.fixture(scope='module')
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp('texts') / 'corpus.txt'
    path.write_text(''.join(f'{line}\n' for line in LINES))
    return path


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp('files')
    ranks = [*(bytes([byte]) for byte in range(256)), b'th', b'the']
    lines = (f'{base64.b64encode(token).decode()} {rank}\n' for rank, token in enumerate(ranks))
    (folder / 'ranks.tiktoken').write_text(''.join(lines))
    entries = {BYTE_TO_CHARACTER[byte]: byte for byte in range(256)} | {'th': 256, 'the': 257}
    byte_level = {'type': 'ByteLevel', 'add_prefix_space': False, 'use_regex': False}
    flags = dict.fromkeys(('single_word', 'lstrip', 'rstrip', 'normalized'), False)
    file = {
        'added_tokens': [
            {'id': 258, 'content': '<|end|>', **flags, 'special': True},
            {'id': 259, 'content': '<tool>', **flags, 'special': False},
        ],
        'normalizer': {'type': 'NFC'},
        'pre_tokenizer': {
            'type': 'Sequence',
            'pretokenizers': [{'type': 'Digits', 'individual_digits': True}, byte_level],
        },
        'post_processor': None,
        'decoder': byte_level,
        'model': {'type': 'BPE', 'vocab': entries, 'merges': ['t h', 'th e']},
    }
    (folder / 'tokenizer.json').write_text(json.dumps(file))
    return folder


@pytest.mark.parametrize(
    ('name', 'options', 'asked'),
    [
        ('ranks.tiktoken', {'pattern': 'o200k'}, ['--pattern', 'o200k']),
        ('tokenizer.json', {'allow_special_tokens': True}, ['--allow-special-tokens']),
        ('.', {}, []),  # the folder, in which tokenizer.json goes before others
    ],
)
def test_a_corpus_is_encoded_as_its_tokenizer_does(texts, files, tmp_path, name, options, asked):
    tokenizer = load_tokenizer(files / name, scheme='pretrained', **options)
    dataset = ['--name', 'x', '--shards', 2, '--workers', 1, '--output', tmp_path / 'out']
    said = succeed('encode', '--text', texts, '--vocab', files / name, *asked, *dataset)
    assert (f'the vocabulary is {files}/tokenizer.json' in said) == (name == '.')
    rows = [row for shard in read_shards(tmp_path / 'out') for row in shard]
    expected = [tokenizer.encode(line) for line in LINES if line]
    assert sorted(row['targets'] for row in rows) == sorted(expected)
    assert manifest_of(tmp_path / 'out')['options']['scheme'] == 'pretrained'
    if name == 'tokenizer.json':
        assert [258] == [id_ for ids in expected for id_ in ids if id_ == 258]
        assert tokenizer.decode(expected[-1]) == 'caf\u00e9 <tool>!'


def test_ranks_need_a_pattern(texts, files, tmp_path):
    dataset = ['--name', 'x', '--shards', 1, '--output', tmp_path / 'out']
    said = refuse('encode', '--text', texts, '--vocab', files / 'ranks.tiktoken', *dataset)
    assert 'give --pattern, one of gpt2, cl100k, llama3' in said
