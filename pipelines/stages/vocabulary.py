"""The stage that learns: token counts in, a vocabulary file out.

For codes there is a table of pieces and their ids beside it, for other byte pair encoding and
WordPiece a folder that Hugging Face's libraries open.
"""

import dataclasses
import hashlib
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import google_crc32c

from pipelines.artifacts.counts import (
    CountFiles,
    CountsFolder,
    find_counts,
    log_sample,
    read_counts,
)
from pipelines.artifacts.manifest import read_manifest
from pipelines.artifacts.outputs import StageOutput, StageTask, refuse_replaced
from pipelines.artifacts.vocabularies import file_entry, path_in_folder, vocabulary_reader
from pipelines.engines.progress import stage_running
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.files.work_folder import WorkFolder
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
from tokcore.corpus.stats import LineTally
from tokcore.encoding.scheme import Learned, LearningOptions, Scheme
from tokcore.encoding.vocabulary import Vocabulary
from tokcore.errors import InputError
from tokcore.options import recorded
from tokcore.records.manifest import InputText, Manifest, OutputFile, SampleRecord, VocabularyRecord
from tokcore.text.unicode import UNICODE_VERSION

_LOGGER = logging.getLogger(__name__)


def vocabulary_stage(job: VocabJob) -> Manifest | None:
    """Learns a vocabulary into a file, with its manifest beside it; counts of a text are not kept.

    Returns the manifest of what was made; None if it was there.

    Raises:
        InputError: whatever counting refuses, counts that cannot be read, a size below the
            alphabet, or another result in the output.
    """
    source, execution, key = job.source, job.execution, job.key()
    output, name = _file_output(job.output, job.file_names[1:])
    rounds = OutputRounds.of(output.folder, name, execution.work)

    def make(attempt: Attempt) -> list[StageResult]:
        if isinstance(source, CountFiles):
            counted = _Counted(source, tuple(file.checksum() for file in key.inputs))
        else:
            counted = _count_text(source, execution, attempt)
        work = os.path.join(attempt.path, 'learner')
        search = VocabularySearch(
            counted.counts,
            job.learning,
            name,
            execution.engine,
            work,
            rounds,
            job.scheme,
            execution.memory_bytes,
        )
        record = learn(search, 'both', attempt.path, job.tokenizer_folder)
        manifest = key.manifest(
            counted.inputs, counted.lines, vocabularies=(record,), sample=counted.sample
        )
        return [StageResult(manifest, counted.rejected)]

    [result] = run_stage(
        [StageTask(key, output, job.file_names)],
        make,
        execution,
        kernels=['learning'] if isinstance(source, CountFiles) else ['counting', 'learning'],
        work=WorkFolder(execution.work, output.folder),
        kept=[rounds],
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
        with_ids: whether to write the ids beside a vocabulary whose own file has none.

    Raises:
        InputError: counts that cannot be read, or a size below the alphabet.
    """
    names = ', '.join(file.path for file in search.counts.files)
    try:
        with stage_running('vocab'):
            learned = search.run()
    except OverflowError as error:
        raise InputError(f'{error}; divide the counts in {names}') from error
    warn_if_size_missed(learned, search.options, search.label)
    vocabulary, scheme = learned.vocabulary, search.scheme
    data = vocabulary.dump()
    written = os.path.join(path, search.label)
    filesystem.write_bytes(written, data)
    beside: tuple[OutputFile, ...] = ()
    if with_ids and (name := scheme.entries_name(search.label)):
        entries = scheme.entries(vocabulary, read_counts(search.counts))
        filesystem.write_bytes(os.path.join(path, name), entries)
        beside = (file_entry(name, entries),)
        vocabulary = scheme.parse(data, written, filesystem.read_if_there)
    beside += _write_tokenizer(scheme, vocabulary, path, tokenizer_folder, search.label)
    return VocabularyRecord(
        side=side,
        name=search.label,
        size=vocabulary.vocab_size,
        bytes=len(data),
        crc32c=f'{google_crc32c.value(data):08x}',
        scheme=scheme.name,
        special_ids=vocabulary.special_ids._asdict(),
        unicode=UNICODE_VERSION,
        rules=scheme.rules,
        min_count=learned.min_count,
        tried=learned.tried,
        scheme_options=recorded(scheme) or None,
        beside=beside,
        sha256=hashlib.sha256(data).hexdigest(),
    )


def _write_tokenizer(
    scheme: Scheme, vocabulary: Vocabulary, path: str, folder: str, label: str
) -> tuple[OutputFile, ...]:
    """Writes the files for Hugging Face's libraries, unless one is the vocabulary's own file."""
    entries = []
    for name, data in scheme.tokenizer_files(vocabulary).items():
        relative = path_in_folder(folder, name)
        if relative != label:
            filesystem.write_bytes(os.path.join(path, relative), data)
            entries.append(file_entry(relative, data))
    return tuple(entries)


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
    """Counts the pieces of the training lines into a file, and writes the ids of pieces beside codes.

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
        counted = _count_text(TextToCount(reading, job.side), execution, attempt)
        table = read_counts(counted.counts, scheme.unstorable)
        data = piece_table(count_pieces(cast(CodesVocabulary, codes.entries), table))
        filesystem.write_bytes(os.path.join(attempt.path, name), data)
        manifest = key.manifest(
            counted.inputs,
            counted.lines,
            files=(file_entry(name, data),),
        )
        return [StageResult(manifest, counted.rejected)]

    [result] = run_stage([StageTask(key, output, [name])], make, execution, read=[job.codes_path])
    frequent = [
        (piece, count) for piece, count in _read_table(job.output) if count >= job.threshold
    ]
    ids = entries_file(frequent, job.special_tokens)
    _write_ids(ids_path, ids, execution.overwrite)
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


def _read_table(path: str) -> list[tuple[str, int]]:
    lines = filesystem.read_bytes(path).decode().split('\n')[:-1]
    return [(piece, int(count)) for piece, _, count in (line.rpartition(' ') for line in lines)]


def _write_ids(path: str, ids: bytes, overwrite: bool) -> None:
    existing = filesystem.read_if_there(path)
    if existing == ids:
        return
    if existing is not None and not overwrite:
        raise InputError(
            f'{path} exists already, with other entries; move it away, or give --overwrite to '
            'replace it'
        )
    filesystem.write_bytes(path, ids)


@dataclass(frozen=True)
class _Counted:
    """Counts to learn from, and what they were counted from."""

    counts: CountFiles
    inputs: tuple[InputText, ...]
    lines: tuple[LineTally, ...] = ()
    rejected: tuple[OutputFile, ...] = ()  # in the attempt's folder
    sample: tuple[SampleRecord, ...] = ()


def _count_text(text: TextToCount, execution: Execution, attempt: Attempt) -> _Counted:
    """Counts the training lines' tokens within another stage's attempt."""
    folder = CountsFolder(os.path.join(attempt.path, 'counts'), text.side)
    [result] = count_folders(
        CountJob(reading=text.reading, folders=[folder], execution=execution, sample=text.sample)
    )
    output = StageOutput.of_counts(folder.path)
    manifest = read_manifest(output.manifest_path)
    assert result is not None and manifest is not None
    # By their names in the attempt, which the counting stage gave them.
    base = os.path.basename(output.rejected_folder)
    moved = tuple(
        dataclasses.replace(file, name=f'{base}/{os.path.basename(file.name)}')
        for file in result.rejected
    )
    counts = find_counts([folder.path])
    return _Counted(counts, manifest.inputs, manifest.lines, moved, manifest.sample)
