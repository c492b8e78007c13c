"""A stage's output: when it is up to date, where its files are written, and how they are published.

Files are made in an attempt's folder and renamed, the manifest last: until it is there, none of
them counts as a result.
"""

import collections
import dataclasses
import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pipelines.artifacts.manifest import RUN_NAME, RunRecord, shown_key
from pipelines.artifacts.vocabularies import TOKENIZER_FILE
from pipelines.engines.progress import AT_ONCE
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt, sweep_attempts
from pipelines.files.claims import CLAIM_NAME, Claim
from pipelines.files.filesystem import StoredFile
from pipelines.options.job import SPLITS, RejectionLimit
from pipelines.transforms.stats import REJECTED_FOLDER
from tokcore.corpus.archives import archive_and_member
from tokcore.corpus.formats import all_reasons
from tokcore.corpus.stats import LineTally
from tokcore.corpus.stretches import CORPUS_INDEX
from tokcore.encoding.hub_folders import TOKENIZER_NAME
from tokcore.encoding.scheme import TokenRules
from tokcore.errors import InputError
from tokcore.filters.registry import filter_names
from tokcore.reading.record_index import INDEX_FOLDER
from tokcore.records.manifest import (
    FILE_OF_SPLIT,
    MANIFEST_NAME,
    REMOVED_NAME,
    SHARD_ENDINGS,
    SHARD_NAME,
    InputText,
    Manifest,
    OutputFile,
)
from tokcore.schemes import VOCABULARY_FILE
from tokcore.text.unicode import UNICODE_VERSION

_LOGGER = logging.getLogger(__name__)

_DATASET_FILE = re.compile(
    rf'({INDEX_FOLDER}/)?{SHARD_NAME}({SHARD_ENDINGS})?|{re.escape(CORPUS_INDEX)}|{FILE_OF_SPLIT}|{VOCABULARY_FILE}|{TOKENIZER_FILE}'
    rf'|{re.escape(REMOVED_NAME)}'
)
_MOST_DIFFERENCES = 6
"""Options that an error names."""

_REASONS = '|'.join([*all_reasons(), *filter_names(), r'[\w.]+:\w+'])
"""Why rows are left out: reasons of formats, and filters, users' own too."""

_REJECTED_FILE = re.compile(rf'({"|".join(SPLITS)})\.(.+\.)?({_REASONS})\.jsonl', re.DOTALL)

_COUNTS_FILE = re.compile(r'counts-\d{5}-of-\d{5}\.parquet')


# In an attempt: the run record as it is before the first final name, the manifest, the run record.
_BEGUN, _WHOLE, _ENDED = '.tokbeam-begun', '.tokbeam-whole', '.tokbeam-ended'

_LEFT_OF_RUNS = re.compile(r'\.tokbeam.*|counts(\.inputs|\.targets)?(\.rejected)?', re.DOTALL)
"""What a run that was killed may leave in a folder in addition to its files: among it the counts of a build."""

_SHOWN_OTHERS = 3


@dataclass(frozen=True)
class InputState:
    """An input as it is now; `checksum` reads it, which is only done if its time has changed."""

    split: str
    role: str
    stored: StoredFile
    checksum: Callable[[], InputText]
    archive: str | None = None  # the path of that in which it is


