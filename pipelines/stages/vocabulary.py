"""The stage that learns: token counts in, a vocabulary file out."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import google_crc32c

from pipelines.artifacts.count_files import CountFiles, find_counts
from pipelines.artifacts.count_tables import read_counts
from pipelines.artifacts.counts_folder import CountsFolder, tell_sample
from pipelines.artifacts.manifest import (
    InputText,
    OutputFile,
    SampleRecord,
    VocabularyRecord,
    read_manifest,
)
from pipelines.artifacts.stage_output import StageKey, StageOutput, StageTask
from pipelines.artifacts.vocabulary_reading import file_entry
from pipelines.engines.progress import stage_running, tell
from pipelines.engines.progress_events import SizeMissed, VocabularyMade
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.files.work_folder import WorkFolder
from pipelines.jobs.job import Execution, Reading
from pipelines.learning.find_vocabulary import VocabularySearch
from pipelines.learning.learner_rounds import RoundsPlace
from pipelines.options.choices import PairSide
from pipelines.options.vocabulary_options import SampledVocabulary
from pipelines.stages.count import count_stage
from pipelines.stages.run_stage import Made, run_stage
from tokcore.corpus.block_stats import LineTally
from tokcore.encoding.scheme import Learned, Scheme
from tokcore.encoding.scheme_options import LearningOptions
from tokcore.errors import InputError
from tokcore.options.option_fields import recorded
from tokcore.text.unicode_tables import UNICODE_VERSION


def learn(
    search: VocabularySearch, side: PairSide, path: str, with_ids: bool = False
) -> VocabularyRecord:
    """Learns a vocabulary from count files into a folder; returns its entry in the manifest.

    Args:
        search: for it.
        side: whose it is.
        path: of the folder.
        with_ids: whether the ids of a vocabulary whose file has none are written beside it.

    Raises:
        InputError: counts that cannot be read, or a size below the alphabet.
    """
    names = ', '.join(file.path for file in search.counts.files)
    try:
        with stage_running('vocab'):
            found = search.run()
    except OverflowError as error:
        raise InputError(f'{error}; divide the counts in {names}') from error
    _warn_if_missed(found, search.options, search.label)
    vocabulary, scheme = found.vocabulary, search.scheme
    data = vocabulary.dump()
    written = filesystem.join(path, search.label)
    filesystem.write_bytes(written, data)
    beside = ()
    if with_ids and (name := scheme.entries_name(search.label)):
        entries = scheme.entries(vocabulary, read_counts(search.counts))
        filesystem.write_bytes(filesystem.join(path, name), entries)
        beside = (file_entry(name, entries),)
        vocabulary = scheme.parse(data, written, filesystem.read_if_there)
    return VocabularyRecord(
        side,
        search.label,
        vocabulary.vocab_size,
        len(data),
        f'{google_crc32c.value(data):08x}',
        UNICODE_VERSION,
        found.min_count,
        found.tried,
        scheme.name,
        scheme.rules,
        vocabulary.special_ids._asdict(),
        recorded(scheme) or None,
        beside,
    )


def vocabulary_from_counts(
    counts: CountFiles,
    execution: Execution,
    options: LearningOptions,
    scheme: Scheme,
    path: str,
) -> None:
    """Learns a vocabulary into a file, with its manifest beside it.

    Raises:
        InputError: counts that cannot be read, a size below the alphabet, or another result there.
    """
    asked = {'scheme': scheme.name, **recorded(scheme), **options.for_manifest()}
    wanted = StageKey('vocab', asked, counts.wanted_inputs(), scheme.rules)

    def count(attempt: Attempt) -> Counted:
        return Counted(counts, tuple(each.checksum() for each in wanted.inputs))

    _vocabulary_stage(wanted, count, execution, options, scheme, path)


def vocabulary_from_text(
    reading: Reading,
    execution: Execution,
    side: str,
    options: LearningOptions,
    path: str,
    sampling: SampledVocabulary = SampledVocabulary(),
) -> None:
    """Counts the training lines, learns a vocabulary into a file and drops the counts.

    Raises:
        InputError: whatever counting and learning refuse.
    """
    wanted = StageKey(
        'vocab',
        {
            'scheme': reading.scheme.name,
            'side': side,
            **recorded(reading.scheme),
            **reading.for_manifest(),
            **recorded(sampling),
            **options.for_manifest(),
        },
        reading.corpus.wanted_inputs(),
        reading.scheme.rules,
    )

    count = count_in_attempt(reading, execution, side, sampling)
    _vocabulary_stage(wanted, count, execution, options, reading.scheme, path)


def count_in_attempt(
    reading: Reading,
    execution: Execution,
    side: str,
    sampling: SampledVocabulary = SampledVocabulary(),
) -> Callable[[Attempt], 'Counted']:
    """Returns what counts the training lines' tokens within another stage's attempt."""

    def count(attempt: Attempt) -> Counted:
        folder = CountsFolder(filesystem.join(attempt.path, 'counts'), side)
        [rejected] = count_stage(reading, execution, [folder], sampling=sampling)
        output = StageOutput.of_counts(folder.path)
        manifest = read_manifest(output.manifest_path)
        # By their names in the attempt, which the counting stage gave them.
        kept = filesystem.split_path(output.rejected_folder)[1]
        moved = tuple(
            dataclasses.replace(file, name=f'{kept}/{filesystem.split_path(file.name)[1]}')
            for file in rejected
        )
        counts = find_counts([folder.path])
        return Counted(counts, manifest.inputs, manifest.lines, moved, manifest.sample)

    return count


@dataclass(frozen=True)
class Counted:
    """Counts to learn from, and what they were counted from."""

    counts: CountFiles
    inputs: tuple[InputText, ...]
    lines: tuple[LineTally, ...] = ()
    rejected: tuple[OutputFile, ...] = ()  # in the attempt's folder
    sample: tuple[SampleRecord, ...] = ()


def _vocabulary_stage(
    key: StageKey,
    count: Callable[[Attempt], Counted],
    execution: Execution,
    options: LearningOptions,
    scheme: Scheme,
    path: str,
) -> None:
    output = StageOutput.of_vocabulary(path)
    name = filesystem.split_path(path)[1]
    if filesystem.is_folder(path):
        raise InputError(f'{path} is a folder; give a file as --output')
    place = RoundsPlace.of(output.folder, name, execution.work)

    def make(attempt: Attempt) -> list[Made]:
        counted = count(attempt)
        work = filesystem.join(attempt.path, 'learner')
        search = VocabularySearch(
            counted.counts, options, name, execution.engine, work, place, scheme
        )
        record = learn(search, 'both', attempt.path)
        manifest = key.manifest(
            counted.inputs,
            counted.lines,
            vocabularies=(record,),
            sample=counted.sample,
        )
        return [Made(manifest, counted.rejected)]

    [made] = run_stage(
        [StageTask(key, output, [name])],
        make,
        execution,
        kept=[WorkFolder(execution.work, output.folder), place],
    )
    if made is not None:
        output.warn_rejected(made.rejected)
        tell(VocabularyMade(made.manifest.vocabularies[0].size, path))
        tell_sample(made.manifest)


def _warn_if_missed(found: Learned, options: LearningOptions, label: str) -> None:
    target = options.vocab_size
    size, smallest = found.vocabulary.vocab_size, found.smallest_size
    if options.is_met(size):
        return
    tell(SizeMissed(label, size, target, found.reachable, smallest, found.min_count is not None))
