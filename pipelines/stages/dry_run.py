"""What a job would read and write: each input is opened and its first block read."""

import os
import sys
from collections.abc import Iterator

from pipelines.artifacts.counts import CountFiles
from pipelines.files import filesystem
from pipelines.jobs.job import (
    BuildJob,
    CorpusReading,
    EncodeJob,
    Job,
    MergeJob,
    PiecesJob,
    VocabJob,
)
from pipelines.stages.cost import cost
from tokcore.corpus.archive_reading import in_passes, reading_on
from tokcore.corpus.corpus import OpenBinary, Split
from tokcore.corpus.formats import format_reader
from tokcore.corpus.stats import block_stats
from tokcore.counts.vocab_sample import UniformShare, sample_from_option
from tokcore.errors import InputError
from tokcore.filters.applying import select_rows

_SHOWN_FILES = 8
_NO_TEXT = '--dry-run looks at text, and --counts has none; leave it out'


def dry_run(job: Job) -> Iterator[str]:
    """Yields lines that describe the inputs and outputs of a job that reads text.

    Raises:
        InputError: the job reads no text, a file cannot be read, or its first block has a line that
            cannot be used.
    """
    if isinstance(job, MergeJob):
        raise InputError(_NO_TEXT)
    text = job.source if isinstance(job, VocabJob) else job
    if isinstance(text, CountFiles):
        raise InputError(_NO_TEXT)
    reading, sample = text.reading, text.sample.vocab_sample
    for split in reading.corpus.splits:
        size = sum(file.size for files in split.files for file in files)
        name = f'{split.name}, {split.dataset}' if split.dataset else split.name
        paths = sum(len(files) for files in split.files)
        limit = f', the first {split.max_examples} examples' if split.max_examples else ''
        yield f'{name}: {split.format.what}, {_count(paths, "file")}, {size} bytes as stored{limit}'
        yield from _first_blocks(reading, job.execution.item_bytes, split)
    if sample:
        yield f'vocabulary: {_sample_label(sample)} (--vocab-sample {sample})'
    if isinstance(job, VocabJob | PiecesJob):
        folder, name = os.path.split(job.output)
        names = job.file_names if isinstance(job, VocabJob) else [name]
    else:
        folder, names = job.output, job.file_names
    yield f'to be written to {folder}: {_count(len(names), "file")}'
    for name in names[:_SHOWN_FILES]:
        yield f'  {name}'
    if len(names) > _SHOWN_FILES:
        yield f'  … {names[-1]}'
    if isinstance(job, BuildJob | EncodeJob):
        yield from cost(job)


def _sample_label(text: str) -> str:
    sample = sample_from_option(text)
    if isinstance(sample, UniformShare):
        return f'counted from a sample, {sample.share} of the training rows'
    return (
        'counted from a sample, every n-th line of each training file until they have '
        f'{sample.size:,} characters'
    )


def _count(number: int, noun: str) -> str:
    return f'{number} {noun}' if number == 1 else f'{number} {noun}s'


def _first_blocks(reading: CorpusReading, item_bytes: int, split: Split) -> Iterator[str]:
    lines: dict[int, str] = {}
    for together in in_passes(split.file_indexes, split.files_at, sys.maxsize):
        with reading_on(filesystem.open_binary, list(map(split.files_at, together))) as open_binary:
            for file_index in together:
                lines[file_index] = _first_block(
                    reading, item_bytes, split, file_index, open_binary
                )
    for file_index in split.file_indexes:
        yield f'  {lines[file_index]}'


def _first_block(
    reading: CorpusReading, item_bytes: int, split: Split, file_index: int, open_binary: OpenBinary
) -> str:
    paths = ' and '.join(file.path for file in split.files_at(file_index))
    reader = format_reader(split.format)
    block = reader.first_block(split, file_index, open_binary, item_bytes, reading.max_line_bytes)
    if block is None:
        return f'{paths}: empty'
    rows = select_rows(block, reading.corpus.splits, reading.scheme.normalizer)
    splits = reading.corpus.splits
    stats = block_stats(block, rows, splits, reading.on_error, filesystem.open_binary)
    tally = stats.tally
    left_out = ''.join(f', {count} {reason}' for reason, count in tally.left_out.items())
    left_out += ''.join(f', {count} dropped by {name}' for name, count in tally.filtered.items())
    left_out += f', {tally.missing_side} without a side' if tally.missing_side else ''
    left_out += f', {tally.added} added by filters' if tally.added else ''
    return (
        f'{paths}: in the first block {_count(tally.lines, "line")}, '
        f'{_count(tally.examples, "example")}, {tally.empty} empty{left_out}'
    )
