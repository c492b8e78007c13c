"""What a job reads and writes, on which its bytes depend, and how it is run, on which they do not.

The input is cut into work items; for some formats that takes a pass over the bytes. The shuffle's
memory is checked against the memory of the runner.
"""

import bisect
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from pipelines.engines.engine import Engine
from pipelines.engines.progress import advance, track_work
from pipelines.files import filesystem
from pipelines.jobs.corpus import Corpus
from pipelines.options.job import (
    SPLITS,
    DatasetOptions,
    LineOptions,
    RunningOptions,
    ShuffleOptions,
    WorkOptions,
    option_name,
)
from pipelines.transforms.encode_blocks import EncodedFeature, SplitShards
from pipelines.transforms.read import MOST_AHEAD, MapToStats, ReadBlocks
from pipelines.transforms.stats import read_stats
from pipelines.transforms.write_shards import converted_names
from tokcore.corpus.archive_reading import in_passes, reading_on
from tokcore.corpus.corpus import CorpusFile, Split, WorkItem
from tokcore.corpus.filters.applying import find_end
from tokcore.corpus.formats import CorpusFormat, index_ranges, plan_items, read_blocks
from tokcore.encoding.encoder import DEFAULT_CACHE_BYTES
from tokcore.encoding.scheme import EncodingOptions, Scheme
from tokcore.errors import InputError
from tokcore.options import recorded
from tokcore.records.examples import Feature
from tokcore.records.manifest import shard_name
from tokcore.schemes import find_scheme

_BUCKET_BYTES = 16 << 20
"""Planned size of a bucket: sorting it takes a few times as much, and a shard of usual size is a
handful. Half would double the elements of the shuffle, twice the memory of every writer."""

_INDEXING = 'indexing'

_Numbered = tuple[int, tuple[CorpusFormat, Any]]

_LEAST_RUN_BYTES = 4 << 20
"""A memory that is too small for this is refused: more runs than that would be all seeking."""

_LARGEST_GROUP = 32 << 20
"""Buckets joined for one range read of each run. Twice as much takes twice the time to merge, since
from there on the allocator gives pages back each time and gets them anew."""

_BLOCK_FACTOR = 8
"""What a thread takes for a block, over its text: the cleaned text, ids, their growth, records;
measured, with what the allocator keeps."""

_LINE_FACTOR = 16
"""What a thread takes for a line that is much longer than an item, at most, over its text; measured
with 16 MiB. Only of characters that no vocabulary has seen, each spelled in digits, it is more."""


@dataclass(frozen=True)
class VocabularyPaths:
    """The vocabulary files of the two sides of a pair, or of a text as `targets`.

    Paths are empty if the scheme has no such files.
    """

    targets: str
    inputs: str | None = None

    @property
    def given(self) -> list[str]:
        """The paths, each once."""
        return list(dict.fromkeys(path for path in (self.inputs, self.targets) if path))


@dataclass(frozen=True)
class CorpusReading(LineOptions):
    """A corpus that was found, and how its files are read as lines.

    Attributes:
        corpus: the files.
        scheme: how lines become tokens and ids.
    """

    corpus: Corpus
    scheme: Scheme = dataclasses.field(default_factory=find_scheme)

    @property
    def longest_line(self) -> int:
        """The most bytes that a line of the corpus can have and be read."""
        return min(self.max_line_bytes, self.corpus.most_text_bytes)

    def only(self, split: str) -> 'CorpusReading':
        """Returns the reading of one split."""
        return dataclasses.replace(self, corpus=self.corpus.only(split))

    def for_manifest(self) -> dict[str, object]:
        """Returns the options that say how files are read as lines."""
        splits = self.corpus.splits
        if any(split.dataset or split.prefixes or split.max_examples for split in splits):
            return {**recorded(self), 'datasets': [_dataset_record(split) for split in splits]}
        of_splits = {
            option_name(split.name, name): value
            for split in splits
            for name, value in {**split.format.options, **_filters_record(split)}.items()
        }
        return {**recorded(self), **of_splits}


