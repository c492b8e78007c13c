"""How a result's files get their final names: all of them or, until the manifest is there, none."""

import dataclasses
from collections.abc import Sequence

import google_crc32c

from pipelines.artifacts.manifest import Manifest, OutputFile, RunRecord
from pipelines.artifacts.stage_output import StageOutput, StageTask
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.files.claims import Claim
from pipelines.files.folders import delete_if_empty
from pipelines.transforms.write_rejected import REJECTED_FOLDER

# In an attempt: the run record as it is before the first final name, the manifest, the run record.
_BEGUN, _WHOLE, _ENDED = '.tokbeam-begun', '.tokbeam-whole', '.tokbeam-ended'


def publish(
    task: StageTask,
    claim: Claim,
    attempt: Attempt,
    manifest: Manifest,
    run: RunRecord,
    rejected: Sequence[OutputFile] = (),
) -> None:
    """Gives an attempt's whole files their final names; the manifest comes last.

    Files of the result being replaced, or of a run that was killed here, are deleted if this
    result does not have them: readers take whatever matches `<name>-train*`.

    Args:
        task: the result, whose files are in the attempt under their names.
        claim: that on its output.
        attempt: holds the files.
        manifest: of the result.
        run: what is remembered of the run.
        rejected: files of rejected lines in the attempt, by their names there.

    Raises:
        InputError: the claim was lost, or something is in a file's place.
    """
    output, names = task.output, task.names
    earlier = output.earlier_manifest()
    before = output.earlier_files()
    # All is written before anything has its final name: the disk may be full.
    for name, data in [
        (_BEGUN, dataclasses.replace(run, files=tuple(sorted(before | set(names)))).to_json()),
        (_WHOLE, manifest.to_json()),
        (_ENDED, dataclasses.replace(run, files=tuple(sorted(names))).to_json()),
    ]:
        filesystem.write_bytes(filesystem.join(attempt.path, name), data)
    claim.check()
    # From here on the folder is not a result until the next manifest.
    attempt.delete_final(output.folder, output.manifest_name)
    attempt.publish_as(_BEGUN, output.folder, output.run_name)
    for name in sorted(before - set(names)):
        attempt.delete_final(output.folder, name)
    attempt.publish(names)
    _publish_rejected(output, attempt, [file.name for file in rejected])
    _delete_shared_rejected(output, attempt, earlier)
    claim.check()
    attempt.publish_as(_WHOLE, output.folder, output.manifest_name)
    attempt.publish_as(_ENDED, output.folder, output.run_name)


def publish_run(output: StageOutput, claim: Claim, run: RunRecord) -> None:
    """Replaces the record of the run whose result is there."""
    with output.attempt(claim) as attempt:
        filesystem.write_bytes(filesystem.join(attempt.path, _ENDED), run.to_json())
        attempt.publish_as(_ENDED, output.folder, output.run_name)


def _publish_rejected(output: StageOutput, attempt: Attempt, names: Sequence[str]) -> None:
    folder, base = filesystem.split_path(output.rejected_folder)
    kept = set()
    for source in names:
        name = f'{base}/{filesystem.split_path(source)[1]}'
        attempt.publish_as(source, folder, name)
        kept.add(filesystem.join(folder, *name.split('/')))
    for path in output.rejected_paths():
        if path not in kept:
            attempt.delete_final(folder, f'{base}/{filesystem.split_path(path)[1]}')
    delete_if_empty(output.rejected_folder)


def _delete_shared_rejected(output: StageOutput, attempt: Attempt, earlier: Manifest | None) -> None:
    """Deletes what a vocabulary of 6b30307 had in `rejected`, which all in a folder shared."""
    for file in earlier.rejected if earlier and output.file_name else ():
        path = filesystem.join(output.folder, *file.name.split('/'))
        is_shared = file.name.startswith(f'{REJECTED_FOLDER}/')
        if is_shared and filesystem.stored_size(path) == file.bytes:
            data = filesystem.read_bytes(path)
            if f'{google_crc32c.value(data):08x}' == file.crc32c:
                attempt.delete_final(output.folder, file.name)
                delete_if_empty(filesystem.split_path(path)[0])
