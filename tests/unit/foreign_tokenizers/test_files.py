"""Files of pretrained vocabularies: what is recognized, and what is refused by its name."""

import base64
import json
import pickle

import pytest

from tokcore.errors import InputError
from tokcore.foreign_tokenizers.files import is_pretrained_file, parse_pretrained, small_vocabulary
from tokcore.foreign_tokenizers.tokenizer import PretrainedTokenizer
from tokcore.schemes import find_scheme, scheme_names
from tokcore.text.byte_level import BYTE_TO_CHARACTER
from tokcore.tokenizers import load_tokenizer

ENTRIES = {BYTE_TO_CHARACTER[byte]: byte for byte in range(256)} | {'th': 256, 'the': 257}
BYTE_LEVEL = {'type': 'ByteLevel', 'add_prefix_space': False, 'use_regex': True}
FILE = {
    'added_tokens': [],
    'normalizer': None,
    'pre_tokenizer': BYTE_LEVEL,
    'post_processor': None,
    'decoder': BYTE_LEVEL,
    'model': {'type': 'BPE', 'vocab': ENTRIES, 'merges': ['t h', 'th e']},
}
RANKS = b''.join(
    base64.b64encode(token) + b' %d\n' % rank
    for rank, token in enumerate([*(bytes([byte]) for byte in range(256)), b'th', b'the'])
)
TEKKEN = {
    'config': {'pattern': '[a-z]+|.', 'default_vocab_size': 260, 'default_num_special_tokens': 2},
    'vocab': [
        {'rank': rank, 'token_bytes': line.split()[0].decode(), 'token_str': None}
        for rank, line in enumerate(RANKS.splitlines())
    ],
}


def dumped(file):
    return json.dumps(file).encode()


def changed(place, value):
    file = json.loads(dumped(FILE))
    *parents, name = place.split('.')
    part = file
    for parent in parents:
        part = part[parent]
    part[name] = value
    return file


def test_every_file_is_of_one_scheme():
    digits = {'type': 'Sequence', 'pretokenizers': [{'type': 'Digits'}, BYTE_LEVEL]}
    kinds = {
        dumped(FILE): ['bpe'],
        dumped(changed('pre_tokenizer', digits)): ['pretrained'],
        dumped(TEKKEN): ['pretrained'],
        RANKS: ['pretrained'],
    }
    for data, schemes in kinds.items():
        assert [name for name in scheme_names() if find_scheme(name).recognizes(data)] == schemes
    assert not is_pretrained_file(b'{"a"') and not is_pretrained_file(b'th e\n')
    assert not is_pretrained_file(b'word 12\nthe 11\nof 7\nand 5\n')


