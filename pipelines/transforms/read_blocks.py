"""Work items to blocks of whole rows."""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.engines.ordered_calls import OrderedPool, in_global_window
from pipelines.engines.progress import advance
from pipelines.files import filesystem
from pipelines.transforms.share_out import ShareOut
from tokcore.corpus.dataset import MAX_LINE_BYTES, Block, OpenBinary, WorkItem
from tokcore.corpus.formats.corpus_format import read_blocks
from tokcore.corpus.sampling.line_numbers import numbered_blocks
from tokcore.corpus.storage.archive_passes import in_passes
from tokcore.corpus.storage.archive_reading import reading_on

READING = 'reading'
"""The work of which each item is a part, of its stored bytes."""

_GZIP_RATIO = 5
"""Of text to what is stored of it: how far a gzip file is, is a guess until its end is read."""


def read_counted(
    items: Sequence[WorkItem], block_bytes: int, max_line_bytes: int
) -> Iterator[Block]:
    """Yields what `read_blocks` does of items, one after the other.

    A block is counted as work done when the next is asked for. Where the lines of an item are numbered,
    so are those of its blocks. An archive is read on from one item to the next.
    """
    with reading_on(filesystem.open_binary, [item.files for item in items]) as open_binary:
        for item in items:
            yield from _read_counted(item, open_binary, block_bytes, max_line_bytes)


def _read_counted(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[Block]:
    left = item.stored_bytes
    ratio = _GZIP_RATIO if item.is_compressed else 1
    blocks = read_blocks(item, open_binary, block_bytes, max_line_bytes)
    if item.first_line is not None:
        blocks = numbered_blocks(item, blocks)
    for block in blocks:
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


MOST_AHEAD = 3
"""Blocks' worth of text that a work item may have which is read ahead: a block of xz, as it is written
by default, is so large beside an item of the default size. What is larger is read as a stream."""


@dataclass(eq=False)
class ReadBlocks(beam.PTransform):
    """Reads work items as blocks of whole rows.

    Only the items cross a shuffle, those of an archive that one worker has to read together; blocks are
    handed on within the worker that read them. Parts of
    compressed files are decompressed by threads, up to `workers` + 1 of them ahead: where nothing
    else holds up a worker, that does.

    Attributes:
        items: byte ranges of files, a few MB each.
        block_bytes: about how many bytes of a compressed stream make a block.
        max_line_bytes: a longer line is not held.
        workers: threads of a worker.
    """

    items: Sequence[WorkItem]
    block_bytes: int
    max_line_bytes: int = MAX_LINE_BYTES
    workers: int = 1

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection:
        passes = in_passes(self.items, lambda item: item.files, self.block_bytes)
        return (
            root
            | ShareOut(passes)  # (WorkItem, ...)
            | 'Read' >> beam.ParDo(
                _ReadFn(self.workers, self.block_bytes, self.max_line_bytes)
            )  # Block
        )


class _ReadFn(beam.DoFn):
    def __init__(self, workers: int, block_bytes: int, max_line_bytes: int):
        self._workers = workers
        self._block_bytes, self._max_line_bytes = block_bytes, max_line_bytes

    def setup(self) -> None:
        self._calls: OrderedPool[list[Block]] = OrderedPool(self._workers)

    def process(self, items: tuple[WorkItem, ...]) -> Iterator[Block]:
        if all(map(self._is_read_ahead, items)):
            for blocks in self._calls.submit(self._blocks, items):
                yield from blocks
        else:
            yield from self._read(items)

    def finish_bundle(self) -> Iterator:
        for blocks in self._calls.drain():
            yield from map(in_global_window, blocks)

    def teardown(self) -> None:
        self._calls.close()

    def _is_read_ahead(self, item: WorkItem) -> bool:
        is_part = all(each.of_text for each in item.ranges)
        is_small = item.stored_bytes <= MOST_AHEAD * self._block_bytes
        return self._workers > 1 and is_part and is_small

    def _blocks(self, items: tuple[WorkItem, ...]) -> list[Block]:
        return list(self._read(items))

    def _read(self, items: tuple[WorkItem, ...]) -> Iterator[Block]:
        return read_counted(items, self._block_bytes, self._max_line_bytes)
