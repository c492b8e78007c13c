"""What a stage is asked for, and where its files go."""

import dataclasses
import hashlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
from pipelines.engines.filter_events import DroppedRowsKept
from pipelines.engines.progress import tell
from pipelines.engines.progress_events import LinesLeftOut
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.files.claims import CLAIM_NAME, Claim
from pipelines.files.filesystem import StoredFile
from pipelines.options.corpus_options import SPLITS
from pipelines.options.secrets import without_secrets
from pipelines.transforms.write_rejected import REJECTED_FOLDER
from tokcore.corpus.block_stats import LineTally
from tokcore.corpus.filters.registry import filter_names
from tokcore.corpus.formats.registry import all_reasons
from tokcore.encoding.token_rules import TokenRules
from tokcore.errors import InputError
from tokcore.schemes import VOCABULARY_FILE
from tokcore.text.unicode_tables import UNICODE_VERSION

_DATASET_FILE = re.compile(
    rf'[^/]+-(train|dev|test)-\d{{5,}}-of-\d{{5,}}(\.inputs|\.targets|\.parquet)?|{VOCABULARY_FILE}'
)
_FILTERS = '|'.join([*filter_names(), r'[\w.]+:\w+'])
"""What filters are called, users' own too."""

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
    rules: TokenRules

    def manifest(
        self, inputs: tuple[InputText, ...], lines: tuple[LineTally, ...] = (), **made
    ) -> Manifest:
        """Returns the manifest of the result.

        Args:
            inputs: what was read.
            lines: of each split, what was read of them.
            made: other fields of the manifest: what came out.
        """
        return Manifest(
            self.stage, UNICODE_VERSION, self.options, inputs, lines, rules=self.rules, **made
        )

    def run_record(self, seconds: dict[str, float], runner: Sequence[str]) -> RunRecord:
        """Returns what is remembered of a run beside its manifest.

        Args:
            seconds: of its parts.
            runner: Beam's options.
        """
        return RunRecord(
            tuple((each.stored.path, each.stored.size, each.stored.modified) for each in self.inputs),
            seconds={name: round(value, 3) for name, value in seconds.items()},
            runner=without_secrets(runner),
        )


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
    root: str | None = None  # of a folder that the tool has named in this one: no link is followed

    @classmethod
    def of_dataset(cls, folder: str) -> 'StageOutput':
        """A dataset's folder: shards, and vocabularies of a build."""
        return cls(folder, filesystem.join(folder, REJECTED_FOLDER), _DATASET_FILE)

    @classmethod
    def of_counts(cls, folder: str, root: str | None = None) -> 'StageOutput':
        """A COUNTS folder; its rejected lines are beside it, in `COUNTS.rejected`."""
        return cls(folder, f'{folder}.{REJECTED_FOLDER}', _COUNTS_FILE, root=root)

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
    def names(self) -> tuple[str, ...]:
        """The final names that are this output's in a folder shared with others; none if it is not."""
        return (self.file_name, self.manifest_name, self.run_name) if self.file_name else ()

    def claim(self) -> Claim:
        """Returns the claim to be held from the first look at this output to the last."""
        name = CLAIM_NAME
        if self.file_name:
            # Not the name itself, to which the filesystem may give no more room.
            digest = hashlib.sha256(os.fsencode(self.file_name)).hexdigest()[:16]
            name = f'{CLAIM_NAME}-{digest}'
        return Claim(filesystem.join(self.folder, name), self.path, root=self.root)

    def attempt(self, claim: Claim) -> Attempt:
        """Returns a new attempt at this output, which sweeps what earlier ones left."""
        return Attempt(self.folder, self.names, claim.folder)

    def rejected_paths(self) -> list[str]:
        """All files of rejected lines that a result can have, and those of datasets there are."""
        names = [f'{split}.{reason}.jsonl' for split in SPLITS for reason in all_reasons()]
        further = re.compile(
            rf'({"|".join(SPLITS)})\.(.+\.)?({"|".join(all_reasons())}|{_FILTERS})\.jsonl',
            re.DOTALL,
        )
        there = []
        if filesystem.is_folder(self.rejected_folder):
            there = [each.name for each in filesystem.list_folder(self.rejected_folder)]
        names += sorted(set(filter(further.fullmatch, there)).difference(names))
        return [filesystem.join(self.rejected_folder, name) for name in names]

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
        """Tells how many lines were left out, and where they are; so too what filters dropped."""
        for file in rejected:
            name = filesystem.split_path(file.name)[1]
            path = filesystem.join(self.rejected_folder, name)
            is_reason = name.split('.')[-2] in all_reasons()
            tell(LinesLeftOut(file.rows, path) if is_reason else DroppedRowsKept(file.rows, path))

    def earlier_manifest(self) -> Manifest | None:
        """Returns the manifest that is there, None if there is none that can be read."""
        try:
            return read_manifest(self.manifest_path)
        except InputError:
            # Only --overwrite comes here with a manifest that cannot be read; it is replaced.
            return None

    def earlier_files(self) -> set[str]:
        """Names of files that earlier results have here, as far as this tool makes such names."""
        run = read_run(self.run_path)
        manifest = self.earlier_manifest()
        names = {*(run.files if run else ())}
        names |= {file.name for file in manifest.outputs} if manifest else set()
        return set(filter(self.made.fullmatch, names))


@dataclass(frozen=True)
class StageTask:
    """A result that is to be there.

    Attributes:
        key: what is asked for.
        output: where it goes.
        names: of the files that are made.
    """

    key: StageKey
    output: StageOutput
    names: Sequence[str]
