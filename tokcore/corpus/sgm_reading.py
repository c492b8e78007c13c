r"""The rows of blocks of corresponding lines of two SGM files: a pair of segments is a row.

As in Tensor2Tensor's `_preprocess_sgm`, a line stripped of '\r' and white space is a segment if it
begins with `<seg` and ends with `</seg>`; its text begins after the first `>`. The original drops
text in other lines silently; here such lines are rejected. The original ignores ids, too; here a first
pass finds out whether the segments with the same ids are on the same lines (`sgm_layout`), and if not,
`sgm_pairing` reads the two files.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokcore.corpus.bitext_reading import BitextReader, IndexedRange
from tokcore.corpus.corpus import (
    MAX_LINE_BYTES,
    OUTSIDE_SEGMENT,
    Block,
    BlockText,
    CorpusFile,
    OpenBinary,
    Rows,
    Split,
    TextRange,
    WorkItem,
)
from tokcore.corpus.entities import decode_references
from tokcore.corpus.formats import read_blocks
from tokcore.corpus.line_index import IndexRange, count_pieces, index_items, range_pieces
from tokcore.corpus.line_rows import BlockLines, lines_of_pair, rows_of_lines
from tokcore.corpus.sgm import Sgm, SgmByIds
from tokcore.corpus.sgm_layout import Layout, LayoutReader, corresponds
from tokcore.corpus.wmt_xml import refuse_wmt_xml
from tokcore.kernels.jit import kernel_without_allocation
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.rows import Normalizer, Side

# The kinds of lines.
MARKUP = 0
_SEGMENT = 1
_OUTSIDE = 2


class SgmReader(BitextReader):
    """Reads the segments of two files side by side."""

    format: Sgm

    def check(self, files: tuple[CorpusFile, ...], open_binary: OpenBinary) -> None:
        for file in files:
            refuse_wmt_xml(file, open_binary)

    def index_ranges(self, split: Split, item_bytes: int) -> Sequence[IndexRange]:
        """Returns the whole files: which document a segment is in depends on all before it."""
        return index_items(split, item_bytes, sys.maxsize)

    def index(self, part: IndexRange, open_binary: OpenBinary) -> tuple[Any, ...]:
        """Returns the line counts of a file as for bitext, and the layout of its segments."""
        layout = LayoutReader()
        count = count_pieces(part, layout.watched(range_pieces(part, open_binary)))
        newlines = count.newlines.tolist()
        return newlines, count.text_bytes, count.ends_with_newline, *layout.layout()

    def pair_items(
        self,
        split: Split,
        file_index: int,
        indexes: Sequence[Sequence[IndexedRange]],
        item_bytes: int,
    ) -> list[WorkItem]:
        source, target = (
            Layout(*ranges[0][1][3:]) if ranges else LayoutReader().layout() for ranges in indexes
        )
        if corresponds(source, target):
            return super().pair_items(split, file_index, indexes, item_bytes)
        by_ids = SgmByIds(self.format.entities)
        ranges = tuple(TextRange(file, 0, file.size) for file in split.files_at(file_index))
        return [WorkItem(split.name, by_ids, file_index, ranges)]

    def first_block(
        self,
        split: Split,
        file_index: int,
        open_binary: OpenBinary,
        block_bytes: int,
        max_line_bytes: int,
    ) -> Block | None:
        """Returns the first block of a file, as `read` does; the files are read for their layout."""
        files = split.files_at(file_index)
        split = dataclasses.replace(split, files=(files,), first_file_index=file_index)
        parts = self.index_ranges(split, block_bytes)
        items = self.plan(split, [self.index(part, open_binary) for part in parts], block_bytes)
        blocks = (
            block
            for item in items
            for block in read_blocks(item, open_binary, block_bytes, max_line_bytes)
        )
        return next(blocks, None)

    def rows_of_lines(
        self, source: BlockText, target: BlockText, normalizer: Normalizer, max_line_bytes: int
    ) -> Rows:
        decode = self.format.entities == 'decode'
        return sgm_rows(source, target, normalizer, decode, max_line_bytes)


def sgm_rows(
    source: BlockText,
    target: BlockText,
    normalizer: Normalizer,
    decode: bool = False,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Rows:
    """Returns the rows, with two sides, of blocks whose lines correspond.

    A pair is empty if a side is markup or a blank segment. If both sides are rejected, the reject is
    of the source.

    Args:
        source: lines of one file.
        target: as many lines of the other.
        normalizer: turns segments into text.
        decode: whether character references are replaced by the characters.
        max_line_bytes: a longer line is rejected.

    Raises:
        ValueError: the blocks differ in their number of lines.
    """
    files = lines_of_pair(source, target, max_line_bytes)
    segments = [_find_segments(lines, normalizer, decode) for lines in files]
    outside = {
        line: (OUTSIDE_SEGMENT, number)
        for number in (1, 0)  # the source counts if both are
        for line in segments[number].outside
    }
    damages = [file.damages for file in segments]
    return rows_of_lines(files, damages, [file.side for file in segments], outside)


@dataclass(frozen=True)
class _Segments:
    """The segments of one file's lines; lines without a segment are empty."""

    side: Side
    damages: Mapping[int, int]
    outside: frozenset[int]  # numbers of lines with text outside of a segment


