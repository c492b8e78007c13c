"""What a finished job left behind, read back without TensorFlow.

A dataset is read by the plain readers of `tokcore.records`, and every reading checks that counts
are conserved: lines of the manifest, and those that filters added, = examples in the shards + lines
left out.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import google_crc32c

from tokcore.corpus.formats import all_reasons
from tokcore.records.tfrecord import parse_example, read_records
from tokcore.subword.text_encoder import SubwordTextEncoder


def manifest_of(folder: Path, name: str = 'tokbeam.json') -> dict:
    return json.loads((folder / name).read_bytes())


def strings_in(value: object) -> list[str]:
    """Returns all strings of a JSON value, names of fields included."""
    if isinstance(value, Mapping):
        return [each for pair in value.items() for part in pair for each in strings_in(part)]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [each for part in value for each in strings_in(part)]
    return [value] if isinstance(value, str) else []


def files_of(folder: Path) -> dict[str, bytes]:
    """Returns the bytes of all files below a folder that must not differ between equal runs."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob('*'))
        if path.is_file() and not path.name.endswith('tokbeam.run.json')
    }


def shards_and_vocabularies(folder: Path) -> dict[str, bytes]:
    """Returns the bytes of a dataset's own files: what a reader uses."""
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith('tokbeam.')
    }


def read_shards(folder: Path, split: str = 'train') -> list[list[dict[str, list[int]]]]:
    """Returns the examples of each shard of a split, in the order of the shards' names.

    Checks the manifest on the way: its shards are those that are there, with their size, checksum
    and number of examples, and examples + lines left out = lines read + those added.
    """
    manifest = manifest_of(folder)
    prefix = f'{manifest["options"]["name"]}-{split}-'
    listed = [each for each in manifest['files'] if each['name'].startswith(prefix)]
    assert [each['name'] for each in listed] == sorted(
        path.name for path in folder.iterdir() if path.name.startswith(prefix)
    )
    shards = []
    for each in listed:
        data = (folder / each['name']).read_bytes()
        assert len(data) == each['bytes']
        assert f'{google_crc32c.value(data):08x}' == each['crc32c']
        shards.append([parse_example(record) for record in read_records(data, each['name'])])
        assert len(shards[-1]) == each['rows']
    tallies = [each for each in manifest['lines'] if each['split'] == split]
    for lines in tallies:
        left_out = [*all_reasons(), 'empty', 'missing_side', 'beyond_max_examples']
        elsewhere = sum(lines.get(each, 0) for each in left_out)
        elsewhere += sum(lines.get('filtered', {}).values())
        assert lines['examples'] == lines['lines'] + lines.get('added', 0) - elsewhere
    assert sum(map(len, shards)) == sum(lines['examples'] for lines in tallies)
    return shards


def lines_of(folder: Path, split: str = 'train') -> dict[str, int]:
    """Returns the counts of a split's lines from the manifest."""
    [lines] = [each for each in manifest_of(folder)['lines'] if each['split'] == split]
    return lines


def encoders_of(folder: Path) -> dict[str, SubwordTextEncoder]:
    """Returns the encoder of each feature, from the vocabularies of a build."""
    encoders = {}
    for each in manifest_of(folder)['vocabularies']:
        encoder = SubwordTextEncoder.load(folder / each['name'])
        assert encoder.vocab_size == each['size']
        sides = ('inputs', 'targets') if each['side'] == 'both' else (each['side'],)
        encoders.update(dict.fromkeys(sides, encoder))
    return encoders


def decoded(
    examples: Sequence[Mapping[str, Sequence[int]]], encoders: Mapping[str, SubwordTextEncoder]
) -> list[tuple[str, ...]]:
    """Returns the texts of examples, inputs before targets, each of which must end with EOS."""
    texts = []
    for example in examples:
        sides = sorted(example)
        assert all(example[side][-1] == 1 for side in sides)
        texts.append(tuple(encoders[side].decode(example[side][:-1]) for side in sides))
    return texts


def texts_of(folder: Path, split: str = 'train') -> list[tuple[str, ...]]:
    """Returns all texts of a build's split in the order of its shards."""
    examples = [example for shard in read_shards(folder, split) for example in shard]
    return decoded(examples, encoders_of(folder))


def framed(payload: bytes) -> bytes:
    """Returns a TFRecord."""

    def masked(data: bytes) -> bytes:
        crc = google_crc32c.value(data)
        return struct.pack('<I', ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack('<Q', len(payload))
    return length + masked(length) + payload + masked(payload)


def records_of(path: Path) -> list[bytes]:
    """Returns the TFRecords of a file, each with what frames it."""
    return [framed(payload) for payload in read_records(path.read_bytes(), path.name)]
