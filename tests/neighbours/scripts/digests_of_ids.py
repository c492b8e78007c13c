"""Prints digests of the ids that `tokenizers` gives lines, a thousand at a time; and its version.

Arguments: a file of lines, and files of tokenizers.
"""

import hashlib
import json
import sys

import tokenizers

BATCH = 1_000


def digests(path, lines):
    tokenizer = tokenizers.Tokenizer.from_file(path)
    tokenizer.no_truncation()  # as transformers uses it
    tokenizer.no_padding()
    for first in range(0, len(lines), BATCH):
        encoded = tokenizer.encode_batch_fast(lines[first : first + BATCH])
        yield hashlib.sha256(json.dumps([each.ids for each in encoded]).encode()).hexdigest()


lines = open(sys.argv[1], encoding='utf-8', newline='\n').read().split('\n')
print(
    json.dumps(
        {
            'version': tokenizers.__version__,
            'digests': {path: [*digests(path, lines)] for path in sys.argv[2:]},
        }
    )
)
