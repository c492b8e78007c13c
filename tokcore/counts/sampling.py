"""The sample that a vocabulary is counted from: every n-th line, or a share of the rows.

Tensor2Tensor's `generate_lines_for_vocab` skips `int(size / budget / 2)` lines, uses one, and so on;
the characters of a used line are subtracted from the budget, and it stops before the line that it
would use when nothing is left. Lines are thus chosen by their numbers in the file, which a pass over
the file finds, for work items that begin within the file too. Lines that cannot be used, at which
the original fails, cost nothing here. A share of the rows is chosen by their order keys.
"""

import dataclasses
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.corpus import (
    Block,
    BlockText,
    CorpusFile,
    LongLine,
    OpenBinary,
    Rows,
    Split,
    WorkItem,
)
from tokcore.corpus.declarations import PlainText
from tokcore.corpus.line_reading import whole_lines
from tokcore.corpus.line_rows import count_buffer_lines, line_bounds, lines_of, mark_bytes
from tokcore.corpus.order_keys import order_keys
from tokcore.corpus.storage import PIECE_BYTES
from tokcore.filters.applying import select_rows
from tokcore.kernels.jit import kernel, kernel_without_allocation
from tokcore.kernels.simd import CHUNK, byte_range_mask, popcount, trailing_zeros
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.rewriting import count_characters
from tokcore.text.rows import Normalizer, Side

_SEED = 0
"""The seed of the order keys, whatever that of the shuffle is: reordered examples have the same vocabulary."""

_CHUNK = np.uint64(CHUNK)
_0, _1 = np.uint64(0), np.uint64(1)


@dataclass(frozen=True)
class RowsToCount:
    """What is counted of a block.

    Attributes:
        rows: for statistics of the block; those outside of the sample are in `not_sampled` alone.
        sides: the texts to count. Their numbers of rows may differ from each other and from `rows`:
            a sample of lines is of each side by itself.
    """

    rows: Rows
    sides: tuple[Side, ...]


@dataclass(frozen=True)
class UniformSample:
    """Rows whose order key is below a threshold, however the corpus is split into blocks.

    Attributes:
        threshold: of the keys.
        first_file: the index of the first file that is counted, whose rows have the keys of file 0, so
            that a dataset has the same sample with others as alone.
    """

    threshold: int
    first_file: int = 0

    def rows(
        self, block: Block, splits: Sequence[Split], normalizer: Normalizer, sides: frozenset[int]
    ) -> RowsToCount:
        rows = select_rows(block, splits, normalizer)
        keys = order_keys(block.file_index - self.first_file, rows.identities, _SEED)
        rows = _sampled(rows, keys < np.uint64(self.threshold))
        return RowsToCount(rows, rows.sides)


@dataclass(frozen=True)
class SampledLines:
    """The sampled lines of a file: the last of each `period` lines, `count` of them.

    Attributes:
        period: 1 samples every line.
        count: how many lines are sampled.
    """

    period: int
    count: int

    def among(self, first: int, lines: int) -> slice:
        """Returns which of consecutive lines, the first of which is number `first`, are sampled."""
        end = self.period * self.count - first
        return slice(_lines_to_skip(first, self.period), max(0, min(lines, end)), self.period)


@dataclass(frozen=True)
class LineSample:
    """Lines of files by their numbers, as `sample_file` finds them.

    Tensor2Tensor samples a file by itself, so a line is counted as it is: even if the other side of
    its pair is empty or cannot be used, and whatever filters make of the row.

    Attributes:
        lines: by file index and side; other files have no sampled lines.
    """

    lines: Mapping[tuple[int, int], SampledLines]

    def rows(
        self, block: Block, splits: Sequence[Split], normalizer: Normalizer, sides: frozenset[int]
    ) -> RowsToCount:
        rows = select_rows(block, splits, normalizer)
        block_lines = [
            lines_of(text.data, text.offset, block.max_line_bytes) for text in block.texts
        ]
        texts = []
        is_sampled = np.zeros(rows.lines, bool)
        for side, lines in enumerate(block_lines):
            sampled = self.lines.get((block.file_index, side), SampledLines(1, 0))
            numbers = sampled.among(_first_line(block), len(lines))
            text = normalizer.apply(lines.side().take(numbers)).side
            texts.append(text.take(text.ends > text.starts))
            if side in sides:
                is_sampled[numbers] = True
        line_numbers = np.searchsorted(block_lines[0].starts, rows.line_starts)
        return RowsToCount(_sampled(rows, is_sampled[line_numbers]), tuple(texts))


RowSample = UniformSample | LineSample
"""A sample, in the form that is sent to workers."""


