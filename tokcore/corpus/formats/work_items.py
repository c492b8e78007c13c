"""Work items of files of lines: byte ranges of which no content is known, and their blocks.

A line belongs to the range that it starts in. A compressed file is one item, or as many as its index
of parts allows; only these are read as a stream. Everything else is one range, read once it is known
where its lines begin and end. No more is held than an item, or a line as long as is allowed: longer
ones are read over.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tokcore.corpus.dataset import (
    Block,
    BlockText,
    CorpusFile,
    LongLine,
    OpenBinary,
    Split,
    TextRange,
    WorkItem,
)
from tokcore.corpus.formats.line_ranges import read_starting_lines
from tokcore.corpus.formats.whole_lines import starting_lines, whole_lines
from tokcore.corpus.long_lines import is_longer, long_line
from tokcore.corpus.storage.corpus_text import text_pieces
from tokcore.corpus.storage.indexed_text import may_have_index, part_ends, text_from

ITEM_BYTES = 8 << 20
"""The default size of a work item. At 8 to 16 MiB a block's fixed costs vanish; of these the least,
since larger ones hold more memory for each thread and leave the last workers waiting."""

BLOCK_BYTES = ITEM_BYTES
"""The default size of the blocks that a compressed file is read in."""

PlacedLines = tuple[int, bytes | LongLine]
"""Lines, or one that is too long, with the offset of their first byte."""


@dataclass(frozen=True)
class PartIndex:
    """A compressed file of which it is to be found out whether it can be cut."""

    place: int
    file: CorpusFile
    item_bytes: int
    stored_bytes = 0  # an index is little

    def cuts(self, open_binary: OpenBinary) -> tuple[int, ...]:
        """Returns where ranges of its text end, of as few parts as reach `item_bytes`.

        Nothing if the file has no index, or one of a single range.

        Raises:
            InputError: it cannot be read, or has changed its size.
        """
        cuts: list[int] = []
        start = 0
        ends = part_ends(self.file, open_binary)
        for end in ends:
            if end - start >= self.item_bytes or end == ends[-1] > start:
                cuts.append(end)
                start = end
        return tuple(cuts) if len(cuts) > 1 else ()


def part_indexes(split: Split, item_bytes: int) -> list[PartIndex]:
    """Returns the files of a split of one file a place that may be cut by an index of parts.

    A file that is no larger than an item is one.
    """
    return [
        PartIndex(place, file, item_bytes)
        for place, (file,) in zip(split.places, split.files, strict=True)
        if may_have_index(file) and file.size > item_bytes
    ]


def byte_ranges(
    split: Split, item_bytes: int, cuts: Sequence[Sequence[int]] | None = None
) -> list[WorkItem]:
    """Cuts a split of one file a place into items of at most so many bytes, in order.

    `cuts` are those of each of `part_indexes`; without, each compressed file is one item.

    Raises:
        ValueError: they are those of other files.
    """
    of_place: dict[int, Sequence[int]] = {}
    if cuts is not None:
        parts = part_indexes(split, item_bytes)
        of_place = {
            part.place: found for part, found in zip(parts, cuts, strict=True)
        }
    return [
        WorkItem(split.name, split.format, place, (text_range,))
        for place, (file,) in zip(split.places, split.files, strict=True)
        for text_range in _ranges_of(file, item_bytes, of_place.get(place, ()))
    ]


def _ranges_of(file: CorpusFile, item_bytes: int, cuts: Sequence[int]) -> list[TextRange]:
    if cuts:
        # One byte into the next part, which then holds the byte that tells whether a line starts.
        bounds = [0, *(end + 1 for end in cuts[:-1]), cuts[-1]]
        return [
            TextRange(file, start, end, of_text=True) for start, end in itertools.pairwise(bounds)
        ]
    if file.is_stream:
        return [TextRange(file, 0, file.size)]
    return [
        TextRange(file, start, min(start + item_bytes, file.size))
        for start in range(0, file.size, item_bytes)
    ]


def read_lines(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[Block]:
    """Yields the blocks of an item of one file, in the order of its lines.

    Raises InputError as `read_blocks` does.
    """
    for found in _read_lines(item, open_binary, block_bytes, max_line_bytes):
        yield line_block(item, max_line_bytes, (found,))


def _read_lines(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[PlacedLines]:
    [text_range] = item.ranges
    file = text_range.file
    if not file.is_stream:
        yield from read_starting_lines(text_range, open_binary, max_line_bytes)
        return
    offset, pieces = 0, text_pieces(file, open_binary)
    if text_range.of_text:
        start, end = text_range.start, text_range.end
        text = text_from(file, max(0, start - 1), open_binary)
        placed = starting_lines(text, start, end)
        offset, first = next(placed, (0, b''))
        pieces = itertools.chain([first], (piece for _, piece in placed))
    for lines in whole_lines(pieces, block_bytes, max_line_bytes, offset=offset):
        yield offset, lines
        offset += lines.length if isinstance(lines, LongLine) else len(lines)


def line_block(item: WorkItem, max_line_bytes: int, sides: tuple[PlacedLines, ...]) -> Block:
    """Returns the block of lines of a file, or of the same lines of all files of a place."""
    if any(isinstance(lines, LongLine) for _, lines in sides):
        # Here a side is a line, and that of the other file may be too long too.
        sides = tuple(
            (offset, long_line(side, offset, [lines]))
            if isinstance(lines, bytes) and is_longer(lines, max_line_bytes)
            else (offset, lines)
            for side, (offset, lines) in enumerate(sides)
        )
    return Block(
        item.split,
        item.format,
        item.place,
        tuple(
            BlockText(offset, b'' if isinstance(lines, LongLine) else lines)
            for offset, lines in sides
        ),
        max_line_bytes,
        tuple(lines for _, lines in sides if isinstance(lines, LongLine)),
    )
