"""When a result is already there, and when it is refused to make another in its place."""

import dataclasses
import os
from collections.abc import Sequence

from pipelines.artifacts.manifest import Manifest, RunRecord, read_manifest, read_run
from pipelines.artifacts.publishing import publish_run
from pipelines.artifacts.recorded_rules import earlier_rules
from pipelines.artifacts.replaced_inputs import refuse_replaced
from pipelines.artifacts.stage_output import StageKey, StageOutput, StageTask
from pipelines.files import filesystem
from pipelines.files.attempts import sweep_attempts
from pipelines.files.claims import Claim
from tokcore.encoding.token_rules import Component
from tokcore.errors import InputError
from tokcore.options.option_fields import flag
from tokcore.schemes import DEFAULT_SCHEME
from tokcore.text.unicode_tables import UNICODE_VERSION


def up_to_date(
    task: StageTask, claim: Claim, overwrite: bool, given: Sequence[str] = ()
) -> Manifest | None:
    """Returns the manifest if a result is already there, None if it is to be made.

    Args:
        task: the result.
        claim: that on its output.
        overwrite: whether another result may be replaced.
        given: paths that are read beside the inputs.

    Raises:
        InputError: the output holds another result, or files that no run of ours began; or an
            input would be replaced.
    """
    output, wanted = task.output, task.key
    manifest = None if overwrite else read_manifest(output.manifest_path)
    run = read_run(output.run_path)
    if manifest is None:
        claim.require()
        read = [*(each.stored.path for each in wanted.inputs), *given]
        names = {*task.names, *output.earlier_files(), output.manifest_name, output.run_name}
        replaced = [filesystem.join(output.folder, name) for name in sorted(names)]
        refuse_replaced(read, [*replaced, *output.rejected_paths()])
        _refuse_folders(output, task.names)
        if run is None and not overwrite:
            _refuse_foreign(output, task.names)
        return None
    _refuse_other(output, manifest, wanted)
    has_read = _has_read_inputs(output, manifest, run, wanted)
    for file in manifest.outputs:
        if filesystem.stored_size(filesystem.join(output.folder, file.name)) != file.bytes:
            raise InputError(
                f'{filesystem.join(output.folder, file.name)} is missing or not of the size that '
                f'{output.manifest_name} states; give --overwrite to make it again'
            )
    if not claim.is_denied:
        sweep_attempts(output.folder, output.names, claim.folder)
        if has_read and run is not None:
            inputs = wanted.run_record({}, ()).inputs
            publish_run(output, claim, dataclasses.replace(run, inputs=inputs))
    return manifest


def _refuse_folders(output: StageOutput, final_names: Sequence[str]) -> None:
    for name in (*final_names, output.manifest_name, output.run_name):
        path = filesystem.join(output.folder, name)
        if filesystem.is_local(path) and os.path.isdir(path):
            raise InputError(f'{path} is a folder where a file of the result goes; move it away')


def _refuse_foreign(output: StageOutput, final_names: Sequence[str]) -> None:
    for name in final_names:
        path = filesystem.join(output.folder, name)
        if filesystem.exists(path):
            raise InputError(
                f'{path} exists, but no {output.manifest_name} says what it is; '
                'give another output, or --overwrite to replace it'
            )
    for path in output.rejected_paths():
        if filesystem.exists(path):
            raise InputError(
                f'{path} holds the rejected lines of another run; move it away, or give '
                '--overwrite to replace it'
            )


def _refuse_other(output: StageOutput, manifest: Manifest, wanted: StageKey) -> None:
    options = _as_read(wanted.options)
    there = _options_there(manifest)
    rules = manifest.rules or earlier_rules()
    for what, before, now in [
        ('command', manifest.stage, wanted.stage),
        ('Unicode version', manifest.unicode, UNICODE_VERSION),
        *(
            (flag(name), there.get(name), options.get(name))
            for name in {**options, **there}
        ),
        ('normalizer', rules.normalizer, wanted.rules.normalizer),
        ('pre-tokenizer', rules.pre_tokenizer, wanted.rules.pre_tokenizer),
        (
            'input files',
            [(each.split, each.role, each.name) for each in manifest.inputs],
            [(each.split, each.role, each.stored.name) for each in wanted.inputs],
        ),
    ]:
        if before != now:
            raise InputError(
                f'{output.manifest_path} is of a run with another {what}: {_shown(before)} '
                f'there, {_shown(now)} now; give another output, or --overwrite to replace it'
            )


def _has_read_inputs(
    output: StageOutput, manifest: Manifest, run: RunRecord | None, wanted: StageKey
) -> bool:
    """Refuses changed inputs; tells whether their state was not enough to know."""
    has_read = False
    seen = run.inputs if run and len(run.inputs) == len(wanted.inputs) else None
    for number, (before, now) in enumerate(zip(manifest.inputs, wanted.inputs, strict=True)):
        if seen and seen[number][1:] == (now.stored.size, now.stored.modified):
            continue
        has_read = True
        text = now.checksum()
        if text != before:
            raise InputError(
                f'{now.stored.path} has changed since {output.manifest_path} was written: '
                f'{before.bytes} bytes with CRC-32C {before.crc32c} there, {text.bytes} with '
                f'{text.crc32c} now; give another output, or --overwrite to replace it'
            )
    return has_read


def _options_there(manifest: Manifest) -> dict[str, object]:
    """A manifest's options; before any recorded it, the scheme of what has a vocabulary was one."""
    if manifest.rules is None and manifest.stage != 'count':
        return {'scheme': DEFAULT_SCHEME, **manifest.options}
    return manifest.options


def _as_read(options: dict[str, object]) -> dict[str, object]:
    """Options as JSON gives them back: lists for tuples."""
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in options.items()
    }


def _shown(value: object) -> str:
    if isinstance(value, Component):
        return str(value)
    if dataclasses.is_dataclass(value):
        return str(dataclasses.asdict(value))
    return 'none' if value is None else str(value)