@dataclass(frozen=True)
class EncodeOptions(DatasetOptions):
    """What the shards depend on, as files and examples.

    Attributes:
        encoding: what is asked of the scheme's encoder.
    """

    encoding: EncodingOptions = EncodingOptions()

    def for_manifest(self, reading: CorpusReading) -> dict[str, object]:
        """Returns what the shards depend on, beside the vocabularies: of the splits there are."""
        there = reading.corpus.split_names
        absent = {option_name(split, 'shards') for split in SPLITS if split not in there}
        own = {name: value for name, value in recorded(self).items() if name not in absent}
        own |= recorded(self.encoding) | recorded(reading.scheme)
        return {**own, **reading.for_manifest()}

    def file_names(self, corpus: Corpus) -> list[str]:
        """Returns the names of all files of all shards."""
        features = ('inputs', 'targets') if corpus.is_paired else ('targets',)
        return [
            name
            for shard in self.shard_names(corpus)
            for name in converted_names(shard, self.output_format, features)
        ]

    def shard_names(self, corpus: Corpus) -> list[str]:
        """Returns the names of all shards of all splits, as TFRecords."""
        return [
            shard_name(self.name, split, shard, self.shards_of(split))
            for split in corpus.split_names
            for shard in range(self.shards_of(split))
        ]

    def layout(self, corpus: Corpus) -> list[SplitShards]:
        """Returns each split's shards and buckets; buckets follow the size and change no byte."""
        layout = []
        for split in corpus.split_names:
            shards = self.shards_of(split)
            buckets = -(-corpus.text_bytes(split) // shards // _BUCKET_BYTES)
            layout.append(SplitShards(split, shards, max(1, buckets)))
        return layout

    def features(
        self, vocabularies: VocabularyPaths, sides: Sequence[str] = ('targets',)
    ) -> list[EncodedFeature]:
        """Returns what an example holds: the targets, and of a pair the inputs before them.

        A text is what its side says, inputs where the targets are a label.
        """
        if vocabularies.inputs is None:
            is_labelled = sides[0] == 'inputs'
            prefix = self.source_prefix if is_labelled else self.target_prefix
            return [EncodedFeature(Feature(sides[0], 0, prefix), vocabularies.targets)]
        return [
            EncodedFeature(Feature('inputs', 0, self.source_prefix), vocabularies.inputs),
            EncodedFeature(Feature('targets', 1, self.target_prefix), vocabularies.targets),
        ]


@dataclass(frozen=True)
class ReadPlan:
    """A reading cut into work items.

    Attributes:
        reading: what is read.
        items: by split its work items, in their order.
        item_bytes: about the size of an item, and of what is read at once of a gzip stream.
        workers: threads of a worker.
    """

    reading: CorpusReading
    items: Mapping[str, Sequence[WorkItem]]
    item_bytes: int
    workers: int = 1

    @property
    def all_items(self) -> list[WorkItem]:
        """The work items of all splits, in the order of the splits."""
        return [item for split in self.reading.corpus.split_names for item in self.items[split]]

    def passes(self, split: str) -> list[tuple[WorkItem, ...]]:
        """Returns a split's work items as one worker each is to read them, one after the other.

        Those of an archive are together, as far as that is read from its beginning. No pass is of two
        datasets: each of these reads an archive for itself.
        """
        firsts = sorted(
            each.first_file_index for each in self.reading.corpus.splits if each.name == split
        )
        of_datasets = itertools.groupby(
            self.items[split], lambda item: bisect.bisect_right(firsts, item.file_index)
        )
        return [
            together
            for _, items in of_datasets
            for together in in_passes(list(items), lambda item: item.files, self.item_bytes)
        ]

    @property
    def stored_bytes(self) -> int:
        """How much all items read, of files as they are stored."""
        return sum(each.stored_bytes for each in self.all_items)

    def only(self, split: str) -> 'ReadPlan':
        """Returns the plan of one split."""
        return dataclasses.replace(
            self, reading=self.reading.only(split), items={split: self.items[split]}
        )

    def read(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """Returns the blocks of all splits."""
        return pipeline | 'ReadBlocks' >> ReadBlocks(
            self.all_items, self.item_bytes, self.reading.max_line_bytes, self.workers
        )


@dataclass(frozen=True)
class Execution(RunningOptions, WorkOptions, ShuffleOptions):
    """How a job is run.

    Attributes:
        engine: runs its pipelines.
        read_beside: paths of files that options were read from: a job file, names of labels.
    """

    engine: Engine
    read_beside: tuple[str, ...] = ()

    @property
    def through_files(self) -> bool:
        """Whether what is shuffled goes through files."""
        return (
            self.engine.runner.through_files if self.shuffle == 'auto' else self.shuffle == 'files'
        )


def plan_reading(reading: CorpusReading, execution: Execution, folder: str) -> ReadPlan:
    """Cuts what is read into work items.

    Args:
        reading: what is read.
        execution: the size of an item, and the engine that runs the pass.
        folder: for what the workers report.

    Raises:
        InputError: the two files of a pair have different numbers of lines, or a gzip is damaged.
    """
    splits, item_bytes = reading.corpus.splits, execution.item_bytes
    ranges = [(split.format, part) for split in splits for part in index_ranges(split, item_bytes)]
    found: dict[int, tuple] = {}
    if ranges:
        report = filesystem.join(folder, 'line-counts')
        passes = in_passes(list(enumerate(ranges)), _files_of, item_bytes)
        indexing = MapToStats(passes, _index_ranges, report)
        with track_work('index', _INDEXING, sum(part.stored_bytes for _, part in ranges)):
            execution.engine.run(lambda pipeline: pipeline | 'IndexLines' >> indexing)
        found = {each.number: each.found for each in read_stats(report, _Indexed)}
    indexed = (found[number] for number in range(len(ranges)))
    items: dict[str, list[WorkItem]] = {}
    ended = []
    for split in splits:
        index = [next(indexed) for _ in index_ranges(split, item_bytes)]
        own = plan_items(split, index, item_bytes)
        ended.append(_ended(split, own, reading, item_bytes))
        items.setdefault(split.name, []).extend(own)
    corpus = dataclasses.replace(reading.corpus, splits=tuple(ended))
    reading = dataclasses.replace(reading, corpus=corpus)
    return ReadPlan(reading, items, item_bytes, execution.engine.workers)


def _ended(
    split: Split, items: Sequence[WorkItem], reading: CorpusReading, item_bytes: int
) -> Split:
    """Returns a dataset with its end, for which its beginning is read here."""
    if split.max_examples is None:
        return split
    # In the order of places, which is that of names; what an archive has in another one is kept.
    with reading_on(filesystem.open_binary, [item.files for item in items]) as open_binary:
        blocks = (
            block
            for item in items
            for block in read_blocks(item, open_binary, item_bytes, reading.max_line_bytes)
        )
        end = find_end(blocks, split, reading.scheme.normalizer)
    return dataclasses.replace(split, end=end)


@dataclass(frozen=True)
class _Indexed:
    """What a format found in the range of this number."""

    number: int
    found: tuple


def _files_of(numbered: _Numbered) -> tuple[CorpusFile]:
    return (numbered[1][1].file,)


def _index_ranges(together: Sequence[_Numbered]) -> Iterator[_Indexed]:
    with reading_on(filesystem.open_binary, list(map(_files_of, together))) as open_binary:
        for number, (indexing, part) in together:
            found = indexing.index(part, open_binary)
            advance(_INDEXING, part.stored_bytes)
            yield _Indexed(number, found)


@dataclass(frozen=True)
class ShuffleMemory:
    """Sizes that keep every process of a job below its share of the memory."""

    run_bytes: int  # of a part of a run, in memory
    group_bytes: int  # of the buckets merged at once
    workers: int  # threads in a process
    processes: int


def fit_memory(
    execution: Execution, longest_line: int, vocabularies: int, reads_ahead: bool = False
) -> ShuffleMemory:
    """Returns the largest buffers, and with them the most threads, that fit.

    Args:
        execution: the buffer wanted and the limit, the threads wanted and the size of a work item.
        longest_line: the most bytes that a line can have; one at a time has so many.
        vocabularies: how many there are; each thread remembers tokens of each.
        reads_ahead: whether parts of compressed files may be read ahead.

    Raises:
        InputError: not even one thread with the least buffer fits.
    """
    runner, item_bytes = execution.engine.runner, execution.item_bytes
    share = runner.memory_share(execution.memory_bytes)
    least = min(_LEAST_RUN_BYTES, execution.buffer_bytes // 2)
    # What the longest line takes beyond the block that it stands for.
    line = max(0, _LINE_FACTOR * longest_line - _BLOCK_FACTOR * item_bytes)
    needed = 0
    for workers in range(execution.engine.workers, 0, -1):
        # A block of each thread, one that is read and one that waits.
        threads = workers * vocabularies * DEFAULT_CACHE_BYTES
        blocks = (workers + 2) * item_bytes * _BLOCK_FACTOR // 2
        if reads_ahead and workers > 1:
            blocks += (workers + 1) * MOST_AHEAD * item_bytes
        needed = threads + blocks + line + 2 * least
        if share is None or needed <= share:
            buffers = execution.buffer_bytes
            if share is not None:
                buffers = min(buffers, share - threads - blocks - line)
            # A group is held as it was read and as it is written, by each thread and once more.
            group = min(_LARGEST_GROUP, max(1, buffers // (2 * (workers + 1))))
            return ShuffleMemory(max(1, buffers // 2), group, workers, runner.processes)
    raise InputError(
        f'encoding takes at least {_mib(needed)} MiB of memory beside the program, and '
        f'{_mib(share)} are left of --memory or free; give more, or a smaller '
        + ('--max-line-size' if line > blocks else '--item-size')
    )


def refuse_too_large(reading: CorpusReading, execution: Execution, vocabularies: int) -> None:
    """Refuses a shuffle that cannot be held, before anything is read for it.

    Through files that is one of too little memory for the least buffers; else the runner says what
    it can take. Records are about as large as their text: subtokens take two bytes where the text
    took three or four, and each example some fifty.

    Raises:
        InputError: it would not fit.
    """
    if execution.through_files:
        fit_memory(execution, reading.longest_line, vocabularies, reading.corpus.may_have_parts)
        return
    corpus = reading.corpus
    # A work item is not cut further, and a gzip file is one, or a member of an archive.
    items = sum(
        1 if each.file.is_stream else -(-each.file.size // execution.item_bytes)
        for each in corpus.inputs
        if each.side == 0
    )
    size = sum(map(corpus.text_bytes, corpus.split_names))
    execution.engine.runner.refuse_shuffle(size, items)


def _mib(size: int) -> int:
    return -(-size >> 20)


def _filters_record(split: Split) -> dict[str, object]:
    """Returns what manifests say of filters, where there are any."""
    told = [
        {'filter': each.spec, 'made_of': each.stamp} if each.stamp else each.spec
        for each in split.filters
    ]
    return {'clean': told} if told else {}


def _dataset_record(split: Split) -> dict[str, object]:
    told = {
        'name': split.dataset,
        'max_examples': split.max_examples,
        'prefixes': list(split.prefixes),
    }
    return {
        'split': split.name,
        'format': split.format.name,
        **split.format.options,
        **{name: value for name, value in told.items() if value},
        **_filters_record(split),
    }
