"""Writes rows as datatrove does for Megatron. Arguments: JSON of rows by prefix, folder, bytes of an id."""

import json
import sys

from datatrove.pipeline.tokens.megatron_tokenizer import MegatronTokenizedFile

path, folder, token_size = sys.argv[1:]
ids = {}
with open(path) as given:
    for prefix, rows in json.load(given).items():
        file = MegatronTokenizedFile(folder, prefix, token_size=int(token_size))
        for row in rows:
            file.write(row)
        file.close()
        ids[prefix] = len(file)
print(json.dumps(ids))
