"""The folders of runs in a work folder: which plan each is of, and when it is deleted.

The fingerprint of what a plan says is its folder's name, so that a folder of another make is known.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.files import filesystem
from pipelines.files.claims import CLAIM_NAME, sweep_claim
from pipelines.files.folders import delete_known, names_below
from pipelines.files.work_folder import delete_own_if_empty
from tokcore.errors import InputError
from tokcore.shuffle.run_file import recorded_fingerprint

PLAN_NAME = 'plan.json'
FOLDER_PREFIX = 'shuffle-'
_RUN_PREFIX = 'run-'

_FOLDER = re.compile(rf'{FOLDER_PREFIX}[0-9a-f]{{32}}')
_RUN = re.compile(rf'{_RUN_PREFIX}\d{{6,}}-\d{{4,}}')
# Of 6b30307 a half file has the whole one's name in its own.
_HALF = re.compile(rf'\.tokbeam-attempt-((plan\.json|{_RUN.pattern})-)?[0-9a-f]+')
_MADE = re.compile(f'{_RUN.pattern}|{_HALF.pattern}')


def run_name(run: int, part: int) -> str:
    return f'{_RUN_PREFIX}{run:06d}-{part:04d}'


def sweep_shuffles(work: str, output: str, keep: str | None = None) -> None:
    """Deletes the folders of runs for an output, but for one, and a work folder left empty."""
    for plan in list(stored_plans(work)):
        if plan.folder != keep and plan.content.get('output') == output:
            _delete_shuffle(plan.folder)
    _sweep_unplanned(work)
    delete_own_if_empty(work)


def sweep_unbegun(work: str, output: str) -> None:
    """Deletes the folders for an output that have no finished run."""
    for plan in list(stored_plans(work)):
        if plan.content.get('output') == output:
            if not any(map(_RUN.fullmatch, names_below(plan.folder))):
                _delete_shuffle(plan.folder)
    delete_own_if_empty(work)


def _sweep_unplanned(work: str) -> None:
    """Deletes folders of ours that have no plan.

    A run was killed when it had its claim at most, or one of 6b30307 while it deleted its runs, of
    which each tells the fingerprint that is the folder's name.
    """
    if not filesystem.is_local(work) or not os.path.isdir(work):
        return
    for name in filter(_FOLDER.fullmatch, os.listdir(work)):
        folder = filesystem.join(work, name)
        if os.path.islink(folder) or not os.path.isdir(folder):
            continue
        left = set(os.listdir(folder))
        runs = left - {CLAIM_NAME}
        if all(_is_run_of(_fingerprint_in(name), filesystem.join(folder, run)) for run in runs):
            if CLAIM_NAME in left:
                sweep_claim(filesystem.join(folder, CLAIM_NAME))
            delete_known(folder, runs.__contains__)


def _is_run_of(fingerprint: bytes, path: str) -> bool:
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    try:
        with filesystem.open_binary(path) as stream:
            return recorded_fingerprint(stream, os.path.getsize(path)) == fingerprint
    except (InputError, OSError):
        return False  # it may be read by nobody, or be gone by now


def _fingerprint_in(name: str) -> bytes:
    return bytes.fromhex(name.removeprefix(FOLDER_PREFIX))


def _delete_shuffle(folder: str) -> None:
    """Deletes a folder of runs: what this tool makes there, and the plan when all else is gone."""
    delete_known(folder, _MADE.fullmatch)
    delete_known(folder, {PLAN_NAME, CLAIM_NAME}.__contains__)


@dataclass(frozen=True)
class StoredPlan:
    """A plan as it lies in its folder, whose name is the fingerprint of what the plan says."""

    folder: str
    fingerprint: bytes
    content: dict


def stored_plans(work: str) -> Iterator[StoredPlan]:
    """The folders of runs in a work folder, with what their plans say.

    A folder counts only if its plan has the fingerprint that is its name: nobody else's has.
    """
    if not filesystem.is_folder(work):
        return
    for file in filesystem.list_folder(work):
        folder, _, name = file.name.partition('/')
        if not _FOLDER.fullmatch(folder) or name != PLAN_NAME:
            continue
        try:
            content = json.loads(filesystem.read_bytes(file.path))
        except (ValueError, RecursionError):
            continue
        if not isinstance(content, dict):
            continue
        fingerprint = _fingerprint_in(folder)
        # That of 6b30307 left out the output.
        without_output = {name: value for name, value in content.items() if name != 'output'}
        if fingerprint in (fingerprint_of(content), fingerprint_of(without_output)):
            yield StoredPlan(filesystem.join(work, folder), fingerprint, content)


def fingerprint_of(content: dict) -> bytes:
    return hashlib.sha256(plan_json(content)).digest()[:16]


def plan_json(content: object) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


def delete_half_files(folder: str) -> None:
    """Deletes what a killed run had begun to write and not finished."""
    delete_known(folder, _HALF.fullmatch)
