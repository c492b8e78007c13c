"""The stage that learns: token counts in, a vocabulary file out.

With codes comes a table of pieces and their ids, with other byte pair encoding and
WordPiece a folder that Hugging Face's libraries open.
"""

import dataclasses
import hashlib
import logging
import os
from collections.abc import Sequence
from typing import cast

import google_crc32c

from pipelines.artifacts.counts import (
    CountFiles,
    CountsFolder,
    find_counts,
    log_sample,
    read_counts,
)
from pipelines.artifacts.outputs import StageOutput, StageTask, refuse_replaced
from pipelines.artifacts.vocabularies import file_entry, path_in_folder, vocabulary_reader
from pipelines.engines.progress import stage_running
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt, WorkFolder
from pipelines.jobs.job import (
    CountJob,
    Execution,
    PiecesJob,
    TextToCount,
    VocabJob,
    VocabularyPaths,
)
from pipelines.learning.rounds import OutputRounds
from pipelines.learning.search import VocabularySearch
from pipelines.options.job import PairSide
from pipelines.stages.count import count_folders
from pipelines.stages.encode import vocabulary_records
from pipelines.stages.run_stage import StageResult, run_stage
from tokcore.bpe.codes import CodesVocabulary, count_pieces, entries_file, piece_table
from tokcore.encoding.scheme import Learned, LearningOptions
from tokcore.errors import InputError
from tokcore.options import recorded
from tokcore.records.manifest import Manifest, OutputFile, VocabularyRecord
from tokcore.text.unicode import UNICODE_VERSION

_LOGGER = logging.getLogger(__name__)


def vocabulary_stage(job: VocabJob) -> Manifest | None:
    """Learns a vocabulary into a file, and its manifest next to it; counts of a text are not kept.

    Returns the manifest of what was made; None if it was there.

    Raises:
        InputError: whatever counting refuses, counts that cannot be read, a size below the
            alphabet, or another result in the output.
    """
    source, execution, key = job.source, job.execution, job.key()
    output, name = _file_output(job.output, job.file_names[1:])
    rounds = OutputRounds.of(output.folder, name, execution.work)

    def make(attempt: Attempt) -> list[StageResult]:
        rejected: tuple[OutputFile, ...] = ()
        if isinstance(source, CountFiles):
            counts = source
            manifest = key.manifest(tuple(file.checksum() for file in key.inputs))
        else:
            counts, counted, rejected = _count_text(source, execution, attempt)
            manifest = key.manifest(counted.inputs, counted.lines, sample=counted.sample)
        search = VocabularySearch(
            counts,
            job.learning,
            name,
            execution.engine,
            os.path.join(attempt.path, 'learner'),
            rounds,
            job.scheme,
            execution.memory_bytes,
            job.parity,
        )
        record = learn(search, 'both', attempt.path, job.tokenizer_folder)
        return [StageResult(dataclasses.replace(manifest, vocabularies=(record,)), rejected)]

    [result] = run_stage(
        [StageTask(key, output, job.file_names)],
        make,
        execution,
        kernels=['learning'] if isinstance(source, CountFiles) else ['counting', 'learning'],
        work=WorkFolder(execution.work, output.folder),
        kept=[rounds],
        read=[text.path for text in job.parity],
    )
    if result is None:
        return None
    output.warn_rejected(result.rejected)
    log_sample(result.manifest)
    return result.manifest


def learn(
    search: VocabularySearch,
    side: PairSide,
    path: str,
    tokenizer_folder: str,
    with_ids: bool = False,
) -> VocabularyRecord:
    """Learns a vocabulary from count files into a folder; returns its entry in the manifest.

    Args:
        search: for it.
        side: that it is for.
        path: of the folder.
        tokenizer_folder: where in it the files are for Hugging Face's libraries.
        with_ids: whether to write the ids too, for a vocabulary whose file has none.

    Raises:
        InputError: counts that cannot be read, or a size below the alphabet.
    """
    names = ', '.join(file.path for file in search.counts.files)
    try:
        with stage_running('vocab'):
            learned = search.run()
    except OverflowError as error:
        raise InputError(f'{error}; divide the counts in {names}') from error
    vocabulary, scheme = learned.vocabulary, search.scheme
    if scheme.entries_name(search.label) is None:  # codes do not hold all that the size counts
        warn_if_size_missed(learned, search.options, search.label)
    stored = vocabulary.dump()
    written = os.path.join(path, search.label)
    filesystem.write_bytes(written, stored)
    beside: tuple[OutputFile, ...] = ()
    for ending, data in scheme.files_beside(vocabulary, search.options).items():
        filesystem.write_bytes(written + ending, data)
        beside += (file_entry(search.label + ending, data),)
    if with_ids and (name := scheme.entries_name(search.label)):
        entries = scheme.entries(vocabulary, read_counts(search.counts))
        filesystem.write_bytes(os.path.join(path, name), entries)
        beside += (file_entry(name, entries),)
        vocabulary = scheme.parse(stored, written, filesystem.read_if_there)
    for name, data in scheme.tokenizer_files(vocabulary).items():
        relative = path_in_folder(tokenizer_folder, name)
        if relative != search.label:  # else it is the vocabulary's file itself
            filesystem.write_bytes(os.path.join(path, relative), data)
            beside += (file_entry(relative, data),)
    return VocabularyRecord(
        side=side,
        name=search.label,
        size=vocabulary.vocab_size,
        bytes=len(stored),
        crc32c=f'{google_crc32c.value(stored):08x}',
        scheme=scheme.name,
        special_ids=vocabulary.special_ids._asdict(),
        unicode=UNICODE_VERSION,
        rules=scheme.rules,
        min_count=learned.min_count,
        tried=learned.tried,
        scheme_options=recorded(scheme) or None,
        beside=beside,
        sha256=hashlib.sha256(stored).hexdigest(),
    )


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
    # The rule of all schemes, also where a scheme's own search may end farther away.
    if target is None or LearningOptions.is_met(options, size):
        return
    search = getattr(options, 'search', 'closest')
    low, high = getattr(options, 'min_count_range', None) or (1, None)
    is_lowest = learned.min_count is not None and learned.min_count <= low and size < target
    if learned.min_count is None:
        around = 'there are no more'
        if size > target:
            around = (
                'so many are the special tokens and what merges begin with, bytes or characters'
            )
    elif is_lowest and low == 1:
        around = 'the text gives no more'
    elif is_lowest:
        around = f'lower min-counts may give more: --min-count-range 1:{high}'
    elif not learned.reachable and search != 'closest':
        around = f'--search={search} ends there'
    else:
        near = ' and '.join(f'{size} at min-count {count}' for count, size in learned.reachable)
        around = f'reachable around it are {near or "no others"}'
        if smallest is not None and target < smallest:
            around += f'; no fewer than {smallest} are possible'
    if learned.min_count is not None and not is_lowest and search != 'closest':
        around += '; --search=closest takes the nearest'
    _LOGGER.warning('%s has %d entries, asked for %d: %s', label, size, target, around)


