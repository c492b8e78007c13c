"""When a stage is already done, when it is refused, and how its files get their final names."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipelines import filesystem
from pipelines.filesystem import Attempt, StoredFile
from pipelines.manifest import (
    MANIFEST_NAME,
    RUN_NAME,
    InputText,
    Manifest,
    RunRecord,
    read_manifest,
    read_run,
)
from tokcore.errors import InputError
from tokcore.unicode_tables import UNICODE_VERSION


@dataclass(frozen=True)
class WantedInput:
    """An input as it is now; `checksum` reads it, which is only done if its time has changed."""

    split: str
    role: str
    stored: StoredFile
    checksum: Callable[[], InputText]


@dataclass(frozen=True)
class Wanted:
    """What a stage is asked for: everything that its bytes depend on."""

    stage: str
    options: dict[str, object]
    inputs: tuple[WantedInput, ...]


@dataclass(frozen=True)
class StageOutput:
    """Where a stage's files, its manifest and its run record go."""

    folder: str
    manifest_name: str = MANIFEST_NAME
    run_name: str = RUN_NAME
    file_name: str | None = None  # where the output is one file of a folder shared with others

    @property
    def manifest_path(self) -> str:
        return filesystem.join(self.folder, self.manifest_name)

    @property
    def run_path(self) -> str:
        return filesystem.join(self.folder, self.run_name)

    @property
    def _names(self) -> tuple[str, ...]:
        return (self.file_name, self.manifest_name, self.run_name) if self.file_name else ()

    def attempt(self) -> Attempt:
        """Returns a new attempt at this output, which sweeps what earlier ones left."""
        return Attempt(self.folder, self._names)

    def finished(
        self, wanted: Wanted, final_names: Sequence[str], overwrite: bool
    ) -> Manifest | None:
        """Returns the manifest if the stage is already done, None if it is to be run.

        Raises:
            InputError: the output holds another result, or files that no run of ours began.
        """
        if overwrite:
            return None
        manifest = read_manifest(self.manifest_path)
        run = read_run(self.run_path)
        if manifest is None:
            if run is None:
                self._refuse_foreign(final_names)
            return None
        self._refuse_other(manifest, wanted)
        if self._has_read_inputs(manifest, run, wanted) and run is not None:
            inputs = run_record(wanted.inputs, {}, ()).inputs
            seen = dataclasses.replace(run, inputs=inputs)
            filesystem.write_bytes(self.run_path, seen.to_json())
        for file in manifest.outputs:
            if filesystem.stored_size(filesystem.join(self.folder, file.name)) != file.bytes:
                raise InputError(
                    f'{filesystem.join(self.folder, file.name)} is missing or not of the size that '
                    f'{self.manifest_name} states; give --overwrite to make it again'
                )
        filesystem.sweep_attempts(self.folder, self._names)
        return manifest

    def _refuse_foreign(self, final_names: Sequence[str]) -> None:
        for name in final_names:
            path = filesystem.join(self.folder, name)
            if filesystem.exists(path):
                raise InputError(
                    f'{path} exists, but no {self.manifest_name} says what it is; '
                    'give another output, or --overwrite to replace it'
                )

    def _refuse_other(self, manifest: Manifest, wanted: Wanted) -> None:
        for what, before, now in [
            ('command', manifest.stage, wanted.stage),
            ('Unicode version', manifest.unicode, UNICODE_VERSION),
            *(
                (f'--{name.replace("_", "-")}', manifest.options.get(name), value)
                for name, value in _as_read(wanted.options).items()
            ),
            (
                'input files',
                [(each.split, each.role, each.name) for each in manifest.inputs],
                [(each.split, each.role, each.stored.name) for each in wanted.inputs],
            ),
        ]:
            if before != now:
                raise InputError(
                    f'{self.manifest_path} is of a run with another {what}: {_shown(before)} '
                    f'there, {_shown(now)} now; give another output, or --overwrite to replace it'
                )

    def _has_read_inputs(
        self, manifest: Manifest, run: RunRecord | None, wanted: Wanted
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
                    f'{now.stored.path} has changed since {self.manifest_path} was written: '
                    f'{before.bytes} bytes with CRC-32C {before.crc32c} there, {text.bytes} with '
                    f'{text.crc32c} now; give another output, or --overwrite to replace it'
                )
        return has_read

    def withdraw(self) -> None:
        """Deletes the manifest: from here on the folder is not a result until the next one."""
        if filesystem.exists(self.manifest_path):
            filesystem.delete(self.manifest_path)

    def publish(
        self,
        attempt: Attempt,
        names: Sequence[str],
        manifest: Manifest | None,
        run: RunRecord,
    ) -> None:
        """Gives an attempt's whole files their final names; the manifest comes last.

        Files of the result being replaced, or of a run that was killed here, are deleted if this
        result does not have them: readers take whatever matches `<name>-train*`.
        """
        before = self._earlier_files()
        run = dataclasses.replace(run, files=tuple(sorted(before | set(names))))
        self.withdraw()
        filesystem.write_bytes(self.run_path, run.to_json())
        for name in sorted(before - set(names)):
            path = filesystem.join(self.folder, name)
            if filesystem.exists(path):
                filesystem.delete(path)
        attempt.publish(names)
        if manifest is not None:
            filesystem.write_bytes(self.manifest_path, manifest.to_json())
            run = dataclasses.replace(run, files=tuple(sorted(names)))
            filesystem.write_bytes(self.run_path, run.to_json())

    def _earlier_files(self) -> set[str]:
        run = read_run(self.run_path)
        names = set(run.files if run else ())
        try:
            manifest = read_manifest(self.manifest_path)
        except InputError:
            # Only --overwrite comes here with a manifest that cannot be read; it is replaced.
            manifest = None
        if manifest:
            names |= {file.name for file in manifest.outputs}
        return names


def run_record(
    inputs: Sequence[WantedInput], seconds: dict[str, float], runner: Sequence[str]
) -> RunRecord:
    """Returns what is remembered of a run beside its manifest."""
    return RunRecord(
        tuple((each.stored.path, each.stored.size, each.stored.modified) for each in inputs),
        seconds={name: round(value, 3) for name, value in seconds.items()},
        runner=tuple(runner),
    )


def _as_read(options: dict[str, object]) -> dict[str, object]:
    """Options as JSON gives them back: lists for tuples."""
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in options.items()
    }


def _shown(value: object) -> str:
    if dataclasses.is_dataclass(value):
        return str(dataclasses.asdict(value))
    return 'none' if value is None else str(value)
