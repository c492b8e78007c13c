"""The documentation's table of the parts of a tokenizer.json is what the code does, for all of tokenizers' types."""

import base64
import json
import pathlib
import re

import pytest
from families import lines

from tokcore.errors import InputError
from tokcore.foreign_tokenizers.files import parse_pretrained
from tokcore.foreign_tokenizers.sentencepiece import message_fields
from tokcore.foreign_tokenizers.tokenizer import PretrainedTokenizer

DOCS = pathlib.Path(__file__).parents[2] / 'docs' / 'schemes.md'
MODULES = {
    'model': ('models', 'Model'),
    'normalizer': ('normalizers', 'Normalizer'),
    'pre-tokenizer': ('pre_tokenizers', 'PreTokenizer'),
    'post-processor': ('processors', 'PostProcessor'),
    'decoder': ('decoders', 'Decoder'),
}
MEMBERS = {
    'normalizer': 'normalizers', 'pre-tokenizer': 'pretokenizers', 'post-processor': 'processors',
    'decoder': 'decoders',
}  # fmt: skip

_PATTERN = {'pattern': {'Regex': 'e|[0-9]+'}}
_BYTE_LEVEL = {'add_prefix_space': False, 'trim_offsets': True, 'use_regex': True}
FIELDS = {
    ('normalizer', 'BertNormalizer'): {
        'clean_text': True, 'handle_chinese_chars': True, 'strip_accents': None, 'lowercase': True,
    },
    ('normalizer', 'Prepend'): {'prepend': 'e'},
    ('normalizer', 'Replace'): {**_PATTERN, 'content': 'th'},
    ('normalizer', 'Strip'): {'strip_left': True, 'strip_right': True},
    ('pre-tokenizer', 'ByteLevel'): _BYTE_LEVEL,
    ('pre-tokenizer', 'CharDelimiterSplit'): {'delimiter': 'e'},
    ('pre-tokenizer', 'Digits'): {'individual_digits': False},
    ('pre-tokenizer', 'FixedLength'): {'length': 5},
    ('pre-tokenizer', 'Metaspace'): {'replacement': '▁', 'prepend_scheme': 'always', 'split': True},
    ('pre-tokenizer', 'Punctuation'): {'behavior': 'Contiguous'},
    ('pre-tokenizer', 'Split'): {**_PATTERN, 'behavior': 'MergedWithNext', 'invert': False},
    ('post-processor', 'BertProcessing'): {'sep': ['e', 3], 'cls': ['t', 4]},
    ('post-processor', 'ByteLevel'): _BYTE_LEVEL,
    ('post-processor', 'RobertaProcessing'): {
        'sep': ['e', 3], 'cls': ['t', 4], 'trim_offsets': True, 'add_prefix_space': False,
    },
    ('post-processor', 'TemplateProcessing'): {
        'single': [{'Sequence': {'id': 'A', 'type_id': 0}}, {'SpecialToken': {'id': 'e', 'type_id': 0}}],
        'pair': [{'Sequence': {'id': 'A', 'type_id': 0}}, {'Sequence': {'id': 'B', 'type_id': 1}}],
        'special_tokens': {'e': {'id': 'e', 'ids': [3], 'tokens': ['e']}},
    },
    ('decoder', 'BPEDecoder'): {'suffix': 'e'},
    ('decoder', 'ByteLevel'): _BYTE_LEVEL,
    ('decoder', 'CTC'): {'pad_token': 't', 'word_delimiter_token': 'e', 'cleanup': True},
    ('decoder', 'Metaspace'): {'replacement': 'e', 'prepend_scheme': 'always', 'split': True},
    ('decoder', 'Replace'): {**_PATTERN, 'content': 'th'},
    ('decoder', 'Strip'): {'content': 't', 'start': 1, 'stop': 0},
    ('decoder', 'WordPiece'): {'prefix': 'th', 'cleanup': True},
}  # fmt: skip
FIRST = {'normalizer': 'NFC', 'pre-tokenizer': 'Digits', 'post-processor': 'ByteLevel', 'decoder': 'Fuse'}  # fmt: skip


