"""The input of a job cut into work items; for some formats that takes a pass over the bytes."""

import bisect
import dataclasses
import itertools
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
from tokcore.corpus.corpus import CorpusFile, Split, WorkItem
from tokcore.corpus.filters.applying import find_end
from tokcore.corpus.formats import CorpusFormat, index_ranges, plan_items, read_blocks

_INDEXING = 'indexing'

_Numbered = tuple[int, tuple[CorpusFormat, Any]]


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
