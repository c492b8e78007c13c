"""When a stage is already done, when it is refused, and how its files get their final names."""

import dataclasses
import hashlib
import logging
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import google_crc32c

from pipelines.artifacts.manifest import (
    MANIFEST_NAME,
    RUN_NAME,
    InputText,
    Manifest,
    OutputFile,
    RunRecord,
    read_manifest,
    read_run,
)
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt, sweep_attempts
from pipelines.files.claims import CLAIM_NAME, Claim
from pipelines.files.filesystem import StoredFile
from pipelines.options.secrets import without_secrets
from pipelines.transforms.write_rejected import REJECTED_FOLDER
from tokcore.corpus.block_stats import REASONS
from tokcore.errors import InputError
from tokcore.text.unicode_tables import UNICODE_VERSION

_LOGGER = logging.getLogger(__name__)

SPLITS = ('train', 'dev', 'test')

_DATASET_FILE = re.compile(
    r'.+-(train|dev|test)-\d{5,}-of-\d{5,}|vocab\..+\.\d+\.subwords(\.inputs|\.targets)?', re.DOTALL
)
# In an attempt: the run record as it is before the first final name, the manifest, the run record.
_BEGUN, _WHOLE, _ENDED = '.tokbeam-begun', '.tokbeam-whole', '.tokbeam-ended'

_COUNTS_FILE = re.compile(r'counts-\d{5}-of-\d{5}\.parquet')


@dataclass(frozen=True)
class InputState:
    """An input as it is now; `checksum` reads it, which is only done if its time has changed."""

    split: str
    role: str
    stored: StoredFile
    checksum: Callable[[], InputText]


@dataclass(frozen=True)
class StageKey:
    """What a stage is asked for: everything that its bytes depend on."""

    stage: str
    options: dict[str, object]
    inputs: tuple[InputState, ...]