def table():
    """The third column by (part, type)."""
    section = DOCS.read_text().split('### Parts of a `tokenizer.json`')[1].split('\n### ')[0]
    rows = re.findall(r'^\| ([a-z-]+) \| (`.*`) \| (yes|no)\b', section, re.MULTILINE)
    return {
        (part, kind): said for part, kinds, said in rows for kind in re.findall(r'`(\w+)`', kinds)
    }


def part_of(part, kind, charsmap):
    fields = FIELDS.get((part, kind), {})
    if kind == 'Sequence':
        fields = {MEMBERS[part]: [part_of(part, FIRST[part], charsmap)]}
    if kind == 'Precompiled':
        fields = {'precompiled_charsmap': charsmap}
    return {'type': kind, **fields}


def test_all_types_of_tokenizers_are_in_the_table(tokenizers):
    types = {
        (part, name)
        for part, (module, base) in MODULES.items()
        for name, made in vars(getattr(tokenizers, module)).items()
        if isinstance(made, type)
        and issubclass(made, getattr(getattr(tokenizers, module), base))
        and name != base
    }
    assert {*table()} == types and len(types) > 40


@pytest.fixture(scope='module')
def learned(tokenizers):
    """The file of a model of characters whose merges reach across words."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token='<unk>'))
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=600, special_tokens=['<unk>'], show_progress=False
    )
    made.train_from_iterator(lines()[:300], trainer)
    return json.loads(made.to_str())


@pytest.fixture(scope='module')
def charsmap(sentencepiece):
    normalizer = sentencepiece.SentencePieceNormalizer(rule_name='nmt_nfkc')
    data = normalizer.serialized_model_proto()
    [spec] = [value for number, value, _ in message_fields(data, 'x') if number == 3]
    [found] = [value for number, value, _ in message_fields(spec, 'x') if number == 2]
    return base64.b64encode(found).decode()


@pytest.mark.parametrize(('part', 'kind'), [key for key in table() if key[0] != 'model'])
def test_every_part_is_what_the_table_says(tokenizers, learned, charsmap, part, kind):
    key = part.replace('-', '_')
    file = {**learned, key: part_of(part, kind, charsmap)}
    data = json.dumps(file)
    theirs = tokenizers.Tokenizer.from_str(data)
    if table()[part, kind] == 'no' and part == 'decoder':
        ours = PretrainedTokenizer(parse_pretrained(data.encode(), 'x.json'))
        with pytest.raises(InputError, match=rf'{kind}.* at \$\.decoder is not supported'):
            ours.decode(ours.encode('the'))
        return
    if table()[part, kind] == 'no':
        with pytest.raises(InputError, match=rf'{kind} at \$\.{key} is not supported'):
            parse_pretrained(data.encode(), 'x.json')
        return
    ours = PretrainedTokenizer(parse_pretrained(data.encode(), 'x.json'))
    for text in lines()[-100:]:
        ids = theirs.encode(text).ids
        assert ours.encode(text) == ids
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


MODELS = {
    'BPE': {'vocab': {'a': 0, 'b': 1, 'ab': 2}, 'merges': [['a', 'b']], 'unk_token': None},
    'WordPiece': {
        'vocab': {'a': 0, 'ab': 1, '##b': 2}, 'unk_token': 'a', 'continuing_subword_prefix': '##',
        'max_input_chars_per_word': 9,
    },
    'WordLevel': {'vocab': {'a': 0, 'ab': 1}, 'unk_token': 'a'},
    'Unigram': {'vocab': [['a', -1.0], ['b', -2.0], ['ab', -2.5]], 'unk_id': 0, 'byte_fallback': False},
}  # fmt: skip


@pytest.mark.parametrize('kind', [kind for part, kind in table() if part == 'model'])
def test_every_model_is_what_the_table_says(tokenizers, learned, kind):
    assert table()['model', kind] == 'yes'
    parts = {'pre_tokenizer': {'type': 'WhitespaceSplit'}, 'added_tokens': []}
    data = json.dumps({**learned, **parts, 'model': {'type': kind, **MODELS[kind]}})
    theirs = tokenizers.Tokenizer.from_str(data)
    ours = PretrainedTokenizer(parse_pretrained(data.encode(), 'x.json'))
    for text in ('a ab abab', 'ba', ''):
        assert ours.encode(text) == theirs.encode(text).ids
