"""Bitext: the same line of two files is a row, so lines must be found in both by their numbers.

The files of a pair drift apart, so a first pass counts their lines in chunks (`line_index`), and a
pair is cut where neither side of an item outgrows the limit. A pair with a compressed file, or with a
member of an archive, is one item. Where both files are members of one archive that has no index, it is
decompressed twice at once, by two readers that go on from pair to pair (`storage.archive_reading`).
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tokcore.corpus.corpus import Block, BlockText, OpenBinary, Rows, Split, TextRange, WorkItem
from tokcore.corpus.formats import CorpusFormat
from tokcore.corpus.line_reading import PlacedLines, line_block, read_counted_lines
from tokcore.errors import InputError
from tokcore.text.rows import Normalizer

if typing.TYPE_CHECKING:
    from tokcore.corpus.line_index import IndexRange, LineIndex


@dataclass(frozen=True)
class Bitext(CorpusFormat):
    """Rows of two sides, each in a file of its own."""

    name = 'bitext'
    what = 'two aligned files'
    roles = ('source', 'target')
    help = (
        'source side of bitext, a sentence a line',
        'target side, the same number of files and of lines',
    )
    sides = ('inputs', 'targets')
    forbidden_characters = '\n'
    rows_are_lines = True

    def index_ranges(self, split: Split, item_bytes: int) -> list[IndexRange]:
        from tokcore.corpus.line_index import index_items

        return index_items(split, item_bytes)

    def index(self, part: IndexRange, open_binary: OpenBinary) -> tuple[Any, ...]:
        """Returns the line feeds of each chunk, the bytes of text, and whether a feed ends them."""
        from tokcore.corpus.line_index import count_lines

        count = count_lines(part, open_binary)
        return count.newlines.tolist(), count.text_bytes, count.ends_with_newline

    def plan(
        self, split: Split, index: Sequence[tuple[Any, ...]], item_bytes: int
    ) -> list[WorkItem]:
        import numpy as np

        from tokcore.corpus.line_index import LineCount, index_items, join_counts

        parts = index_items(split, item_bytes)
        if len(index) != len(parts):
            raise ValueError(f'{len(index)} line counts do not go with {len(parts)} ranges')
        counts: dict[tuple[int, int], list[LineCount]] = {}
        for part, (newlines, *rest) in zip(parts, index, strict=True):
            count = LineCount(part, np.array(newlines, np.int64), *rest)
            counts.setdefault((part.file_index, part.side), []).append(count)
        items = []
        for place, files in zip(split.file_indexes, split.files, strict=True):
            source, target = (
                join_counts(file, counts.get((place, side), ())) for side, file in enumerate(files)
            )
            items += [
                WorkItem(
                    split.name,
                    self,
                    place,
                    (_line_range(source, first, end), _line_range(target, first, end)),
                )
                for first, end in _cuts(source, target, item_bytes)
            ]
        return items

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        for found in _read_pairs(item, open_binary, block_bytes, max_line_bytes):
            yield line_block(item, max_line_bytes, found)

    def first_block(
        self,
        split: Split,
        place: int,
        open_binary: OpenBinary,
        block_bytes: int,
        max_line_bytes: int,
    ) -> Block | None:
        ranges = tuple(TextRange(file, 0, file.size) for file in split.files_at(place))
        item = WorkItem(split.name, self, place, ranges)
        pairs = _stream_pairs(item, open_binary, block_bytes, max_line_bytes)
        first = next(pairs, None)
        return None if first is None else line_block(item, max_line_bytes, first)

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        from tokcore.corpus.line_rows import long_rows

        if block.long_lines:
            return long_rows(block.long_lines[0], len(self.sides), block.offset)
        source, target = block.texts
        return self.rows_of_lines(source, target, normalizer, block.max_line_bytes)

    def rows_of_lines(
        self, source: BlockText, target: BlockText, normalizer: Normalizer, max_line_bytes: int
    ) -> Rows:
        """Returns what as many lines of two files become; other formats of pairs override it."""
        from tokcore.corpus.line_rows import bitext_rows

        return bitext_rows(
            source.data, source.offset, target.data, target.offset, normalizer, max_line_bytes
        )


def _cuts(source: LineIndex, target: LineIndex, item_bytes: int) -> Iterator[tuple[int, int]]:
    """The first line of each item of a pair, and the line that it ends before.

    Raises:
        InputError: the files have different numbers of lines.
    """
    if source.lines != target.lines:
        raise InputError(
            f'{source.file.path} has {source.lines} lines but {target.file.path} has '
            f'{target.lines}; the two files of a pair must have the same number of lines'
        )
    if source.file.is_stream or target.file.is_stream:
        cuts = [0, source.lines] if source.lines else []
    else:
        cuts = _cut_lines(source, target, item_bytes)
    return zip(cuts, cuts[1:], strict=False)


def _cut_lines(source: LineIndex, target: LineIndex, item_bytes: int) -> list[int]:
    """The line numbers between which the items lie: each takes as many lines as surely fit."""
    cuts = [0]
    while (line := cuts[-1]) < source.lines:
        fitting = min(_end_within(side, line, item_bytes) for side in (source, target))
        cuts.append(max(line + 1, fitting))
    return cuts


def _end_within(index: LineIndex, line: int, item_bytes: int) -> int:
    """The last line number n such that lines [line, n) surely fit into `item_bytes` bytes."""
    # The line starts somewhere in its chunk, so count from the chunk's beginning to the end of the
    # last chunk: every line whose line feed lies there fits.
    end = index.chunk_of(line) + item_bytes // index.chunk_bytes
    if end >= len(index.newlines_before) - 1:
        return index.lines
    return int(index.newlines_before[end])


def _line_range(index: LineIndex, first: int, end: int) -> TextRange:
    if index.file.is_stream or (first == 0 and end == index.lines):
        return TextRange(index.file, 0, index.file.size, 0, end - first)
    chunk = index.chunk_of(first)
    last_byte = index.file.size if end == index.lines else index.start_of(index.chunk_of(end) + 1)
    skip = first - int(index.newlines_before[chunk])
    return TextRange(index.file, index.start_of(chunk), last_byte, skip, end - first)


def _read_pairs(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[tuple[PlacedLines, PlacedLines]]:
    if any(side.file.is_stream for side in item.ranges):
        yield from _stream_pairs(item, open_binary, block_bytes, max_line_bytes)
        return
    yield tuple(
        read_counted_lines(number, side, open_binary, max_line_bytes)
        for number, side in enumerate(item.ranges)
    )


def _stream_pairs(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[tuple[PlacedLines, PlacedLines]]:
    from tokcore.corpus.line_queue import LineQueue

    source, target = queues = [
        LineQueue(number, side, open_binary, block_bytes, max_line_bytes)
        for number, side in enumerate(item.ranges)
    ]
    paired = 0
    while True:
        # The lines of the block that is full on one side first; with fewer at hand, read on.
        full = min(queue.block_lines(block_bytes) for queue in queues)
        behind, ahead = sorted(queues, key=lambda queue: (len(queue), queue.exhausted))
        if len(behind) < full:
            if not behind.exhausted:
                behind.read_more()
                continue
            if len(ahead) > len(behind):
                raise InputError(
                    f'{behind.path} ends after {paired + len(behind)} lines but {ahead.path} goes '
                    'on; the two files of a pair must have the same number of lines'
                )
            full = len(behind)
        if not full:
            break
        yield source.take(full), target.take(full)
        paired += full
    counted = item.ranges[0].lines
    if counted not in (None, paired):
        raise InputError(
            f'{source.path} and {target.path} have {paired} lines but had {counted} when '
            'their lines were counted; run again when nothing writes to them any more'
        )
