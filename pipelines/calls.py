"""The commands as calls: `build`, `count`, `vocab`, `encode`, `update` and `source`, with their checks, claims and resume.

    result = pipelines.build(tsv='pairs.tsv', name='enzh', vocab_size=32768, output='data/enzh')
    dataset = tokcore.open_dataset(result.path)

Keyword arguments are the options of the command, as `help(pipelines.BuildKeywords)` lists them, with
underscores for dashes. Nothing is printed: what the command reports goes to the log of `pipelines`. In IPython
and Jupyter a bar shows the progress.
"""

from __future__ import annotations

import argparse
import contextlib
import operator
import os
import sys
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.artifacts.manifest import read_manifest
from pipelines.artifacts.outputs import StageOutput
from pipelines.cli.commands import make_job, run_job
from pipelines.cli.parser import with_job_file
from pipelines.cli.terminal import in_ipython, shown_progress
from pipelines.engines.machine import usable_cores
from pipelines.files import filesystem
from pipelines.files.system_errors import as_input_error
from pipelines.jobs.job import BuildJob, CountJob, EncodeJob, Job, MergeJob, PiecesJob, VocabJob
from pipelines.options.beam import check_flags
from pipelines.options.commands import Command, known_commands
from tokcore.errors import InputError
from tokcore.keywords import keyword_value, unknown_keyword
from tokcore.options import Choice, declared
from tokcore.process_end import interrupted_call
from tokcore.reading.dataset import open_dataset
from tokcore.reading.html import dataset_html, html_table
from tokcore.records.manifest import Manifest

if typing.TYPE_CHECKING:
    from typing_extensions import Unpack

    from pipelines.keyword_types import (
        BuildKeywords,
        CountKeywords,
        EncodeKeywords,
        UpdateKeywords,
        VocabKeywords,
    )
    from pipelines.trust.where import FoundRow

JobFile = str | os.PathLike

_OF_THE_COMMAND = {'progress', 'print_job', 'dry_run'}
"""Options of what the command does around a job, which calls do not have."""


@dataclass(frozen=True, repr=False)
class Result:
    """What a job made, or found made before.

    Attributes:
        path: the folder or file that was asked for.
        manifests: by the folder of the files, or by the file of a vocabulary; more than one where
            tokens are counted for several schemes.

    Examples:
        >>> result = pipelines.build(text='train.en', scheme='byte', name='en', shards=1, output='data/en')
        >>> result.manifest.lines[0].examples, [os.path.basename(path) for path in result.files]
        (400, ['en-train-00000-of-00001'])
    """

    path: str
    manifests: Mapping[str, Manifest]

    def __repr__(self) -> str:
        """Returns what was made, and where."""
        return f'<Result of {self.manifest.stage} in {self.path}>'

    def __str__(self) -> str:
        """Returns in at most five lines what was made."""
        return '\n'.join(f'{name}: {value}' for name, value in self._facts.items())

    @property
    def _facts(self) -> dict[str, str]:
        manifest = self.manifest
        sizes = [file.bytes for each in self.manifests.values() for file in each.outputs]
        examples = (f'{tally.split} {tally.examples:,}' for tally in manifest.lines)
        ids = (f'{record.name} {record.size:,}' for record in manifest.vocabularies)
        lines = {
            manifest.stage: self.path,
            'lines with text' if manifest.root is None else 'examples': ', '.join(examples),
            'entries': ', '.join(ids),
            'files': f'{len(sizes):,}, {sum(sizes):,} bytes',
            'root': manifest.root,
        }
        return {name: value for name, value in lines.items() if value}

    @property
    def manifest(self) -> Manifest:
        """The only manifest, or the first."""
        return next(iter(self.manifests.values()))

    @property
    def vocabularies(self) -> dict[str, str]:
        """The paths of the vocabularies in the result, by side: `both`, or `inputs` and `targets`."""
        return {
            record.side: os.path.join(_folder(path, manifest), record.name)
            for path, manifest in self.manifests.items()
            for record in manifest.vocabularies
        }

    @property
    def files(self) -> list[str]:
        """The paths of the files that were made, besides vocabularies: shards or counts."""
        return [
            os.path.join(_folder(path, manifest), file.name)
            for path, manifest in self.manifests.items()
            for file in manifest.files
            if file.is_stored
        ]

    def _repr_html_(self) -> str:
        """Shows in a notebook what was made, and the first rows of a dataset."""
        shown = html_table(self._facts.items())
        if self.manifest.root is None or filesystem.is_shared(self.path):
            return shown
        try:
            return shown + dataset_html(open_dataset(self.path))
        except InputError:  # rows of this format are not opened, or the folder is gone
            return shown


