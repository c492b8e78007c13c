"""The sample that a vocabulary is counted from: every n-th line, or a share of the rows.

With `countermax = int(size / budget / 2)` Tensor2Tensor's `generate_lines_for_vocab` skips so many
lines, takes one, and so on; the characters of what it takes are subtracted from the budget, and it
ends at a line that it would take when nothing is left. So lines are chosen by their numbers in the
file, which a pass over the file finds, also for items that begin within it. Here lines that cannot
be used cost nothing, at which the original fails. A share of the rows is chosen by their order
keys.
"""

import abc
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
from tokcore.corpus.filters.applying import select_rows
from tokcore.corpus.line_reading import whole_lines
from tokcore.corpus.line_rows import count_buffer_lines, line_bounds
from tokcore.corpus.order_keys import order_keys
from tokcore.corpus.plain_text import PlainText
from tokcore.corpus.storage import PIECE_BYTES
from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.kernels.simd import CHUNK, byte_range_mask, popcount, trailing_zeros
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.rows import Normalizer, Side

_TEXT = 'one Ä\r\ntwo\n'.encode()

_SEED = 0
"""Of the order keys, whatever shuffles: another order of examples is not another vocabulary."""

_CHUNK = np.uint64(CHUNK)
_0, _1 = np.uint64(0), np.uint64(1)


def compile_sampling_kernels() -> None:
    """Samples a file of two lines, and takes them from its only block."""
    file = CorpusFile('warm-up', 'warm-up', len(_TEXT), compressed=False)
    found = sample_file(file, len(_TEXT), lambda path: io.BytesIO(_TEXT), len(_TEXT))
    split = Split('train', PlainText(), ((file,),))
    item = WorkItem(split.name, split.format, 0, (), first_line=0)
    blocks = iter([Block(split.name, split.format, 0, (BlockText(0, _TEXT),))])
    sample = LineSample({(0, 0): found.taken})
    for block in numbered_blocks(item, blocks):
        sample.rows(block, (split,), T2T_LINES, frozenset({0}))


def starts_to_number(items: Sequence[WorkItem]) -> dict[int, list[int]]:
    """Returns, by place, the bytes of which it must be known what line begins there or next.

    Nothing of files whose items tell their lines, or are the whole of them.
    """
    starts: dict[int, list[int]] = {}
    for item in items:
        if _is_cut_by_bytes(item):
            starts.setdefault(item.place, []).append(item.ranges[0].start)
    return starts


def number_items(
    items: Sequence[WorkItem], first_lines: Mapping[int, Sequence[int]]
) -> list[WorkItem]:
    """Returns items with the numbers of their first lines.

    Args:
        items: of whole files, in order.
        first_lines: by place, as many as `starts_to_number` gives.
    """
    left = {place: iter(numbers) for place, numbers in first_lines.items()}
    behind: dict[int, int] = {}  # by place, the line behind the last item
    numbered = []
    for item in items:
        if _is_cut_by_bytes(item):
            first = next(left[item.place])
        else:
            first = behind.get(item.place, 0)
            behind[item.place] = first + (item.ranges[0].lines or 0)
        numbered.append(dataclasses.replace(item, first_line=first))
    return numbered


def numbered_blocks(item: WorkItem, blocks: Iterator[Block]) -> Iterator[Block]:
    """Yields the blocks of a numbered item with the numbers of their first lines."""
    number = item.first_line
    for block in blocks:
        yield dataclasses.replace(block, first_line=number)
        if block.long_lines:
            number += 1
        else:
            number += int(count_buffer_lines(np.frombuffer(block.texts[0].data, np.uint8)))


def _is_cut_by_bytes(item: WorkItem) -> bool:
    text_range = item.ranges[0]
    is_whole = text_range.file.is_stream and not text_range.of_text
    return text_range.lines is None and not is_whole


@dataclass(frozen=True)
class CountedRows:
    """What is counted of a block.

    Attributes:
        rows: for what is told of the block; those outside the sample are in `not_sampled` alone.
        sides: texts to count. They may differ in their number of rows, and from `rows`: a sample of
            lines is of each side by itself.
    """

    rows: Rows
    sides: tuple[Side, ...]


class RowSample(abc.ABC):
    """A sample, as workers are to know it."""

    @abc.abstractmethod
    def rows(
        self, block: Block, splits: Sequence[Split], normalizer: Normalizer, sides: frozenset[int]
    ) -> CountedRows:
        """Returns what is counted of a block, as `counted_rows` says."""