def _find_segments(lines: BlockLines, normalizer: Normalizer, decode: bool) -> _Segments:
    stripped = T2T_LINES.apply(lines.side())
    text = stripped.side.text
    starts, ends = np.empty(len(lines), np.int64), np.empty(len(lines), np.int64)
    kinds = np.empty(len(lines), np.uint8)
    find_segments(text, stripped.side.starts, stripped.side.ends, starts, ends, kinds)
    rows = np.flatnonzero(kinds == _SEGMENT)
    segments = Side(text, starts[rows], ends[rows])
    if decode:
        segments = Side(*decode_references(segments.text, segments.starts, segments.ends))
    normalized = normalizer.apply(segments).side
    starts[:] = ends[:] = 0
    starts[rows], ends[rows] = normalized.starts, normalized.ends
    outside = frozenset(np.flatnonzero(kinds == _OUTSIDE).tolist())
    return _Segments(Side(normalized.text, starts, ends), stripped.damages, outside)


@kernel_without_allocation
def find_segments(text, starts, ends, segment_starts, segment_ends, kinds):
    """Fills in the kind of each line, and where the text of a segment begins and ends.

    Lines have no white space around them. `kinds`, uint8[lines], is `_SEGMENT`, `MARKUP` for lines of
    tags alone, or `_OUTSIDE` for lines with text outside of tags that are not a segment.
    """
    for line in range(len(starts)):
        start, end = starts[line], ends[line]
        segment_starts[line] = end
        segment_ends[line] = end
        if _is_segment(text, start, end):
            kinds[line] = _SEGMENT
            while text[start] != 0x3E:
                start += 1
            # The text of `<seg</seg>` would begin after its end.
            segment_starts[line] = min(start + 1, end)
            segment_ends[line] = max(segment_starts[line], end - 6)
        elif _has_text(text, start, end):
            kinds[line] = _OUTSIDE
        else:
            kinds[line] = MARKUP


@kernel_without_allocation
def _is_segment(text, start, end):
    """Whether text[start:end] begins with `<seg` and ends with `</seg>`."""
    if end - start < 10:
        return False
    begins = (
        text[start] == 0x3C
        and text[start + 1] == 0x73
        and text[start + 2] == 0x65
        and text[start + 3] == 0x67
    )
    return (
        begins
        and text[end - 6] == 0x3C
        and text[end - 5] == 0x2F
        and text[end - 4] == 0x73
        and text[end - 3] == 0x65
        and text[end - 2] == 0x67
        and text[end - 1] == 0x3E
    )


@kernel_without_allocation
def _has_text(text, start, end):
    """Whether text[start:end] has anything but tags and ASCII's white space between them."""
    in_tag = False
    for position in range(start, end):
        byte = text[position]
        if in_tag:
            in_tag = byte != 0x3E
        elif byte == 0x3C:
            in_tag = True
        elif byte != 0x20 and not 0x09 <= byte <= 0x0D:
            return True
    return False
