"""The stage that learns: token counts in, a vocabulary file out."""

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass

import google_crc32c

from pipelines.artifacts.count_files import CountFiles, find_counts
from pipelines.artifacts.manifest import (
    InputText,
    Manifest,
    OutputFile,
    VocabularyRecord,
    read_manifest,
)
from pipelines.artifacts.run_stage import Made, run_stage
from pipelines.artifacts.stage_output import StageKey, StageOutput
from pipelines.engines.engine import Engine
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.files.work_folder import WorkFolder
from pipelines.jobs.corpus_files import Job
from pipelines.jobs.read_stats import reading_options, wanted_inputs
from pipelines.learning.find_vocabulary import VocabularyOptions, find_vocabulary
from pipelines.learning.learner_rounds import RoundsPlace
from pipelines.learning.line_ends import LineEndError
from pipelines.stages.count import CountsFolder, count_stage
from tokcore.corpus.block_stats import LineTally
from tokcore.errors import InputError
from tokcore.learning.size_search import SearchResult
from tokcore.subword.vocabulary_file import dump_vocabulary
from tokcore.text.unicode_tables import UNICODE_VERSION

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Learned:
    """A vocabulary's file and how it was found."""

    data: bytes
    result: SearchResult

    def record(self, name: str, side: str) -> VocabularyRecord:
        return VocabularyRecord(
            side,
            name,
            len(self.result.subtokens),
            len(self.data),
            f'{google_crc32c.value(self.data):08x}',
            UNICODE_VERSION,
            self.result.min_count,
            self.result.tried,
        )


def learn(
    counts: CountFiles,
    options: VocabularyOptions,
    label: str,
    engine: Engine,
    work: str,
    folder: str,
) -> Learned:
    """Learns a vocabulary from count files.

    Args:
        counts: the files.
        options: what is asked for.
        label: for messages, the vocabulary's file name.
        engine: runs the learner on Beam if that is chosen.
        work: a folder of this run.
        folder: the output's; rounds on Beam are kept in `.tokbeam` there, unless in `--work`.

    Raises:
        InputError: counts that cannot be read, or a size below the alphabet.
    """
    place = RoundsPlace.of(folder, label, options.work)
    names = ', '.join(file.path for file in counts.files)
    try:
        found = find_vocabulary(counts, options, label, engine, work, place)
    except OverflowError as error:
        raise InputError(f'{error}; divide the counts in {names}') from error
    except LineEndError as error:
        raise InputError(f'{names}: {error}; take it out, or count again') from error
    _warn_if_missed(found.result, found.smallest_size, options, label)
    return Learned(dump_vocabulary(found.result.subtokens), found.result)


def vocabulary_from_counts(
    counts: CountFiles,
    options: VocabularyOptions,
    path: str,
    engine: Engine,
    overwrite: bool,
) -> None:
    """Learns a vocabulary into a file, with its manifest beside it.

    Raises:
        InputError: counts that cannot be read, a size below the alphabet, or another result there.
    """
    wanted = StageKey('vocab', options.for_manifest(), counts.wanted_inputs())

    def count(attempt: Attempt) -> Counted:
        return Counted(counts, tuple(each.checksum() for each in wanted.inputs))

    _vocabulary_stage(wanted, count, options, path, engine, overwrite)


def vocabulary_from_text(
    job: Job, side: str, options: VocabularyOptions, path: str
) -> None:
    """Counts the training lines, learns a vocabulary into a file and drops the counts.

    Raises:
        InputError: whatever counting and learning refuse.
    """
    wanted = StageKey(
        'vocab',
        {'side': side, **reading_options(job), **options.for_manifest()},
        wanted_inputs(job.corpus),
    )

    def count(attempt: Attempt) -> Counted:
        folder = CountsFolder(filesystem.join(attempt.path, 'counts'), side)
        rejected = count_stage(job, [folder])
        output = StageOutput.of_counts(folder.path)
        manifest = read_manifest(output.manifest_path)
        # By their names in the attempt, which the counting stage gave them.
        kept = filesystem.split_path(output.rejected_folder)[1]
        moved = tuple(
            dataclasses.replace(file, name=f'{kept}/{filesystem.split_path(file.name)[1]}')
            for file in rejected
        )
        return Counted(find_counts([folder.path]), manifest.inputs, manifest.lines, moved)

    _vocabulary_stage(wanted, count, options, path, job.engine, job.overwrite)


@dataclass(frozen=True)
class Counted:
    """Counts to learn from, and what they were counted from."""

    counts: CountFiles
    inputs: tuple[InputText, ...]
    lines: tuple[LineTally, ...] = ()
    rejected: tuple[OutputFile, ...] = ()  # in the attempt's folder


def _vocabulary_stage(
    key: StageKey,
    count: Callable[[Attempt], Counted],
    options: VocabularyOptions,
    path: str,
    engine: Engine,
    overwrite: bool,
) -> None:
    output = StageOutput.of_vocabulary(path)
    name = filesystem.split_path(path)[1]
    if filesystem.is_folder(path):
        raise InputError(f'{path} is a folder; give a file as --output')

    def make(attempt: Attempt) -> Made:
        counted = count(attempt)
        work = filesystem.join(attempt.path, 'learner')
        learned = learn(counted.counts, options, name, engine, work, output.folder)
        filesystem.write_bytes(filesystem.join(attempt.path, name), learned.data)
        manifest = Manifest(
            'vocab',
            UNICODE_VERSION,
            key.options,
            counted.inputs,
            counted.lines,
            vocabularies=(learned.record(name, 'both'),),
            rejected=output.rejected_files(counted.rejected),
        )
        return Made(manifest, counted.rejected)

    made = run_stage(
        output,
        key,
        [name],
        make,
        overwrite=overwrite,
        flags=engine.flags,
        kept=[
            WorkFolder(options.work, output.folder),
            RoundsPlace.of(output.folder, name, options.work),
        ],
    )
    if made is not None:
        output.warn_rejected(made.rejected)
        _LOGGER.info('vocab: %d entries in %s', made.manifest.vocabularies[0].size, path)


def _warn_if_missed(
    result: SearchResult, smallest_size: int, options: VocabularyOptions, label: str
) -> None:
    size, target = len(result.subtokens), options.vocab_size
    if abs(size - target) * 100 < target:
        return
    near = ' and '.join(f'{size} at min-count {count}' for count, size in result.reachable)
    floor = f'; no fewer than {smallest_size} are possible' if target < smallest_size else ''
    _LOGGER.warning(
        '%s has %d entries, asked for %d: reachable around it are %s%s',
        label,
        size,
        target,
        near or 'no others',
        floor,
    )
