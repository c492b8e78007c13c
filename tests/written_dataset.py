"""Datasets written by hand: shards of given ids, with a manifest, as `encode --scheme byte` has them."""

import io
import json

import google_crc32c
import numpy as np

from pipelines.foreign_formats.parquet import write_parquet
from tokcore import open_dataset
from tokcore.corpus.order_keys import order_keys
from tokcore.encoding.encoder import EncodedSide
from tokcore.format_numbers import DATASET
from tokcore.kernels.bytes import row_offsets
from tokcore.reading.manifest import DatasetManifest
from tokcore.reading.record_index import Addresses, write_index
from tokcore.reading.shards import EncodedRows, open_shard, row_sizes
from tokcore.records.tfrecord import frame_examples


def opened(folder, shards, **options):
    """Returns the dataset that `write_dataset` writes."""
    return open_dataset(write_dataset(folder, shards, **options))


def listed(arrays):
    """Returns a batch, or a row, with lists in place of arrays."""
    return {name: array.tolist() for name, array in arrays.items()}


def lists_of(rows):
    """Returns each of some `EncodedRows`, with lists in place of arrays."""
    return [
        listed({name: rows.part(k, k + 1).ids[name] for name in rows.ids}) for k in range(len(rows))
    ]


def change_manifest(folder, change):
    """Changes the manifest of a folder in place; returns the folder."""
    path = folder / 'tokbeam.json'
    fields = json.loads(path.read_text())
    change(fields)
    path.write_text(json.dumps(fields))
    return folder


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


def write_order(folder, numbers):
    """Writes indexes by which the rows of `train` come in the order of these numbers in the corpus."""
    dataset = open_dataset(folder)
    keys = order_keys(0, np.argsort(numbers), 0)
    for shard in DatasetManifest.read(folder).splits['train']:
        rows = open_shard(shard, dataset.features, {}).read(0, shard.rows)[1]
        ids = [np.diff(rows.offsets[name]) for name in dataset.features]
        lengths = np.zeros(len(rows), np.int64)
        if not shard.is_parquet:
            lengths = np.concatenate([lengths[:0], *(each for each, _ in row_sizes(shard, ()))])
        addresses = Addresses(lengths, keys[: shard.rows], np.stack([*ids, ids[0]], axis=1))
        write_index(shard, len(ids), [addresses], not shard.is_parquet)
        keys = keys[shard.rows :]


def file_entry(name, rows, data):
    """Returns what a manifest has of a shard."""
    crc32c = f'{google_crc32c.value(data):08x}'
    return {'name': name, 'rows': rows, 'bytes': len(data), 'crc32c': crc32c}


def input_entry(role):
    """Returns what a manifest has of an input file."""
    return {'split': 'train', 'role': role, 'name': 'd', 'bytes': 9, 'crc32c': '00000000'}


def write_dataset(folder, shards, scheme='byte', template=None, output_format='tfrecord'):
    """Writes shards of examples of split `train`; returns the folder."""
    files = []
    for number, examples in enumerate(shards):
        name = f'd-train-{number:05d}-of-{len(shards):05d}'
        if output_format == 'parquet':
            features = sorted({feature for each in shards for row in each for feature in row})
            files.append((f'{name}.parquet', len(examples), parquet_shard(examples, features)))
        else:
            files.append((name, len(examples), framed(examples)[0] if examples else b''))
    paired = any('inputs' in example for examples in shards for example in examples)
    options = {'scheme': scheme, 'output_format': output_format}
    return write_files(
        folder, files, paired, options | ({'template': template} if template else {})
    )


def write_files(folder, files, paired=False, options=None):
    """Writes (name, rows, bytes) of shards and the manifest that tells of them; returns the folder."""
    folder.mkdir(exist_ok=True)
    for name, _, data in files:
        (folder / name).write_bytes(data)
    manifest = {
        'stage': 'encode',
        'format': DATASET,
        'options': {'scheme': 'byte'} | (options or {}),
        'inputs': [input_entry('tsv' if paired else 'text')],
        'files': [file_entry(*each) for each in files],
        'vocabularies': [],
        'end_of_document': [],
    }
    if manifest['options']['scheme'] == 'byte':
        end = {'id': 1, 'token': '<EOS>', 'in_template': 'template' not in manifest['options']}
        features = ['inputs', 'targets'] if paired else ['targets']
        manifest['end_of_document'] = [{'feature': name} | end for name in features]
    (folder / 'tokbeam.json').write_text(json.dumps(manifest))
    return folder


def parquet_shard(examples, features):
    """Returns examples as a shard in Parquet."""
    rows = EncodedRows(
        {
            name: np.array([id_ for each in examples for id_ in each[name]], np.int32)
            for name in features
        },
        {name: row_offsets([len(each[name]) for each in examples]) for name in features},
    )
    stream = io.BytesIO()
    write_parquet(stream, [rows], features)
    return stream.getvalue()
