"""How the text of a job is read: its work items, a sample of its lines, and what workers report of them.

For some formats work items take a pass over the bytes, and so does a sample of lines.
"""

import bisect
import contextlib
import dataclasses
import functools
import itertools
import logging
import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from pipelines.artifacts.outputs import refuse_losses
from pipelines.engines.progress import track_work
from pipelines.files import filesystem
from pipelines.jobs.corpus import Corpus, input_texts, newlines_of
from pipelines.jobs.job import CorpusReading, Execution
from pipelines.options.job import RejectionLimit
from pipelines.transforms.read import READING, CountedReads, MapToStats, ReadBlocks, bytes_unit
from pipelines.transforms.stats import (
    REJECTED,
    STATS,
    RejectionBudget,
    WriteRejected,
    WriteStats,
    WrittenFile,
    read_stats,
)
from tokcore.corpus.archive_reading import in_passes, reading_on
from tokcore.corpus.corpus import CorpusFile, CorpusFormat, Split, WorkItem
from tokcore.corpus.formats import format_reader, index_ranges, plan_items, read_blocks
from tokcore.corpus.stats import LineTally, RangeChecksum, add_tallies
from tokcore.corpus.stretches import FileNewlines
from tokcore.counts.sampling import (
    LineSample,
    RowSample,
    SampledLines,
    UniformSample,
    compile_sampling_kernels,
    number_items,
    sample_file,
    starts_to_number,
)
from tokcore.counts.vocab_sample import UniformShare, sample_from_option
from tokcore.errors import InputError
from tokcore.filters.applying import find_end
from tokcore.records.manifest import InputText, OutputFile, SampleRecord

_LOGGER = logging.getLogger(__name__)

_INDEXING = 'indexing'

_Numbered = tuple[int, tuple[CorpusFormat, Any]]


