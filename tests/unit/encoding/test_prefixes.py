"""Special tokens in prefixes get their ids in every scheme, and the text around them its ids."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.bpe.codes import NmtVocabulary
from tokcore.bpe.scheme import SCHEME as BPE
from tokcore.bpe.scheme import BpeScheme
from tokcore.bpe.vocabulary import AddedToken, BpeVocabulary
from tokcore.byte.scheme import SCHEME as BYTE
from tokcore.encoding.encoder import PrefixEncoder, side_of_text
from tokcore.errors import InputError
from tokcore.subword.scheme import SCHEME as SUBWORD
from tokcore.subword.text_encoder import SubwordTextEncoder, reserved_tokens_in
from tokcore.text.byte_level import BYTE_TO_CHARACTER
from tokcore.tokenizers import tokenizer_of
from tokcore.word.scheme import SCHEME as WORD
from tokcore.word.scheme import WordVocabulary
from tokcore.wordpiece.scheme import SCHEME as WORDPIECE
from tokcore.wordpiece.vocabulary import WordPieceVocabulary

LETTERS = [chr(code) for code in range(0x20, 0x7F)]
BYTES = sorted(BYTE_TO_CHARACTER.values())
CODES = BpeScheme(preset='subword-nmt')

VOCABULARIES = {
    'subword': (
        SUBWORD,
        SubwordTextEncoder(
            ['<pad>_', '<EOS>_', '<2zh>_', 'to zh_', '__zh\\u_', *LETTERS, 'the_', '2', 'u;', '_']
        ),
        ['<pad>', '<EOS>', '<2zh>', 'to zh'],
    ),
    'wordpiece': (
        WORDPIECE,
        WordPieceVocabulary(
            ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', '<2zh>', '__zh__', 'The', *LETTERS[1:]]
            + [f'##{letter}' for letter in LETTERS[1:]]
        ),
        ['[PAD]', '[MASK]', '<2zh>', '__zh__'],
    ),
    'bpe': (
        BPE,
        BpeVocabulary(
            {character: id_ for id_, character in enumerate([*BYTES, 'th'])},
            (('t', 'h'),),
            (AddedToken(257, '<2zh>', special=True), AddedToken(258, '<|x|>', special=True)),
        ),
        ['<2zh>', '<|x|>'],
    ),
    'codes': (
        CODES,
        NmtVocabulary(
            (('t', 'h'), ('th', 'e</w>')),
            ('<unk>', '<s>', '</s>', '<2zh>', 'the', *(f'{letter}@@' for letter in LETTERS)),
        ),
        ['<s>', '</s>', '<2zh>'],
    ),
    'word': (
        WORD,
        WordVocabulary(['<unk>', '<s>', '</s>', '<2zh>', '[x]', 'the', 'cat', 'a<b', '<', '[]']),
        ['<s>', '<2zh>', '[x]'],
    ),
    'byte': (BYTE, BYTE.fixed, ['<pad>', '<EOS>']),
}  # fmt: skip


def encoder_of(scheme, vocabulary):
    return PrefixEncoder(
        scheme.encoder(vocabulary), lambda prefix: scheme.special_tokens_in(vocabulary, prefix)
    )


def rows_of(encoded):
    bounds = encoded.offsets.tolist()
    return [encoded.ids[start:end].tolist() for start, end in zip(bounds, bounds[1:])]


@pytest.mark.parametrize('name', VOCABULARIES)
def test_a_prefix_is_cut_at_special_tokens(name):
    scheme, vocabulary, tokens = VOCABULARIES[name]
    encoder, tokenizer = encoder_of(scheme, vocabulary), tokenizer_of(vocabulary, scheme)
    texts = st.lists(st.sampled_from(['the', ' ', 'cat', '2zh', 'z', '<', '>', ' the', ': ']))
    parts = st.lists(st.sampled_from(['the ', ' ', 'to ', 'cat', *tokens, *tokens]), max_size=6)

    def plain(text):
        """The ids of a text, without the template."""
        if name in ('bpe', 'wordpiece'):
            return tokenizer.encode(text, add_special_tokens=False)
        return tokenizer.encode(text)

    @given(parts.map(''.join), texts.map(''.join))
    def check(prefix, row):
        pattern = '|'.join(re.escape(token) for token in sorted(tokens, key=len, reverse=True))
        *between, last = re.split(pattern, prefix)
        expected = []
        for text, token in zip(between, re.findall(pattern, prefix), strict=True):
            expected += [*plain(text), vocabulary.id_of(token)]
        expected += plain(last + row)
        encoded = encoder.encode_side(side_of_text(row), prefix, (7,), (8, 9))
        assert rows_of(encoded) == [[7, *expected, 8, 9]]

    check()


def test_learned_subtokens_are_not_reserved_tokens():
    # Each can be the end of a token that text becomes: `x` + LF, `__`, U+00E9 outside the alphabet.
    learned = ['the_', '10;_', ';_', 'u_', 'u\\u_', '\\u_', '\\\\_', '233;s_', '>>_', 'a', '<x>']
    assert reserved_tokens_in(learned, 'the 10;0; u_ _ \\ 233;s >> a <x>') == {}
    reserved = ['<2zh>_', 'a\\ub_', 'to zh_', '2zh_', '\\\\x_']
    assert reserved_tokens_in(reserved, '<2zh> a_b to zh 2zh \\x') == {
        '<2zh>': 0, 'a_b': 1, 'to zh': 2, '\\x': 4
    }  # fmt: skip


def test_added_tokens_with_flags_are_refused_in_prefixes():
    entries = {character: id_ for id_, character in enumerate(BYTES)}
    mask = AddedToken(256, '<mask>', special=True, lstrip=True)
    encoder = encoder_of(BPE, BpeVocabulary(entries, (), (mask,)))
    assert rows_of(encoder.encode_side(side_of_text('a <mask>'), 'a '))
    with pytest.raises(InputError, match="'<mask>' has lstrip, which is not supported; leave it"):
        encoder.encode_side(side_of_text('a'), '<mask> ')
