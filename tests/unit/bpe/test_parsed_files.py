"""A large file that was parsed before gives the same vocabulary, whatever is in the cache."""

import base64
import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.bpe import files, parsed_files
from tokcore.bpe.parsed_files import ParsedFile
from tokcore.errors import InputError
from tokcore.foreign_tokenizers import files as pretrained_files
from tokcore.foreign_tokenizers import ranks
from tokcore.text.byte_level import BYTE_TO_CHARACTER
from tokcore.tokenizers import load_tokenizer

BYTES = {BYTE_TO_CHARACTER[byte]: byte for byte in range(256)}
BYTE_LEVEL = {'type': 'ByteLevel', 'add_prefix_space': False, 'use_regex': True}
PLAIN = {
    'added_tokens': [{'id': 258, 'content': '<s>', 'special': True}],
    'pre_tokenizer': BYTE_LEVEL,
    'decoder': BYTE_LEVEL,
    'model': {
        'type': 'BPE', 'ignore_merges': True, 'merges': ['t h', 'th e'],
        'vocab': {**BYTES, 'th': 256, 'the': 257, '<s>': 258, 'Ġtheir': 259},
    },
}  # fmt: skip
DIGITS = {
    **PLAIN,
    'pre_tokenizer': {'type': 'Sequence', 'pretokenizers': [{'type': 'Digits'}, BYTE_LEVEL]},
}
MARKED = {
    'added_tokens': [{'id': 8, 'content': '漢', 'normalized': True}],
    'normalizer': {'type': 'Replace', 'pattern': {'String': ' '}, 'content': '▁'},
    'model': {
        'type': 'BPE', 'unk_token': '<unk>', 'fuse_unk': True, 'merges': [['t', 'h'], ['th', 'e']],
        'vocab': dict(zip(['<unk>', '▁', 't', 'h', 'e', 'th', 'the', '\n', '漢', '\ud83d'], range(10))),
    },
}  # fmt: skip
RANKS = [*(bytes([byte]) for byte in range(256)), b'th', b'the', b'\xe6\xbc', b'\xe6\xbc\xa2']
LINES = b''.join(b'%s %d\n' % (base64.b64encode(token), n) for n, token in enumerate(RANKS))
TEKKEN = {
    'config': {
        'pattern': '[a-z]+|.',
        'default_vocab_size': 65_600,
        'default_num_special_tokens': 2,
    },
    'vocab': [
        {'rank': rank, 'token_bytes': base64.b64encode(token).decode()}
        for rank, token in enumerate(RANKS)
    ],
}
FILES = {
    'plain.json': PLAIN, 'digits.json': DIGITS, 'marked.json': MARKED, 'tekken.json': TEKKEN,
    'x.tiktoken': LINES,
}  # fmt: skip
TEXTS = ['the cat, their 12 cats', ' the  漢字\n', 'the<s>the', '', 'é\u0301 x']