@dataclass(frozen=True)
class StageOutput:
    """Where a stage's files, its manifest and its run record go."""

    folder: str
    rejected_folder: str
    """Where lines go that were left out: a folder of this output's own."""
    made: re.Pattern
    """The names of files that this kind of stage makes; what else a record names is left alone."""
    manifest_name: str = MANIFEST_NAME
    run_name: str = RUN_NAME
    file_name: str | None = None  # where the output is one file of a folder shared with others

    @classmethod
    def of_dataset(cls, folder: str) -> 'StageOutput':
        """A dataset's folder: shards, and vocabularies of a build."""
        return cls(folder, filesystem.join(folder, REJECTED_FOLDER), _DATASET_FILE)

    @classmethod
    def of_counts(cls, folder: str) -> 'StageOutput':
        """A COUNTS folder; its rejected lines are beside it, in `COUNTS.rejected`."""
        return cls(folder, f'{folder}.{REJECTED_FOLDER}', _COUNTS_FILE)

    @classmethod
    def of_vocabulary(cls, path: str) -> 'StageOutput':
        """A vocabulary written alone, with `FILE.tokbeam.json` and `FILE.rejected` beside it."""
        folder, name = filesystem.split_path(path)
        return cls(
            folder,
            f'{path}.{REJECTED_FOLDER}',
            re.compile(re.escape(name)),
            f'{name}.tokbeam.json',
            f'{name}.tokbeam.run.json',
            name,
        )

    @property
    def manifest_path(self) -> str:
        return filesystem.join(self.folder, self.manifest_name)

    @property
    def run_path(self) -> str:
        return filesystem.join(self.folder, self.run_name)

    @property
    def path(self) -> str:
        """What the user gave as `--output`."""
        return filesystem.join(self.folder, self.file_name) if self.file_name else self.folder

    @property
    def _names(self) -> tuple[str, ...]:
        return (self.file_name, self.manifest_name, self.run_name) if self.file_name else ()

    def claim(self) -> Claim:
        """Returns the claim to be held from the first look at this output to the last."""
        name = CLAIM_NAME
        if self.file_name:
            # Not the name itself, to which the filesystem may give no more room.
            digest = hashlib.sha256(os.fsencode(self.file_name)).hexdigest()[:16]
            name = f'{CLAIM_NAME}-{digest}'
        return Claim(filesystem.join(self.folder, name), self.path)

    def attempt(self) -> Attempt:
        """Returns a new attempt at this output, which sweeps what earlier ones left."""
        return Attempt(self.folder, self._names)

    def up_to_date(
        self,
        claim: Claim,
        wanted: StageKey,
        final_names: Sequence[str],
        overwrite: bool,
        given: Sequence[str] = (),
    ) -> Manifest | None:
        """Returns the manifest if the stage is already done, None if it is to be run.

        Args:
            claim: that on this output.
            wanted: what is asked for.
            final_names: of the files that the stage will make.
            overwrite: whether another result may be replaced.
            given: paths that are read beside the inputs.

        Raises:
            InputError: the output holds another result, or files that no run of ours began; or an
                input would be replaced.
        """
        manifest = None if overwrite else read_manifest(self.manifest_path)
        run = read_run(self.run_path)
        if manifest is None:
            claim.require()
            read = [*(each.stored.path for each in wanted.inputs), *given]
            self._refuse_inputs(read, final_names)
            self._refuse_folders(final_names)
            if run is None and not overwrite:
                self._refuse_foreign(final_names)
            return None
        self._refuse_other(manifest, wanted)
        has_read = self._has_read_inputs(manifest, run, wanted)
        for file in manifest.outputs:
            if filesystem.stored_size(filesystem.join(self.folder, file.name)) != file.bytes:
                raise InputError(
                    f'{filesystem.join(self.folder, file.name)} is missing or not of the size that '
                    f'{self.manifest_name} states; give --overwrite to make it again'
                )
        if not claim.is_denied:
            sweep_attempts(self.folder, self._names)
            if has_read and run is not None:
                inputs = run_record(wanted.inputs, {}, ()).inputs
                with self.attempt() as attempt:
                    data = dataclasses.replace(run, inputs=inputs).to_json()
                    filesystem.write_bytes(filesystem.join(attempt.path, _ENDED), data)
                    attempt.publish_as(_ENDED, self.folder, self.run_name)
        return manifest

    def _refuse_folders(self, final_names: Sequence[str]) -> None:
        for name in (*final_names, self.manifest_name, self.run_name):
            path = filesystem.join(self.folder, name)
            if filesystem.is_local(path) and os.path.isdir(path):
                raise InputError(f'{path} is a folder where a file of the result goes; move it away')

    def _refuse_inputs(self, paths: Sequence[str], final_names: Sequence[str]) -> None:
        """Refuses inputs that the result, or what it does away with, would replace."""
        if not filesystem.is_local(self.folder):
            return
        replaced = {*final_names, *self._earlier_files(), self.manifest_name, self.run_name}
        folder = os.path.realpath(self.folder)
        for path in paths:
            if filesystem.is_local(path):
                above, name = os.path.split(os.path.realpath(path))
                if above == folder and name in replaced:
                    raise InputError(
                        f'{path} is read by this run and would be replaced by its result; give '
                        'another --output'
                    )

    def _refuse_foreign(self, final_names: Sequence[str]) -> None:
        for name in final_names:
            path = filesystem.join(self.folder, name)
            if filesystem.exists(path):
                raise InputError(
                    f'{path} exists, but no {self.manifest_name} says what it is; '
                    'give another output, or --overwrite to replace it'
                )
        for path in self._rejected_paths():
            if filesystem.exists(path):
                raise InputError(
                    f'{path} holds the rejected lines of another run; move it away, or give '
                    '--overwrite to replace it'
                )

    def _rejected_paths(self) -> list[str]:
        """All files of rejected lines that a result can have."""
        return [
            filesystem.join(self.rejected_folder, f'{split}.{reason}.jsonl')
            for split in SPLITS
            for reason in REASONS
        ]

    def _refuse_other(self, manifest: Manifest, wanted: StageKey) -> None:
        options = _as_read(wanted.options)
        for what, before, now in [
            ('command', manifest.stage, wanted.stage),
            ('Unicode version', manifest.unicode, UNICODE_VERSION),
            *(
                (f'--{name.replace("_", "-")}', manifest.options.get(name), options.get(name))
                for name in {**options, **manifest.options}
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
        self, manifest: Manifest, run: RunRecord | None, wanted: StageKey
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

    def publish(
        self,
        claim: Claim,
        attempt: Attempt,
        names: Sequence[str],
        manifest: Manifest,
        run: RunRecord,
        rejected: Sequence[OutputFile] = (),
    ) -> None:
        """Gives an attempt's whole files their final names; the manifest comes last.

        Files of the result being replaced, or of a run that was killed here, are deleted if this
        result does not have them: readers take whatever matches `<name>-train*`.

        Args:
            claim: that on this output.
            attempt: holds the files.
            names: of the files, there and in the output's folder.
            manifest: of the result.
            run: what is remembered of the run.
            rejected: files of rejected lines in the attempt, by their names there.

        Raises:
            InputError: the claim was lost, or something is in a file's place.
        """
        earlier = self._earlier_manifest()
        before = self._earlier_files()
        # All is written before anything has its final name: the disk may be full.
        for name, data in [
            (_BEGUN, dataclasses.replace(run, files=tuple(sorted(before | set(names)))).to_json()),
            (_WHOLE, manifest.to_json()),
            (_ENDED, dataclasses.replace(run, files=tuple(sorted(names))).to_json()),
        ]:
            filesystem.write_bytes(filesystem.join(attempt.path, name), data)
        claim.check()
        # From here on the folder is not a result until the next manifest.
        filesystem.delete_file(self.manifest_path)
        attempt.publish_as(_BEGUN, self.folder, self.run_name)
        for name in sorted(before - set(names)):
            path = filesystem.join(self.folder, *name.split('/'))
            if not (filesystem.has_link(self.folder, name) or filesystem.is_folder(path)):
                filesystem.delete_file(path)
        attempt.publish(names)
        self._publish_rejected(attempt, [file.name for file in rejected])
        self._delete_shared_rejected(earlier)
        claim.check()
        attempt.publish_as(_WHOLE, self.folder, self.manifest_name)
        attempt.publish_as(_ENDED, self.folder, self.run_name)

    def _publish_rejected(self, attempt: Attempt, names: Sequence[str]) -> None:
        folder, base = filesystem.split_path(self.rejected_folder)
        kept = set()
        for source in names:
            name = f'{base}/{filesystem.split_path(source)[1]}'
            attempt.publish_as(source, folder, name)
            kept.add(filesystem.join(folder, *name.split('/')))
        if not filesystem.has_link(folder, f'{base}/'):
            for path in self._rejected_paths():
                if path not in kept and not filesystem.is_folder(path):
                    filesystem.delete_file(path)
            filesystem.delete_if_empty(self.rejected_folder)

    def rejected_files(self, rejected: Sequence[OutputFile]) -> tuple[OutputFile, ...]:
        """Returns the manifest's entries of files of rejected lines, by their final names.

        Those of a COUNTS folder are beside it, where its manifest cannot name them: none.
        """
        above, base = filesystem.split_path(self.rejected_folder)
        if above != self.folder:
            return ()
        return tuple(
            dataclasses.replace(file, name=f'{base}/{filesystem.split_path(file.name)[1]}')
            for file in rejected
        )

    def warn_rejected(self, rejected: Sequence[OutputFile]) -> None:
        """Tells how many lines were left out, and where they are."""
        for file in rejected:
            name = filesystem.split_path(file.name)[1]
            path = filesystem.join(self.rejected_folder, name)
            _LOGGER.warning('%d lines were left out: %s', file.rows, path)

    def _earlier_manifest(self) -> Manifest | None:
        try:
            return read_manifest(self.manifest_path)
        except InputError:
            # Only --overwrite comes here with a manifest that cannot be read; it is replaced.
            return None

    def _earlier_files(self) -> set[str]:
        """Names of files that earlier results have here, as far as this tool makes such names."""
        run = read_run(self.run_path)
        manifest = self._earlier_manifest()
        names = {*(run.files if run else ())}
        names |= {file.name for file in manifest.outputs} if manifest else set()
        return set(filter(self.made.fullmatch, names))

    def _delete_shared_rejected(self, earlier: Manifest | None) -> None:
        """Deletes what a vocabulary of 6b30307 had in `rejected`, which all in a folder shared."""
        for file in earlier.rejected if earlier and self.file_name else ():
            path = filesystem.join(self.folder, *file.name.split('/'))
            is_shared = file.name.startswith(f'{REJECTED_FOLDER}/')
            if is_shared and not filesystem.has_link(self.folder, file.name):
                if filesystem.stored_size(path) == file.bytes:
                    data = filesystem.read_bytes(path)
                    if f'{google_crc32c.value(data):08x}' == file.crc32c:
                        filesystem.delete_file(path)
                        filesystem.delete_if_empty(filesystem.split_path(path)[0])


def run_record(
    inputs: Sequence[InputState], seconds: dict[str, float], runner: Sequence[str]
) -> RunRecord:
    """Returns what is remembered of a run beside its manifest."""
    return RunRecord(
        tuple((each.stored.path, each.stored.size, each.stored.modified) for each in inputs),
        seconds={name: round(value, 3) for name, value in seconds.items()},
        runner=without_secrets(runner),
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
