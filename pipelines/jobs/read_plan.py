"""What is read, cut into work items; for bitext that takes a pass over its bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam
import numpy as np

from pipelines.files import filesystem
from pipelines.jobs.job import Execution, Reading
from pipelines.transforms.read_blocks import ReadBlocks
from pipelines.transforms.share_out import ReportEach
from pipelines.transforms.write_report import read_report
from tokcore.corpus.dataset import WorkItem
from tokcore.corpus.formats.line_index import IndexRange, LineCount, count_lines, index_items
from tokcore.corpus.formats.work_items import plan_items


@dataclass(frozen=True)
class ReadPlan:
    """A reading cut into work items.

    Attributes:
        reading: what is read.
        items: by split its work items, in their order.
        item_bytes: about the size of an item, and of what is read at once of a gzip stream.
    """

    reading: Reading
    items: Mapping[str, Sequence[WorkItem]]
    item_bytes: int

    @property
    def all_items(self) -> list[WorkItem]:
        """The work items of all splits, in the order of the splits."""
        return [item for split in self.reading.corpus.splits for item in self.items[split.name]]

    def only(self, split: str) -> 'ReadPlan':
        """Returns the plan of one split."""
        return ReadPlan(self.reading.only(split), {split: self.items[split]}, self.item_bytes)

    def read(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """Returns the blocks of all splits."""
        return pipeline | 'ReadBlocks' >> ReadBlocks(
            self.all_items, self.item_bytes, self.reading.max_line_bytes
        )


def plan_reading(reading: Reading, execution: Execution, folder: str) -> ReadPlan:
    """Cuts what is read into work items.

    Args:
        reading: what is read.
        execution: the size of an item, and the engine that runs the pass.
        folder: for what the workers report.

    Raises:
        InputError: the two files of a pair have different numbers of lines, or a gzip is damaged.
    """
    splits, item_bytes = reading.corpus.splits, execution.item_bytes
    counts: list[LineCount] = []
    ranges = [each for split in splits for each in index_items(split, item_bytes)]
    if ranges:
        report = filesystem.join(folder, 'line-counts')
        counting = ReportEach(list(enumerate(ranges)), _count_range, report)
        execution.engine.run(lambda pipeline: pipeline | 'IndexLines' >> counting)
        for each in read_report(report, _CountedLines):
            newlines = np.array(each.newlines, np.int64)
            counts.append(
                LineCount(ranges[each.number], newlines, each.text_bytes, each.ends_with_newline)
            )
    items = {split.name: plan_items(split, counts, item_bytes) for split in splits}
    return ReadPlan(reading, items, item_bytes)


@dataclass(frozen=True)
class _CountedLines:
    """A `LineCount` of the range with this number."""

    number: int
    newlines: tuple[int, ...]
    text_bytes: int
    ends_with_newline: bool


def _count_range(numbered: tuple[int, IndexRange]) -> _CountedLines:
    number, index_range = numbered
    count = count_lines(index_range, filesystem.open_binary)
    newlines = tuple(count.newlines.tolist())
    return _CountedLines(number, newlines, count.text_bytes, count.ends_with_newline)
