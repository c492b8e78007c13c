"""What a job would read and write, told without doing it."""

import sys
from collections.abc import Iterator, Sequence

from pipelines.files import filesystem
from pipelines.jobs.job import Execution, Reading
from pipelines.options.vocabulary_options import SampledVocabulary
from tokcore.corpus.block_stats import stats_of
from tokcore.corpus.dataset import OpenBinary, Split
from tokcore.corpus.filters.taken_rows import taken_rows
from tokcore.corpus.sampling.vocab_sample import UniformShare, asked_sample
from tokcore.corpus.storage.archive_passes import in_passes
from tokcore.corpus.storage.archive_reading import reading_on

_FILES_TOLD = 8


def dry_run(
    reading: Reading,
    execution: Execution,
    names: Sequence[str],
    folder: str,
    sampling: SampledVocabulary = SampledVocabulary(),
) -> Iterator[str]:
    """Yields lines about the inputs, each of which is opened and its first block read, and outputs.

    Args:
        reading: the corpus.
        execution: the size of a block.
        names: of the files that would be made.
        folder: where.
        sampling: what of the training corpus the vocabulary is counted from.

    Raises:
        InputError: a file cannot be read, or its first block has a line that cannot be used.
    """
    for split in reading.corpus.splits:
        size = sum(file.size for files in split.files for file in files)
        name = f'{split.name}, {split.dataset}' if split.dataset else split.name
        paths = sum(len(files) for files in split.files)
        limit = f', the first {split.max_examples} examples' if split.max_examples else ''
        yield f'{name}: {split.format.what}, {_many(paths, "file")}, {size} bytes as stored{limit}'
        yield from _first_blocks(reading, execution, split)
    if sampling.vocab_sample:
        yield f'vocabulary: {_sampled(sampling.vocab_sample)} (--vocab-sample {sampling.vocab_sample})'
    yield f'to be written to {folder}: {_many(len(names), "file")}'
    for name in names[:_FILES_TOLD]:
        yield f'  {name}'
    if len(names) > _FILES_TOLD:
        yield f'  … {names[-1]}'


def _sampled(how: str) -> str:
    asked = asked_sample(how)
    if isinstance(asked, UniformShare):
        return f'counted from a sample, {asked.typed} of the training rows'
    return (
        'counted from a sample, of each training file every so-manieth line until they have '
        f'{asked.size:,} characters'
    )


def _many(count: int, what: str) -> str:
    return f'{count} {what}' if count == 1 else f'{count} {what}s'


def _first_blocks(reading: Reading, execution: Execution, split: Split) -> Iterator[str]:
    passes = in_passes(split.places, split.files_at, sys.maxsize)
    told: dict[int, str] = {}
    for together in passes:
        with reading_on(filesystem.open_binary, list(map(split.files_at, together))) as open_binary:
            for place in together:
                told[place] = _first_block(reading, execution, split, place, open_binary)
    for place in split.places:
        yield f'  {told[place]}'


def _first_block(
    reading: Reading, execution: Execution, split: Split, place: int, open_binary: OpenBinary
) -> str:
    files = split.files_at(place)
    paths = ' and '.join(file.path for file in files)
    block = split.format.first_block(
        split, place, open_binary, execution.item_bytes, reading.max_line_bytes
    )
    if block is None:
        return f'{paths}: empty'
    rows = taken_rows(block, reading.corpus.splits, reading.scheme.normalizer)
    tally = stats_of(block, rows, reading.corpus.splits, reading.on_error).tally
    left_out = ''.join(f', {count} {reason}' for reason, count in tally.left_out.items())
    left_out += ''.join(f', {count} dropped by {name}' for name, count in tally.filtered.items())
    left_out += f', {tally.added} added by filters' if tally.added else ''
    return (
        f'{paths}: in the first block {_many(tally.lines, "line")}, '
        f'{_many(tally.examples, "example")}, {tally.empty} empty{left_out}'
    )