def pieces_stage(job: PiecesJob) -> Manifest | None:
    """Counts the pieces of the training lines into a file, and writes the ids of pieces next to the codes.

    Returns the manifest of what was made; None if it was there.

    Raises:
        InputError: a line that cannot be used, or another result in the output.
    """
    reading, execution, scheme = job.reading, job.execution, job.reading.scheme
    read_codes = vocabulary_reader(scheme)
    codes = read_codes(job.codes_path)
    [record] = vocabulary_records(
        VocabularyPaths(job.codes_path, job.codes_path), read_codes, scheme, needs_ids=False
    )
    record = dataclasses.replace(record, beside=())
    output, name = _file_output(job.output)
    ids_name = scheme.entries_name(os.path.basename(job.codes_path))
    assert ids_name is not None  # codes have their ids in a file of their own
    ids_path = os.path.join(os.path.dirname(job.codes_path), ids_name)
    key = job.key(record)
    read = [*(file.stored.path for file in key.inputs), job.codes_path, *execution.read_beside]
    refuse_replaced(read, [ids_path])

    def make(attempt: Attempt) -> list[StageResult]:
        text = TextToCount(reading, job.side)
        counts, counted, rejected = _count_text(text, execution, attempt)
        table = read_counts(counts, scheme.unstorable)
        data = piece_table(count_pieces(cast(CodesVocabulary, codes.entries), table))
        filesystem.write_bytes(os.path.join(attempt.path, name), data)
        files = (file_entry(name, data),)
        return [StageResult(key.manifest(counted.inputs, counted.lines, files=files), rejected)]

    [result] = run_stage([StageTask(key, output, [name])], make, execution, read=[job.codes_path])
    lines = filesystem.read_bytes(job.output).decode().split('\n')[:-1]
    pieces = [(piece, int(count)) for piece, _, count in (line.rpartition(' ') for line in lines)]
    frequent = [(piece, count) for piece, count in pieces if count >= job.threshold]
    ids = entries_file(frequent, job.special_tokens)
    existing = filesystem.read_if_there(ids_path)
    if existing not in (None, ids) and not execution.overwrite:
        raise InputError(
            f'{ids_path} exists already, with other entries; move it away, or give --overwrite to '
            'replace it'
        )
    if existing != ids:
        filesystem.write_bytes(ids_path, ids)
    if result is None:
        return None
    output.warn_rejected(result.rejected)
    _LOGGER.info(
        'count: %d pieces in %s, ids of %d entries in %s',
        result.manifest.files[0].rows,
        job.output,
        ids.count(b'\n'),
        ids_path,
    )
    return result.manifest


def _file_output(path: str, beside: Sequence[str] = ()) -> tuple[StageOutput, str]:
    """Returns the output that is one file, with others that belong to it, and the file's name."""
    if filesystem.is_folder(path):
        raise InputError(f'{path} is a folder; give a file as --output')
    return StageOutput.of_vocabulary(path, beside), os.path.basename(path)


def _count_text(
    text: TextToCount, execution: Execution, attempt: Attempt
) -> tuple[CountFiles, Manifest, tuple[OutputFile, ...]]:
    """Counts the training lines' tokens within another stage's attempt.

    Returns the counts, their manifest, and the files of rejected lines in the attempt.
    """
    folder = CountsFolder(os.path.join(attempt.path, 'counts'), text.side)
    [result] = count_folders(
        CountJob(reading=text.reading, folders=[folder], execution=execution, sample=text.sample)
    )
    assert result is not None
    # By their names in the attempt, which the counting stage gave them.
    base = os.path.basename(StageOutput.of_counts(folder.path).rejected_folder)
    rejected = tuple(
        dataclasses.replace(file, name=f'{base}/{os.path.basename(file.name)}')
        for file in result.rejected
    )
    return find_counts([folder.path]), result.manifest, rejected
