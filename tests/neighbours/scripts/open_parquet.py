"""Prints the rows of Parquet shards as `datasets` opens them. Arguments: the shards."""

import json
import sys

import datasets

rows = datasets.load_dataset('parquet', data_files=sys.argv[1:], split='train')
print(
    json.dumps(
        {
            'version': datasets.__version__,
            'rows': [dict(row) for row in rows],
            'batch': rows.with_format('numpy')[:2]['targets'][0].tolist(),
        }
    )
)
