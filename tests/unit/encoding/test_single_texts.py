"""A text has the ids that it has among others, and of its parts: its call takes a shorter way to the kernels."""

import base64
import functools
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from small_tokenizer import TOKENIZER

from tokcore.tokenizers import learn_vocabulary, load_tokenizer

LINES = ['the cat sat', "It's 12345 字典，", 'the the', 'café\u0301! <|end|> [MASK]', 'x\ty  z'] * 3
RANKS = [*(bytes([byte]) for byte in range(256)), b'th', b'the', b' t']
LEARNED = {
    'subword': {'scheme': 'subword', 'vocab_size': 300},
    'wordpiece': {'scheme': 'wordpiece', 'vocab_size': 100},
    'bpe': {'scheme': 'bpe', 'vocab_size': 270},
    'bpe of normal forms': {'scheme': 'bpe', 'vocab_size': 270, 'unicode_form': 'NFC'},
    'bpe with a space before': {'scheme': 'bpe', 'vocab_size': 270, 'add_prefix_space': True},
    'codes': {'scheme': 'bpe', 'preset': 'subword-nmt', 'merges': 20},
    'word': {'scheme': 'word', 'vocab_size': 20},
    'byte': {'scheme': 'byte'},
    'unigram': {'scheme': 'unigram', 'vocab_size': 40},
}
FILES = {
    'published': ('tokenizer.json', json.dumps(TOKENIZER), {'allow_special_tokens': True}),
    'ranks': (
        'small.tiktoken',
        ''.join(f'{base64.b64encode(token).decode()} {rank}\n' for rank, token in enumerate(RANKS)),
        {'pattern': 'cl100k'},
    ),
}
PARTS = st.sampled_from(
    [*LINES, ' ', '\n', 'the', '字', '😀', 'a' * 40, '<|end|>', '[MASK]', '\u2028', '\0']
)
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=['Cs']), max_size=20),
    st.lists(PARTS, max_size=12).map(''.join),
)


@pytest.fixture(scope='module')
def tokenizer_of(tmp_path_factory):
    @functools.cache
    def open_(name):
        if name == 'byte':
            return load_tokenizer(scheme='byte')
        if name in LEARNED:
            return learn_vocabulary(LINES, **LEARNED[name])
        file, content, options = FILES[name]
        path = tmp_path_factory.mktemp('files') / file
        path.write_text(content)
        return load_tokenizer(path, **options)

    return open_


@pytest.mark.parametrize('name', [*LEARNED, *FILES])
def test_a_text_has_the_ids_that_it_has_in_a_batch(tokenizer_of, name):
    tokenizer = tokenizer_of(name)

    @given(TEXTS, TEXTS)
    @example('', 'the')
    @example('the cat ' * 500, '字')
    def check(text, other):
        ids = tokenizer.encode(text)
        assert [ids, tokenizer.encode(other)] == tokenizer.encode_batch([text, other])
        assert tokenizer.encode_batch([text]) == [ids]

    check()


def test_errors_are_those_of_a_batch(tmp_path):
    path = tmp_path / 'words.txt'
    path.write_text('<unk>\n<s>\n</s>\nthe\n')
    tokenizer = load_tokenizer(path, 'word', unknown='stop')
    said = []
    for encode in (tokenizer.encode, lambda text: tokenizer.encode_batch([text, 'the'])):
        with pytest.raises(ValueError, match="'dog'") as error:
            encode('the dog')
        said.append(str(error.value))
    assert said[0] == said[1]
    assert tokenizer.encode('the') == [3]
