"""What a job's workers report of the lines that they read, and how many lines may be left out."""

import collections
import dataclasses
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.files import filesystem
from pipelines.jobs.corpus import Corpus, input_texts
from pipelines.jobs.job import Execution
from pipelines.jobs.read_plan import ReadPlan
from pipelines.options.job import RejectionLimit
from pipelines.transforms.count_tokens import REJECTED, STATS
from pipelines.transforms.stats import (
    RejectionBudget,
    WriteRejected,
    WriteStats,
    WrittenFile,
    read_stats,
)
from tokcore.corpus.stats import LineTally, RangeChecksum, add_tallies
from tokcore.errors import InputError
from tokcore.records.manifest import InputText, OutputFile

_LOGGER = logging.getLogger(__name__)

_STATS_NAME = 'stats'
_REJECTED_NAME = 'rejected-files'


@dataclass(frozen=True)
class ReadStats:
    """What a pipeline's workers reported of the lines that they read."""

    inputs: tuple[InputText, ...]
    lines: tuple[LineTally, ...]
    rejected: tuple[OutputFile, ...] = ()
    unknown_words: tuple[Mapping[str, int], ...] = ()  # of each split, the commonest
    datasets: tuple[LineTally, ...] = ()  # of each dataset that has a name


def write_stats(outputs: Mapping[str, beam.PCollection], path: str) -> None:
    """Adds the steps that report a pipeline's stats and write its rejected lines to a folder."""
    write_read_stats(outputs[STATS], path)
    write_rejected_stats(outputs[REJECTED] | 'WriteRejected' >> WriteRejected(path), path)


def write_read_stats(stats: beam.PCollection, path: str) -> None:
    """Adds the step that reports what was read."""
    stats | 'WriteStats' >> WriteStats(filesystem.join(path, _STATS_NAME))


def write_rejected_stats(files: beam.PCollection, path: str) -> None:
    """Adds the step that reports the files of rejected lines."""
    files | 'WriteRejectedStats' >> WriteStats(filesystem.join(path, _REJECTED_NAME))


def read_job_stats(
    corpus: Corpus, path: str, max_rejected: RejectionLimit | None = None
) -> ReadStats:
    """Returns what a pipeline reported of its blocks to a folder.

    Raises:
        InputError: a split, or one of its datasets, has no line to encode, or too many lines were
            left out.
        RuntimeError: lines or bytes were lost on the way.
    """
    rows = list(read_stats(filesystem.join(path, _STATS_NAME), LineTally, RangeChecksum))
    checksums = [row for row in rows if isinstance(row, RangeChecksum)]
    tallies = [row for row in rows if isinstance(row, LineTally)]
    left_out = sum(each.rejected for each in tallies)
    if max_rejected is not None:
        refuse_losses(max_rejected, tallies)
    datasets = []
    for split in corpus.splits:
        of_it = [each for each in tallies if each.dataset == split.dataset]
        tally = add_tallies(split.name, of_it)
        if tally.examples + tally.not_sampled == 0:
            names = ', '.join(
                each.stored.path
                for each in corpus.inputs
                if each.split == split.name and each.file_index in split.file_indexes
            )
            what = (
                f'dataset {split.dataset} of {split.name}'
                if split.dataset
                else (f'{split.name} corpus')
            )
            dropped = _in_brackets('filters dropped', tally.filtered)
            left_out = _in_brackets('left out', tally.left_out)
            raise InputError(
                f'the {what} is empty: {tally.lines} lines read from {names}, none '
                f'with text on every side{left_out}{dropped}; check the files and the columns'
                f'{" and --clean" if dropped else ""}'
            )
        if split.dataset:
            datasets.append(tally)
    lines = [
        dataclasses.replace(add_tallies(name, tallies), dataset='') for name in corpus.split_names
    ]
    written = read_stats(filesystem.join(path, _REJECTED_NAME), WrittenFile)
    rejected = tuple(map(OutputFile.of, written))
    keeping = {(each.name, each.dataset) for each in corpus.splits if each.keeps_dropped}
    kept = left_out + sum(
        sum(each.filtered.values()) for each in tallies if (each.split, each.dataset) in keeping
    )
    if kept != sum(file.rows for file in rejected):
        raise RuntimeError(f'{kept} lines were rejected, but not as many written: {rejected}')
    # Which words are told depends on how blocks were cut, and no byte of a result may.
    words = tuple(each.unknown_words for each in lines)
    return ReadStats(input_texts(corpus, checksums), _told(lines), rejected, words, _told(datasets))


def log_filtered(lines: Sequence[LineTally]) -> None:
    """Logs what the filters did to the rows of each split."""
    for tally in lines:
        changes = [f'{name} dropped {count}' for name, count in tally.filtered.items()]
        if tally.added:
            changes.append(f'{tally.added} came of others')
        if changes:
            _LOGGER.info(
                'filters: %s: of %d lines, %s', tally.split, tally.lines, ', '.join(changes)
            )


def refuse_losses(limit: RejectionLimit, tallies: Iterable[LineTally]) -> None:
    """Raises InputError if more lines were left out of all splits together than may be."""
    reasons: collections.Counter[str] = collections.Counter()
    lines = 0
    for each in tallies:
        reasons.update(each.left_out)
        lines += each.lines
    limit.refuse(reasons, lines)


def _told(tallies: Sequence[LineTally]) -> tuple[LineTally, ...]:
    return tuple(dataclasses.replace(each, unknown_words={}) for each in tallies)


def _in_brackets(what: str, counts: Mapping[str, int]) -> str:
    """Returns counts by reason or by filter for a sentence, nothing if there are none."""
    told = ', '.join(f'{name} {count}' for name, count in counts.items())
    return f' ({what}: {told})' if told else ''


def rejection_budget(plan: ReadPlan, execution: Execution) -> RejectionBudget | None:
    """Returns what the workers of a pipeline that reads a plan may leave out; None: any number."""
    if execution.max_rejected is None:
        return None
    firsts = [each for each in plan.reading.corpus.inputs if each.side == 0]
    splits = {(each.split, each.file_index) for each in firsts}
    known = {
        (split.name, place)
        for split in plan.reading.corpus.splits
        for place in split.file_indexes
        if split.format.identity == 'offset'
    }
    is_known = splits <= known and not any(each.file.compressed for each in firsts)
    size = sum(each.file.size for each in firsts) if is_known else None
    return RejectionBudget(execution.max_rejected, size)
