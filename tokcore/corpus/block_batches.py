"""Batches of small blocks, whose rows are made together: a corpus may be many thousand small files.

What a block costs whatever its size (calls of kernels, arrays of a few numbers, a cache that is set up)
is paid once for a batch. The results are those of the blocks one by one. A batch with a line that cannot
be used is taken block by block, so that the error can name its file and line.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from tokcore.corpus.corpus import Block, BlockText, Rows, Split, split_of
from tokcore.corpus.formats import format_reader
from tokcore.corpus.line_rows import mark_bytes
from tokcore.corpus.order_keys import rows_within, without_left_out
from tokcore.corpus.stats import BlockStats, add_tallies, block_checksums, block_stats
from tokcore.text.rows import Normalizer

BATCH_BYTES = 4 << 20
"""The most text in a batch of several blocks. The fixed cost is a fiftieth of the time then; with a
quarter of it, a twelfth. More would only take more memory in each thread."""

Batch = tuple[Block, ...]


class BlockBatches:
    """Puts small blocks of consecutive files of a dataset together, in order, each in one batch.

    Blocks of one file stay apart: their size was asked for.

    Args:
        splits: the corpus.
        most_bytes: the text of a batch, unless a single block has more.
    """

    def __init__(self, splits: Sequence[Split], most_bytes: int = BATCH_BYTES):
        self._splits, self._most_bytes = splits, most_bytes
        self._waiting: list[Block] = []
        self._bytes = 0
        self._split: Split | None = None  # of the blocks that wait

    def add(self, block: Block) -> list[Batch]:
        """Adds a block; returns the batches that are complete now."""
        size = block.held_bytes
        split = split_of(self._splits, block.split, block.file_index)
        complete: list[Batch] = []
        is_of_same_file = bool(self._waiting) and self._waiting[-1].file_index == block.file_index
        if split is not self._split or is_of_same_file or self._bytes + size > self._most_bytes:
            complete += self.rest()
        self._split = split
        self._waiting.append(block)
        self._bytes += size
        if 2 * self._bytes > self._most_bytes:  # it is large enough, and nobody waits for more
            complete += self.rest()
        return complete

    def rest(self) -> list[Batch]:
        """Returns the batch of the blocks that still wait, if there are any."""
        blocks, self._waiting, self._bytes = tuple(self._waiting), [], 0
        return [blocks] if blocks else []


def batch_rows(blocks: Batch, splits: Sequence[Split], normalizer: Normalizer) -> Rows | None:
    """Returns the rows of several blocks, one block after another, with their `file_indexes`.

    None if they must be made block by block: a line is rejected, or what becomes of a row depends on
    more than its line, its file and its offset.
    """
    first = blocks[0]
    split = split_of(splits, first.split, first.file_index)
    if len(blocks) == 1 or split is None or split.filters or split.end is not None:
        return None
    reader = format_reader(first.format)
    if not reader.rows_are_of_lines or any(map(_stands_alone, blocks)):
        return None
    # Only a file's last line may lack its line feed.
    texts = [block.texts[0].data for block in blocks]
    texts = [text if text.endswith(b'\n') else text + b'\n' for text in texts]
    ends = np.cumsum([len(text) for text in texts])
    joined = dataclasses.replace(first, texts=(BlockText(0, b''.join(texts)),), first_line=None)
    rows = reader.rows(joined, normalizer)
    if rows.rejects:
        return None
    counts = np.diff(np.searchsorted(rows.line_starts, ends), prepend=0)
    offsets = np.array([block.offset for block in blocks])
    offsets[1:] -= ends[:-1]
    rows = dataclasses.replace(
        rows,
        line_starts=rows.line_starts + np.repeat(offsets, counts),
        file_indexes=np.repeat([block.file_index for block in blocks], counts),
    )
    if split.key_range is not None:
        rows = rows_within(split.key_range, rows, first.file_index)
    return without_left_out(split.left_out, rows, first.file_index)


def add_stats(stats: Sequence[BlockStats]) -> BlockStats:
    """Returns the statistics of consecutive blocks of one dataset as those of one."""
    if len(stats) == 1:
        return stats[0]
    return BlockStats(
        add_tallies(stats[0].tally.split, [block.tally for block in stats]),
        tuple(checksum for block in stats for checksum in block.checksums),
        tuple(lines for block in stats for lines in block.rejected),
    )


def batch_stats(blocks: Batch, rows: Rows, splits: Sequence[Split]) -> BlockStats:
    """Returns the tally of the rows of `batch_rows`, and the checksums of all blocks."""
    first, *others = blocks
    stats = block_stats(first, rows, splits, 'skip')
    checksums = (checksum for block in others for checksum in block_checksums(block))
    return dataclasses.replace(stats, checksums=(*stats.checksums, *checksums))


def _stands_alone(block: Block) -> bool:
    """Whether a block's rows depend on where the file begins or ends, or its line is not held.

    A batch is read like a file, so a mark in the middle of one would be lost at its start.
    """
    [text] = block.texts
    return bool(block.long_lines or mark_bytes(text.data, 0) or text.data.endswith(b'\r'))
