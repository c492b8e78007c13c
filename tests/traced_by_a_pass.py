"""Where the rows of a dataset come from, by a pass over all of its corpus: what `where` did before the index.

Lines are counted in the whole text of each file, and nothing is taken from the indexes.
"""

import codecs
from typing import NamedTuple

import numpy as np

from pipelines.files import filesystem
from pipelines.trust.corpus_rows import planned
from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.corpus import split_of
from tokcore.corpus.order_keys import shard_of


class TracedRow(NamedTuple):
    """A row of a split, in the order of its shards."""

    shard: int
    record: int
    files: tuple[str, ...]
    number: int  # of the line, from 1, or of the row
    byte: int | None
    piece: int
    texts: tuple[str, ...]


def traced_by_a_pass(job, split):
    """Returns the rows of a split of the corpus of a job."""
    with planned(job) as corpus:
        splits = corpus.reading.corpus.splits
        shards = job.dataset.shards_of(split)

        def take(block, rows, keys):
            return [
                (key, block.file_index, offset, number - np.searchsorted(rows.offsets, offset),
                 tuple(side.row(number) for side in rows.sides), block.format.has_same_lines)
                for number, (key, offset) in enumerate(
                    zip(keys.tolist(), rows.offsets.tolist(), strict=True)
                )
            ]  # fmt: skip

        taken = corpus.read(split, take, 1).taken
    feeds = {}
    traced = []
    for key, index, offset, piece, texts, is_of_lines in sorted(
        row for rows in taken for row in rows
    ):
        own = split_of(splits, split, index)
        files = own.files_at(index)
        number, byte = offset, None
        if own.format.identity == 'offset':
            if index not in feeds:
                text = whole_text(files[0])
                feeds[index] = np.flatnonzero(np.frombuffer(text, np.uint8) == ord('\n'))
            number, byte = 1 + int(np.searchsorted(feeds[index], offset)), offset
        shard = int(shard_of(np.array([key], np.uint64), shards)[0])
        record = sum(row.shard == shard for row in traced[-1:]) and traced[-1].record + 1
        paths = tuple(file.path for file in (files if is_of_lines else files[:1]))
        traced.append(TracedRow(shard, record, paths, number, byte, int(piece), texts))
    return traced


def whole_text(file):
    """Returns the text of a file, in UTF-8."""
    text = b''.join(text_pieces(file, filesystem.open_binary))
    is_utf_16 = text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return text.decode('utf-16').encode() if is_utf_16 else text