def counted_rows(
    block: Block,
    splits: Sequence[Split],
    normalizer: Normalizer,
    sides: frozenset[int],
    sample: RowSample | None,
) -> CountedRows:
    """Returns what is counted of a block.

    Args:
        block: whole rows.
        splits: the corpus.
        normalizer: what makes text of rows.
        sides: which ones are counted.
        sample: what they must be in; None: any.
    """
    if sample is not None:
        return sample.rows(block, splits, normalizer, sides)
    rows = select_rows(block, splits, normalizer)
    return CountedRows(rows, rows.sides)


@dataclass(frozen=True)
class UniformSample(RowSample):
    """Rows whose order key is below a threshold: whoever reads them, in whatever pieces.

    Attributes:
        threshold: above 0, below 2^64.
    """

    threshold: int

    def rows(
        self, block: Block, splits: Sequence[Split], normalizer: Normalizer, sides: frozenset[int]
    ) -> CountedRows:
        rows = select_rows(block, splits, normalizer)
        keys = order_keys(block.place, rows.identities, _SEED)
        rows = _only(rows, keys < np.uint64(self.threshold))
        return CountedRows(rows, rows.sides)


@dataclass(frozen=True)
class TakenLines:
    """The lines of a file that are taken: the last of each `period`, of the first `lines` periods.

    Attributes:
        period: 1 takes all.
        lines: how many are taken.
    """

    period: int
    lines: int

    def among(self, first: int, count: int) -> slice:
        """Returns the places of those taken among so many lines, the first of which is `first`."""
        behind = self.period * self.lines - first
        return slice(_to_skip(first, self.period), max(0, min(count, behind)), self.period)


@dataclass(frozen=True)
class LineSample(RowSample):
    """Lines of files by their numbers: `sample_file` finds which.

    A line is counted for its own sake and as it is: also where the other side of its pair is empty or
    cannot be used, and whatever filters make of the row. Of that Tensor2Tensor knows nothing when it
    samples a file.

    Attributes:
        taken: by place and side; the lines of other files are not taken.
    """

    taken: Mapping[tuple[int, int], TakenLines]

    def rows(
        self, block: Block, splits: Sequence[Split], normalizer: Normalizer, sides: frozenset[int]
    ) -> CountedRows:
        rows = select_rows(block, splits, normalizer)
        lines = [_lines(text.data, block.max_line_bytes) for text in block.texts]
        texts = []
        is_taken = np.zeros(rows.lines, bool)
        for side, all_lines in enumerate(lines):
            taken = self.taken.get((block.place, side), TakenLines(1, 0))
            among = taken.among(block.first_line, len(all_lines))
            of_taken = Side(all_lines.text, all_lines.starts[among], all_lines.ends[among])
            text = normalizer.apply(of_taken).side
            there = text.ends > text.starts
            texts.append(Side(text.text, text.starts[there], text.ends[there]))
            if side in sides:
                is_taken[among] = True
        numbers = np.searchsorted(lines[0].starts, rows.line_starts)
        return CountedRows(_only(rows, is_taken[numbers]), tuple(texts))


def _lines(data: bytes, max_line_bytes: int) -> Side:
    """The lines of a file's part of a block; those that are too long are empty."""
    text = np.frombuffer(data, np.uint8)
    starts, ends = line_bounds(text)
    too_long = ends - starts > max_line_bytes
    if too_long.any():
        ends = np.where(too_long, starts, ends)
    return Side(text, starts, ends)


def _only(rows: Rows, is_sampled: np.ndarray) -> Rows:
    """The rows that `is_sampled` (bool[rows]) says; the others are counted."""
    chosen = np.flatnonzero(is_sampled)
    return dataclasses.replace(rows.at(chosen), not_sampled=len(rows) - len(chosen))


@dataclass(frozen=True)
class FileSample:
    """What a pass over a file found.

    Attributes:
        taken: its lines that are taken.
        first_lines: for each byte that was asked about, the number of the first line that begins
            there or behind; or, where that is behind all that are taken, any number behind those.
    """

    taken: TakenLines
    first_lines: tuple[int, ...]