def rows_to_count(
    block: Block,
    splits: Sequence[Split],
    normalizer: Normalizer,
    sides: frozenset[int],
    sample: RowSample | None,
) -> RowsToCount:
    """Returns the rows of a block to count; without a sample, all rows.

    `sides` are the numbers of the sides that are counted.
    """
    if sample is not None:
        return sample.rows(block, splits, normalizer, sides)
    rows = select_rows(block, splits, normalizer)
    return RowsToCount(rows, rows.sides)


def _sampled(rows: Rows, is_sampled: np.ndarray) -> Rows:
    """Returns the rows for which `is_sampled`, bool[rows], is True; the others are counted."""
    numbers = np.flatnonzero(is_sampled)
    return dataclasses.replace(rows.select(numbers), not_sampled=len(rows) - len(numbers))


@dataclass(frozen=True)
class FileSample:
    """The result of a pass over a file.

    Attributes:
        lines: its sampled lines.
        first_lines: for each of the requested offsets, the number of the first line that begins
            there or later; after all sampled lines, any number that is large enough.
    """

    lines: SampledLines
    first_lines: tuple[int, ...]


def sample_file(
    file: CorpusFile,
    budget: int,
    open_binary: OpenBinary,
    max_line_bytes: int,
    starts: Sequence[int] = (),
) -> FileSample:
    """Finds the sampled lines of a file.

    The file is read until the budget is used up. A compressed file is read once before, to learn the
    size of its text. Memory: some MB, or a line of `max_line_bytes`.

    Args:
        file: a file of lines.
        budget: in characters, at least 1.
        open_binary: opens the file.
        max_line_bytes: a longer line cannot be used.
        starts: offsets in an uncompressed file, ascending, for `first_lines`.

    Raises:
        InputError: the file cannot be read, has changed its size, or is compressed and damaged.
    """
    size = file.size
    if file.compressed:
        size = sum(map(len, text_pieces(file, open_binary)))
    period = int(size / budget / 2) + 1
    first_lines: list[int] = []
    number = offset = spent = sampled = 0
    for block in whole_lines(text_pieces(file, open_binary), PIECE_BYTES, max_line_bytes):
        length = block.length if isinstance(block, LongLine) else len(block)
        while len(first_lines) < len(starts) and starts[len(first_lines)] <= offset + length:
            first_lines.append(number + _lines_before(block, starts[len(first_lines)] - offset))
        offset += length
        if isinstance(block, LongLine):
            sampled += _lines_to_skip(number, period) == 0  # sampled, and costs nothing
            number += 1
            continue
        lines, characters = _characters_of_sampled(block, number, period, max_line_bytes)
        spent_before = spent + np.cumsum(characters) - characters
        within_budget = int(np.searchsorted(spent_before, budget))
        number, sampled = number + lines, sampled + within_budget
        spent += int(characters[:within_budget].sum())
        if spent >= budget:
            break
    first_lines += [number] * (len(starts) - len(first_lines))
    return FileSample(SampledLines(period, sampled), tuple(first_lines))


def _lines_to_skip(first: int, period: int) -> int:
    """Returns the number of lines from number `first` on before the next sampled one."""
    return period - 1 - first % period


def _lines_before(block: bytes | LongLine, offset: int) -> int:
    """Returns how many lines of a block begin before an offset in it, which may be its end."""
    if offset <= 0:
        return 0
    return 1 if isinstance(block, LongLine) else 1 + block.count(b'\n', 0, offset - 1)


def _characters_of_sampled(
    block: bytes, first: int, period: int, max_line_bytes: int
) -> tuple[int, np.ndarray]:
    """Returns the number of lines of a block, and int64[...]: the characters of sampled lines.

    `first` is the number of the block's first line.
    """
    text = np.frombuffer(block, np.uint8)
    # Capped for the kernel's integers; no block has 2^62 lines.
    skip, step = min(_lines_to_skip(first, period), 1 << 62), min(period, 1 << 62)
    lines, starts, ends = every_nth_line(text, skip, step)
    too_long = ends - starts > max_line_bytes
    if mark := mark_bytes(block, first):
        starts = np.maximum(starts, mark)
    ends[too_long] = starts[too_long]
    stripped = T2T_LINES.apply(Side(text, starts, ends)).side
    characters = np.empty(len(starts), np.int64)
    count_characters(*stripped.arrays(), characters)
    return lines, characters


