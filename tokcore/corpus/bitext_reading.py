"""Reads bitext, and texts with labels: the lines of two files are matched by their numbers.

The two files of a pair drift apart, so a first pass counts their lines in chunks (`line_index`), and
a pair is cut where neither side of an item outgrows the limit. A pair with a compressed file, or with
a member of an archive, is one item, whose lines wait in two queues for their counterparts. If both
files are members of one archive without an index, two readers decompress it side by side.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.arrow_columns import extra_features, side_array
from tokcore.corpus.corpus import (
    MAX_LINE_BYTES,
    Block,
    BlockText,
    LongLine,
    OpenBinary,
    Rows,
    Split,
    TextRange,
    WorkItem,
)
from tokcore.corpus.fields import ExtraField
from tokcore.corpus.formats import FormatReader
from tokcore.corpus.line_formats import Labelled
from tokcore.corpus.line_index import (
    IndexRange,
    LineCount,
    LineIndex,
    count_lines,
    index_items,
    join_counts,
)
from tokcore.corpus.line_reading import Lines, line_block, read_counted_lines, whole_lines
from tokcore.corpus.line_rows import lines_of_pair, long_rows, rows_of_lines
from tokcore.corpus.storage import PIECE_BYTES
from tokcore.errors import InputError
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.rows import Normalizer

IndexedRange = tuple[IndexRange, tuple[Any, ...]]
"""A range of a file, and what `BitextReader.index` returned for it."""


class BitextReader(FormatReader):
    """Reads the lines of two files side by side; a subclass may make other rows of them."""

    def index_ranges(self, split: Split, item_bytes: int) -> Sequence[IndexRange]:
        return index_items(split, item_bytes)

    def index(self, part: IndexRange, open_binary: OpenBinary) -> tuple[Any, ...]:
        """Returns the line feeds of each chunk, the bytes of text, and whether a line feed ends them."""
        count = count_lines(part, open_binary)
        return count.newlines.tolist(), count.text_bytes, count.ends_with_newline

    def plan(
        self, split: Split, index: Sequence[tuple[Any, ...]], item_bytes: int
    ) -> list[WorkItem]:
        parts = self.index_ranges(split, item_bytes)
        if len(index) != len(parts):
            raise ValueError(f'{len(index)} line counts do not go with {len(parts)} ranges')
        by_file: dict[tuple[int, int], list[IndexedRange]] = {}
        for part, indexed in zip(parts, index, strict=True):
            by_file.setdefault((part.file_index, part.side), []).append((part, indexed))
        items = []
        for file_index, files in zip(split.file_indexes, split.files, strict=True):
            indexes = [by_file.get((file_index, side), []) for side in range(len(files))]
            items += self.pair_items(split, file_index, indexes, item_bytes)
        return items

    def beginning(self, item: WorkItem, size: int) -> WorkItem:
        if not self.format.rows_are_lines or any(file.is_stream for file in item.files):
            return item
        counted = item.ranges[0].counted_lines
        # A single line is read otherwise.
        lines = max(2, counted * size // max(1, item.stored_bytes))
        if lines >= counted:
            return item
        ranges = tuple(dataclasses.replace(text_range, lines=lines) for text_range in item.ranges)
        return dataclasses.replace(item, ranges=ranges)

    def pair_items(
        self,
        split: Split,
        file_index: int,
        indexes: Sequence[Sequence[IndexedRange]],
        item_bytes: int,
    ) -> list[WorkItem]:
        """Cuts one pair of files by their line numbers; `indexes` has the ranges of each file."""
        source, target = (
            join_counts(
                file,
                [
                    LineCount(part, np.array(newlines, np.int64), text_bytes, ends_with_newline)
                    for part, (newlines, text_bytes, ends_with_newline, *_) in ranges
                ],
            )
            for file, ranges in zip(split.files_at(file_index), indexes, strict=True)
        )
        return [
            WorkItem(
                split.name,
                split.format,
                file_index,
                (_line_range(source, first, end), _line_range(target, first, end)),
            )
            for first, end in _cuts(source, target, item_bytes)
        ]

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        for pair in _read_pairs(item, open_binary, block_bytes, max_line_bytes):
            yield line_block(item, max_line_bytes, pair)

    def first_block(
        self,
        split: Split,
        file_index: int,
        open_binary: OpenBinary,
        block_bytes: int,
        max_line_bytes: int,
    ) -> Block | None:
        ranges = tuple(TextRange(file, 0, file.size) for file in split.files_at(file_index))
        item = WorkItem(split.name, split.format, file_index, ranges)
        first = next(_stream_pairs(item, open_binary, block_bytes, max_line_bytes), None)
        return None if first is None else line_block(item, max_line_bytes, first)

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        if block.long_lines:
            return long_rows(block.long_lines[0], len(self.format.sides), block.offset)
        source, target = block.texts
        return self.rows_of_lines(source, target, normalizer, block.max_line_bytes)

    def rows_of_lines(
        self, source: BlockText, target: BlockText, normalizer: Normalizer, max_line_bytes: int
    ) -> Rows:
        """Returns the rows of the same lines of two files."""
        return bitext_rows(source, target, normalizer, max_line_bytes)


def bitext_rows(
    source: BlockText,
    target: BlockText,
    normalizer: Normalizer,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Rows:
    """Returns the rows of the same lines of two files, with two sides.

    A pair with a blank side is empty. If both sides are too long, or both are invalid UTF-8, the
    source is rejected. Raises ValueError if the blocks have different numbers of lines.
    """
    files = lines_of_pair(source, target, max_line_bytes)
    normalized = [normalizer.apply(lines.side()) for lines in files]
    damages = [rows.damages for rows in normalized]
    return rows_of_lines(files, damages, [rows.side for rows in normalized])


def _cuts(source: LineIndex, target: LineIndex, item_bytes: int) -> Iterator[tuple[int, int]]:
    """Yields the lines [first, end) of each item of a pair.

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
    """Returns the line numbers between the items; an item has as many lines as surely fit."""
    cuts = [0]
    while (line := cuts[-1]) < source.lines:
        fitting = min(_end_within(side, line, item_bytes) for side in (source, target))
        cuts.append(max(line + 1, fitting))
    return cuts


