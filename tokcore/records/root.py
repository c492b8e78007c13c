"""The root hash of a dataset: one number for its rows and for all that readers take from its manifest.

It is the SHA-256 of the manifest without what says nothing of the data. Readers see the manifest without
that too, so that they take nothing which the root does not cover. Two folders with the same root hold the
same training data. `docs/formats.md` defines it for other programs.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from tokcore.records.manifest import Manifest

ROOT_STAGES = ('build', 'encode')
"""The commands whose results have a root."""

_VERSION = 2

_UNCOVERED: Mapping[str, frozenset[str]] = {
    '': frozenset({'format', 'root', 'index', 'rejected', 'sample'}),
    'options': frozenset({'vocabularies'}),
    'inputs': frozenset({'name', 'stored_bytes', 'sha256'}),
    'vocabularies': frozenset({'min_count', 'tried', 'licence'}),
}
"""By field of a manifest the names in it that the root does not cover; '' has the fields themselves."""


def with_root(manifest: Manifest) -> Manifest:
    """Returns the manifest with its root, if it is of a dataset whose files all have a SHA-256."""
    if manifest.stage not in ROOT_STAGES or not all(file.sha256 for file in manifest.files):
        return manifest
    return dataclasses.replace(manifest, root=root_hash(manifest))


def root_hash(manifest: Manifest) -> str:
    """Returns the root of a dataset as 64 hexadecimal digits; `Manifest.root` is not looked at."""
    fields = covered(manifest.record()) | {'root': _VERSION}
    text = json.dumps(fields, sort_keys=True, separators=(',', ':'))
    return hashlib.sha256(text.encode()).hexdigest()


def covered(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the root covers of the JSON of a manifest, which may have any values."""
    return {
        name: _without(value, _UNCOVERED.get(name, frozenset()))
        for name, value in fields.items()
        if name not in _UNCOVERED['']
    }


def _without(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, list):
        return [_without(each, names) for each in value]
    if isinstance(value, dict):
        return {name: each for name, each in value.items() if name not in names}
    return value
