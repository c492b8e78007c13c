"""Files of trained models, damaged: a sentence with the file, or a tokenizer that takes any text.

They are read in this process.
"""

import base64
import json
import random
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any

from plain import drawn_text

from tokcore.errors import InputError
from tokcore.foreign_tokenizers.files import parse_pretrained
from tokcore.foreign_tokenizers.tokenizer import PretrainedTokenizer
from tokcore.text.byte_level import BYTE_TO_CHARACTER

from .room import Room, Violation

_TEXTS = [
    '', 'the line of words', 'a\tb  c\r\n12345', '小语料第一行。', '▁▁ x<s>😀', '\x00é\u0301',
    'a\u0301 naïve é',
]  # fmt: skip

_BYTES = {BYTE_TO_CHARACTER[byte]: byte for byte in range(256)}
_MERGES = ['t h', 'th e', 'l i', 'Ġ the', 'o f']
_ENTRIES = {**_BYTES, **{merge.replace(' ', ''): 256 + n for n, merge in enumerate(_MERGES)}}
_MARKED = ['<unk>', '<s>', *(f'<0x{byte:02X}>' for byte in range(256)), '▁', *'abcdefhilnorstw',
           'th', '▁th', '▁the', 'li', '▁li']  # fmt: skip
_MARKED_MERGES = [['t', 'h'], ['▁', 'th'], ['▁th', 'e'], ['l', 'i'], ['▁', 'li']]
_ADDED = [
    {'id': 0, 'content': '<s>', 'single_word': False, 'lstrip': True, 'rstrip': False,
     'normalized': False, 'special': True},
]  # fmt: skip
_SPLIT = {'type': 'Split', 'pattern': {'Regex': r'\p{N}{1,3}| ?\p{L}+|\s+'}, 'behavior': 'Isolated',
          'invert': False}  # fmt: skip
_BYTE_LEVEL = {'type': 'ByteLevel', 'add_prefix_space': False, 'use_regex': True}
_METASPACE = {'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': 'always', 'split': True}
_TEMPLATE = {
    'type': 'TemplateProcessing',
    'single': [{'SpecialToken': {'id': '<s>', 'type_id': 0}}, {'Sequence': {'id': 'A', 'type_id': 0}}],
    'pair': [],
    'special_tokens': {'<s>': {'id': '<s>', 'ids': [0], 'tokens': ['<s>']}},
}  # fmt: skip


def _file(model: object, **parts: object) -> dict[str, Any]:
    names = ('added_tokens', 'normalizer', 'pre_tokenizer', 'post_processor', 'decoder')
    return {'version': '1.0', **dict.fromkeys(names), **parts, 'model': model}


_JSON_FILES = [
    _file(
        {'type': 'BPE', 'vocab': _ENTRIES, 'merges': _MERGES, 'ignore_merges': True},
        pre_tokenizer={'type': 'Sequence', 'pretokenizers': [_SPLIT, {'type': 'Digits'}, _BYTE_LEVEL,
                                                                 {'type': 'Punctuation'}]},
        normalizer={'type': 'Sequence', 'normalizers': [{'type': 'NFC'}, {'type': 'Lowercase'}]},
        decoder=_BYTE_LEVEL, post_processor=_TEMPLATE,
    ),
    _file(
        {'type': 'BPE', 'vocab': {entry: id_ for id_, entry in enumerate(_MARKED)},
         'merges': _MARKED_MERGES, 'unk_token': '<unk>', 'fuse_unk': True, 'byte_fallback': True},
        normalizer={'type': 'Sequence', 'normalizers': [
            {'type': 'Prepend', 'prepend': '▁'},
            {'type': 'Replace', 'pattern': {'String': ' '}, 'content': '▁'}]},
        added_tokens=[{**_ADDED[0], 'id': 1}],
        decoder={'type': 'Sequence', 'decoders': [
            {'type': 'Replace', 'pattern': {'String': '▁'}, 'content': ' '}, {'type': 'ByteFallback'},
            {'type': 'Fuse'}, {'type': 'Strip', 'content': ' ', 'start': 1, 'stop': 0}]},
    ),
    _file(
        {'type': 'BPE', 'vocab': {'<unk>': 0, 'l': 1, 'i': 2, 'e</w>': 3, 'li': 4, 'lie</w>': 5},
         'merges': ['l i', 'li e</w>'], 'unk_token': '<unk>', 'end_of_word_suffix': '</w>'},
        pre_tokenizer={'type': 'WhitespaceSplit'}, decoder={'type': 'BPEDecoder', 'suffix': '</w>'},
    ),
    _file(
        {'type': 'WordPiece', 'vocab': {entry: id_ for id_, entry in enumerate(
            ['[UNK]', '[CLS]', '[SEP]', 'the', 'of', 'l', '##ine', '##i', 'a'])},
         'unk_token': '[UNK]', 'continuing_subword_prefix': '##', 'max_input_chars_per_word': 100},
        normalizer={'type': 'BertNormalizer', 'clean_text': True, 'handle_chinese_chars': True,
                    'strip_accents': None, 'lowercase': True},
        pre_tokenizer={'type': 'BertPreTokenizer'}, decoder={'type': 'WordPiece', 'prefix': '##'},
        post_processor={'type': 'BertProcessing', 'sep': ['[SEP]', 2], 'cls': ['[CLS]', 1]},
    ),
    _file(
        {'type': 'WordLevel', 'vocab': {'[UNK]': 0, 'the': 1, 'a': 2}, 'unk_token': '[UNK]'},
        pre_tokenizer={'type': 'Whitespace'},
    ),
    _file(
        {'type': 'Unigram', 'unk_id': 0, 'byte_fallback': False,
         'vocab': [[entry, -1.5 - id_ / 8] for id_, entry in enumerate(_MARKED[:2] + _MARKED[258:])]},
        pre_tokenizer=_METASPACE, decoder=_METASPACE,
    ),
]  # fmt: skip

