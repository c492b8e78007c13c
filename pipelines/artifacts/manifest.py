"""Reads the manifest that ends a stage, and what differs between equal runs.

Paths, file times and timings are not in the manifest (`tokcore.records.manifest`) but in
`tokbeam.run.json`, which only saves reading an unchanged input again.
"""

import json
import os
from dataclasses import dataclass, field

from pipelines.files import filesystem
from pipelines.options.commands import typed_keys
from tokcore.errors import InputError
from tokcore.options import flag
from tokcore.records.manifest import MANIFEST_NAME, ROOT_STAGES, Manifest, json_bytes

RUN_NAME = 'tokbeam.run.json'


@dataclass(frozen=True)
class RunRecord:
    """What a run saw, wrote and took: `inputs` in the manifest's order, `job` as a job file.

    It is written before the first file gets its final name, so `files` also names what a killed run
    may have left. `requests` are those to object stores by the process that writes this, by their
    kind; without requests the field is left out. So is `previous`, the root of the dataset that was updated,
    if none was.
    """

    inputs: tuple[tuple[str, int, float], ...]  # (path, stored size, modified)
    files: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    runner: tuple[str, ...] = ()
    job: str = ''
    requests: dict[str, int] = field(default_factory=dict)
    previous: str = ''

    def to_json(self) -> bytes:
        optional = ('requests', 'previous')
        return json_bytes({k: v for k, v in vars(self).items() if v or k not in optional})

    @classmethod
    def from_json(cls, data: bytes) -> 'RunRecord | None':
        """Returns None for bytes that are not such a record: it is only a short cut."""
        try:
            fields = json.loads(data)
            return cls(
                inputs=tuple((str(p), int(s), float(m)) for p, s, m in fields['inputs']),
                files=tuple(map(str, fields['files'])),
                seconds=dict(fields['seconds']),
                runner=tuple(fields['runner']),
                job=str(fields.get('job', '')),
                requests=dict(fields.get('requests', {})),
                previous=str(fields.get('previous', '')),
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            return None


def shown_key(key: str) -> str:
    """Returns how a reader finds a key of a manifest's options: as it is typed, if it can be typed."""
    return flag(key) if key in typed_keys() else key


def read_manifest(path: str) -> Manifest | None:
    """Returns the manifest at a path, or None if there is no file."""
    data = filesystem.read_if_there(path)
    return None if data is None else Manifest.from_json(data, path)


def read_dataset_manifest(folder: str) -> Manifest:
    """Returns the manifest of a dataset; raises InputError if the folder is not a whole one."""
    manifest = read_manifest(os.path.join(folder, MANIFEST_NAME))
    if manifest is None or manifest.stage not in ROOT_STAGES:
        raise InputError(
            f'{folder} is not a whole dataset; give a folder that `tokbeam build` or `tokbeam encode` '
            'has finished'
        )
    return manifest


def read_run(path: str) -> RunRecord | None:
    data = filesystem.read_if_there(path)
    return None if data is None else RunRecord.from_json(data)
