"""Tokenizers of known families over small vocabularies: a `tokenizer.json` with exactly the parts of each.

The vocabularies are learned by `tokenizers` from the sample's lines.
"""

import json
import pathlib

SAMPLE = pathlib.Path(__file__).parents[1] / 'pipelines' / 'sample'


def lines():
    """The sample's lines, with numbers, code and rare characters."""
    names = ('train.en', 'train.zh', 'dev.en', 'dev.zh')
    texts = [(SAMPLE / name).read_text(encoding='utf-8').splitlines() for name in names]
    return [*(line for text in texts for line in text), *_LINES]


_LINES = [
    'In 1984, 1234567 of 12,345.67 (½ of ² and ³) were ¹ or ¼; ٣٤٥ and ⅷ.', 'foo_bar[12] = x²+1; // it\'s...',
    "Größe, élan, naïve, cafe\u0301: ÀÇ ΟΔΟΣ, Привет! They're, WE'LL 's ,' ''", '100000000000000000000',
    '  two  blanks\tand\u00a0others\u3000here ', '漢字123とかな、４５６。한국어!!??..', '🙂👍🏽 ¾¡§¶·»¿',
]  # fmt: skip


def _sequence(members, *parts):
    return {'type': 'Sequence', members: [*parts]}


def _split(pattern, behavior='Isolated', invert=False):
    return {'type': 'Split', 'pattern': {'Regex': pattern}, 'behavior': behavior, 'invert': invert}


def _byte_level(use_regex=True, trim_offsets=True):
    return {
        'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': trim_offsets,
        'use_regex': use_regex,
    }  # fmt: skip


def _bert(lower):
    return {
        'type': 'BertNormalizer', 'clean_text': True, 'handle_chinese_chars': True,
        'strip_accents': None if lower else False, 'lowercase': lower,
    }  # fmt: skip


_SUFFIX = '</w>'

FAMILIES = {
    'Falcon': {
        'pre_tokenizer': _sequence(
            'pretokenizers',
            {'type': 'Punctuation', 'behavior': 'Contiguous'},
            _byte_level(),
            {'type': 'Digits', 'individual_digits': False},
            _split('[0-9][0-9][0-9]'),
        ),
        'decoder': _byte_level(),
    },
    'CLIP': {
        'normalizer': _sequence(
            'normalizers',
            {'type': 'NFC'},
            {'type': 'Replace', 'pattern': {'Regex': r'\s+'}, 'content': ' '},
            {'type': 'Lowercase'},
        ),
        'pre_tokenizer': _sequence(
            'pretokenizers',
            _split(
                r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+", 'Removed', True
            ),
            _byte_level(),
        ),
        'post_processor': {
            'type': 'RobertaProcessing', 'sep': ['<|endoftext|>', 1], 'cls': ['<|startoftext|>', 0],
            'trim_offsets': False, 'add_prefix_space': False,
        },
        'decoder': _byte_level(),
        'special': ['<|startoftext|>', '<|endoftext|>'],
        'model': {'unk_token': '<|endoftext|>', 'end_of_word_suffix': _SUFFIX},
    },
    'HerBERT': {
        'normalizer': _bert(False),
        'pre_tokenizer': {'type': 'BertPreTokenizer'},
        'post_processor': {'type': 'BertProcessing', 'sep': ['</s>', 1], 'cls': ['<s>', 0]},
        'decoder': {'type': 'BPEDecoder', 'suffix': _SUFFIX},
        'special': ['<s>', '</s>', '<unk>'],
        'model': {'unk_token': '<unk>', 'end_of_word_suffix': _SUFFIX},
    },
    'GPT-1': {
        'normalizer': _bert(True),
        'pre_tokenizer': {'type': 'BertPreTokenizer'},
        'decoder': {'type': 'BPEDecoder', 'suffix': _SUFFIX},
        'special': ['<unk>'],
        'model': {'unk_token': '<unk>', 'end_of_word_suffix': _SUFFIX},
    },
    'MiniLM': {
        'normalizer': _bert(True),
        'pre_tokenizer': {'type': 'BertPreTokenizer'},
        'post_processor': {
            'type': 'TemplateProcessing',
            'single': [
                {'SpecialToken': {'id': '[CLS]', 'type_id': 0}},
                {'Sequence': {'id': 'A', 'type_id': 0}},
                {'SpecialToken': {'id': '[SEP]', 'type_id': 0}},
            ],
            'pair': [
                {'Sequence': {'id': 'A', 'type_id': 0}}, {'Sequence': {'id': 'B', 'type_id': 1}},
            ],
            'special_tokens': {
                '[CLS]': {'id': '[CLS]', 'ids': [0], 'tokens': ['[CLS]']},
                '[SEP]': {'id': '[SEP]', 'ids': [1], 'tokens': ['[SEP]']},
            },
        },
        'decoder': {'type': 'WordPiece', 'prefix': '##', 'cleanup': True},
        'special': ['[CLS]', '[SEP]', '[UNK]', '[PAD]'],
        'model': {'type': 'WordPiece'},
        'truncation': {
            'direction': 'Right', 'max_length': 6, 'strategy': 'LongestFirst', 'stride': 0,
        },
        'padding': {
            'strategy': {'Fixed': 6}, 'direction': 'Right', 'pad_to_multiple_of': None, 'pad_id': 3,
            'pad_type_id': 0, 'pad_token': '[PAD]',
        },
    },
}  # fmt: skip
"""By family the parts of its file, its special tokens, and what its model has that others do not."""


def family_file(tokenizers, family, size=2_000):
    """Returns the file of a family, as JSON text."""
    parts = dict(FAMILIES[family])
    model, special = parts.pop('model', {}), parts.pop('special', [])
    trainers = tokenizers.trainers
    options = {'vocab_size': size, 'special_tokens': special, 'show_progress': False}
    if model.get('type') == 'WordPiece':
        made = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token='[UNK]'))
        trainer = trainers.WordPieceTrainer(**options)
    else:
        suffix = {name: value for name, value in model.items() if name == 'end_of_word_suffix'}
        made = tokenizers.Tokenizer(tokenizers.models.BPE(**model))
        alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
        is_of_bytes = 'ByteLevel' in json.dumps(parts['pre_tokenizer'])
        of_units = {'initial_alphabet': alphabet} if is_of_bytes else {'limit_alphabet': 200}
        trainer = trainers.BpeTrainer(**options, **of_units, **suffix)
    file = json.loads(made.to_str())
    learned = tokenizers.Tokenizer.from_str(json.dumps({**file, **_text_parts(parts)}))
    learned.train_from_iterator(lines() * 2, trainer)
    return json.dumps({**json.loads(learned.to_str()), **parts}, ensure_ascii=False)


def _text_parts(parts):
    return {name: parts[name] for name in ('normalizer', 'pre_tokenizer') if name in parts}
