"""A vocab.json and merges.txt whose tokens are the keys of other tools' files: GPT-2's has a token `model`."""

import json

from tokcore.text.byte_level import ALPHABET

KEYS = (
    'model', 'vocab', 'merges', 'config', 'added_tokens', 'version', 'truncation', 'padding',
    'normalizer', 'pre_tokenizer', 'post_processor', 'decoder', 'special_tokens', 'type',
)  # fmt: skip


def write_files(folder, keys=KEYS):
    """Writes both files, and returns the path of the first."""
    merges = dict.fromkeys((key[:size], key[size]) for key in keys for size in range(1, len(key)))
    entries = dict.fromkeys([*ALPHABET, *(left + right for left, right in merges)])
    ids = {entry: id_ for id_, entry in enumerate(entries)}
    folder.mkdir(exist_ok=True)
    (folder / 'vocab.json').write_text(json.dumps(ids, ensure_ascii=False), encoding='utf-8')
    lines = ['#version: 0.2', *map(' '.join, merges)]
    (folder / 'merges.txt').write_text(''.join(f'{line}\n' for line in lines), encoding='utf-8')
    return folder / 'vocab.json'
