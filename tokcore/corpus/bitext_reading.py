"""Reads bitext, and texts with labels: the lines of two files are matched by their numbers.

The same byte range of the two files of a pair holds different lines. So a first pass counts the line
feeds in each small chunk of both files: the sums show which chunk has the n-th line feed, and a pair is
cut where neither side of an item outgrows the limit. A pair with a compressed file, or with a member of an
archive, is one item, whose lines wait in two queues for their counterparts. If both files are members of
one archive without an index, two readers decompress it side by side.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.arrow_columns import extra_features, side_array
from tokcore.corpus.corpus import (
    STRETCH_BYTES,
    Block,
    CorpusFile,
    LongLine,
    OpenBinary,
    Rows,
    Split,
    TextRange,
    WorkItem,
)
from tokcore.corpus.declarations import Labelled
from tokcore.corpus.formats import FormatReader
from tokcore.corpus.line_reading import Lines, line_block, read_counted_lines, whole_lines
from tokcore.corpus.line_rows import BlockLines, lines_of, long_rows, rows_of_lines
from tokcore.corpus.storage import PIECE_BYTES, open_stored, read_pieces
from tokcore.corpus.stretches import FileLines
from tokcore.errors import InputError
from tokcore.kernels.bytes import runs_of
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.rows import Normalizer

IndexedRange = tuple['IndexRange', tuple[Any, ...]]
"""A range of a file, and what `BitextReader.index` returned for it."""

_CHUNKS_PER_ITEM = 16
"""With so many, an item is filled to at least 14/16 on its fuller side, and at most 1/16 of it is read in
vain. With half as many the waste doubles; with twice as many the index does."""

_UNIT_BYTES = 8 << 20
"""The least that one task counts, however small the work items: with less, the overhead of a task takes
longer than its reading."""


class BitextReader(FormatReader):
    """Reads the lines of two files side by side; a subclass may make other rows of them."""

    def index_ranges(self, split: Split, item_bytes: int) -> Sequence[IndexRange]:
        return index_items(split, item_bytes)

    def index(self, part: IndexRange, open_binary: OpenBinary) -> tuple[Any, ...]:
        return count_lines(part, range_pieces(part, open_binary))

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

    def items_at(self, whole: WorkItem, offsets: np.ndarray, lines: FileLines) -> list[WorkItem]:
        """Returns the lines of a stretch of the source that are in one stretch of the target.

        One that crosses the end of its stretch is read with the next one.
        """
        if any(file.is_stream for file in whole.files):
            return super().items_at(whole, offsets, lines)
        numbers = lines[0].numbers(offsets)
        # There is one more line than line feeds if the last one lacks its line feed.
        source, target = (
            LineIndex(own.file, STRETCH_BYTES, own.before, int(own.before[-1]) + 1) for own in lines
        )
        chunks = [np.searchsorted(own.before, numbers) for own in lines]
        items = []
        for own in runs_of(chunks[0] + (chunks[1] << 32)):
            first, end = int(numbers[own.start]), int(numbers[own.stop - 1]) + 1
            ranges = _line_range(source, first, end), _line_range(target, first, end)
            items.append(dataclasses.replace(whole, ranges=ranges, first_line=first))
        return items

    def pair_items(
        self,
        split: Split,
        file_index: int,
        indexes: Sequence[Sequence[IndexedRange]],
        item_bytes: int,
    ) -> list[WorkItem]:
        """Cuts one pair of files by their line numbers; `indexes` has the ranges of each file."""
        source, target = map(join_counts, split.files_at(file_index), indexes)
        return [
            WorkItem(
                split.name,
                split.format,
                file_index,
                (_line_range(source, first, end), _line_range(target, first, end)),
            )
            for first, end in itertools.pairwise(_cuts(source, target, item_bytes))
        ]

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        # A range whose lines were not counted is that of a whole file, for its first block.
        if item.ranges[0].lines is None or any(file.is_stream for file in item.files):
            for pair in _stream_pairs(item, open_binary, block_bytes, max_line_bytes):
                yield line_block(item, max_line_bytes, pair)
            return
        sides = (
            read_counted_lines(side, text_range, open_binary, max_line_bytes)
            for side, text_range in enumerate(item.ranges)
        )
        yield line_block(item, max_line_bytes, tuple(sides))

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        if block.long_lines:
            return long_rows(block)
        files = [lines_of(text.data, text.offset, block.max_line_bytes) for text in block.texts]
        source, target = map(len, files)
        if source != target:
            raise ValueError(f'{source} lines of the source and {target} of the target')
        return self.rows_of_lines(files, normalizer)

    def rows_of_lines(self, files: Sequence[BlockLines], normalizer: Normalizer) -> Rows:
        """Returns the rows of the same lines of two files; a pair with a blank side is empty."""
        normalized = [normalizer.apply(lines.side()) for lines in files]
        damages = [rows.damages for rows in normalized]
        return rows_of_lines(files, damages, [rows.side for rows in normalized])


def _cuts(source: LineIndex, target: LineIndex, item_bytes: int) -> list[int]:
    """Returns the line numbers where the items of a pair begin and end; the last is their end.

    An item has as many lines as surely fit. Raises InputError if one file has more lines than the other.
    """
    if source.lines != target.lines:
        raise InputError(
            f'{source.file.path} has {source.lines} lines but {target.file.path} has '
            f'{target.lines}; the two files of a pair must have the same number of lines'
        )
    if source.file.is_stream or target.file.is_stream:
        return [0, source.lines] if source.lines else []
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

    def rows_of_lines(self, files: Sequence[BlockLines], normalizer: Normalizer) -> Rows:
        """Returns rows with one side and a label.

        A blank text is an empty row, whatever its label is. A label is its line stripped of white
        space; one that the format does not have rejects the row, in the second file.
        """
        texts, names = normalizer.apply(files[0].side()), T2T_LINES.apply(files[1].side())
        features, unfit = extra_features([side_array(names.side)], self.format.extra_fields)
        damages = [texts.damages, names.damages]
        return rows_of_lines(files, damages, [texts.side], features=features, unfit=unfit)


@dataclass(frozen=True)
class IndexRange:
    """What one task counts: chunks of `chunk_bytes` of an uncompressed file, or a whole stream."""

    side: int  # 0 source, 1 target
    file_index: int
    file: CorpusFile
    start: int
    end: int
    chunk_bytes: int

    @property
    def stored_bytes(self) -> int:
        """The stored bytes that are read."""
        return self.end - self.start


@dataclass(frozen=True, eq=False)
class LineIndex:
    """The index of one whole file."""

    file: CorpusFile
    chunk_bytes: int
    newlines_before: np.ndarray  # int64[chunks + 1]: in all chunks before; the last is the total
    lines: int  # a last line without line feed is a line

    def chunk_of(self, line: int) -> int:
        """Returns the chunk with the line feed before a (0-based) line."""
        return max(0, int(np.searchsorted(self.newlines_before, line)) - 1)

    def start_of(self, chunk: int) -> int:
        """Returns the byte where a chunk begins; the file's size for those past the end."""
        return min(chunk * self.chunk_bytes, self.file.size)