def forget():
    parsed_files._kept.cache_clear()
    files.forget_json()
    files._tokenizer.cache_clear()
    pretrained_files._parse.cache_clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of kept files, in which those of tests are kept too."""
    path = tmp_path / 'kept'
    path.mkdir()
    monkeypatch.setattr(parsed_files, 'LEAST_BYTES', 1)
    monkeypatch.setattr(parsed_files, '_folder', lambda: path)
    forget()
    yield path
    forget()


def written(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(FILES[name] if name == 'x.tiktoken' else json.dumps(FILES[name]).encode())
    return path


def loaded(path):
    """What a tokenizer from a file does, in a process that has not read it before."""
    forget()
    options = {'pattern': 'cl100k'} if path.suffix == '.tiktoken' else {}
    tokenizer = load_tokenizer(path, **options)
    vocabulary = tokenizer.vocabulary
    return (
        [tokenizer.encode(text) for text in TEXTS],
        [tokenizer.decode(tokenizer.encode(text)) for text in TEXTS],
        vocabulary.dump(), list(vocabulary.pieces), vocabulary.special_ids, vocabulary.added,
    )  # fmt: skip


@pytest.mark.parametrize('name', FILES)
def test_the_second_time_gives_the_same(folder, tmp_path, monkeypatch, name):
    path = written(tmp_path, name)
    monkeypatch.setenv('TOKBEAM_VOCABULARY_CACHE_MB', '0')
    alone = loaded(path)
    assert not [*folder.iterdir()]
    monkeypatch.delenv('TOKBEAM_VOCABULARY_CACHE_MB')
    assert loaded(path) == alone
    [kept] = folder.iterdir()
    content = kept.read_bytes()

    def refuse(*arguments):
        raise AssertionError('it is parsed again')

    with monkeypatch.context() as without_parsers:
        for module, function in ((files, 'parse_merges'), (ranks, '_merged')):
            without_parsers.setattr(module, function, refuse)
        assert loaded(path) == alone

    for damaged in (
        b'', content[:-1], content + b'0', content[:40], content[:-1] + bytes([content[-1] ^ 1]),
        bytes(len(content)), content[32:],
    ):  # fmt: skip
        kept.write_bytes(damaged)
        assert loaded(path) == alone
        assert [*folder.iterdir()] == [kept] and kept.read_bytes() == content


def test_small_files_are_not_kept(folder, tmp_path, monkeypatch):
    path = written(tmp_path, 'plain.json')
    monkeypatch.setattr(parsed_files, 'LEAST_BYTES', path.stat().st_size + 1)
    loaded(path)
    assert not [*folder.iterdir()]


def test_the_files_used_last_are_kept(folder, tmp_path, monkeypatch):
    paths = {name: written(tmp_path, name) for name in ('plain.json', 'digits.json', 'marked.json')}
    names = {}
    for name, path in paths.items():
        before = {*folder.iterdir()}
        loaded(path)
        [names[name]] = {*folder.iterdir()} - before
    for age, name in enumerate(('plain.json', 'marked.json', 'digits.json')):
        os.utime(names[name], ns=(10**9 - age, 10**9 - age))
    loaded(paths['digits.json'])  # now it is the last one used
    sizes = [path.stat().st_size for path in names.values()]
    monkeypatch.setattr(parsed_files, 'most_bytes', lambda: sum(sizes) + 100)
    loaded(written(tmp_path, 'x.tiktoken'))
    kept = {*folder.iterdir()}
    assert names['digits.json'] in kept and names['marked.json'] not in kept
    assert sum(path.stat().st_size for path in kept) <= sum(sizes) + 100


def test_a_folder_that_cannot_be_written_to_is_not_a_failure(folder, tmp_path, monkeypatch):
    path = written(tmp_path, 'plain.json')
    expected = loaded(path)
    for unusable in (tmp_path / 'missing', None):
        monkeypatch.setattr(parsed_files, '_folder', lambda unusable=unusable: unusable)
        assert loaded(path) == expected


def test_a_bound_that_is_not_a_number_is_refused(folder, tmp_path, monkeypatch):
    monkeypatch.setenv('TOKBEAM_VOCABULARY_CACHE_MB', 'many')
    with pytest.raises(InputError, match="TOKBEAM_VOCABULARY_CACHE_MB is 'many'"):
        loaded(written(tmp_path, 'plain.json'))


ENTRIES = st.lists(st.text(st.characters(), max_size=4), unique=True, min_size=1, max_size=20)


@given(ENTRIES, st.randoms(use_true_random=False), st.binary(max_size=20))
@settings(database=None)
def test_what_is_packed_is_unpacked(entries, draw, rest):
    ids = dict(zip(entries, draw.sample(range(1 << 31), len(entries)), strict=True))
    triples = [[draw.choice(entries) for _ in range(3)] for _ in range(draw.randrange(9))]
    merges = tuple((left, right) for left, right, _ in triples)
    merge_ids = np.array([[*map(ids.get, triple)] for triple in triples], np.int32).reshape(-1, 3)
    parsed = ParsedFile(rest, ids, merges, merge_ids)
    *found, found_ids = parsed_files._unpacked(parsed_files._packed(parsed))
    assert found == [rest, ids, merges] and np.array_equal(found_ids, merge_ids)