def build(
    job: BuildJob | JobFile | None = None,
    *,
    beam_options: Sequence[str] = (),
    **options: Unpack[BuildKeywords],
) -> Result:
    """Counts, learns and encodes, as `tokbeam build`; does nothing if the result exists.

    Args:
        job: a job, or the path of a job file, whose options the keywords take the place of.
        beam_options: options of Beam, as ['--runner=FlinkRunner'].
        options: see `BuildKeywords`.

    Raises:
        InputError: whatever the command refuses with exit status 2.
        TypeError: there is no such option, or it has a value of another type.

    Examples:
        >>> _ = pipelines.build(
        ...     text='train.en', scheme='bpe', vocab_size=600, name='bpe', shards=2, output='data/bpe'
        ... )
        >>> tokcore.open_dataset('data/bpe')
        <Dataset data/bpe: examples of train 400; ids of targets 600; scheme bpe>
    """
    return _run('build', BuildJob, job, options, beam_options)


def count(
    job: CountJob | MergeJob | PiecesJob | JobFile | None = None,
    *,
    beam_options: Sequence[str] = (),
    **options: Unpack[CountKeywords],
) -> Result:
    """Counts the tokens of the training lines, as `tokbeam count`; arguments as of `build`.

    Examples:
        >>> result = pipelines.count(text='train.en', scheme='word', output='counts')
        >>> result.manifest.lines[0].examples
        400
    """
    return _run('count', (CountJob, MergeJob, PiecesJob), job, options, beam_options)


def vocab(
    job: VocabJob | JobFile | None = None,
    *,
    beam_options: Sequence[str] = (),
    **options: Unpack[VocabKeywords],
) -> Result:
    """Learns a vocabulary into a file, as `tokbeam vocab`; arguments as of `build`.

    Examples:
        >>> result = pipelines.vocab(text='train.en', scheme='word', vocab_size=100, output='frequent.txt')
        >>> tokcore.load_tokenizer(result.path)
        WordTokenizer(vocab_size=100, begin=1, end=2, unknown=0)
    """
    return _run('vocab', VocabJob, job, options, beam_options)


def encode(
    job: EncodeJob | JobFile | None = None,
    *,
    beam_options: Sequence[str] = (),
    **options: Unpack[EncodeKeywords],
) -> Result:
    """Encodes a corpus with vocabularies that exist, as `tokbeam encode`; arguments as of `build`.

    Examples:
        >>> _ = pipelines.encode(text='dev.en', vocab='data/enzh', name='dev', shards=1, output='data/dev')
        >>> tokcore.open_dataset('data/dev')
        <Dataset data/dev: examples of train 20; ids of targets 2,065; scheme subword>
    """
    return _run('encode', EncodeJob, job, options, beam_options)


def update(dataset: str | os.PathLike, **options: Unpack[UpdateKeywords]) -> Result:
    """Adds files to a dataset and removes rows, as `tokbeam update`; `dataset` is its folder.

    Examples:
        >>> more = pipelines.update('data/enzh', source='dev.en', target='dev.zh', output='data/more')
        >>> more.manifest.lines[0].examples
        420
    """
    return _run('update', EncodeJob, None, options, (), path=os.fspath(dataset))


def build_job(
    job_file: JobFile | None = None,
    *,
    beam_options: Sequence[str] = (),
    **options: Unpack[BuildKeywords],
) -> BuildJob:
    """Returns the job that `build` runs with the same arguments, all of them checked; runs nothing.

    Examples:
        >>> job = pipelines.build_job(text='train.en', scheme='byte', name='en', shards=1, output='data/en')
        >>> job.file_names
        ['en-train-00000-of-00001', 'index/en-train-00000-of-00001', 'index/corpus.jsonl']
    """
    made = _make('build', job_file, options, beam_options)
    assert isinstance(made, BuildJob)
    return made


