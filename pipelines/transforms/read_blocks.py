"""Work items to blocks of whole rows."""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.files import filesystem
from pipelines.transforms.share_out import ShareOut
from tokcore.corpus.dataset import MAX_LINE_BYTES, Block, WorkItem
from tokcore.corpus.formats.corpus_format import read_blocks


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
                read_blocks, filesystem.open_binary, self.block_bytes, self.max_line_bytes
            )  # Block
        )
