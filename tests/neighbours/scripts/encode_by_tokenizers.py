"""Prints the ids that `tokenizers` gives lines. Arguments: a file of lines, and folders."""

import json
import sys

from tokenizers import Tokenizer


def opened(folder):
    tokenizer = Tokenizer.from_file(f'{folder}/tokenizer.json')
    # From 1.0.0rc4 on, only a compiled one encodes.
    return tokenizer.compile() if hasattr(tokenizer, 'compile') else tokenizer


lines = open(sys.argv[1], encoding='utf-8').read().splitlines()
print(
    json.dumps(
        {
            folder: [list(each.ids) for each in map(tokenizer.encode, lines)]
            for folder in sys.argv[2:]
            for tokenizer in [opened(folder)]
        }
    )
)
