"""The bytes of each id: their sum is the size of the text where ids stand for all of it."""

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokcore
from tokcore.bpe.codes import NmtVocabulary
from tokcore.bytes_of_ids import byte_lengths
from tokcore.foreign_tokenizers.files import parse_pretrained
from tokcore.foreign_tokenizers.tokenizer import PretrainedTokenizer
from tokcore.tokenizers import BpeTokenizer

LINES = ['the cat sat on the mat', 'Größe und Flüsse', '字典 naïve 😀', "it's the cats"] * 3


def of_ranks():
    tokens = [*(bytes([byte]) for byte in range(256)), b'th', b'the', ' é'.encode()]
    lines = b''.join(
        base64.b64encode(token) + f' {rank}\n'.encode() for rank, token in enumerate(tokens)
    )
    return PretrainedTokenizer(parse_pretrained(lines, 'small.tiktoken', 'cl100k'))


def learned(scheme, **options):
    return tokcore.learn_vocabulary(LINES, scheme, **options)


BYTE_LEVEL = {
    'bytes': tokcore.load_tokenizer(scheme='byte'),
    'bpe': learned('bpe', vocab_size=300),
    'ranks': of_ranks(),
}


@pytest.mark.parametrize('name', BYTE_LEVEL)
@given(st.text(max_size=40))
def test_they_add_up_to_the_text(name, text):
    lengths = byte_lengths(BYTE_LEVEL[name])
    assert lengths.dtype == np.int32 and lengths.shape == (BYTE_LEVEL[name].vocab_size,)
    assert lengths[BYTE_LEVEL[name].encode(text)].sum() == len(text.encode())


def by_piece(tokenizer):
    return dict(zip(tokenizer.pieces, byte_lengths(tokenizer).tolist(), strict=True))


def test_special_tokens_have_none():
    special = tokcore.learn_vocabulary(
        LINES, 'bpe', vocab_size=300, special_tokens=['<|endoftext|>', '<mask>']
    )
    lengths = by_piece(special)
    assert lengths['<|endoftext|>'] == lengths['<mask>'] == 0 and lengths['Ġthe'] == 4
    of_pieces = by_piece(learned('wordpiece', vocab_size=60, min_count_range='1:100'))
    assert {of_pieces[token] for token in ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')} == {0}
    assert of_pieces['the'] == 3 and of_pieces['##t'] == 1
    of_words = by_piece(learned('word', vocab_size=20))
    assert of_words['<unk>'] == of_words['<s>'] == 0 and of_words['Größe'] == 7
    of_subwords = by_piece(learned('subword', vocab_size=80))
    assert of_subwords['<pad>_'] == of_subwords['<EOS>_'] == 0 and of_subwords['the_'] == 3


def test_marks_of_pieces_are_not_text():
    codes = NmtVocabulary((('t', 'h'), ('th', 'e</w>')), ('<unk>', 'th@@', 'e', 'the', 'é@@'))
    assert byte_lengths(BpeTokenizer(codes)).tolist() == [0, 2, 1, 3, 2]


def file_of(model, added=(), **parts):
    import json

    names = ('normalizer', 'pre_tokenizer', 'post_processor', 'decoder')
    tokens = [
        {'id': id_, 'content': content, 'special': special, 'normalized': False,
         'single_word': False, 'lstrip': False, 'rstrip': False}
        for id_, content, special in added
    ]  # fmt: skip
    file = {**dict.fromkeys(names), **parts, 'added_tokens': tokens, 'model': model}
    return PretrainedTokenizer(parse_pretrained(json.dumps(file).encode(), 'small.json'))


def test_marks_and_bytes_of_published_files():
    entries = ['<unk>', '<s>', '▁the', '▁', 'é', '<0x0A>', '<0xC3>', 'a▁b']
    marks = {'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': 'always', 'split': True}
    fallback = {'type': 'Sequence', 'decoders': [{'type': 'ByteFallback'}, marks]}
    unigram = {
        'type': 'Unigram',
        'vocab': [[entry, -1.0] for entry in entries],
        'unk_id': 0,
        'byte_fallback': True,
    }
    made = file_of(
        unigram, [(1, '<s>', True), (8, '▁new', False)], pre_tokenizer=marks, decoder=fallback
    )
    assert byte_lengths(made).tolist() == [0, 0, 4, 1, 2, 1, 1, 3, 6]
    words = {'type': 'WordPiece', 'vocab': {'[UNK]': 0, 'the': 1, '#s': 2, '▁': 3}, 'unk_token': '[UNK]',
             'continuing_subword_prefix': '#', 'max_input_chars_per_word': 100}  # fmt: skip
    decoder = {'type': 'WordPiece', 'prefix': '#', 'cleanup': False}
    pieces = file_of(words, pre_tokenizer={'type': 'WhitespaceSplit'}, decoder=decoder)
    assert byte_lengths(pieces).tolist() == [0, 3, 1, 3]
