"""Reads files of ids as Megatron does. Arguments: their prefixes."""

import json
import sys

from megatron.core.datasets.indexed_dataset import IndexedDataset


def told(prefix):
    dataset = IndexedDataset(prefix, multimodal=False, mmap=True)
    rows = [dataset[number] for number in range(len(dataset))]
    return {
        'rows': [row.tolist() for row in rows],
        'dtypes': sorted({str(row.dtype) for row in rows}),
        'lengths': dataset.sequence_lengths.tolist(),
        'documents': dataset.document_indices.tolist(),
    }


print(json.dumps({prefix: told(prefix) for prefix in sys.argv[1:]}))
