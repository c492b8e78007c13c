"""Datasets written by hand: shards of given ids, with a manifest, as `encode --scheme byte` has them."""

import json

import numpy as np

from tokcore.compiled.ragged_bytes import row_offsets
from tokcore.encoding.encoded_rows import EncodedSide
from tokcore.records.framing import frame_examples


def framed(examples):
    """Returns a shard of examples, dictionaries of lists by feature, and where each begins."""
    sides = [
        (
            name,
            EncodedSide(
                np.array([id_ for example in examples for id_ in example[name]], np.int32),
                row_offsets([len(example[name]) for example in examples]),
            ),
        )
        for name in examples[0]
    ]
    rows = frame_examples(sides, np.zeros(len(examples), np.uint64))
    return rows.records.tobytes(), row_offsets(rows.lengths).tolist()


def write_dataset(folder, shards, scheme='byte', template=None):
    """Writes shards of examples of split `train`; returns the folder."""
    folder.mkdir(exist_ok=True)
    files = []
    for number, examples in enumerate(shards):
        data = framed(examples)[0] if examples else b''
        name = f'd-train-{number:05d}-of-{len(shards):05d}'
        (folder / name).write_bytes(data)
        files.append({'name': name, 'rows': len(examples), 'bytes': len(data), 'crc32c': ''})
    paired = any('inputs' in example for examples in shards for example in examples)
    manifest = {
        'stage': 'encode',
        'options': {'scheme': scheme} | ({'template': template} if template else {}),
        'inputs': [{'role': 'tsv' if paired else 'text'}],
        'files': files,
        'vocabularies': [],
        'vocabularies_used': [],
    }
    (folder / 'tokbeam.json').write_text(json.dumps(manifest))
    return folder