def index_items(split: Split, item_bytes: int, unit_bytes: int = _UNIT_BYTES) -> list[IndexRange]:
    """Returns the ranges to be counted before a bitext can be cut; empty files have none."""
    chunk = max(1, item_bytes // _CHUNKS_PER_ITEM)
    step = chunk * max(1, max(item_bytes, unit_bytes) // chunk)
    ranges = []
    for file_index, pair in zip(split.file_indexes, split.files, strict=True):
        for side, file in enumerate(pair):
            unit = max(1, file.size) if file.is_stream else step
            size = unit if file.is_stream else file.size
            ranges += [
                IndexRange(side, file_index, file, start, min(start + unit, file.size), chunk)
                for start in range(0, size, unit)
            ]
    return ranges


def range_pieces(range: IndexRange, open_binary: OpenBinary) -> Iterator[bytes]:
    """Yields the text of a range.

    Raises:
        InputError: the file cannot be read, has changed its size, or is compressed and cut off or
            damaged.
    """
    if range.file.is_stream:
        yield from text_pieces(range.file, open_binary)
        return
    with open_stored(range.file, open_binary) as stream:
        yield from read_pieces(stream, range.file, range.start, range.end)


def count_lines(range: IndexRange, pieces: Iterable[bytes]) -> tuple[list[int], int, bool]:
    """Counts the line feeds of a range by its text, in pieces.

    Returns:
        The line feeds of each chunk, or of a whole stream; the bytes of text; and whether a line feed
        ends them.
    """
    is_stream = range.file.is_stream
    chunks = 1 if is_stream else -(-(range.end - range.start) // range.chunk_bytes)
    newlines = np.zeros(chunks, np.int64)
    piece, position = b'', 0
    for piece in pieces:
        positions = np.flatnonzero(np.frombuffer(piece, np.uint8) == ord('\n'))
        if is_stream:
            newlines[0] += len(positions)
        else:
            first = position // range.chunk_bytes
            counts = np.bincount((positions + position) // range.chunk_bytes - first)
            newlines[first : first + len(counts)] += counts
        position += len(piece)
    return newlines.tolist(), position, piece.endswith(b'\n')


def join_counts(file: CorpusFile, counts: Iterable[IndexedRange]) -> LineIndex:
    """Joins the counts of one file, in any order, to its index.

    Each count begins as the result of `count_lines` does.

    Raises:
        ValueError: they do not cover the file exactly.
    """
    newlines, text_bytes, end = [0], 0, 0
    chunk_bytes = 1
    ordered = sorted(counts, key=lambda count: count[0].start)
    for part, (feeds, part_bytes, *_) in ordered:
        if part.file != file or part.start != end:
            raise ValueError(f'line counts of {file.name} have a gap or overlap at byte {end}')
        newlines += feeds
        text_bytes, end, chunk_bytes = text_bytes + part_bytes, part.end, part.chunk_bytes
    if end != file.size:
        raise ValueError(f'line counts of {file.name} end at byte {end} of {file.size}')
    newlines_before = np.cumsum(newlines, dtype=np.int64)
    lines = int(newlines_before[-1]) + (text_bytes > 0 and not ordered[-1][1][2])
    return LineIndex(file, chunk_bytes, newlines_before, lines)
