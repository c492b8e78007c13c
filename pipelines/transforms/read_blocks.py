"""Work items to blocks of whole rows."""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.engines.progress import advance
from pipelines.files import filesystem
from pipelines.transforms.share_out import ShareOut
from tokcore.corpus.dataset import MAX_LINE_BYTES, Block, OpenBinary, WorkItem
from tokcore.corpus.formats.corpus_format import read_blocks

READING = 'reading'
"""The work of which each item is a part, of its stored bytes."""

_GZIP_RATIO = 5
"""Of text to what is stored of it: how far a gzip file is, is a guess until its end is read."""


def read_counted(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[Block]:
    """Yields what `read_blocks` does, and counts a block as work done when the next is asked for."""
    left = item.stored_bytes
    ratio = _GZIP_RATIO if item.is_compressed else 1
    for block in read_blocks(item, open_binary, block_bytes, max_line_bytes):
        yield block
        part = min(left, block.read_bytes // ratio)
        advance(READING, part)
        left -= part
    advance(READING, left)


class BlockCoder(beam.coders.Coder):
    """Blocks as pickled, but of a size that is told without it: Beam asks for that often."""

    def encode(self, value: Block) -> bytes:
        return pickle.dumps(value)

    def decode(self, encoded: bytes) -> Block:
        return pickle.loads(encoded)

    def estimate_size(self, value: Block) -> int:
        return value.held_bytes

    def to_type_hint(self) -> type:
        return Block


beam.coders.registry.register_coder(Block, BlockCoder)


@dataclass(eq=False)
class ReadBlocks(beam.PTransform):
    """Reads work items as blocks of whole rows.

    Only the items cross a shuffle; blocks are handed on within the worker that read them.

    Attributes:
        items: byte ranges of files, a few MB each.
        block_bytes: about how many bytes of a gzip stream make a block.
        max_line_bytes: a longer line is not held.
    """

    items: Sequence[WorkItem]
    block_bytes: int
    max_line_bytes: int = MAX_LINE_BYTES

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection:
        return (
            root
            | ShareOut(self.items)  # WorkItem
            | 'Read' >> beam.FlatMap(
                read_counted, filesystem.open_binary, self.block_bytes, self.max_line_bytes
            )  # Block
        )
