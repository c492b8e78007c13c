"""The stage that learns: token counts in, a vocabulary file out.

For codes there is a table of pieces and their ids beside it.
"""

import dataclasses
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import google_crc32c

from pipelines.artifacts.counts import (
    CountFiles,
    CountsFolder,
    find_counts,
    log_sample,
    read_counts,
)
from pipelines.artifacts.manifest import read_manifest
from pipelines.artifacts.outputs import StageKey, StageOutput, StageTask, refuse_replaced
from pipelines.artifacts.vocabularies import ReadVocabulary, file_entry
from pipelines.engines.progress import stage_running
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.files.claims import WorkFolder
from pipelines.jobs.job import CorpusReading, Execution
from pipelines.learning.rounds import RoundsPlace
from pipelines.learning.search import VocabularySearch
from pipelines.options.job import PairSide
from pipelines.options.vocabulary import SampledVocabulary
from pipelines.stages.count import count_stage
from pipelines.stages.run_stage import StageResult, run_stage
from tokcore.bpe.codes import SPECIAL_TOKENS, count_pieces, entries_file, piece_table
from tokcore.corpus.stats import LineTally
from tokcore.encoding.scheme import Learned, LearningOptions, Scheme
from tokcore.errors import InputError
from tokcore.options import recorded
from tokcore.records.manifest import InputText, OutputFile, SampleRecord, VocabularyRecord
from tokcore.text.unicode import UNICODE_VERSION

_LOGGER = logging.getLogger(__name__)


def pieces_stage(
    reading: CorpusReading,
    execution: Execution,
    side: str,
    codes: ReadVocabulary,
    record: VocabularyRecord,
    special_tokens: Sequence[str] | None,
    codes_path: str,
    path: str,
) -> None:
    """Counts the pieces of the training lines into a file, and writes the ids of pieces beside codes.

    Args:
        reading: the corpus, with the scheme of the codes.
        execution: how it is run.
        side: of pairs.
        codes: the vocabulary.
        record: of it, for the manifest.
        special_tokens: what has the first ids; None: `SPECIAL_TOKENS`.
        codes_path: of the vocabulary.
        path: of the table.

    Raises:
        InputError: a line that cannot be used, or another result there.
    """
    output = StageOutput.of_vocabulary(path)
    name = filesystem.split_path(path)[1]
    if filesystem.is_folder(path):
        raise InputError(f'{path} is a folder; give a file as --output')
    special_tokens = SPECIAL_TOKENS if special_tokens is None else tuple(special_tokens)
    scheme = reading.scheme
    entries_path = filesystem.join(
        filesystem.split_path(codes_path)[0], scheme.entries_name(record.name)
    )
    key = StageKey(
        'pieces',
        {
            'scheme': scheme.name,
            'side': side,
            **recorded(scheme),
            **reading.for_manifest(),
            'codes': [record.name, record.bytes, record.crc32c],
            'special_tokens': list(special_tokens),
        },
        reading.corpus.wanted_inputs(),
        scheme.rules,
    )
    read = [*(each.stored.path for each in key.inputs), codes_path, *execution.read_beside]
    refuse_replaced(read, [entries_path])
    count = count_in_attempt(reading, execution, side)

    def make(attempt: Attempt) -> list[StageResult]:
        counted = count(attempt)
        table = read_counts(counted.counts, scheme.unstorable)
        data = piece_table(count_pieces(codes.entries, table))
        filesystem.write_bytes(filesystem.join(attempt.path, name), data)
        manifest = key.manifest(
            counted.inputs,
            counted.lines,
            vocabularies_used=(record,),
            files=(file_entry(name, data),),
        )
        return [StageResult(manifest, counted.rejected)]

    [made] = run_stage([StageTask(key, output, [name])], make, execution, given=[codes_path])
    entries = entries_file(_read_table(path), special_tokens)
    _write_entries(entries_path, entries, execution.overwrite)
    if made is not None:
        output.warn_rejected(made.rejected)
        pieces = made.manifest.files[0].rows
        _LOGGER.info(
            'count: %d pieces in %s, ids of %d entries in %s',
            pieces,
            path,
            entries.count(b'\n'),
            entries_path,
        )


def _read_table(path: str) -> list[tuple[str, int]]:
    lines = filesystem.read_bytes(path).decode().split('\n')[:-1]
    return [(piece, int(count)) for piece, _, count in (line.rpartition(' ') for line in lines)]


def _write_entries(path: str, entries: bytes, overwrite: bool) -> None:
    there = filesystem.read_if_there(path)
    if there == entries:
        return
    if there is not None and not overwrite:
        raise InputError(
            f'{path} is there already, with other entries; move it away, or give --overwrite to '
            'replace it'
        )
    filesystem.write_bytes(path, entries)


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
    warn_if_size_missed(found, search.options, search.label)
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
    reading: CorpusReading,
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
    reading: CorpusReading,
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

    def make(attempt: Attempt) -> list[StageResult]:
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
        return [StageResult(manifest, counted.rejected)]

    [made] = run_stage(
        [StageTask(key, output, [name])],
        make,
        execution,
        kept=[WorkFolder(execution.work, output.folder), place],
    )
    if made is not None:
        output.warn_rejected(made.rejected)
        _LOGGER.info('vocab: %d entries in %s', made.manifest.vocabularies[0].size, path)
        log_sample(made.manifest)


def warn_if_size_missed(learned: Learned, options: LearningOptions, label: str) -> None:
    """Logs a warning, with the sizes that can be had, if a vocabulary has another than the target.

    Args:
        learned: the vocabulary.
        options: the target, and how far from it a size may be.
        label: the vocabulary's file name.
    """
    target, size, smallest = (
        options.vocab_size,
        learned.vocabulary.vocab_size,
        learned.smallest_size,
    )
    if options.is_met(size):
        return
    if learned.min_count is None:
        around = 'there are no more'
    else:
        near = ' and '.join(f'{size} at min-count {count}' for count, size in learned.reachable)
        around = f'reachable around it are {near or "no others"}'
        if smallest is not None and target < smallest:
            around += f'; no fewer than {smallest} are possible'
    _LOGGER.warning('%s has %d entries, asked for %d: %s', label, size, target, around)
