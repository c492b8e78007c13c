"""The characters that a BPE model leaves out: as many bytes as its ids do not have."""

import base64
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows_of_text import side_of

from tokcore.encoding import encoder
from tokcore.schemes import find_scheme
from tokcore.text.byte_level import BYTE_TO_CHARACTER

PRETRAINED = find_scheme('pretrained')
RANKS = b''.join(base64.b64encode(bytes([byte])) + f' {byte}\n'.encode() for byte in range(256))
TEXTS = st.lists(st.text('abé字🙂\n\t ', max_size=8), max_size=6)


def tokenizer(entries, pre_tokenizer, **model):
    """Returns the vocabulary of a tokenizer.json with these entries and no merges."""
    rules = {
        'type': 'BPE', 'dropout': None, 'unk_token': None, 'continuing_subword_prefix': None,
        'end_of_word_suffix': None, 'fuse_unk': False, 'byte_fallback': False,
    }  # fmt: skip
    file = {
        'version': '1.0',
        'added_tokens': [],
        'normalizer': None,
        'pre_tokenizer': pre_tokenizer,
        'post_processor': None,
        'decoder': pre_tokenizer,
        'model': {**rules, **model, 'vocab': {each: n for n, each in enumerate(entries)}, 'merges': []},
    }  # fmt: skip
    return PRETRAINED.parse(json.dumps(file).encode(), 'tokenizer.json')


def byte_level(known):
    part = {'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': True, 'use_regex': True}
    return tokenizer([BYTE_TO_CHARACTER[byte] for byte in sorted(known)], part)


def counted(vocabulary, texts):
    return PRETRAINED.dropped(vocabulary).count(side_of(texts), 100)


@settings(max_examples=6)
@given(TEXTS, st.sets(st.sampled_from('abé字🙂\n\t '.encode()), max_size=11))
def test_bytes_without_an_entry_are_those_that_ids_do_not_have(texts, known):
    vocabulary = byte_level(known)
    encoded = PRETRAINED.encoder(vocabulary).encode_side(side_of(texts))
    size, characters = counted(vocabulary, texts)
    text = ''.join(texts)
    assert size == len(text.encode()) - len(vocabulary.decode_bytes(encoded.ids.tolist()))
    lost = Counter(character for character in text if not {*character.encode()} <= {*known})
    assert characters == dict(sorted(lost.items(), key=lambda item: (-item[1], item[0])))


@settings(max_examples=6)
@given(TEXTS, st.sets(st.sampled_from('abé字🙂'), max_size=5))
def test_characters_without_an_entry_but_white_space(texts, known):
    vocabulary = tokenizer(sorted(known), None)
    encoded = PRETRAINED.encoder(vocabulary).encode_side(side_of(texts))
    size, characters = counted(vocabulary, texts)
    text = ''.join(''.join(texts).split())
    assert len(encoded.ids) == sum(character in known for character in text)
    assert size == sum(len(each.encode()) for each in text if each not in known)
    assert characters.keys() == {*text} - known


@pytest.mark.parametrize('pattern', ['[a-z]+', r'\w+|\n', '[b]'])
def test_text_that_a_pattern_of_ranks_does_not_match(pattern):
    scheme = find_scheme('pretrained', pattern=pattern)
    vocabulary = scheme.parse(RANKS, 'x.tiktoken')

    @given(TEXTS)
    def same(texts):
        encoded = scheme.encoder(vocabulary).encode_side(side_of(texts))
        size, characters = scheme.dropped(vocabulary).count(side_of(texts), 9)
        assert size == len(''.join(texts).encode()) - len(encoded.ids)
        lost = Counter(''.join(texts)) - Counter(bytes(encoded.ids.tolist()).decode())
        assert characters == lost and [*characters.values()] == sorted(lost.values(), reverse=True)

    same()


def test_named_patterns_match_all_text():
    for pattern in ('gpt2', 'cl100k', 'none'):
        scheme = find_scheme('pretrained', pattern=pattern)
        assert scheme.dropped(scheme.parse(RANKS, 'x.tiktoken')) is None


def test_what_is_in_the_text_may_be_longer_than_a_piece(monkeypatch):
    monkeypatch.setattr(encoder, '_PIECE_BYTES', 5)
    assert counted(byte_level(b'a'), ['a字a字字', '', '字é' * 9]) == (
        12 * 3 + 9 * 2,
        {'字': 12, 'é': 9},
    )


@pytest.mark.parametrize(
    'vocabulary',
    [
        byte_level(range(256)),
        tokenizer(['a', '<unk>'], None, unk_token='<unk>'),
        tokenizer([f'<0x{byte:02X}>' for byte in range(256)], None, byte_fallback=True),
    ],
    ids=['all bytes', 'unknown token', 'byte fallback'],
)
def test_a_model_that_drops_nothing(vocabulary):
    assert PRETRAINED.dropped(vocabulary) is None


def test_some_bytes_of_the_fallback_are_missing():
    entries = [f'<0x{byte:02X}>' for byte in range(256) if byte != 0xA9]
    vocabulary = tokenizer(entries, None, byte_fallback=True)
    assert counted(vocabulary, ['éa字', 'é']) == (4, {'é': 2})