@pytest.mark.parametrize(
    ('place', 'value', 'said'),
    [
        ('normalizer', {'type': 'Odd'}, r'Odd at \$\.normalizer'),
        ('pre_tokenizer', {'type': 'UnicodeScripts'}, r'UnicodeScripts at \$\.pre_tokenizer'),
        (
            'pre_tokenizer',
            {'type': 'Sequence', 'pretokenizers': [BYTE_LEVEL, BYTE_LEVEL]},
            r'ByteLevel after ByteLevel at \$\.pre_tokenizer\.pretokenizers\[1\]',
        ),
        (
            'pre_tokenizer',
            {'type': 'Split', 'pattern': {'Regex': r'a\X+'}, 'behavior': 'Isolated'},
            r'with \\X at character 2, at \$\.pre_tokenizer\.pattern',
        ),
        (
            'pre_tokenizer',
            {'type': 'Split', 'pattern': {'Regex': '[a-z&&]'}, 'behavior': 'Isolated'},
            r'with nothing on a side of an operator at character 7',
        ),
        (
            'pre_tokenizer',
            {'type': 'Split', 'pattern': {'Regex': '(a'}, 'behavior': 'Isolated'},
            r"the regular expression '\(a'",
        ),
        (
            'pre_tokenizer',
            {'type': 'Split', 'pattern': {'Regex': 'a'}, 'behavior': 'Odd'},
            r"the behavior 'Odd' at \$\.pre_tokenizer\.behavior",
        ),
        (
            'pre_tokenizer',
            {'type': 'Split', 'pattern': {'Regex': 'a'}, 'behavior': {}},
            r'the behavior \{\} at \$\.pre_tokenizer\.behavior',
        ),
        (
            'pre_tokenizer',
            {'type': 'Punctuation', 'behavior': []},
            r'the pre-tokenizer Punctuation at \$\.pre_tokenizer',
        ),
        ('post_processor', {'type': 'Odd'}, r'the post-processor Odd'),
        ('model.type', 'Unigram', r'\$\.model\.vocab is not a list'),
        ('model.type', 'Odd', r'the model Odd at '),
        (
            'normalizer',
            {'type': 'Precompiled', 'precompiled_charsmap': 'AAAA'},
            r'\$\.normalizer\.precompiled_charsmap is damaged',
        ),
        ('model.dropout', 0.1, r'dropout 0\.1 at \$\.model\.dropout'),
        ('model.vocab', {'a': 0, 'b': 0}, 'the same id twice'),
        ('model.merges', None, r'\$\.model\.merges is not a list'),
        ('model.unk_token', ['a'], r"\['a'\] for an entry at \$\.model\.unk_token"),
        (
            'pre_tokenizer',
            {'type': 'Metaspace', 'replacement': ['a']},
            r"\['a'\] for a character at \$\.pre_tokenizer\.replacement",
        ),
        (
            'pre_tokenizer',
            {'type': 'Metaspace', 'replacement': '\ud800'},
            r"'\\ud800' for a character at \$\.pre_tokenizer\.replacement",
        ),
        *[
            (
                'model',
                {'type': 'WordPiece', 'vocab': {'a': 0}, name: value},
                rf'at \$\.model\.{name}',
            )
            for name, value in (
                ('continuing_subword_prefix', 1),
                ('max_input_chars_per_word', '1'),
                ('max_input_chars_per_word', -1),
            )
        ],
        (
            'post_processor',
            {'type': 'BertProcessing', 'sep': ['a', -1], 'cls': ['a', 0]},
            r'the id -1, which no token has, at \$\.post_processor',
        ),
    ],
)
def test_what_is_not_supported_is_refused_by_name_and_place(place, value, said):
    file = changed(place, value)
    if place == 'model':
        file |= {'pre_tokenizer': None, 'decoder': None}
    with pytest.raises(InputError, match=f'^x.json.*{said}'):
        parse_pretrained(dumped(file), 'x.json')


@pytest.mark.parametrize(
    ('data', 'pattern', 'said'),
    [
        (RANKS, None, 'give --pattern, one of gpt2, cl100k'),
        (RANKS, '', 'give --pattern, one of gpt2, cl100k'),
        (RANKS, '(', 'neither a pattern, one of gpt2'),
        (RANKS + b'?? 300\n', 'gpt2', 'line 259: .* is not a token in base64'),
        (RANKS + b' 300\n', 'gpt2', 'line 259: .* is not a token in base64'),
        (RANKS + b'= 300\n= 301\n', 'gpt2', 'line 260: the token has a rank already'),
        (RANKS + b'YWI= 3\n', 'gpt2', 'gives the same rank twice'),
        (RANKS + b'YWI= 2000000000\n', 'gpt2', 'a file has the id 2000000000 among 259 entries'),
        (RANKS + b'YQ== 300\n', 'gpt2', 'line 259: the token has a rank already'),
        (RANKS.split(b'\n', 1)[1], 'gpt2', 'no token for the byte 0x0'),
        (dumped(FILE), 'gpt2', '--pattern is for files of tiktoken'),
        (b'th e\n', None, "is not a tokenizer's file"),
        (dumped({**TEKKEN, 'config': {}}), None, r'\$\.config has no pattern'),
        (
            dumped({**TEKKEN, 'config': {**TEKKEN['config'], 'pattern': ''}}),
            None,
            r'\$\.config has no pattern',
        ),
        (
            dumped({**TEKKEN, 'config': {**TEKKEN['config'], 'default_vocab_size': 1 << 30}}),
            None,
            r'\$\.config has the id 1073741824 among 258 entries',
        ),
        (dumped({**TEKKEN, 'vocab': TEKKEN['vocab'][1:]}), None, r'\$\.vocab\[0\] is not a token'),
        (dumped({**TEKKEN, 'special_tokens': [{'rank': 9}]}), None, r'\$\.special_tokens\[0\]'),
    ],
)
def test_damaged_files_of_ranks(data, pattern, said):
    with pytest.raises(InputError, match=said):
        parse_pretrained(data, 'a file', pattern)