def starts_to_number(items: Sequence[WorkItem]) -> dict[int, list[int]]:
    """Returns, by file index, the offsets of items whose first line number must be found.

    Items with a number of lines, or of a whole file, need none.
    """
    starts: dict[int, list[int]] = {}
    for item in items:
        if _is_cut_by_bytes(item):
            starts.setdefault(item.file_index, []).append(item.ranges[0].start)
    return starts


def number_items(
    items: Sequence[WorkItem], first_lines: Mapping[int, Sequence[int]]
) -> list[WorkItem]:
    """Returns items with the numbers of their first lines.

    Args:
        items: all items of their files, in order.
        first_lines: by file index, a number for each offset of `starts_to_number`.
    """
    left = {index: iter(numbers) for index, numbers in first_lines.items()}
    next_lines: dict[int, int] = {}  # by file index, the line after the last item
    numbered = []
    for item in items:
        if _is_cut_by_bytes(item):
            first = next(left[item.file_index])
        else:
            first = next_lines.get(item.file_index, 0)
            next_lines[item.file_index] = first + (item.ranges[0].lines or 0)
        numbered.append(dataclasses.replace(item, first_line=first))
    return numbered


def number_blocks(item: WorkItem, blocks: Iterator[Block]) -> Iterator[Block]:
    """Yields the blocks of a numbered item with the numbers of their first lines."""
    number = _first_line(item)
    for block in blocks:
        yield dataclasses.replace(block, first_line=number)
        if block.long_lines:
            number += 1
        else:
            number += int(count_buffer_lines(np.frombuffer(block.texts[0].data, np.uint8)))


def _first_line(numbered: Block | WorkItem) -> int:
    if numbered.first_line is None:
        raise ValueError('the lines were not numbered')
    return numbered.first_line


def _is_cut_by_bytes(item: WorkItem) -> bool:
    text_range = item.ranges[0]
    is_whole = text_range.file.is_stream and text_range.packed_bytes is None
    return text_range.lines is None and not is_whole


def compile_sampling_kernels() -> None:
    """Samples a file of two lines, and selects these in its only block."""
    text = 'one Ä\r\ntwo\n'.encode()
    file = CorpusFile('warm-up', 'warm-up', len(text), compressed=False)
    sampled = sample_file(file, len(text), lambda path: io.BytesIO(text), len(text))
    split = Split('train', PlainText(), ((file,),))
    item = WorkItem(split.name, split.format, 0, (), first_line=0)
    blocks = iter([Block(split.name, split.format, 0, (BlockText(0, text),))])
    sample = LineSample({(0, 0): sampled.lines})
    for block in number_blocks(item, blocks):
        sample.rows(block, (split,), T2T_LINES, frozenset({0}))


@kernel
def every_nth_line(data, first, period):
    """Returns the number of lines, and the bounds of every `period`-th from number `first` on.

    Lines are numbered from 0. Starts and ends are int64[...] and exclude the '\\n', which the last
    line may lack.
    """
    if period == 1:
        bounds, _ = line_bounds(data)
        return len(bounds) - 1, bounds[first:-1], bounds[first + 1 :] - 1
    lines = count_buffer_lines(data)
    count = 0
    if first < lines:
        count = 1 + (lines - 1 - first) // period
    starts = np.zeros(count, np.int64)
    ends = np.full(count, len(data), np.int64)
    if count > 0:
        _find_lines(data, first, period, starts, ends)
    return lines, starts, ends


@kernel_without_allocation
def _find_lines(data, first, period, starts, ends):
    """Fills in the bounds for `every_nth_line`, for a period above 1.

    `starts` holds 0 and `ends` the size of the data. The '\\n' before and after a line are found by
    their numbers, so that in 64 bytes with neither of them line feeds are only counted.
    """
    line = 0
    in_line = first == 0
    next_feed = np.uint64(first) if in_line else np.uint64(first - 1)
    seen = _0
    position, size = _0, np.uint64(len(data))
    while position < size and line < len(starts):
        if position + _CHUNK <= size:
            feeds = byte_range_mask(data, position, 0x0A, 0x0A)
        else:
            feeds = _0
            for byte in range(size - position):
                is_feed = data[position + np.uint64(byte)] == 0x0A
                feeds |= np.uint64(is_feed) << np.uint64(byte)
        number = seen
        seen += popcount(feeds)
        while next_feed < seen and line < len(starts):
            while number < next_feed:
                feeds &= feeds - _1
                number += _1
            place = np.int64(position + trailing_zeros(feeds))
            if not in_line:
                starts[line] = place + 1
                in_line = True
                next_feed += _1
                continue
            ends[line] = place
            line += 1
            in_line = False
            next_feed += np.uint64(period - 1)
        position += _CHUNK