@dataclass(frozen=True)
class ReadPlan:
    """The work items of what is read.

    Attributes:
        reading: what is read.
        items: of each split, in their order.
        item_bytes: the size of an item, about, and of a read from a gzip stream.
        workers: threads of a worker.
        max_rejected: how many lines may be left out; None: any number.
    """

    reading: CorpusReading
    items: Mapping[str, Sequence[WorkItem]]
    item_bytes: int
    workers: int = 1
    max_rejected: RejectionLimit | None = None

    @property
    def all_items(self) -> list[WorkItem]:
        """The work items of all splits, in the order of the splits."""
        return [item for split in self.reading.corpus.split_names for item in self.items[split]]

    @functools.cached_property
    def passes(self) -> dict[str, list[tuple[WorkItem, ...]]]:
        """Each split's work items in groups; one worker reads a group, item after item.

        The items of an archive that has to be read from its beginning are in one group. Each dataset
        has groups of its own, and reads an archive for itself.
        """
        passes: dict[str, list[tuple[WorkItem, ...]]] = {}
        for split, of_split in self.items.items():
            firsts = sorted(
                part.first_file_index for part in self.reading.corpus.splits if part.name == split
            )
            numbers = [bisect.bisect_right(firsts, item.file_index) for item in of_split]
            passes[split] = []
            for _, numbered in itertools.groupby(zip(numbers, of_split), operator.itemgetter(0)):
                together = [item for _, item in numbered]
                passes[split] += in_passes(together, lambda item: item.files, self.item_bytes)
        return passes

    def tracked(self, stage: str) -> contextlib.AbstractContextManager[None]:
        """Counts the stored bytes that a stage reads while the block runs, those of all items."""
        items = self.all_items
        unit = bytes_unit(file for item in items for file in item.files)
        return track_work(stage, READING, sum(item.stored_bytes for item in items), unit)

    def only(self, split: str, dataset: str | None = None) -> 'ReadPlan':
        """Returns the plan of one split, or of one of its datasets."""
        reading = self.reading.only(split, dataset)
        indexes = {index for part in reading.corpus.splits for index in part.file_indexes}
        items = [item for item in self.items[split] if item.file_index in indexes]
        return dataclasses.replace(self, reading=reading, items={split: items})

    @property
    def budget(self) -> RejectionBudget | None:
        """How many lines the workers of a pipeline may reject; None: any number."""
        if self.max_rejected is None:
            return None
        corpus = self.reading.corpus
        firsts = [file for file in corpus.inputs if file.side == 0]
        known = {
            (split.name, index)
            for split in corpus.splits
            for index in split.file_indexes
            if split.format.identity == 'offset'
        }
        is_known = not any(
            file.file.compressed or (file.split, file.file_index) not in known for file in firsts
        )
        size = sum(file.file.size for file in firsts) if is_known else None
        return RejectionBudget(self.max_rejected, size)

    def read(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """Returns the blocks of all splits."""
        return pipeline | 'ReadBlocks' >> ReadBlocks(
            self.all_items, self.item_bytes, self.reading.max_line_bytes, self.workers
        )


def plan_reading(reading: CorpusReading, execution: Execution, folder: str) -> ReadPlan:
    """Cuts the files into work items.

    Args:
        reading: what is read.
        execution: the size of an item, and the engine that runs the pass.
        folder: for the stats of the workers.

    Raises:
        InputError: the two files of a pair have different numbers of lines, or a gzip is damaged.
    """
    splits, item_bytes = reading.corpus.splits, execution.item_bytes
    by_split = [(split, index_ranges(split, item_bytes)) for split in splits]
    ranges = [(split.format, part) for split, parts in by_split for part in parts]
    indexes: dict[int, tuple] = {}
    if ranges:
        report = os.path.join(folder, 'line-counts')
        passes = in_passes(list(enumerate(ranges)), _files_of, item_bytes)
        indexing = MapToStats(passes, _index_ranges, report)
        size = sum(part.stored_bytes for _, part in ranges)
        engine = execution.engine.near(size)
        unit = bytes_unit(part.file for _, part in ranges)
        with track_work('index', _INDEXING, size, unit):
            engine.run(lambda pipeline: pipeline | 'IndexLines' >> indexing, folder)
        indexes = {index.number: index.lines for index in read_stats(report, _Index)}
    in_order = (indexes[number] for number in range(len(ranges)))
    items: dict[str, list[WorkItem]] = {}
    ended = []
    for split, parts in by_split:
        of_split = plan_items(split, [next(in_order) for _ in parts], item_bytes)
        if split.max_examples is not None and split.end is None:
            # Its beginning is read once, to find its end. Files are in the order of their names;
            # members that an archive has in another order are kept until then.
            files = [item.files for item in of_split]
            with reading_on(filesystem.open_binary, files) as open_binary:
                blocks = (
                    block
                    for item in of_split
                    for block in read_blocks(item, open_binary, item_bytes, reading.max_line_bytes)
                )
                end = find_end(blocks, split, reading.scheme.normalizer)
            split = dataclasses.replace(split, end=end)
        ended.append(split)
        items.setdefault(split.name, []).extend(of_split)
    corpus = dataclasses.replace(reading.corpus, splits=tuple(ended))
    reading = dataclasses.replace(reading, corpus=corpus)
    workers, most = execution.engine.workers, execution.max_rejected
    return ReadPlan(reading, items, item_bytes, workers, most)


@dataclass(frozen=True)
class _Index:
    """What the index of a format says about a range of lines."""

    number: int  # of the range
    lines: tuple


def _files_of(numbered: _Numbered) -> tuple[CorpusFile, ...]:
    return (numbered[1][1].file,)


def _index_ranges(ranges: Sequence[_Numbered]) -> Iterator[_Index]:
    reads = CountedReads(filesystem.open_binary, _INDEXING)
    with reading_on(reads.open_binary, list(map(_files_of, ranges))) as open_binary:
        for number, (declaration, part) in ranges:
            with reads.part(part.stored_bytes):
                lines = format_reader(declaration).index(part, open_binary)
            yield _Index(number, lines)


_SAMPLING = 'sampling'


@dataclass(frozen=True)
class SampledPlan:
    """What is read, and which of its rows are counted.

    Attributes:
        plan: with numbered lines, for a sample of lines.
        how: the value of `--vocab-sample`; None: all rows are counted.
        sample: decides in the workers which rows are counted; None: all are.
    """

    plan: ReadPlan
    how: str | None = None
    sample: RowSample | None = None

    def records(
        self, side: str, sides: Sequence[int], lines: LineTally, tokens: int
    ) -> tuple[SampleRecord, ...]:
        """Returns the manifest's records of the sample; empty without a sample.

        Args:
            side: the name of the side that is counted.
            sides: the numbers of the sides that are counted.
            lines: the tally of the training corpus.
            tokens: the number of tokens counted.

        Raises:
            InputError: the sample is empty.
        """
        if self.how is None:
            return ()
        if not isinstance(self.sample, LineSample):
            of_all = lines.examples + lines.not_sampled
            if not lines.examples:
                raise InputError(
                    f'--vocab-sample {self.how} takes none of the {of_all:,} lines with text; '
                    'give a larger share'
                )
            return (SampleRecord.of(self.how, side, of_all, lines.examples),)
        if not tokens:
            raise InputError(
                f'--vocab-sample {self.how} takes no line with text; give a larger budget'
            )
        names = self.plan.reading.corpus.format.sides if len(sides) > 1 else (side,)
        return tuple(
            SampleRecord.of(
                self.how,
                name,
                lines.lines,
                sum(of.count for (_, other), of in self.sample.lines.items() if other == number),
            )
            for number, name in zip(sides, names, strict=True)
        )


def refuse_unfit(how: str | None, corpus: Corpus) -> None:
    """Refuses a sample that cannot be drawn from a training corpus.

    Raises:
        InputError: a sample of lines, of rows that are not lines, or of a limited number of rows.
    """
    if how is None or isinstance(sample_from_option(how), UniformShare):
        return
    for split in corpus.splits:
        if split.name != 'train':
            continue
        whose = f'the dataset {split.dataset}' if split.dataset else 'the training corpus'
        instead = 'give --vocab-sample uniform:0.1, say, which takes rows of any format'
        if not split.format.rows_are_lines:
            raise InputError(
                f'--vocab-sample {how} takes every n-th line of a file, as Tensor2Tensor '
                f'does, and the rows of {whose} are {split.format.what}; {instead}'
            )
        if split.key_range is not None:
            raise InputError(
                f'--vocab-sample {how} takes lines of a whole file, as Tensor2Tensor does, and a part '
                f'of {whose} is cut off by --dev-share or --test-share; {instead}'
            )
        if split.max_examples is not None:
            raise InputError(
                f'--vocab-sample {how} takes lines from all of a file, as Tensor2Tensor does, and '
                f'of {whose} the first {split.max_examples} examples are taken; {instead}'
            )


def plan_sample(
    plan: ReadPlan, how: str | None, execution: Execution, folder: str, sides: frozenset[int]
) -> SampledPlan:
    """Determines the sample of a training corpus; a sample of lines takes a pass over the files.

    Args:
        plan: how the training corpus is read.
        how: the value of `--vocab-sample`, checked by `refuse_unfit`; None: all rows.
        execution: runs the pass.
        folder: where workers leave their stats.
        sides: the numbers of the sides that are counted.

    Raises:
        InputError: a file cannot be read or is damaged, or the sample has no line of a side.
    """
    if how is None:
        return SampledPlan(plan)
    sample = sample_from_option(how)
    if isinstance(sample, UniformShare):
        first_file = plan.reading.corpus.splits[0].first_file_index
        return SampledPlan(plan, how, UniformSample(sample.threshold, first_file))
    for item in plan.items['train']:
        if not item.format.rows_are_lines:
            paths = ' and '.join(file.path for file in item.files)
            raise InputError(
                f'--vocab-sample {how} takes every n-th line of a file, as Tensor2Tensor does, and '
                f'the rows of {paths} are not on the same lines; give --vocab-sample uniform:0.1, say'
            )
    execution.engine.compile_first(compile_sampling_kernels)
    starts = starts_to_number(plan.items['train'])
    longest = plan.reading.max_line_bytes
    parts = [
        _Part(index, side, files[side], sample.size, tuple(starts.get(index, ())), longest)
        for split in plan.reading.corpus.splits
        for index, files in zip(split.file_indexes, split.files, strict=True)
        for side in sorted(sides)
    ]
    report = os.path.join(folder, 'sampled-files')
    passes = in_passes(parts, lambda part: (part.file,), execution.item_bytes)
    sampling = MapToStats(passes, _sample_parts, report)
    unit = bytes_unit(part.file for part in parts)
    with track_work('sample', _SAMPLING, sum(part.read_bytes for part in parts), unit):
        execution.engine.run(lambda pipeline: pipeline | 'SampleFiles' >> sampling, folder)
    found = {(each.file_index, each.side): each for each in read_stats(report, _Sampled)}
    for side in sides:
        of_side = [part for part in parts if part.side == side]
        if not any(found[part.key].lines for part in of_side):
            part = max(of_side, key=lambda part: found[part.key].period)
            raise InputError(
                f'--vocab-sample {how} takes no line: of {part.file.path} it would be one line in '
                f'{found[part.key].period:,}, and there are fewer; give a larger budget'
            )
    firsts = {index: tuple(each.first_lines) for (index, _), each in found.items()}
    items = number_items(plan.items['train'], firsts)
    numbered = dataclasses.replace(plan, items={**plan.items, 'train': items})
    lines = {key: SampledLines(each.period, each.lines) for key, each in found.items()}
    return SampledPlan(numbered, how, LineSample(lines))


@dataclass(frozen=True)
class _Part:
    """A file to be sampled."""

    file_index: int
    side: int
    file: CorpusFile
    budget: int
    starts: tuple[int, ...]
    max_line_bytes: int

    @property
    def key(self) -> tuple[int, int]:
        return self.file_index, self.side

    @property
    def read_bytes(self) -> int:
        return self.file.size * (2 if self.file.compressed else 1)  # as `sample_file` reads it


@dataclass(frozen=True)
class _Sampled:
    """What was found in one file."""

    file_index: int
    side: int
    period: int
    lines: int
    first_lines: list[int]


def _sample_parts(parts: Sequence[_Part]) -> Iterator[_Sampled]:
    # A compressed file is read twice, so two readers go through an archive, member by member.
    twice = [(part.file, part.file) if part.file.compressed else (part.file,) for part in parts]
    reads = CountedReads(filesystem.open_binary, _SAMPLING)
    with reading_on(reads.open_binary, twice) as open_binary:
        for part in parts:
            with reads.part(part.read_bytes):
                sample = sample_file(
                    part.file, part.budget, open_binary, part.max_line_bytes, part.starts
                )
            lines = list(sample.first_lines)
            yield _Sampled(*part.key, sample.lines.period, sample.lines.count, lines)


_LOGGED_WORDS = 10
"""Unknown words that a warning names, the most frequent ones: enough to see what is wrong."""

_STATS_NAME = 'stats'
_REJECTED_NAME = 'rejected-files'
_SHARDS_NAME = 'shards'


@dataclass(frozen=True)
class ReadStats:
    """The stats that a pipeline's workers wrote about the lines that they read."""

    inputs: tuple[InputText, ...]
    lines: tuple[LineTally, ...]
    rejected: tuple[OutputFile, ...] = ()
    datasets: tuple[LineTally, ...] = ()  # of each dataset that has a name
    newlines: tuple[FileNewlines, ...] = ()  # of each input


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
    tallies = [row for row in rows if isinstance(row, LineTally)]
    if max_rejected is not None:
        refuse_losses(max_rejected, tallies)
    checksums = [row for row in rows if isinstance(row, RangeChecksum)]
    inputs, newlines = input_texts(corpus, checksums), newlines_of(corpus, checksums)
    lines, of_splits = totals(corpus, tallies)
    for tally in lines:
        _warn_of_losses(tally)
    datasets = []
    kept = sum(tally.rejected for tally in tallies)
    for split, tally in zip(corpus.splits, of_splits, strict=True):
        if tally.examples + tally.not_sampled == 0 and not corpus.is_added:
            raise _empty(corpus, split, tally)
        if split.keeps_dropped:
            kept += sum(tally.filtered.values())
        if split.dataset:
            datasets.append(tally)
    written = read_stats(os.path.join(path, _REJECTED_NAME), WrittenFile)
    rejected = tuple(file.listed() for file in written)
    if kept != sum(file.rows for file in rejected):
        raise RuntimeError(f'{kept} lines were rejected, but not as many written: {rejected}')
    # Which words are counted depends on the blocks, and no byte of a result may depend on these.
    without_words = [
        tuple(dataclasses.replace(tally, unknown_words={}) for tally in of)
        for of in (lines, datasets)
    ]
    return ReadStats(inputs, without_words[0], rejected, without_words[1], tuple(newlines))


def totals(corpus: Corpus, tallies: Sequence[LineTally]) -> tuple[list[LineTally], list[LineTally]]:
    """Returns the sums of the tallies of datasets: for each name of a split, and for each dataset of a corpus."""
    by_dataset: dict[tuple[str, str], list[LineTally]] = {}
    for tally in tallies:
        by_dataset.setdefault((tally.split, tally.dataset), []).append(tally)
    of_splits = [
        add_tallies(split.name, by_dataset.get((split.name, split.dataset), ()))
        for split in corpus.splits
    ]
    lines = [
        dataclasses.replace(add_tallies(name, tallies), dataset='') for name in corpus.split_names
    ]
    return lines, of_splits


def _empty(corpus: Corpus, split: Split, tally: LineTally) -> InputError:
    """Returns the error for a split, or a dataset of one, without a line to encode."""
    if split.key_range is not None and split.name != 'train':
        return InputError(
            f'no row of the training corpus is in the share that is cut off for {split.name}; '
            f'give a larger --{split.name}-share'
        )
    names = ', '.join(
        file.stored.path
        for file in corpus.inputs
        if file.split == split.name and file.file_index in split.file_indexes
    )
    what = f'dataset {split.dataset} of {split.name}' if split.dataset else f'{split.name} corpus'
    left_out = {
        **tally.left_out,
        'missing_side': tally.missing_side,
        'removed': tally.removed,
    }
    brackets = ''
    for how, counts in {'left out': left_out, 'filters dropped': tally.filtered}.items():
        items = ', '.join(f'{name} {count}' for name, count in counts.items() if count)
        brackets += f' ({how}: {items})' if items else ''
    files = [file for together in split.files for file in together]
    remedy = format_reader(split.format).explain_empty(files, filesystem.open_binary)
    return InputError(
        f'the {what} is empty: {tally.lines} lines read from {names}, none with text on every '
        f'side{brackets}; {remedy}{" and --clean" if tally.filtered else ""}'
    )


def _warn_of_losses(lines: LineTally) -> None:
    """Logs that text of a split was lost: above one in a hundred of unknown tokens, and any bytes."""
    words = [*lines.unknown_words.items()][:_LOGGED_WORDS]
    counts = ', '.join(f'{word!r} {count}' for word, count in words)
    if lines.unknown and lines.ids and lines.unknown * 100 > lines.ids:
        _LOGGER.warning(
            'encode: %s: %d of %d ids are the unknown token, %s; the commonest are %s',
            lines.split,
            lines.unknown,
            lines.ids,
            f'{lines.unknown / lines.ids:.1%}',
            counts,
        )
    if lines.dropped_bytes:
        _LOGGER.warning(
            'encode: %s: %d bytes without an entry or a match became no id; the commonest are %s',
            lines.split,
            lines.dropped_bytes,
            counts,
        )
