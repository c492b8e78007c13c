"""Prints what transformers makes of lines: the ids of each, and what padding does.

Arguments: a file of lines, and folders.
"""

import json
import sys

import transformers
from transformers import AutoTokenizer

lines = open(sys.argv[1], encoding='utf-8').read().splitlines()
opened = {}
for folder in sys.argv[2:]:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    padded = tokenizer([lines[0], lines[0][:9]], padding=True)
    pair = tokenizer(lines[0], lines[1])
    tokenizer.save_pretrained(saved := f'{folder}/saved')
    opened[folder] = {
        'size': len(tokenizer),
        'roles': {role: str(token) for role, token in tokenizer.special_tokens_map.items()},
        'ids': [tokenizer.encode(line) for line in lines],
        'padded': padded['input_ids'],
        'mask': padded['attention_mask'],
        'pair': pair['input_ids'],
        'type_ids': pair.get('token_type_ids'),
        'decoded': [
            tokenizer.decode(tokenizer.encode(line), skip_special_tokens=True) for line in lines
        ],
        'saved': [AutoTokenizer.from_pretrained(saved).encode(line) for line in lines],
    }
print(json.dumps({'version': transformers.__version__, 'opened': opened}))