def test_ids_of_ranks_and_of_tekken():
    of_ranks = PretrainedTokenizer(parse_pretrained(RANKS, 'x', 'gpt2'))
    assert of_ranks.encode('the th') == [257, 32, 256]
    of_tekken = PretrainedTokenizer(parse_pretrained(dumped(TEKKEN), 'x'))
    assert of_tekken.encode('the th') == [259, 34, 258]
    assert of_tekken.special_ids.begin == 1 and of_tekken.pieces[0] == '<unk>'
    assert of_tekken.decode([259, 34, 258]) == 'the th'


def test_the_empty_token_of_whispers_ranks():
    tokenizer = PretrainedTokenizer(parse_pretrained(RANKS + b'= 258\n', 'x', 'gpt2'))
    assert tokenizer.vocab_size == 259 and tokenizer.id_of('') == 258
    assert tokenizer.encode('the th') == [257, 32, 256] and tokenizer.encode('') == []
    assert tokenizer.decode([257, 258, 32, 256]) == 'the th'


@pytest.mark.parametrize(
    ('decoder', 'said'),
    [
        ({'type': 'Odd'}, r"the decoder {'type': 'Odd'} at \$\.decoder"),
        ({'type': 'CTC'}, r"the decoder {'type': 'CTC'} at \$\.decoder"),
        ({'type': 'Strip', 'start': None}, r"the decoder {'type': 'Strip', .*} at \$\.decoder"),
        ({'type': 'Strip', 'stop': -1}, r"the decoder {'type': 'Strip', .*} at \$\.decoder"),
        (
            {'type': 'Sequence', 'decoders': [{'type': 'Fuse'}, {'type': 'Odd'}]},
            r"the decoder {'type': 'Odd'} at \$\.decoder\.decoders\[1\]",
        ),
        (
            {'type': 'Replace', 'pattern': {'Regex': '(a'}, 'content': ''},
            r"the decoder {'type': 'Replace', .*} at \$\.decoder",
        ),
    ],
)
def test_an_unknown_decoder_disables_decoding_alone(decoder, said):
    tokenizer = PretrainedTokenizer(parse_pretrained(dumped(changed('decoder', decoder)), 'x.json'))
    ids = tokenizer.encode('the th')
    assert ids == [257, 32, 256] and tokenizer.tokenize('the') == ['the']
    for decode in (tokenizer.decode, tokenizer.decode_bytes):
        with pytest.raises(
            InputError, match=f'^x.json: {said} is not supported, so its ids cannot'
        ):
            decode(ids)


@pytest.mark.parametrize(
    ('name', 'pattern'),
    [('cl100k_base.tiktoken', 'cl100k'), ('multilingual.tiktoken', 'gpt2'), ('x.tiktoken', None)],
)
def test_names_of_files_of_ranks_tell_their_pattern(tmp_path, name, pattern):
    (tmp_path / name).write_bytes(RANKS)
    for place in (tmp_path, tmp_path / name):
        if pattern is None:
            with pytest.raises(InputError, match='give --pattern, one of'):
                load_tokenizer(place)
        else:
            assert load_tokenizer(place).vocabulary.pattern == pattern
        assert load_tokenizer(place, pattern='o200k').vocabulary.pattern == 'o200k'
        scheme = find_scheme('pretrained', pattern='qwen2')
        assert load_tokenizer(place, scheme=scheme).vocabulary.pattern == 'qwen2'
    assert find_scheme('pretrained', pattern=['gpt2']).pattern == 'gpt2'
    with pytest.raises(InputError, match='takes one --pattern'):
        find_scheme('pretrained', pattern=['gpt2', 'o200k'])


def test_a_tokenizer_from_its_file(tmp_path):
    path = tmp_path / 'ranks.tiktoken'
    path.write_bytes(RANKS)
    loaded = load_tokenizer(path, pattern='o200k', scheme='pretrained')
    assert loaded.tokenize('the é') == ['the', 'Ġ', 'Ã', '©']
    again = pickle.loads(pickle.dumps(loaded))
    assert again.encode('the é') == loaded.encode('the é') == [257, 32, 195, 169]
    loaded.save(tmp_path / 'copy')
    assert (tmp_path / 'copy').read_bytes() == RANKS
    assert loaded.encode_with_offsets('the é').offsets == [(0, 3), (3, 4), (4, 5), (4, 5)]


def test_long_rows_and_special_tokens():
    tokenizer = PretrainedTokenizer(small_vocabulary())
    text = "it's 12\n" * 40_000
    assert tokenizer.encode(text) == [*text.encode()]