def source(
    dataset: str | os.PathLike,
    split: str,
    rows: Iterable[int],
    *,
    job: JobFile | None = None,
    workers: int | None = None,
) -> list[FoundRow]:
    """Returns where rows of a dataset come from, as `tokbeam where`; only their files are read.

    Each has, among others, `place.files`, `place.line`, `texts`, `pieces`, and `is_stored`: whether the
    shard has that row, byte for byte.

    Args:
        dataset: a folder that `build` or `encode` has finished.
        split: train, dev or test.
        rows: numbers of rows in all shards of the split, from 0; the result is in this order.
        job: the job file; None: the job that the last run recorded in the folder.
        workers: work items that are read at once; None: the cores that this process may use.

    Raises:
        InputError: as the command; there is no such row, or the corpus is not at hand.

    Examples:
        >>> [row] = pipelines.source('data/enzh', 'train', [0])
        >>> row.place.files[0].name, row.place.line, row.texts[0]
        ('train.en', 152, '"Is this seat taken?" "No, please sit down."')
    """
    # Here, since what looks at datasets takes a while to import and most calls make them.
    from pipelines.artifacts.manifest import read_dataset_manifest
    from pipelines.cli.folder_commands import job_of
    from pipelines.trust.where import Wanted, find_rows

    folder = filesystem.absolute(os.fspath(dataset))
    manifest = read_dataset_manifest(folder)
    job_file = None if job is None else os.fspath(job)
    numbers = tuple(operator.index(row) for row in rows)
    return find_rows(
        job_of(folder, manifest, job_file, workers, takes_record=True),
        manifest,
        Wanted(split, rows=numbers),
        workers or usable_cores(),
        len(numbers),
    )[1]


@interrupted_call()
def _run(
    command: str,
    kinds: type | tuple[type, ...],
    job: Any,
    options: Mapping[str, Any],
    beam_options: Sequence[str],
    **paths: str,
) -> Result:
    made: Job
    if isinstance(job, kinds):
        if options or beam_options:
            raise TypeError(f'pipelines.{command} has a job, which has all options; leave them out')
        made = typing.cast(Job, job)
    else:
        made = _make(command, job, options, beam_options, **paths)
    progress = shown_progress(sys.stderr) if in_ipython() else contextlib.nullcontext()
    try:
        with progress:
            run_job(made)
    except Exception as error:
        mistake = as_input_error(error, 'go on')
        if mistake is None or mistake is error:
            raise
        raise mistake from error
    return _result(made)


def _make(
    command: str,
    job_file: Any,
    options: Mapping[str, Any],
    beam_options: Sequence[str],
    **paths: str,
) -> Job:
    if job_file is not None and not isinstance(job_file, (str, os.PathLike)):
        raise TypeError(
            f'pipelines.{command}: {job_file!r:.60} is neither a job of this command nor the path of a job '
            'file; name options by their keywords'
        )
    if isinstance(beam_options, str):
        raise TypeError('beam_options are several strings; put a single one in a list')
    check_flags(list(beam_options), [], command)
    given = _given(known_commands()[command], options, f'pipelines.{command}')
    path = None if job_file is None else os.fspath(job_file)
    finished = with_job_file(argparse.Namespace(command=command, **given, **paths), path)
    return make_job(finished, list(beam_options))


def _given(command: Command, options: Mapping[str, Any], call: str) -> dict[str, object]:
    """Returns the values of keyword arguments as the parser of the command returns them."""
    known = {each.key: each for each in command.options if each.key not in _OF_THE_COMMAND}
    scheme = options.get('scheme', known['scheme'].default if 'scheme' in known else None)
    for kind in (kind for group in command.groups for kind in group.kinds):
        if isinstance(kind, Choice) and isinstance(scheme, str) and scheme in kind.kinds:
            # In place of what stands for all schemes.
            known |= {each.key: each for each in declared(kind.kinds[scheme])}
    for name in options:
        if name not in known:
            raise unknown_keyword(name, known, call)
    return {name: keyword_value(known[name], value, call) for name, value in options.items()}


def _result(job: Job) -> Result:
    match job:
        case BuildJob() | EncodeJob():
            outputs = {job.output: StageOutput.of_dataset(job.output)}
        case CountJob():
            outputs = {folder.path: StageOutput.of_counts(folder.path) for folder in job.folders}
        case MergeJob():
            outputs = {job.output: StageOutput.of_counts(job.output)}
        case VocabJob() | PiecesJob():
            outputs = {job.output: StageOutput.of_vocabulary(job.output)}
    manifests = {}
    for path, output in outputs.items():
        manifest = read_manifest(output.manifest_path)
        assert manifest is not None  # the job has ended without an error
        manifests[path] = manifest
    return Result(job.output, manifests)


def _folder(path: str, manifest: Manifest) -> str:
    """Returns the folder of a manifest's files."""
    return os.path.dirname(path) if manifest.stage in ('vocab', 'pieces') else path