def sample_file(
    file: CorpusFile,
    budget: int,
    open_binary: OpenBinary,
    max_line_bytes: int,
    starts: Sequence[int] = (),
) -> FileSample:
    """Finds the lines of a file that are taken.

    The file is read to where the budget is used up. What is decompressed is read through before,
    for its size. Memory: some MB, or a line of `max_line_bytes`.

    Args:
        file: of lines.
        budget: at least 1.
        open_binary: opens it.
        max_line_bytes: a longer line cannot be used.
        starts: bytes of a plain file, ascending, for `first_lines`.

    Raises:
        InputError: it cannot be read, has changed its size, or is compressed and damaged.
    """
    size = file.size
    if file.compressed:
        size = sum(map(len, text_pieces(file, open_binary)))
    period = int(size / budget / 2) + 1
    first_lines: list[int] = []
    number = offset = spent = lines = 0
    for block in _blocks(file, open_binary, max_line_bytes):
        length = block.length if isinstance(block, LongLine) else len(block)
        while len(first_lines) < len(starts) and starts[len(first_lines)] <= offset + length:
            first_lines.append(number + _lines_before(block, starts[len(first_lines)] - offset))
        offset += length
        if isinstance(block, LongLine):
            lines += _to_skip(number, period) == 0  # one that is taken, for nothing
            number += 1
            continue
        found, characters = _characters(block, number, period, max_line_bytes)
        spent_before = spent + np.cumsum(characters) - characters
        taken = int(np.searchsorted(spent_before, budget))
        number, lines = number + found, lines + taken
        spent += int(characters[:taken].sum())
        if spent >= budget:
            break
    first_lines += [number] * (len(starts) - len(first_lines))
    return FileSample(TakenLines(period, lines), tuple(first_lines))


def _blocks(
    file: CorpusFile, open_binary: OpenBinary, max_line_bytes: int
) -> Iterator[bytes | LongLine]:
    return whole_lines(text_pieces(file, open_binary), PIECE_BYTES, max_line_bytes)


def _to_skip(first: int, period: int) -> int:
    """How many lines there are from `first` on before one is taken."""
    return period - 1 - first % period


def _lines_before(block: bytes | LongLine, start: int) -> int:
    """How many lines of a block begin before its byte `start`, which may be its end."""
    if start <= 0:
        return 0
    return 1 if isinstance(block, LongLine) else 1 + block.count(b'\n', 0, start - 1)


def _characters(
    block: bytes, first: int, period: int, max_line_bytes: int
) -> tuple[int, np.ndarray]:
    """The number of lines of a block, and the characters of each that would be taken: int64[...]."""
    text = np.frombuffer(block, np.uint8)
    # No block has 2^62 lines: where the next one taken is further off, none is found.
    skipped, step = (min(each, 1 << 62) for each in (_to_skip(first, period), period))
    found, starts, ends = every_line(text, skipped, step)
    too_long = ends - starts > max_line_bytes
    ends[too_long] = starts[too_long]
    stripped = T2T_LINES.apply(Side(text, starts, ends)).side
    characters = np.empty(len(starts), np.int64)
    count_characters(
        read_only(stripped.text), read_only(stripped.starts), read_only(stripped.ends), characters
    )
    return found, characters


@kernel
def every_line(data, first, period):
    """Returns how many lines there are, and where every `period`-th begins and ends.

    `first` is the first of these, from 0 on. Starts and ends are int64[...], without the '\\n'; the
    last line may lack it.
    """
    if period == 1:
        starts, ends = line_bounds(data)
        return len(starts), starts[first:], ends[first:]
    lines = count_buffer_lines(data)
    taken = 0
    if first < lines:
        taken = 1 + (lines - 1 - first) // period
    starts = np.zeros(taken, np.int64)
    ends = np.full(taken, len(data), np.int64)
    if taken > 0:
        find_lines(data, first, period, starts, ends)
    return lines, starts, ends


@kernel_without_allocation
def find_lines(data, first, period, starts, ends):
    """Fills in the bounds for `every_line`, of a period above 1.

    `starts` holds 0 and `ends` the size of the data. The '\\n' before a line and that behind it are looked for by their numbers, so that of 64 bytes
    without either only the number is counted.
    """
    line = 0
    is_within = first == 0
    wanted = np.uint64(first) if is_within else np.uint64(first - 1)
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
        while wanted < seen and line < len(starts):
            while number < wanted:
                feeds &= feeds - _1
                number += _1
            place = np.int64(position + trailing_zeros(feeds))
            if not is_within:
                starts[line] = place + 1
                is_within = True
                wanted += _1
                continue
            ends[line] = place
            line += 1
            is_within = False
            wanted += np.uint64(period - 1)
        position += _CHUNK


@kernel_without_allocation
def count_characters(text, starts, ends, characters):
    """Fills in how many characters each row has: its bytes but for those that go on with one.

    Rows are valid UTF-8.
    """
    size = np.uint64(len(text))
    for row in range(len(starts)):
        position, end = np.uint64(starts[row]), np.uint64(ends[row])
        found = end - position
        while position < end and position + _CHUNK <= size:
            inside = ~_0
            if end - position < _CHUNK:
                inside = (_1 << (end - position)) - _1
            found -= popcount(byte_range_mask(text, position, 0x80, 0xBF) & inside)
            position += _CHUNK
        while position < end:
            found -= np.uint64(text[position] & 0xC0 == 0x80)
            position += _1
        characters[row] = np.int64(found)
