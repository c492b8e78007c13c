"""The work items of a job; for some formats they take a pass over the bytes."""

import bisect
import dataclasses
import functools
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from pipelines.engines.progress import advance, track_work
from pipelines.files import filesystem
from pipelines.jobs.job import CorpusReading, Execution
from pipelines.transforms.read import MapToStats, ReadBlocks
from pipelines.transforms.stats import read_stats
from tokcore.corpus.archive_reading import in_passes, reading_on
from tokcore.corpus.corpus import CorpusFile, CorpusFormat, Split, WorkItem
from tokcore.corpus.formats import format_reader, index_ranges, plan_items, read_blocks
from tokcore.filters.applying import find_end

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
    """

    reading: CorpusReading
    items: Mapping[str, Sequence[WorkItem]]
    item_bytes: int
    workers: int = 1

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
        return {split: self._passes_of(split) for split in self.reading.corpus.split_names}

    @property
    def stored_bytes(self) -> int:
        """The bytes that all items read, of files as they are stored."""
        return sum(item.stored_bytes for item in self.all_items)

    def only(self, split: str) -> 'ReadPlan':
        """Returns the plan of one split."""
        return dataclasses.replace(
            self, reading=self.reading.only(split), items={split: self.items[split]}
        )

    def _passes_of(self, split: str) -> list[tuple[WorkItem, ...]]:
        firsts = sorted(
            part.first_file_index for part in self.reading.corpus.splits if part.name == split
        )
        of_datasets = itertools.groupby(
            self.items[split], lambda item: bisect.bisect_right(firsts, item.file_index)
        )
        return [
            together
            for _, items in of_datasets
            for together in in_passes(list(items), lambda item: item.files, self.item_bytes)
        ]

    def read(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """Returns the blocks of all splits."""
        return pipeline | 'ReadBlocks' >> ReadBlocks(
            self.all_items, self.item_bytes, self.reading.max_line_bytes, self.workers
        )


def plan_reading(
    reading: CorpusReading, execution: Execution, folder: str, stage: str = 'index'
) -> ReadPlan:
    """Cuts the files into work items.

    Args:
        reading: what is read.
        execution: the size of an item, and the engine that runs the pass.
        folder: for the stats of the workers.
        stage: what the progress calls the pass.

    Raises:
        InputError: the two files of a pair have different numbers of lines, or a gzip is damaged.
    """
    splits, item_bytes = reading.corpus.splits, execution.item_bytes
    ranges = [(split.format, part) for split in splits for part in index_ranges(split, item_bytes)]
    indexes: dict[int, tuple] = {}
    if ranges:
        report = os.path.join(folder, 'line-counts')
        passes = in_passes(list(enumerate(ranges)), _files_of, item_bytes)
        indexing = MapToStats(passes, _index_ranges, report)
        size = sum(part.stored_bytes for _, part in ranges)
        engine = execution.engine.near(size)
        with track_work(stage, _INDEXING, size):
            engine.run(lambda pipeline: pipeline | 'IndexLines' >> indexing, folder)
        indexes = {index.number: index.lines for index in read_stats(report, _Index)}
    in_order = (indexes[number] for number in range(len(ranges)))
    items: dict[str, list[WorkItem]] = {}
    ended = []
    for split in splits:
        index = [next(in_order) for _ in index_ranges(split, item_bytes)]
        own = plan_items(split, index, item_bytes)
        ended.append(_ended(split, own, reading, item_bytes))
        items.setdefault(split.name, []).extend(own)
    corpus = dataclasses.replace(reading.corpus, splits=tuple(ended))
    reading = dataclasses.replace(reading, corpus=corpus)
    return ReadPlan(reading, items, item_bytes, execution.engine.workers)


def _ended(
    split: Split, items: Sequence[WorkItem], reading: CorpusReading, item_bytes: int
) -> Split:
    """Returns a split that ends after its `max_examples`; its beginning is read for that, once."""
    if split.max_examples is None or split.end is not None:
        return split
    # In the order of names; members that an archive has in another order are kept until then.
    with reading_on(filesystem.open_binary, [item.files for item in items]) as open_binary:
        blocks = (
            block
            for item in items
            for block in read_blocks(item, open_binary, item_bytes, reading.max_line_bytes)
        )
        end = find_end(blocks, split, reading.scheme.normalizer)
    return dataclasses.replace(split, end=end)


@dataclass(frozen=True)
class _Index:
    """What the index of a format says about a range of lines."""

    number: int  # of the range
    lines: tuple


def _files_of(numbered: _Numbered) -> tuple[CorpusFile, ...]:
    return (numbered[1][1].file,)


def _index_ranges(ranges: Sequence[_Numbered]) -> Iterator[_Index]:
    with reading_on(filesystem.open_binary, list(map(_files_of, ranges))) as open_binary:
        for number, (declaration, part) in ranges:
            lines = format_reader(declaration).index(part, open_binary)
            advance(_INDEXING, part.stored_bytes)
            yield _Index(number, lines)
