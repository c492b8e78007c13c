"""The summary of a job: what was read, written and left out, how long it took, and what comes next."""

import os
import shlex
from collections.abc import Iterator

from pipelines.cli.terminal import format_amount, format_time
from pipelines.engines.progress import BYTES
from pipelines.files import filesystem
from pipelines.jobs.job import BuildJob, CountJob, EncodeJob, Job, MergeJob, VocabJob
from pipelines.options.job import TFRECORD
from pipelines.shard_formats.formats import stored_format
from pipelines.shard_formats.shard_format import cut_rows, dropped_rows
from tokcore.corpus.stats import LineTally
from tokcore.records.manifest import Manifest, VocabularyRecord


def summary(job: Job, made: Manifest, seconds: float) -> Iterator[str]:
    """Yields the lines of a summary."""
    for lines in made.lines:
        name = f'{lines.split}, {lines.dataset}' if lines.dataset else lines.split
        yield f'{name}: {_tally(lines, job)}'
        yield from (f'{name}: {loss}' for loss in _losses(lines))
    yield from rows_lost(made)
    yield from stored_format(made).notes(made)
    for vocabulary in made.vocabularies:
        yield f'{vocabulary.name}: {_size(vocabulary, made)}'
    if made.tokens is not None:
        distinct = sum(file.rows for file in made.files)
        tables = len({folder.dataset for folder in job.folders}) if isinstance(job, CountJob) else 1
        of_them = f'in {tables:,} tables' if tables > 1 else f'{distinct:,} of them distinct'
        yield f'{made.tokens:,} tokens, {of_them}'
    size = sum(file.bytes for file in made.outputs)
    yield f'done in {format_time(seconds)}: {format_amount(size, BYTES)} in {job.output}'
    if made.root is not None:
        yield f'root {made.root}'
    yield from (f'next: {command}' for command in _next_commands(job, made))


def _tally(lines: LineTally, job: Job) -> str:
    """What became of a split's lines: as many as were read."""
    parts = [f'{lines.lines:,} lines read', f'{lines.examples:,} {_counted(lines, job)}']
    if lines.added:
        parts.append(f'{lines.added:,} of these made by filters')
    parts.append(f'{lines.empty:,} empty')
    for count, what in [
        (lines.missing_side, 'without a side'),
        (lines.beyond_max_examples, 'beyond max_examples'),
        (lines.not_sampled, 'outside the sample'),
        (lines.removed, 'removed'),
    ]:
        if count:
            parts.append(f'{count:,} {what}')
    for what, reasons in [('left out', lines.left_out), ('dropped by filters', lines.filtered)]:
        if count := sum(reasons.values()):
            by_reason = ', '.join(f'{number:,} {reason}' for reason, number in reasons.items())
            parts.append(f'{count:,} {what} ({by_reason})')
    return ', '.join(parts)


def _losses(lines: LineTally) -> Iterator[str]:
    """What of the text of examples is not in their ids."""
    if lines.unknown and lines.ids:
        share = lines.unknown / lines.ids
        yield f'{lines.unknown:,} of {lines.ids:,} ids are the unknown token, {share:.1%}'
    if lines.dropped_bytes:
        yield f'{lines.dropped_bytes:,} bytes without an entry or a match became no id'
    if lines.no_token:
        yield f'{lines.no_token:,} {"text" if lines.no_token == 1 else "texts"} without a token'


def rows_lost(made: Manifest) -> Iterator[str]:
    """Yields what the files of a dataset leave out of its rows."""
    pack = made.options.get('pack')
    what = 'empty or too long' if pack else 'empty'
    for split, dropped in dropped_rows(made).items():
        yield f'{split}: {dropped:,} {what} rows left out'
    for split, cut in cut_rows(made.files).items():
        if cut:
            yield f'{split}: {cut:,} rows cut to {pack} ids'


def _counted(lines: LineTally, job: Job) -> str:
    if not isinstance(job, BuildJob | EncodeJob):
        return 'with text'
    shards = job.dataset.shards_of(lines.split)
    return f'examples in {shards:,} {"shard" if shards == 1 else "shards"}'


def _size(vocabulary: VocabularyRecord, made: Manifest) -> str:
    """How many entries a vocabulary has, how many it was to have, and its scheme."""
    target, entries = made.options.get('vocab_size'), f'{vocabulary.size:,} entries'
    if target not in (None, vocabulary.size):
        entries += f', for --vocab-size {target}'
    return f'{entries}, of --scheme {vocabulary.scheme}'


def _next_commands(job: Job, made: Manifest) -> Iterator[str]:
    match job:
        case BuildJob() | VocabJob():
            folder = job.output if isinstance(job, BuildJob) else os.path.dirname(job.output)
            for vocabulary in made.vocabularies[:1]:
                path = shlex.quote(os.path.join(folder, vocabulary.name))
                yield f'tokbeam tokenize --pieces --vocab {path} < TEXT'
        case CountJob():
            scheme = job.folders[0].scheme
            folders = ' '.join(
                shlex.quote(folder.path) for folder in job.folders if folder.scheme == scheme
            )
            name = (scheme or job.reading.scheme).name
            yield f'tokbeam vocab --counts {folders} --scheme {name} --vocab-size N --output FILE'
        case MergeJob():
            yield f'tokbeam vocab --counts {shlex.quote(job.output)} --vocab-size N --output FILE'
    if not isinstance(job, BuildJob | EncodeJob) or filesystem.is_only_beams(job.output):
        return
    if job.dataset.output_format == TFRECORD:
        yield f'tokbeam inspect {shlex.quote(job.output)}'
        yield f'in Python, tokcore.open_dataset({job.output!r})'
