"""Offsets are those of `tokenizers` after each normalizer, and surrogates are treated as the originals do."""

import base64
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tokcore.bpe.files import parse_bpe_file
from tokcore.foreign_tokenizers.files import parse_pretrained
from tokcore.foreign_tokenizers.tokenizer import PretrainedTokenizer
from tokcore.text.byte_level import ALPHABET
from tokcore.tokenizers import BpeTokenizer

# Marks of several classes, characters that are composed, decomposed and longer in other forms.
CHARACTERS = [
    *'abAZ 19.\'\t\n\r\0_▁éǅİΣΣ字あ각ﬁ½①㍿ｈ😀', '\u0301', '\u0323', '\u0302', '\u0338', '\u05b0', '\u3099', 'か',
    '\u1100', '\u1161', '\u11a8', '\u1eaf', '\u1e9b', '\u0344', '\u0f73', '\u200d', '\u00ad', '\xa0', '\u3000', '\u2028',
    '\ufeff', '\x07', '\x85', '  ', 'é\u0323', 'the ', "'s",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(CHARACTERS), max_size=20).map(''.join)


def sequence(*members):
    return {'type': 'Sequence', 'normalizers': [*members]}


def replace(kind, pattern, content):
    return {'type': 'Replace', 'pattern': {kind: pattern}, 'content': content}


def bert(cleans=True, cjk=True, accents=None, lower=True):
    return {
        'type': 'BertNormalizer', 'clean_text': cleans, 'handle_chinese_chars': cjk,
        'strip_accents': accents, 'lowercase': lower,
    }  # fmt: skip


FORMS = [{'type': form} for form in ('NFC', 'NFD', 'NFKC', 'NFKD')]
NORMALIZERS = [
    None, *FORMS, {'type': 'Lowercase'}, {'type': 'StripAccents'},
    *({'type': 'Strip', 'strip_left': left, 'strip_right': right}
      for left, right in ((True, True), (True, False), (False, True))),
    {'type': 'Prepend', 'prepend': '▁'}, {'type': 'Prepend', 'prepend': '字x'},
    replace('String', ' ', '▁'), replace('String', 'a', ''), replace('String', 'é', 'xyz'),
    replace('Regex', r'\s+', ''), replace('Regex', ' {2,}', ' ▁ '), replace('String', '\n', '字'),
    bert(), bert(False), bert(lower=False), bert(cjk=False, accents=False),
    sequence({'type': 'NFKD'}, {'type': 'StripAccents'}, {'type': 'Lowercase'}),
    sequence({'type': 'Prepend', 'prepend': '▁'}, replace('String', ' ', '▁'), {'type': 'NFC'}),
    sequence(replace('String', 'a', ''), {'type': 'NFKC'}, {'type': 'Prepend', 'prepend': 'ab'}),
    sequence(bert(), {'type': 'NFC'}, {'type': 'Strip', 'strip_left': True, 'strip_right': True}),
]  # fmt: skip
SPLIT = {'type': 'Split', 'pattern': {'Regex': '[\\s\\S]'}, 'behavior': 'Isolated', 'invert': False}
EACH_UNKNOWN = {
    'version': '1.0', 'truncation': None, 'padding': None, 'post_processor': None, 'decoder': None,
    'pre_tokenizer': SPLIT, 'model': {'type': 'WordLevel', 'vocab': {'?': 0}, 'unk_token': '?'},
}  # fmt: skip


def added(id_, content, **flags):
    names = ('single_word', 'lstrip', 'rstrip', 'normalized', 'special')
    return {'id': id_, 'content': content, **{name: flags.get(name, False) for name in names}}


@pytest.mark.parametrize('normalizer', NORMALIZERS, ids=str)
@pytest.mark.parametrize(
    'tokens', [[], [added(1, 'b'), added(2, 'A', normalized=True, rstrip=True)]]
)
def test_characters_after_normalizers(tokenizers, normalizer, tokens):
    file = {**EACH_UNKNOWN, 'normalizer': normalizer, 'added_tokens': tokens}
    data = json.dumps(file).encode()
    theirs = tokenizers.Tokenizer.from_str(data.decode())
    ours = PretrainedTokenizer(parse_pretrained(data, 'small.json'))

    @given(TEXTS)
    @settings(database=None, max_examples=30)
    @example('')
    @example('a\u0301\u0323e\u0302\u0301 \u0301b ▁é  ')
    @example(''.join(CHARACTERS))
    @example(''.join(reversed(CHARACTERS)))
    def same(text):
        expected = theirs.encode(text)
        encoding = ours.encode_with_offsets(text)
        assert encoding.ids == expected.ids
        assert encoding.offsets == expected.offsets

    same()


