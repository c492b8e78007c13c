"""Writes rows as datatrove does for Megatron. Arguments: JSON of rows, folder, prefix, bytes of an id."""

import json
import sys

from datatrove.pipeline.tokens.megatron_tokenizer import MegatronTokenizedFile

path, folder, prefix, token_size = sys.argv[1:]
file = MegatronTokenizedFile(folder, prefix, token_size=int(token_size))
with open(path) as rows:
    for row in json.load(rows):
        file.write(row)
file.close()
print(json.dumps({'ids': len(file)}))