_TOKENS = [*(bytes([byte]) for byte in range(256)), b'th', b'the', b' the', b'of']
_RANKS = b''.join(
    base64.b64encode(token) + f' {rank}\n'.encode() for rank, token in enumerate(_TOKENS)
)
_TEKKEN = {
    'config': {'pattern': r'[a-z]+|\s+|.', 'default_vocab_size': 262, 'default_num_special_tokens': 2},
    'vocab': [
        {'rank': rank, 'token_bytes': base64.b64encode(token).decode(), 'token_str': None}
        for rank, token in enumerate(_TOKENS)
    ],
    'special_tokens': [{'rank': 0, 'token_str': '<unk>', 'is_control': True}],
}  # fmt: skip


def _number(value: int) -> bytes:
    data = b''
    while value > 0x7F:
        data += bytes([value & 0x7F | 0x80])
        value >>= 7
    return data + bytes([value])


def _message(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _number(len(data)) + data


def _charsmap(dice: random.Random) -> bytes:
    """A charsmap for `a` and `é`, of which a few units or some bytes are others."""
    units = [0] * 1024
    units[0x61], units[0x161] = 0x100 << 10 | 1 << 8 | 0x61, 1 << 31
    units[0xC3] = 0x200 << 10 | 0xC3
    units[0x26A], units[0x16A] = 0x300 << 10 | 1 << 8 | 0xA9, 1 << 31 | 2
    for _ in range(dice.choice([0, 1, 1, 2, 4])):
        place = dice.choice([0, 0x61, 0x161, 0xC3, 0x26A, 0x16A, dice.randrange(1024)])
        units[place] = dice.choice(
            [0, units[place] ^ 1 << dice.randrange(32), dice.getrandbits(32)]
        )
    data = struct.pack('<1025I', 4096, *units) + dice.choice(
        [b'b\0ee\0', 'é\0字'.encode(), b'', b'\0']
    )
    return drawn_text.mutated(dice, data) if dice.random() < 0.2 else data


def _sentencepiece(kind: int, charsmap: bytes = b'') -> bytes:
    data = b''
    for id_, entry in enumerate(_MARKED):
        type_ = 2 if id_ == 0 else 3 if id_ == 1 else 6 if id_ < 258 else 1
        piece = _message(1, entry.encode()) + b'\x15' + struct.pack('<f', -1.5 - id_ / 8)
        data += _message(1, piece + b'\x18' + bytes([type_]))
    trainer = b'\x18' + bytes([kind]) + b'\x98\x02\x01'
    normalizer = _message(1, b'identity') + _message(2, charsmap) + b'\x18\x01'
    return data + _message(2, trainer) + _message(3, normalizer)


_ODD_VALUES: list[Callable[[], object]] = [
    lambda: None, lambda: True, lambda: 0, lambda: -1, lambda: 1 << 31, lambda: 1 << 70, lambda: 1e308,
    lambda: '', lambda: 'x', lambda: '\ud800', lambda: '(', lambda: '(a*)*b', lambda: '(?<=a*)b',
    lambda: 'a{1,1000000}', lambda: '▁', lambda: 'x' * 4000, list, dict, lambda: [[]], lambda: [None],
    lambda: {'type': 'Sequence'}, lambda: {'type': 'x'}, lambda: {'type': 7}, lambda: float('inf'),
    lambda: [['a', 'b']], lambda: {'a': 0}, lambda: {'a': 5_000_000}, lambda: {'String': ''},
    lambda: {'Regex': '['}, lambda: 'ByteLevel',
]  # fmt: skip
_TYPES = ['BPE', 'Unigram', 'WordPiece', 'WordLevel', 'ByteLevel', 'Metaspace', 'Replace', 'Prepend',
          'Strip', 'Digits', 'Punctuation', 'Split', 'Precompiled', 'Fuse', 'BPEDecoder', 'CTC', 'Nmt',
          'FixedLength']  # fmt: skip

_NO_ID = 1 << 30


def attack_tokenizer_files(room: Room, dice: random.Random) -> None:
    data, pattern = _draw_file(dice)
    room.write('tokenizer', data)
    try:
        vocabulary = parse_pretrained(data, 'a/file', pattern)
    except InputError as error:
        if not re.search(r'a/file', str(error)) and '--pattern' not in str(error):
            raise Violation(f'the sentence does not name the file: {error}') from None
        return
    tokenizer = PretrainedTokenizer(vocabulary)
    for text in _TEXTS:
        try:
            ids = tokenizer.encode(text)
        except ValueError as error:
            if 'piece' not in str(error) and 'id' not in str(error) and 'entry' not in str(error):
                raise
            continue
        if not all(0 <= id_ < vocabulary.vocab_size for id_ in ids):
            raise Violation(f'the ids {ids} of {text!r}, of {vocabulary.vocab_size}')
        _decode(tokenizer, ids)
    some = range(0, vocabulary.vocab_size, 1 + vocabulary.vocab_size // 300)
    _decode(tokenizer, [*some, _NO_ID])


def _decode(tokenizer: PretrainedTokenizer, ids: list[int]) -> None:
    try:
        tokenizer.decode(ids)
    except InputError as error:
        if 'a/file' not in str(error) and not str(error).startswith(f'{_NO_ID} is not an id'):
            raise Violation(f'the sentence does not name the file: {error}') from None


def _draw_file(dice: random.Random) -> tuple[bytes, str | None]:
    kind = dice.choice(['json', 'json', 'json', 'ranks', 'tekken', 'unigram', 'bpe', 'charsmap'])
    if kind == 'charsmap':
        charsmap = _charsmap(dice)
        if dice.random() < 0.5:
            return _sentencepiece(1, charsmap), None
        text = base64.b64encode(charsmap).decode()
        normalizer = {'type': 'Precompiled', 'precompiled_charsmap': text}
        return json.dumps({**_JSON_FILES[-1], 'normalizer': normalizer}).encode(), None
    if kind == 'ranks':
        pattern = dice.choice(['o200k', 'gpt2', r'\w+|\W', '(', None])
        return drawn_text.mutated(dice, _RANKS), pattern
    if kind in ('unigram', 'bpe'):
        return drawn_text.mutated(dice, _sentencepiece(1 if kind == 'unigram' else 2)), None
    file = json.loads(json.dumps(_TEKKEN if kind == 'tekken' else dice.choice(_JSON_FILES)))
    for _ in range(dice.choice([1, 1, 2, 4])):
        _change(dice, file)
    data = json.dumps(file).encode('utf-8', 'surrogatepass')
    return (drawn_text.mutated(dice, data) if dice.random() < 0.1 else data), None


def _change(dice: random.Random, file: dict[str, Any]) -> None:
    """Changes one value somewhere in a file, of few or many steps down."""
    part: Any = file
    while True:
        keys = list(part) if isinstance(part, Mapping) else list(range(len(part)))
        if not keys:
            return
        key = dice.choice(keys)
        inner = part[key]
        if isinstance(inner, dict | list) and inner and dice.random() < 0.85:
            part = inner
            continue
        break
    match dice.randrange(5):
        case 0:
            del part[key]
        case 1 if isinstance(part, list):
            part.insert(key, inner)
        case 2 if isinstance(inner, str):
            part[key] = dice.choice(_TYPES)
        case 3 if isinstance(inner, int) and not isinstance(inner, bool):
            part[key] = inner + dice.choice([-1, 1, 300])
        case _:
            part[key] = dice.choice(_ODD_VALUES)()
