"""Results without what is recorded since there are schemes, to be compared with earlier ones.

A count file that records more has other bytes, so it is compared by its content, and what manifests
say of its size and checksum is left out too.
"""

import io
import json
import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as parquet

_COUNTS = re.compile(r'(.*/)?counts-\d{5}-of-\d{5}\.parquet')
_OF_MANIFEST = ('normalizer', 'pre_tokenizer')
_OF_VOCABULARY = (*_OF_MANIFEST, 'scheme', 'special_ids')


def without_new_records(name: str, data: bytes) -> bytes:
    """Returns what is compared of a file: a manifest's other fields, a table's content, or all.

    Args:
        name: of the file, below some folder.
        data: its bytes.
    """
    if name.endswith('tokbeam.json'):
        return _manifest_without(json.loads(data))
    if _COUNTS.fullmatch(name):
        return _content(data)
    return data


def all_without_new_records(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The same of files by their names."""
    return {name: without_new_records(name, data) for name, data in files.items()}


def _manifest_without(manifest: dict) -> bytes:
    for name in _OF_MANIFEST:
        manifest.pop(name, None)
    manifest['options'].pop('scheme', None)
    for vocabulary in (*manifest['vocabularies'], *manifest['vocabularies_used']):
        for name in _OF_VOCABULARY:
            vocabulary.pop(name, None)
    for text in manifest['inputs']:
        if text['role'] == 'counts':
            for name in ('bytes', 'crc32c', *_OF_MANIFEST):
                text.pop(name, None)
    for file in manifest['files']:
        if _COUNTS.fullmatch(file['name']):
            del file['bytes'], file['crc32c']
    return json.dumps(manifest, indent=1, sort_keys=True).encode()


def _content(data: bytes) -> bytes:
    table = parquet.read_table(io.BytesIO(data)).replace_schema_metadata(None).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()
