"""The folders of runs in a work folder: which plan each is of, and when it is deleted.

The fingerprint of what a plan says is its folder's name, so that a folder of another make is known.
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.files import filesystem
from pipelines.files.claims import CLAIM_NAME, Claim, sweep_claim
from pipelines.files.folders import delete_if_empty, delete_known, names_below
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

_PLAN_BEGINNING = b'{"block_bytes": '
"""Of every plan: its names are sorted."""


def run_name(run: int, part: int) -> str:
    return f'{_RUN_PREFIX}{run:06d}-{part:04d}'


def sweep_shuffles(work: str, output: str, keep: str | None = None) -> None:
    """Deletes the folders of runs for an output, but for one, and a work folder left empty."""
    for plan in list(stored_plans(work)):
        if plan.folder != keep and plan.content.get('output') == output:
            _delete_shuffle(plan.folder)
    _sweep_unplanned(work, output, keep)
    delete_own_if_empty(work)


def sweep_unbegun(work: str, output: str) -> None:
    """Deletes the folders for an output that have no finished run."""
    for plan in list(stored_plans(work)):
        if plan.content.get('output') == output:
            if not any(map(_RUN.fullmatch, names_below(plan.folder))):
                _delete_shuffle(plan.folder)
    delete_own_if_empty(work)


def _sweep_unplanned(work: str, output: str, keep: str | None) -> None:
    """Deletes what is ours in folders of runs of which no plan tells, but for one.

    Either there is none, since a run was killed when it had its claim at most, or one of 6b30307 while
    it deleted its runs; or it was damaged, and no rerun goes on with it.
    """
    if not filesystem.is_local(work) or not os.path.isdir(work):
        return
    planned = {keep, *(plan.folder for plan in stored_plans(work))}
    for name in filter(_FOLDER.fullmatch, os.listdir(work)):
        folder = filesystem.join(work, name)
        if folder in planned or os.path.islink(folder) or not os.path.isdir(folder):
            continue
        own = _own_files(folder, output)
        if own:
            # Another run may be about to write its plan there.
            with contextlib.suppress(InputError), Claim(_claim_of(folder), folder) as claim:
                claim.require()
                delete_known(folder, own.__contains__)
        elif CLAIM_NAME in os.listdir(folder):
            sweep_claim(_claim_of(folder))
        delete_if_empty(folder)


def _own_files(folder: str, output: str) -> set[str]:
    """Returns the names of files in a folder without a sound plan that are surely the tool's.

    A run tells the fingerprint that is the folder's name, and a half file is known by its own name.
    """
    fingerprint = _fingerprint_in(os.path.basename(folder))
    names = {
        name
        for name in os.listdir(folder)
        if os.path.isfile(filesystem.join(folder, name))
        and not os.path.islink(filesystem.join(folder, name))
    }
    own = {name for name in names if _is_run_of(fingerprint, filesystem.join(folder, name))}
    if PLAN_NAME in names and _is_damaged_plan(filesystem.join(folder, PLAN_NAME), output):
        own.add(PLAN_NAME)
    return own | set(filter(_HALF.fullmatch, names))


def _is_damaged_plan(path: str, output: str) -> bool:
    """Tells whether a file that is no sound plan was one, of this output as far as it tells."""
    try:
        data = filesystem.read_bytes(path)
    except InputError:
        return False  # it may be read by nobody, or be gone by now
    if not data.strip(b'\0'):
        return True  # what a crash of the system leaves of a new file
    if not data.startswith(_PLAN_BEGINNING):
        return _PLAN_BEGINNING.startswith(data)
    try:
        return json.loads(data).get('output') == output
    except (ValueError, RecursionError):
        return True


def _claim_of(folder: str) -> str:
    return filesystem.join(folder, CLAIM_NAME)


def _is_run_of(fingerprint: bytes, path: str) -> bool:
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
