"""Work items to blocks of lines, and the first pass that counts the lines of bitext."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines import filesystem
from tokcore.corpus.blocks import read_blocks
from tokcore.corpus.dataset import Block, WorkItem


@dataclass(eq=False)
class ReadBlocks(beam.PTransform):
    """Reads work items as blocks of whole lines.

    Only the items cross a shuffle; blocks are handed on within the worker that read them.

    Attributes:
        items: byte ranges of files, a few MB each.
        block_bytes: about how many bytes of a gzip stream make a block.
    """

    items: Sequence[WorkItem]
    block_bytes: int

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection:
        return (
            root
            | 'Plan' >> beam.Create(list(self.items), reshuffle=False)
            | 'ShareOut' >> beam.Reshuffle()
            | 'Read' >> beam.ParDo(_ReadBlocksFn(self.block_bytes))  # Block
        )


class _ReadBlocksFn(beam.DoFn):
    def __init__(self, block_bytes: int):
        self._block_bytes = block_bytes

    def process(self, element: WorkItem) -> Iterator[Block]:
        yield from read_blocks(element, filesystem.open_binary, self._block_bytes)