def _end_within(index: LineIndex, line: int, item_bytes: int) -> int:
    """Returns the largest n for which lines [line, n) surely fit into `item_bytes` bytes."""
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
) -> Iterator[tuple[Lines, Lines]]:
    if any(text_range.file.is_stream for text_range in item.ranges):
        yield from _stream_pairs(item, open_binary, block_bytes, max_line_bytes)
        return
    source, target = item.ranges
    yield (
        read_counted_lines(0, source, open_binary, max_line_bytes),
        read_counted_lines(1, target, open_binary, max_line_bytes),
    )


def _stream_pairs(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[tuple[Lines, Lines]]:
    source, target = queues = [
        _LineQueue(side, text_range, open_binary, block_bytes, max_line_bytes)
        for side, text_range in enumerate(item.ranges)
    ]
    paired = 0
    while True:
        # The next block has the lines that fill it on one side; while the other has fewer, read on.
        lines = min(queue.block_lines(block_bytes) for queue in queues)
        behind, ahead = sorted(queues, key=lambda queue: (len(queue), queue.exhausted))
        if len(behind) < lines:
            if not behind.exhausted:
                behind.read_more()
                continue
            if len(ahead) > len(behind):
                raise InputError(
                    f'{behind.path} ends after {paired + len(behind)} lines but {ahead.path} goes '
                    'on; the two files of a pair must have the same number of lines'
                )
            lines = len(behind)
        if not lines:
            break
        yield source.pop(lines), target.pop(lines)
        paired += lines
    counted = item.ranges[0].lines
    if counted not in (None, paired):
        raise InputError(
            f'{source.path} and {target.path} have {paired} lines but had {counted} when '
            'their lines were counted; run again when nothing writes to them any more'
        )


class _LineQueue:
    """The lines of one file of a pair that wait for those of the other.

    A line that is too long is in the queue as a `LongLine`, without bytes.
    """

    def __init__(
        self,
        side: int,
        text_range: TextRange,
        open_binary: OpenBinary,
        block_bytes: int,
        max_line_bytes: int,
    ):
        self.path = text_range.file.path
        self.offset = 0  # of the first line in the queue
        self.ends = np.zeros(0, np.int64)  # of each line in the queue, from the first one's start
        self.exhausted = False
        self._data = bytearray()
        self._popped = 0  # lines
        self._long: collections.deque[tuple[int, LongLine]] = collections.deque()  # (line, ...)
        self._chunks = whole_lines(
            text_pieces(text_range.file, open_binary),
            min(block_bytes, PIECE_BYTES),
            max_line_bytes,
            side,
        )

    def __len__(self) -> int:
        return len(self.ends)

    def read_more(self) -> None:
        """Adds lines to the queue, or sets `exhausted` at the end of the file."""
        chunk = next(self._chunks, b'')
        self.exhausted = not chunk
        if isinstance(chunk, LongLine):
            self._long.append((self._popped + len(self), chunk))
            self.ends = np.append(self.ends, len(self._data))
            return
        ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord('\n')) + 1
        if chunk and not chunk.endswith(b'\n'):
            ends = np.append(ends, len(chunk))
        self.ends = np.concatenate([self.ends, ends + len(self._data)])
        self._data += chunk

    def block_lines(self, block_bytes: int) -> int:
        """Returns how many lines fill a block; may be more than the queue has."""
        lines = 1 + int(np.searchsorted(self.ends, block_bytes))
        if self._long:
            # A line that is too long is a block of its own.
            lines = min(lines, max(1, self._long[0][0] - self._popped))
        return lines

    def pop(self, lines: int) -> Lines:
        """Removes and returns the first lines, at most `block_lines`."""
        offset = self.offset
        popped: bytes | LongLine
        if self._long and self._long[0][0] == self._popped:
            _, popped = self._long.popleft()
            self.ends = self.ends[1:]
            self.offset += popped.length
        else:
            end = int(self.ends[lines - 1])
            with memoryview(self._data) as data:
                popped = bytes(data[:end])
            del self._data[:end]
            self.ends = self.ends[lines:] - end
            self.offset += end
        self._popped += lines
        return offset, popped


class LabelledReader(BitextReader):
    """Reads the texts of one file and the labels of another together."""

    format: Labelled

    def rows_of_lines(
        self, source: BlockText, target: BlockText, normalizer: Normalizer, max_line_bytes: int
    ) -> Rows:
        [field] = self.format.extra_fields
        return labelled_rows(source, target, field, normalizer, max_line_bytes)


def labelled_rows(
    text: BlockText,
    labels: BlockText,
    field: ExtraField,
    normalizer: Normalizer,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Rows:
    """Returns the rows, with one side, of equally many lines of texts and of labels.

    A blank text is an empty row, whatever its label is. A label is its line stripped of white space;
    one that `field` does not have rejects the row, in the second file.

    Raises:
        ValueError: the blocks differ in their number of lines.
    """
    files = lines_of_pair(text, labels, max_line_bytes)
    texts, names = normalizer.apply(files[0].side()), T2T_LINES.apply(files[1].side())
    features, unfit = extra_features([side_array(names.side)], [field])
    damages = [texts.damages, names.damages]
    return rows_of_lines(files, damages, [texts.side], features=features, unfit=unfit)