BYTE_LEVEL = {
    'type': 'ByteLevel',
    'add_prefix_space': False,
    'trim_offsets': True,
    'use_regex': True,
}
TRIMS = {**BYTE_LEVEL, 'add_prefix_space': True}
BPE_CASES = {
    'plain': {},
    'trimmed': {'post_processor': BYTE_LEVEL},
    'trimmed, with a prefix': {'pre_tokenizer': TRIMS, 'post_processor': TRIMS},
    'a prefix': {'pre_tokenizer': TRIMS},
    'composed': {'normalizer': {'type': 'NFC'}},
    'compatible': {'normalizer': {'type': 'NFKC'}, 'post_processor': BYTE_LEVEL},
    'bytes without entries': {'left_out': 'aÃ©ĠÂ'},
    'unknown bytes': {'left_out': 'aÃ©ĠÂ', 'model': {'unk_token': 'b'}},
    'fused': {'left_out': 'aÃ©ĠÂ', 'model': {'unk_token': 'b', 'fuse_unk': True}},
}  # fmt: skip


@pytest.mark.parametrize('case', BPE_CASES.values(), ids=BPE_CASES)
def test_the_scheme_bpe(tokenizers, case):
    merges = [('h', 'e'), ('t', 'he'), ('Ġ', 't'), ('Ġt', 'he'), ('Ġ', 'Ġ'), ('Ã', '©'), ('Ì', 'ģ')]
    kept = [entry for entry in ALPHABET if entry not in case.get('left_out', '')]
    merges = [pair for pair in merges if not {*''.join(pair)} & {*case.get('left_out', '')}]
    entries = {entry: id_ for id_, entry in enumerate([*kept, *map(''.join, merges)])}
    model = {
        'type': 'BPE', 'vocab': entries, 'merges': [*map(list, merges)], 'dropout': None,
        'unk_token': None, 'continuing_subword_prefix': None, 'end_of_word_suffix': None,
        'fuse_unk': False, 'byte_fallback': False, 'ignore_merges': False, **case.get('model', {}),
    }  # fmt: skip
    parts = {name: part for name, part in case.items() if name not in ('left_out', 'model')}
    file = {
        **EACH_UNKNOWN, 'normalizer': None, 'pre_tokenizer': BYTE_LEVEL, 'decoder': BYTE_LEVEL,
        **parts, 'model': model, 'added_tokens': [added(entries['9'], '9', normalized=True)],
    }  # fmt: skip
    data = json.dumps(file).encode()
    theirs = tokenizers.Tokenizer.from_str(data.decode())
    of_bpe = BpeTokenizer(parse_bpe_file(data, 'small.json'))
    of_pretrained = PretrainedTokenizer(parse_pretrained(data, 'small.json'))

    @given(TEXTS)
    @settings(database=None)
    @example('')
    @example(' the  9 the é\u0301 ')
    def same(text):
        expected = theirs.encode(text)
        for ours in (of_bpe, of_pretrained):
            encoding = ours.encode_with_offsets(text)
            assert encoding.ids == expected.ids
            assert encoding.offsets == expected.offsets

    same()


@pytest.mark.parametrize(
    'text', ['a\ud83d\ude00b', '\ud800', 'é\udc00\ud800字', '\ud83d\ude00\ude00']
)
def test_surrogates(tiktoken, sentencepiece, tokenizers, text):
    ranks = {bytes([byte]): byte for byte in range(256)}
    lines = b''.join(base64.b64encode(token) + b' %d\n' % rank for token, rank in ranks.items())
    ours = PretrainedTokenizer(parse_pretrained(lines, 'small.tiktoken', 'gpt2'))
    theirs = tiktoken.Encoding('small', pat_str='.', mergeable_ranks=ranks, special_tokens={})
    encoding = ours.encode_with_offsets(text)
    assert encoding.ids == ours.encode_batch([text])[0] == theirs.encode(text)
    # Offsets are of the string as it was.
    for start, end in encoding.offsets:
        of_span = b''.join(
            bytes([id_]) for id_, span in zip(encoding.ids, encoding.offsets, strict=True)
            if span == (start, end)
        )  # fmt: skip
        assert of_span.decode() == text[start:end].encode('utf-16', 'surrogatepass').decode(
            'utf-16', 'replace'
        )

    data = json.dumps({**EACH_UNKNOWN, 'normalizer': None, 'added_tokens': []}).encode()
    with pytest.raises(TypeError):
        tokenizers.Tokenizer.from_str(data.decode()).encode(text)
    refusing = PretrainedTokenizer(parse_pretrained(data, 'small.json'))
    index = next(place for place, each in enumerate(text) if '\ud800' <= each <= '\udfff')
    for call in (
        refusing.encode,
        refusing.encode_with_offsets,
        lambda text: refusing.encode_batch(['a', text]),
    ):
        with pytest.raises(ValueError, match=f'the surrogate U.* at index {index}, '):
            call(text)