@dataclass(frozen=True)
class StageKey:
    """What a stage is asked for: everything that its bytes depend on."""

    stage: str
    options: dict[str, object]
    inputs: tuple[InputState, ...]
    rules: TokenRules
    unicode: str = UNICODE_VERSION
    previous: str = ''  # the root of the dataset that was updated, for the record of the run

    def manifest(
        self, inputs: tuple[InputText, ...], lines: tuple[LineTally, ...] = (), **made
    ) -> Manifest:
        """Returns the manifest of the result.

        Args:
            inputs: what was read.
            lines: of each split, what was read of them.
            made: other fields of the manifest: what came out.
        """
        return Manifest(self.stage, self.unicode, self.options, inputs, self.rules, lines, **made)

    def run_record(
        self,
        seconds: dict[str, float],
        runner: Sequence[str],
        job: str = '',
        requests: dict[str, int] | None = None,
    ) -> RunRecord:
        """Returns what is remembered of a run, apart from its manifest.

        Args:
            seconds: of its parts.
            runner: Beam's options.
            job: the job file that stands for it.
            requests: to object stores, by their kind.
        """
        return RunRecord(
            tuple(
                (state.stored.path, state.stored.size, state.stored.modified)
                for state in self.inputs
            ),
            seconds={name: round(value, 3) for name, value in seconds.items()},
            runner=tuple(runner),
            job=job,
            requests=requests or {},
            previous=self.previous,
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
    claimed_name: str | None = None  # of outputs with the same one only one is written at a time
    root: str | None = None  # of a folder that the tool has named in this one: no link is followed

    @classmethod
    def of_dataset(cls, folder: str) -> 'StageOutput':
        """A dataset's folder: shards, and vocabularies of a build."""
        return cls(folder, os.path.join(folder, REJECTED_FOLDER), _DATASET_FILE)

    @classmethod
    def of_counts(cls, folder: str, root: str | None = None) -> 'StageOutput':
        """A COUNTS folder; its rejected lines are next to it, in `COUNTS.rejected`."""
        return cls(folder, f'{folder}.{REJECTED_FOLDER}', _COUNTS_FILE, root=root)

    @classmethod
    def of_vocabulary(cls, path: str, beside: Sequence[str] = ()) -> 'StageOutput':
        """A vocabulary written alone, with `FILE.tokbeam.json` and `FILE.rejected` next to it.

        Args:
            path: of its file.
            beside: other files that are made for it, by their names in its folder.
        """
        folder, name = os.path.split(path)
        return cls(
            folder,
            f'{path}.{REJECTED_FOLDER}',
            re.compile('|'.join(map(re.escape, [name, *beside]))),
            f'{name}.tokbeam.json',
            f'{name}.tokbeam.run.json',
            name,
            # Two vocabularies that are both opened by this folder have files of the same names.
            TOKENIZER_NAME if TOKENIZER_NAME in (name, *beside) else name,
        )

    def path_of(self, name: str) -> str:
        """Returns the path of a file of this output, by its name with `/` between names."""
        return os.path.join(self.folder, name)

    @property
    def manifest_path(self) -> str:
        return self.path_of(self.manifest_name)

    @property
    def run_path(self) -> str:
        return self.path_of(self.run_name)

    @property
    def path(self) -> str:
        """What the user gave as `--output`."""
        return self.path_of(self.file_name) if self.file_name else self.folder

    @property
    def names(self) -> tuple[str, ...]:
        """The final names that are this output's in a folder shared with others; none if it is not."""
        return (self.file_name, self.manifest_name, self.run_name) if self.file_name else ()

    def claim(self) -> Claim:
        """Returns the claim to be held from the first look at this output to the last."""
        name = CLAIM_NAME
        if self.claimed_name:
            # Not the name itself, to which the filesystem may give no more room.
            digest = hashlib.sha256(os.fsencode(self.claimed_name)).hexdigest()[:16]
            name = f'{CLAIM_NAME}-{digest}'
        return Claim(self.path_of(name), self.path, root=self.root)

    def rejected_paths(self) -> list[str]:
        """Returns the files of rejected lines that are there."""
        names = filter(_REJECTED_FILE.fullmatch, filesystem.names_below(self.rejected_folder))
        return [os.path.join(self.rejected_folder, name) for name in names]

    def rejected_path(self, file: OutputFile) -> str:
        """Returns the final path of a file of rejected lines in an attempt."""
        return os.path.join(self.rejected_folder, os.path.basename(file.name))

    def rejected_files(self, rejected: Sequence[OutputFile]) -> tuple[OutputFile, ...]:
        """Returns the manifest's entries of files of rejected lines, by their final names.

        Those of a COUNTS folder are next to it, and its manifest does not name them.
        """
        above, base = os.path.split(self.rejected_folder)
        if above != self.folder:
            return ()
        return tuple(
            dataclasses.replace(file, name=f'{base}/{os.path.basename(file.name)}')
            for file in rejected
        )

    def warn_rejected(self, rejected: Sequence[OutputFile]) -> None:
        """Logs how many lines were left out and how many rows filters dropped, and where they are."""
        for file in rejected:
            path = self.rejected_path(file)
            if path.split('.')[-2] in all_reasons():
                left_out = 'line was' if file.rows == 1 else 'lines were'
                _LOGGER.warning('%d %s left out: %s', file.rows, left_out, path)
            else:
                _LOGGER.info('%d rows that a filter dropped: %s', file.rows, path)

    def records(
        self, overwrite: bool = False
    ) -> tuple[Manifest | None, RunRecord | None, set[str]]:
        """Returns the manifest and the run record that are there, and which files are to be replaced.

        These are named as earlier results name them, as far as this tool makes such names; the
        manifest is among them. One that cannot be read is as good as none if it is to be overwritten.
        """
        data, manifest = None, None
        try:
            data = filesystem.read_if_there(self.manifest_path)
            manifest = None if data is None else Manifest.from_json(data, self.manifest_path)
        except InputError:
            if not overwrite:
                raise
            data = b''
        run_data = filesystem.read_if_there(self.run_path)
        run = None if run_data is None else RunRecord.from_json(run_data)
        names = {*(run.files if run else ())}
        names |= {file.name for file in manifest.outputs} if manifest else set()
        names = set(filter(self.made.fullmatch, names))
        return manifest, run, names if data is None else {*names, self.manifest_name}


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


def up_to_date(
    task: StageTask,
    claim: Claim,
    overwrite: bool,
    given: Sequence[str] = (),
    max_rejected: RejectionLimit | None = None,
) -> tuple[Manifest | None, set[str]]:
    """Returns the manifest if a result is already there, else None and which files are to be replaced.

    Args:
        task: the result.
        claim: that on its output.
        overwrite: whether another result may be replaced.
        given: paths that are read in addition to the inputs.
        max_rejected: how many lines it may have left out; None: any number.

    Raises:
        InputError: the output holds another result, or files that no run of ours began; or an
            input would be replaced; or the result has lost more lines than are allowed.
    """
    output, wanted = task.output, task.key
    manifest, run, replaced = output.records(overwrite)
    if manifest is None or overwrite:
        claim.require()
        _refuse_what_is_there(task, given, replaced, overwrite or run is not None)
        return None, replaced
    names = [(state.split, state.role, state.stored.name) for state in wanted.inputs]
    of_inputs = [(text.split, text.role, text.name) for text in manifest.inputs]
    differences = [
        f'{another(what)}: {_shown(before)} there, {_shown(now)} now'
        for what, before, now in [*differing(manifest, wanted), ('input files', of_inputs, names)]
        if before != now
    ]
    if differences:
        if manifest.stage != wanted.stage:
            del differences[1:]  # all else is another too
        elif left := differences[_MOST_DIFFERENCES:]:
            differences[_MOST_DIFFERENCES:] = [f'and {len(left)} more']
        raise InputError(
            f'{output.manifest_path} is of a run with {"; ".join(differences)}; give another output, or '
            '--overwrite to replace it'
        )
    seen = run.inputs if run and len(run.inputs) == len(wanted.inputs) else None
    has_read = False
    for number, (text, state) in enumerate(zip(manifest.inputs, wanted.inputs, strict=True)):
        if seen and seen[number][1:] == (state.stored.size, state.stored.modified):
            continue
        has_read = True
        again = state.checksum()
        if again != text:
            raise InputError(
                f'{state.stored.path} has changed since {output.manifest_path} was written: '
                f'{text.bytes} bytes with CRC-32C {text.crc32c} there, {again.bytes} with '
                f'{again.crc32c} now; give another output, or --overwrite to replace it'
            )
    paths = [output.path_of(file.name) for file in manifest.outputs]
    sizes = filesystem.stored_sizes(paths)
    for file, path, size in zip(manifest.outputs, paths, sizes, strict=True):
        if isinstance(file, OutputFile) and not file.is_stored:
            continue
        # A store's listing may come late.
        if size != file.bytes and filesystem.stored_size(path) != file.bytes:
            raise InputError(
                f'{path} is missing or not of the size that '
                f'{output.manifest_name} states; give --overwrite to make it again'
            )
    if not claim.is_denied:
        sweep_attempts(output.folder, output.names, claim.folder)
        if has_read and run is not None:
            run = dataclasses.replace(run, inputs=wanted.run_record({}, ()).inputs)
            with Attempt(output.folder, output.names, claim.folder) as attempt:
                filesystem.write_bytes(os.path.join(attempt.path, _ENDED), run.to_json())
                attempt.publish([(_ENDED, output.run_path)])
    if max_rejected is not None:
        refuse_losses(max_rejected, manifest.lines)
    return manifest, replaced


def differing(manifest: Manifest, wanted: StageKey) -> Iterator[tuple[str, object, object]]:
    """Yields what a result was made with and what is wanted now, where the two differ, inputs aside."""
    options = json.loads(json.dumps(wanted.options))  # with lists for tuples, as the manifest has
    there, rules = manifest.options, manifest.rules
    for what, before, now in [
        ('command', manifest.stage, wanted.stage),
        ('Unicode version', manifest.unicode, wanted.unicode),
        *((shown_key(name), there.get(name), options.get(name)) for name in {**options, **there}),
        ('normalizer', rules.normalizer, wanted.rules.normalizer),
        ('pre-tokenizer', rules.pre_tokenizer, wanted.rules.pre_tokenizer),
    ]:
        if before != now:
            yield what, before, now


def another(what: str) -> str:
    """Returns `another --seed`, or `other datasets`."""
    return f'{"other" if what.endswith("s") and not what.startswith("--") else "another"} {what}'


def _refuse_what_is_there(
    task: StageTask, given: Sequence[str], replaced: set[str], may_be_foreign: bool
) -> None:
    """Refuses what the files of a result would replace and must not, and warns of other files.

    Args:
        task: the result.
        given: paths that are read in addition to the inputs.
        replaced: names of files of earlier results.
        may_be_foreign: whether files that are there may be replaced, whoever made them.
    """
    output = task.output
    rejected = output.rejected_paths()
    paths = list(map(output.path_of, task.names))
    records = [output.manifest_path, output.run_path]
    earlier = map(output.path_of, sorted(replaced))
    read = [state.archive or state.stored.path for state in task.key.inputs]
    refuse_replaced([*read, *given], [*paths, *earlier, *records, *rejected])
    for path in [*paths, *records]:
        if filesystem.has_folder_at(path):
            raise InputError(f'{path} is a folder where a file of the result goes; move it away')
    if may_be_foreign:
        return
    for path, size in zip(paths, filesystem.stored_sizes(paths), strict=True):
        if size is not None:
            raise InputError(
                f'{path} exists, but no {output.manifest_name} says what it is; '
                'give another output, or --overwrite to replace it'
            )
    for path in rejected:
        raise InputError(
            f'{path} holds the rejected lines of another run; move it away, or give '
            '--overwrite to replace it'
        )
    if output.file_name is not None:
        return
    # The folder is to be the result's alone.
    known = {*task.names, output.manifest_name, output.run_name, REJECTED_FOLDER}
    known = {name.partition('/')[0] for name in known}
    others = [
        name
        for name in filesystem.entries(output.folder)
        if name not in known and not _LEFT_OF_RUNS.fullmatch(name)
    ]
    if others:
        more = f' and {len(others) - _SHOWN_OTHERS:,} more' if others[_SHOWN_OTHERS:] else ''
        _LOGGER.warning(
            '%s has other files, which stay there: %s%s; give a folder of its own if readers are '
            'not to meet them',
            output.folder,
            ', '.join(others[:_SHOWN_OTHERS]),
            more,
            extra={AT_ONCE: True},
        )


def publish(
    task: StageTask,
    claim: Claim,
    attempt: Attempt,
    manifest: Manifest,
    run: RunRecord,
    rejected: Sequence[OutputFile],
    replaced: set[str],
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
        replaced: names of files that were there when the run began. A manifest that has come since is of
            a run that has taken over, while this one was stopped for longer than a lease.

    Raises:
        InputError: the claim was lost, or something is in a file's place.
    """
    output = task.output
    without_rows = {file.name for file in manifest.files if not file.is_stored}
    names = [name for name in task.names if name not in without_rows]
    before = replaced - {output.manifest_name}
    # Without the inputs, which may be thousands: a rerun after a kill between the last names reads them.
    begun = dataclasses.replace(run, inputs=(), files=tuple(sorted(before | set(names))))
    ended = dataclasses.replace(run, files=tuple(sorted(names)))
    # All is written before anything has its final name: the disk may be full.
    records = {_BEGUN: begun.to_json(), _WHOLE: manifest.to_json(), _ENDED: ended.to_json()}
    for name, data in records.items():
        filesystem.write_bytes(os.path.join(attempt.path, name), data)
    moves = [(name, output.path_of(name)) for name in names]
    moves += [(file.name, output.rejected_path(file)) for file in rejected]
    old = [*map(output.path_of, sorted(before)), *output.rejected_paths()]
    kept = {path for _, path in moves}
    claim.check()
    # From here on the folder is not a result until the next manifest.
    if output.manifest_name in replaced:
        attempt.delete_final([output.manifest_path])
    attempt.publish([(_BEGUN, output.run_path)])
    attempt.delete_final([path for path in old if path not in kept])
    attempt.publish(moves)
    claim.check()
    attempt.publish([(_WHOLE, output.manifest_path)])
    attempt.publish([(_ENDED, output.run_path)])


def _shown(value: object) -> str:
    if isinstance(value, list | tuple) and any(isinstance(item, list | tuple) for item in value):
        return ', '.join(' '.join(map(str, item)) for item in value)
    return 'none' if value is None else str(value)


def refuse_losses(limit: RejectionLimit, tallies: Iterable[LineTally]) -> None:
    """Raises InputError if more lines of all splits together were left out than the limit allows."""
    reasons: collections.Counter[str] = collections.Counter()
    lines = 0
    for tally in tallies:
        reasons.update(tally.left_out)
        lines += tally.lines
    if limit.is_passed(reasons.total(), lines):
        raise limit.error(reasons, lines)


def refuse_replaced(read: Iterable[str], replaced: Iterable[str]) -> None:
    """Refuses a file that a run reads and that its result would replace, by whatever name.

    Args:
        read: paths of what is read; of a member of an archive, `ARCHIVE!MEMBER`.
        replaced: paths of files that get new content or are deleted, which need not be there.

    Raises:
        InputError: a file of this machine is both.
    """
    made = [path for path in replaced if not filesystem.is_shared(path)]
    # The name itself is replaced, be it a link; what is above it is where links lead.
    places = {
        os.path.join(os.path.realpath(above), name) for above, name in map(os.path.split, made)
    }
    files = {identity for path in made if (identity := _identity(path))}
    # Thousands of members may be of one archive.
    here = [path for path in dict.fromkeys(read) if not filesystem.is_shared(path)]
    for stored in dict.fromkeys(map(_stored, here)):
        if os.path.realpath(stored) in places or _identity(stored) in files:
            raise InputError(
                f'{stored} is read by this run and would be replaced by its result; give another '
                '--output'
            )


def _stored(path: str) -> str:
    """The file that a path leads to: itself, or the archive that it is a member of."""
    named = None if os.path.lexists(path) else archive_and_member(path, os.path.isfile)
    return named[0] if named else path


def _identity(path: str) -> tuple[int, int] | None:
    """Tells a file from all others, whatever its names are; None if it is not there."""
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return None
    return state.st_dev, state.st_ino
