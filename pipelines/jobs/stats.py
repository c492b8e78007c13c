"""What a job's workers report of the lines that they read, and how many lines may be left out."""

import collections
import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.files import filesystem
from pipelines.jobs.corpus import Corpus, input_texts
from pipelines.jobs.job import Execution
from pipelines.jobs.read_plan import ReadPlan
from pipelines.options.job import RejectionLimit
from pipelines.transforms.stats import (
    REJECTED,
    STATS,
    RejectionBudget,
    WriteRejected,
    WriteStats,
    WrittenFile,
    read_stats,
)
from tokcore.corpus.formats import format_reader
from tokcore.corpus.stats import LineTally, RangeChecksum, add_tallies
from tokcore.errors import InputError
from tokcore.records.manifest import InputText, OutputFile

_STATS_NAME = 'stats'
_REJECTED_NAME = 'rejected-files'
_SHARDS_NAME = 'shards'


@dataclass(frozen=True)
class ReadStats:
    """The stats that a pipeline's workers wrote about the lines that they read."""

    inputs: tuple[InputText, ...]
    lines: tuple[LineTally, ...]
    rejected: tuple[OutputFile, ...] = ()
    unknown_words: tuple[Mapping[str, int], ...] = ()  # the most frequent of each split
    datasets: tuple[LineTally, ...] = ()  # of each dataset that has a name


def write_stats(outputs: Mapping[str, beam.PCollection], path: str) -> None:
    """Adds the steps that write a pipeline's stats and its rejected lines to a folder."""
    write_read_stats(outputs[STATS], path)
    write_rejected_stats(outputs[REJECTED] | 'WriteRejected' >> WriteRejected(path), path)


def write_read_stats(stats: beam.PCollection, path: str) -> None:
    """Adds the step that writes the stats of what was read."""
    stats | 'WriteStats' >> WriteStats(os.path.join(path, _STATS_NAME))


def write_rejected_stats(files: beam.PCollection, path: str) -> None:
    """Adds the step that writes the stats of the files of rejected lines."""
    files | 'WriteRejectedStats' >> WriteStats(os.path.join(path, _REJECTED_NAME))


def write_shard_stats(files: beam.PCollection, path: str) -> None:
    """Adds the step that writes the stats of shards and their indexes."""
    files | 'WriteShardStats' >> WriteStats(os.path.join(path, _SHARDS_NAME))


def read_shard_stats(path: str) -> Iterator[WrittenFile]:
    """Yields what `write_shard_stats` wrote to a folder."""
    return read_stats(os.path.join(path, _SHARDS_NAME), WrittenFile)


def read_job_stats(
    corpus: Corpus, path: str, max_rejected: RejectionLimit | None = None
) -> ReadStats:
    """Returns what the workers of a pipeline wrote to a folder about the lines that they read.

    Raises:
        InputError: a split, or one of its datasets, has no line to encode, or too many lines were
            left out.
        RuntimeError: lines or bytes were lost on the way.
    """
    rows = list(read_stats(os.path.join(path, _STATS_NAME), LineTally, RangeChecksum))
    checksums = [row for row in rows if isinstance(row, RangeChecksum)]
    tallies = [row for row in rows if isinstance(row, LineTally)]
    rejected_lines = sum(tally.rejected for tally in tallies)
    if max_rejected is not None:
        refuse_losses(max_rejected, tallies)
    by_dataset: dict[tuple[str, str], list[LineTally]] = {}
    for tally in tallies:
        by_dataset.setdefault((tally.split, tally.dataset), []).append(tally)
    datasets = []
    for split in corpus.splits:
        tally = add_tallies(split.name, by_dataset.get((split.name, split.dataset), ()))
        if tally.examples + tally.not_sampled == 0:
            names = ', '.join(
                file.stored.path
                for file in corpus.inputs
                if file.split == split.name and file.file_index in split.file_indexes
            )
            files = [file for together in split.files for file in together]
            what_to_do = format_reader(split.format).explain_empty(files, filesystem.open_binary)
            what = (
                f'dataset {split.dataset} of {split.name}'
                if split.dataset
                else f'{split.name} corpus'
            )
            dropped = _in_brackets('filters dropped', tally.filtered)
            without = {'missing_side': tally.missing_side} if tally.missing_side else {}
            left_out = _in_brackets('left out', {**tally.left_out, **without})
            if split.key_range is not None and split.name != 'train':
                raise InputError(
                    f'no row of the training corpus is in the share that is cut off for {split.name}; '
                    f'give a larger --{split.name}-share'
                )
            raise InputError(
                f'the {what} is empty: {tally.lines} lines read from {names}, none '
                f'with text on every side{left_out}{dropped}; {what_to_do}'
                f'{" and --clean" if dropped else ""}'
            )
        if split.dataset:
            datasets.append(tally)
    lines = [
        dataclasses.replace(add_tallies(name, tallies), dataset='') for name in corpus.split_names
    ]
    written = read_stats(os.path.join(path, _REJECTED_NAME), WrittenFile)
    rejected = tuple(file.listed() for file in written)
    keeping = {(split.name, split.dataset) for split in corpus.splits if split.keeps_dropped}
    kept = rejected_lines + sum(
        sum(tally.filtered.values()) for tally in tallies if (tally.split, tally.dataset) in keeping
    )
    if kept != sum(file.rows for file in rejected):
        raise RuntimeError(f'{kept} lines were rejected, but not as many written: {rejected}')
    # Which words are counted depends on the blocks, and no byte of a result may depend on these.
    words = tuple(tally.unknown_words for tally in lines)
    return ReadStats(
        input_texts(corpus, checksums),
        _without_words(lines),
        rejected,
        words,
        _without_words(datasets),
    )


def refuse_losses(limit: RejectionLimit, tallies: Iterable[LineTally]) -> None:
    """Raises InputError if more lines of all splits together were left out than the limit allows."""
    reasons: collections.Counter[str] = collections.Counter()
    lines = 0
    for tally in tallies:
        reasons.update(tally.left_out)
        lines += tally.lines
    limit.refuse(reasons, lines)


def _without_words(tallies: Sequence[LineTally]) -> tuple[LineTally, ...]:
    return tuple(dataclasses.replace(tally, unknown_words={}) for tally in tallies)


def _in_brackets(what: str, counts: Mapping[str, int]) -> str:
    """Returns counts by reason or by filter, in brackets; empty if there are none."""
    items = ', '.join(f'{name} {count}' for name, count in counts.items())
    return f' ({what}: {items})' if items else ''


def rejection_budget(plan: ReadPlan, execution: Execution) -> RejectionBudget | None:
    """Returns how many lines the workers of a pipeline may reject; None: any number."""
    if execution.max_rejected is None:
        return None
    firsts = [file for file in plan.reading.corpus.inputs if file.side == 0]
    files = {(file.split, file.file_index) for file in firsts}
    known = {
        (split.name, index)
        for split in plan.reading.corpus.splits
        for index in split.file_indexes
        if split.format.identity == 'offset'
    }
    is_known = files <= known and not any(file.file.compressed for file in firsts)
    size = sum(file.file.size for file in firsts) if is_known else None
    return RejectionBudget(execution.max_rejected, size)
