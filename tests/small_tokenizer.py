"""A small byte-level `tokenizer.json`, as a hub has it: bytes, `th`, `the`, and a token that ends documents."""

from tokcore.text.byte_level import BYTE_TO_CHARACTER

ENTRIES = {BYTE_TO_CHARACTER[byte]: byte for byte in range(256)} | {'th': 256, 'the': 257}

_BYTE_LEVEL = {'type': 'ByteLevel', 'add_prefix_space': False, 'use_regex': True}
_FLAGS = dict.fromkeys(('single_word', 'lstrip', 'rstrip', 'normalized'), False)

TOKENIZER = {
    'added_tokens': [{'id': 258, 'content': '<|end|>', **_FLAGS, 'special': True}],
    'normalizer': {'type': 'NFC'},
    'pre_tokenizer': _BYTE_LEVEL,
    'post_processor': None,
    'decoder': _BYTE_LEVEL,
    'model': {'type': 'BPE', 'vocab': ENTRIES, 'merges': ['t h', 'th e']},
}
