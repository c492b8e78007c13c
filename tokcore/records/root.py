"""The root hash of a dataset: one number for its rows and for all that they were made of.

A Merkle tree (RFC 6962, section 2.1, with SHA-256) over a leaf for each thing that the bytes of the
shards depend on, and for each shard. Two folders with the same root hold the same training data. No
path, no time, nothing of the run and no name of an input is in it, but for files of the Hugging Face Hub, whose
names have the commit. `docs/formats.md` defines it for
other programs.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Sequence

from tokcore.records.manifest import Manifest, OutputFile, VocabularyRecord

ROOT_STAGES = ('build', 'encode')
"""The commands whose results have a root."""

_VERSION = 1

_HUB = 'hf://'

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(',', ':'))

_NAMES_FILES = 'vocabularies'
"""The option of `encode` that names files; their content is in leaves of their own."""


def with_root(manifest: Manifest) -> Manifest:
    """Returns the manifest with its root, if it is of a dataset whose files all have a SHA-256."""
    if manifest.stage not in ROOT_STAGES or not all(file.sha256 for file in manifest.files):
        return manifest
    return dataclasses.replace(manifest, root=root_hash(manifest))


def root_hash(manifest: Manifest) -> str:
    """Returns the root of a dataset as 64 hexadecimal digits; `Manifest.root` is not looked at.

    Raises:
        ValueError: a file of the dataset has no SHA-256.
    """
    return merkle_root(list(_leaves(manifest))).hex()


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """Returns the Merkle tree hash of RFC 6962, section 2.1, with SHA-256."""
    if not leaves:
        return hashlib.sha256().digest()
    if len(leaves) == 1:
        return hashlib.sha256(b'\0' + leaves[0]).digest()
    left = 1 << ((len(leaves) - 1).bit_length() - 1)
    return hashlib.sha256(b'\1' + merkle_root(leaves[:left]) + merkle_root(leaves[left:])).digest()


def _leaves(manifest: Manifest) -> Iterator[bytes]:
    yield _leaf('tokbeam', _VERSION)
    yield _leaf('unicode', manifest.unicode)
    for part, rule in dataclasses.asdict(manifest.rules).items():
        yield _leaf('rule', part, rule)
    for name, value in sorted(manifest.options.items()):
        if name != _NAMES_FILES:
            yield _leaf('option', name, value)
    for text in manifest.inputs:
        yield _leaf('input', text.split, text.role, text.bytes, text.crc32c)
        if text.name.startswith(_HUB):
            yield _leaf('origin', text.name)
    for vocabulary in manifest.vocabularies:
        yield _leaf('vocabulary', vocabulary.side, vocabulary.scheme, *_content(vocabulary))
        if vocabulary.origin is not None:
            yield _leaf('origin', vocabulary.origin)
        for file in vocabulary.beside:
            yield _leaf('beside', vocabulary.side, *_content(file))
    for end in manifest.end_of_document:
        yield _leaf('end', end.feature, end.id, end.token, end.in_template)
    for tally in (*manifest.lines, *manifest.datasets):
        yield _leaf('lines', tally.record())
    for file in manifest.files:
        if not file.sha256:
            raise ValueError(f'{file.name} has no SHA-256 in the manifest')
        yield _leaf('shard', file.name, file.rows, *_content(file))


def _content(file: OutputFile | VocabularyRecord) -> tuple[object, ...]:
    return file.bytes, file.crc32c, file.sha256


def _leaf(*values: object) -> bytes:
    """The JSON of an array: keys sorted, no white space, only ASCII."""
    return _ENCODER.encode(values).encode()
