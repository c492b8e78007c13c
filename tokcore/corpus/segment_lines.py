r"""Lines that are segments, as Tensor2Tensor finds them: of two SGM files, and in pairs of one TMX.

As in its `_preprocess_sgm`, a line of SGM stripped of '\r' and white space is a segment if it begins with
`<seg` and ends with `</seg>`; its text begins after the first `>`. The original drops text in other lines
silently; here such lines are rejected. The original ignores ids, too; here a first pass finds out whether
the segments with the same ids are on the same lines, and if not, `sgm_pairing` reads the two files.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tokcore.corpus.archive_reading import text_beginning, text_pieces
from tokcore.corpus.bitext_reading import (
    BitextReader,
    IndexedRange,
    IndexRange,
    count_lines,
    index_items,
    range_pieces,
)
from tokcore.corpus.contents import HEAD_BYTES
from tokcore.corpus.corpus import (
    INVALID_UTF8,
    OUTSIDE_SEGMENT,
    UNMATCHED_SEGMENT,
    Block,
    CorpusFile,
    LongLine,
    OpenBinary,
    Reject,
    Rows,
    Split,
    TextRange,
    WorkItem,
)
from tokcore.corpus.declarations import Sgm, SgmByIds
from tokcore.corpus.entities import ParaCrawl, decode_references
from tokcore.corpus.formats import FormatReader, read_blocks
from tokcore.corpus.line_reading import line_block, whole_lines
from tokcore.corpus.line_rows import (
    BlockLines,
    finish_rows,
    mark_bytes,
    reject_of,
    rows_of_lines,
)
from tokcore.corpus.looks import is_wmt_xml, wmt_xml_error
from tokcore.corpus.sgm_pairing import Layout, LayoutReader, corresponds
from tokcore.corpus.stretches import FileLines
from tokcore.errors import InputError
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.text.normalizers import T2T_LINES, find_damage
from tokcore.text.rows import Normalizer, Side

# The kinds of lines.
MARKUP = 0
_SEGMENT = 1
_OUTSIDE = 2


class SgmReader(BitextReader):
    """Reads the segments of two files side by side."""

    format: Sgm

    def check(
        self,
        files: tuple[CorpusFile, ...],
        open_binary: OpenBinary,
        stated: Collection[str] | None = None,
    ) -> None:
        for file in files:
            if is_wmt_xml(text_beginning(file, open_binary, HEAD_BYTES)):
                raise wmt_xml_error(file)

    def index_ranges(self, split: Split, item_bytes: int) -> Sequence[IndexRange]:
        """Returns the whole files: which document a segment is in depends on all before it."""
        return index_items(split, item_bytes, sys.maxsize)

    def index(self, part: IndexRange, open_binary: OpenBinary) -> tuple[Any, ...]:
        """Returns the line counts of a file as for bitext, and the layout of its segments."""
        layout = LayoutReader()
        count = count_lines(part, layout.watched(range_pieces(part, open_binary)))
        return *count, *layout.layout()

    def items_at(self, whole: WorkItem, offsets: np.ndarray, lines: FileLines) -> list[WorkItem]:
        """Returns all of two files, since their layout decides how their segments are paired."""
        split = Split(whole.split, whole.format, (whole.files,), first_file_index=whole.file_index)
        items = self._planned(split, lines[0].open_binary, sys.maxsize)
        return [dataclasses.replace(item, first_line=0) for item in items]

    def _planned(self, split: Split, open_binary: OpenBinary, item_bytes: int) -> list[WorkItem]:
        parts = self.index_ranges(split, item_bytes)
        return self.plan(split, [self.index(part, open_binary) for part in parts], item_bytes)

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
        blocks = (
            block
            for item in self._planned(split, open_binary, block_bytes)
            for block in read_blocks(item, open_binary, block_bytes, max_line_bytes)
        )
        return next(blocks, None)

    def rows_of_lines(self, files: Sequence[BlockLines], normalizer: Normalizer) -> Rows:
        """Returns the rows; a pair is empty if a side is markup or a blank segment.

        If both sides are rejected, the reject is of the source.
        """
        decode = self.format.entities == 'decode'
        sides, damages, outside = zip(
            *(_find_segments(lines, normalizer, decode) for lines in files), strict=True
        )
        reasons = {
            line: (OUTSIDE_SEGMENT, number)
            for number in (1, 0)  # the source counts if both are
            for line in outside[number]
        }
        return rows_of_lines(files, damages, sides, reasons)


def _find_segments(
    lines: BlockLines, normalizer: Normalizer, decode: bool
) -> tuple[Side, Mapping[int, int], list[int]]:
    """Returns the segments of one file's lines, where lines are damaged, and lines with other text.

    A line without a segment is an empty row.
    """
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
    outside = np.flatnonzero(kinds == _OUTSIDE).tolist()
    return Side(normalized.text, starts, ends), stripped.damages, outside


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


_SEGMENT_LINE = re.compile(rb'^ +<seg>([^\n]*)</seg>$', re.MULTILINE)


class TmxLinesReader(FormatReader):
    """Reads a file as one item: how lines pair up depends on all lines before them."""

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        """Yields the blocks of a whole file, each but the last with an even number of segments.

        Raises:
            InputError: the file cannot be read, or has a line longer than `max_line_bytes`, which
                cannot be left out: if it is a segment, all pairs after it depend on it.
        """
        [file] = item.files
        offset, waiting = 0, b''
        for text in whole_lines(text_pieces(file, open_binary), block_bytes, max_line_bytes):
            if isinstance(text, LongLine):
                raise InputError(
                    f'{file.path}: the line at byte {text.offset} has {text.nbytes} bytes, '
                    f'more than the {max_line_bytes} of --max-line-size; give a larger one'
                )
            waiting += text
            lines, _ = _segment_lines(waiting, offset)
            end = int(lines[-1, 0]) if len(lines) % 2 else len(waiting)
            if end:
                yield line_block(item, max_line_bytes, ((offset, waiting[:end]),))
                offset += end
                waiting = waiting[end:]
        if waiting:
            yield line_block(item, max_line_bytes, ((offset, waiting),))

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        """Returns rows with two sides; a last segment without a partner is rejected.

        The normalizer gets segments after entities have been replaced.
        """
        [text] = block.texts
        data, offset = text.data, text.offset
        lines, segments = _segment_lines(data, offset)
        pairs = len(lines) // 2
        encoded = tuple(
            Side(
                np.frombuffer(data, np.uint8),
                *(read_only(segments[side : 2 * pairs : 2, end].copy()) for end in (0, 1)),
            )
            for side in (0, 1)
        )
        # Joined, since the filter appends rewritten rows, and a normalizer needs rows in order.
        normalized = [normalizer.apply(side.joined()) for side in ParaCrawl().apply(encoded).sides]

        def reject(reason: str, start: int, end: int) -> Reject:
            line = data[start:end]
            return reject_of(reason, offset + int(start), line, damage=find_damage(line) or 0)

        rejects = {
            row: reject(INVALID_UTF8, lines[2 * row, 0], lines[2 * row + 1, 1])
            for rows in normalized
            for row in rows.damages
        }
        if len(lines) % 2:
            rejects[pairs] = reject(UNMATCHED_SEGMENT, *lines[-1])
        sides = [rows.side for rows in normalized]
        return finish_rows(offset, lines[::2, 0], np.arange(pairs), sides, rejects)

    def bounds_of_units(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        lines, _ = _segment_lines(block.texts[0].data, block.offset)
        pairs = lines[: len(lines) // 2 * 2].reshape(-1, 4) + block.offset
        return pairs[:, 0], pairs[:, 3]


def _segment_lines(data: bytes, offset: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the bounds of lines with segments, and of these; `data` begins at byte `offset`."""
    mark = mark_bytes(data, offset)
    found = [(*line.span(), *line.span(1)) for line in _SEGMENT_LINE.finditer(data[mark:])]
    bounds = np.array(found, np.int64).reshape(-1, 4) + mark
    bounds[:1, 0] *= bounds[:1, 0] > mark  # the first line begins with the byte order mark
    return bounds[:, :2], bounds[:, 2:]
