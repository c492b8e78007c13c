"""The stage that learns: token counts in, a vocabulary file out."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

import google_crc32c
import numpy as np

from pipelines import filesystem
from pipelines.corpora import Job
from pipelines.count_files import CountFiles, find_counts, read_counts
from pipelines.count_stage import CountsFolder, count_stage, reading_options, wanted_inputs
from pipelines.counting import write_counts_file
from pipelines.engine import Engine
from pipelines.filesystem import Attempt
from pipelines.manifest import (
    InputText,
    Manifest,
    OutputFile,
    SplitLines,
    VocabularyRecord,
    read_manifest,
)
from pipelines.stages import StageOutput, Wanted, run_record
from pipelines.substrings import BeamLearner
from tokcore.counts import TokenTable
from tokcore.errors import InputError
from tokcore.subword.learner import MemoryLearner
from tokcore.subword.search import SearchResult, search_vocabulary
from tokcore.subword.vocabulary_file import dump_vocabulary
from tokcore.unicode_tables import UNICODE_VERSION

_LOGGER = logging.getLogger(__name__)

T2T_RANGE = (1, 1000)
"""The min-counts between which Tensor2Tensor's `build_from_generator` searches."""


@dataclass(frozen=True)
class VocabularyOptions:
    """How a vocabulary is learned; each field is an option of `tokbeam vocab`."""

    vocab_size: int
    search: str = 't2t'
    min_count_range: tuple[int, int] | None = None
    max_subtoken_length: int | None = 200
    reserved_tokens: tuple[str, ...] = ()
    learner: str = 'memory'

    def for_manifest(self) -> dict[str, object]:
        """Returns what the vocabulary's bytes depend on; both learners give the same."""
        return {
            'vocab_size': self.vocab_size,
            'search': self.search,
            'min_count_range': self.min_count_range,
            'max_subtoken_length': self.max_subtoken_length,
            'reserved_token': self.reserved_tokens,
        }


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


def vocabulary_output(path: str) -> StageOutput:
    """Returns where a vocabulary written alone has its manifest: `FILE.tokbeam.json`."""
    folder, name = filesystem.split_path(path)
    return StageOutput(folder, f'{name}.tokbeam.json', f'{name}.tokbeam.run.json', name)


def learn(
    counts: CountFiles, options: VocabularyOptions, label: str, engine: Engine, work: str
) -> Learned:
    """Learns a vocabulary from count files.

    Args:
        counts: the files.
        options: what is asked for.
        label: for messages, the vocabulary's file name.
        engine: runs the learner on Beam if that is chosen.
        work: a folder for its rounds.

    Raises:
        InputError: counts that cannot be read, or a size below the alphabet.
    """
    try:
        result, smallest_size = _search(counts, options, label, engine, work)
    except OverflowError as error:
        names = ', '.join(file.path for file in counts.files)
        raise InputError(f'{error}; divide the counts in {names}') from error
    _warn_if_missed(result, smallest_size, options, label)
    return Learned(dump_vocabulary(result.subtokens), result)


def _search(
    counts: CountFiles, options: VocabularyOptions, label: str, engine: Engine, work: str
) -> tuple[SearchResult, int]:
    """The vocabulary found, and the smallest size that was possible."""
    table = read_counts(counts)
    if options.learner == 'beam':
        learner = BeamLearner(
            _parquet_paths(counts, table, work),
            work,
            engine.run,
            max_subtoken_length=options.max_subtoken_length,
            reserved_tokens=options.reserved_tokens,
        )
    else:
        learner = MemoryLearner(
            table,
            max_subtoken_length=options.max_subtoken_length,
            reserved_tokens=options.reserved_tokens,
        )
    result = search_vocabulary(
        learner.build,
        options.vocab_size,
        strategy=options.search,
        min_count_range=options.min_count_range,
        smallest_size=learner.smallest_size,
        largest_count=_largest_count(table),
        report=_reporter(label, options),
    )
    return result, learner.smallest_size


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
    wanted = Wanted('vocab', options.for_manifest(), counts.wanted_inputs())

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
    wanted = Wanted(
        'vocab',
        {'side': side, **reading_options(job), **options.for_manifest()},
        wanted_inputs(job.corpus),
    )

    def count(attempt: Attempt) -> Counted:
        folder = CountsFolder(filesystem.join(attempt.path, 'counts'), side)
        rejected = count_stage(job, [folder], rejected_to=attempt.path)
        manifest = read_manifest(StageOutput(folder.path).manifest_path)
        return Counted(find_counts([folder.path]), manifest.inputs, manifest.lines, rejected)

    _vocabulary_stage(wanted, count, options, path, job.engine, job.overwrite)


@dataclass(frozen=True)
class Counted:
    """Counts to learn from, and what they were counted from."""

    counts: CountFiles
    inputs: tuple[InputText, ...]
    lines: tuple[SplitLines, ...] = ()
    rejected: tuple[OutputFile, ...] = ()  # in the attempt's folder


def _vocabulary_stage(
    wanted: Wanted,
    count: Callable[[Attempt], Counted],
    options: VocabularyOptions,
    path: str,
    engine: Engine,
    overwrite: bool,
) -> None:
    started = time.monotonic()
    output = vocabulary_output(path)
    name = filesystem.split_path(path)[1]
    if output.finished(wanted, [name], overwrite) is not None:
        _LOGGER.info('vocab: already done in %s', path)
        return
    if filesystem.is_folder(path):
        raise InputError(f'{path} is a folder; give a file as --output')
    with output.attempt() as attempt:
        counted = count(attempt)
        work = filesystem.join(attempt.path, 'learner')
        learned = learn(counted.counts, options, name, engine, work)
        filesystem.write_bytes(filesystem.join(attempt.path, name), learned.data)
        manifest = Manifest(
            'vocab',
            UNICODE_VERSION,
            wanted.options,
            counted.inputs,
            counted.lines,
            vocabularies=(learned.record(name, 'both'),),
            rejected=counted.rejected,
        )
        seconds = {'vocab': time.monotonic() - started}
        run = run_record(wanted.inputs, seconds, engine.flags)
        names = [name, *(file.name for file in counted.rejected)]
        output.publish(attempt, names, manifest, run)
    _LOGGER.info('vocab: %d entries in %s', len(learned.result.subtokens), path)


def _parquet_paths(counts: CountFiles, table: TokenTable, work: str) -> list[str]:
    """The count files as Parquet, which is what workers read."""
    if all(file.path.endswith('.parquet') for file in counts.files):
        return [file.path for file in counts.files]
    name, *_ = write_counts_file(work, 0, table)
    return [filesystem.join(work, name)]


def _largest_count(table: TokenTable) -> int:
    """No substring can be counted more often than there are characters."""
    return int(np.dot(table.counts.astype(np.float64), np.diff(table.offsets) + 1))


def _reporter(label: str, options: VocabularyOptions) -> Callable[[int, int, int], None]:
    widened = False

    def report(min_count: int, size: int, target: int) -> None:
        nonlocal widened
        beyond = options.min_count_range is None and min_count > T2T_RANGE[1]
        if beyond and not widened and options.search == 't2t':
            widened = True
            _LOGGER.info(
                '%s: still above %d at min-count %d, where Tensor2Tensor ends; searching on '
                '(--min-count-range 1:1000 forbids it)',
                label,
                target,
                T2T_RANGE[1],
            )
        _LOGGER.info('%s: min-count %d gives %d entries of %d', label, min_count, size, target)

    return report


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
