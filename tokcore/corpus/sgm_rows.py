r"""Blocks of the same lines of two SGM files to rows: each pair is one, is empty, or is rejected.

As in Tensor2Tensor's `_preprocess_sgm`, a line without its '\r' and the white space around it is a
segment if it begins with `<seg` and ends with `</seg>`; its text begins after the first `>`. The
original drops the text of other lines silently; here they are rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tokcore.corpus.bitext_reading import BitextReader
from tokcore.corpus.corpus import MAX_LINE_BYTES, OUTSIDE_SEGMENT, BlockText, Reject, Rows
from tokcore.corpus.entities import decode_references
from tokcore.corpus.line_rows import BlockLines, line_reject, lines_of, select_lines
from tokcore.corpus.sgm import Sgm
from tokcore.kernels.jit import kernel_without_allocation
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.rows import Normalizer, Side

# What `find_segments` says of a line.
MARKUP = 0
SEGMENT = 1
OUTSIDE = 2


class SgmReader(BitextReader):
    """Reads the segments of two files side by side."""

    format: Sgm

    def rows_of_lines(
        self, source: BlockText, target: BlockText, normalizer: Normalizer, max_line_bytes: int
    ) -> Rows:
        decodes = self.format.entities == 'decode'
        return sgm_rows(source, target, normalizer, decodes, max_line_bytes)


def sgm_rows(
    source: BlockText,
    target: BlockText,
    normalizer: Normalizer,
    decodes: bool = False,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Rows:
    """Returns the rows of two blocks aligned line by line, with two sides.

    A pair is empty if a side is markup or a blank segment; if both sides are rejects, the source is
    reported.

    Args:
        source: lines of one file.
        target: as many of the other.
        normalizer: what makes text of segments.
        decodes: whether references to characters become these.
        max_line_bytes: a longer line is a reject.

    Raises:
        ValueError: the blocks differ in their number of lines.
    """
    files = [lines_of(each.data, each.offset, max_line_bytes) for each in (source, target)]
    if len(files[0]) != len(files[1]):
        raise ValueError(f'{len(files[0])} lines of the source and {len(files[1])} of the target')
    found = [_segments_of(lines, normalizer, decodes) for lines in files]
    sides = [each.side for each in found]
    damages = [each.damages for each in found]
    is_kept = (sides[0].ends > sides[0].starts) & (sides[1].ends > sides[1].starts)
    bad = {line for lines in files for line in lines.too_long}.union(*damages)
    outside = found[0].outside | found[1].outside
    rejects = (
        line_reject(files, damages, line)
        if line in bad
        else _outside(files, line, int(line not in found[0].outside))
        for line in sorted(bad | outside)
    )
    return select_lines(files[0], is_kept, sides, rejects)


@dataclass(frozen=True)
class _Segments:
    """What the lines of a file are: the text of each, empty without a segment."""

    side: Side
    damages: Mapping[int, int]
    outside: frozenset[int]  # lines with text outside of segments


def _outside(files: list[BlockLines], line: int, side: int) -> Reject:
    return files[side].reject(line, OUTSIDE_SEGMENT, side)


def _segments_of(lines: BlockLines, normalizer: Normalizer, decodes: bool) -> _Segments:
    read = T2T_LINES.apply(lines.side())
    text = read.side.text
    starts, ends = np.empty(len(lines), np.int64), np.empty(len(lines), np.int64)
    kinds = np.empty(len(lines), np.uint8)
    find_segments(text, read.side.starts, read.side.ends, starts, ends, kinds)
    rows = np.flatnonzero(kinds == SEGMENT)
    segments = Side(text, starts[rows], ends[rows])
    if decodes:
        segments = Side(*decode_references(segments.text, segments.starts, segments.ends))
    found = normalizer.apply(segments).side
    starts[:] = ends[:] = 0
    starts[rows], ends[rows] = found.starts, found.ends
    outside = frozenset(np.flatnonzero(kinds == OUTSIDE).tolist())
    return _Segments(Side(found.text, starts, ends), read.damages, outside)


@kernel_without_allocation
def find_segments(text, starts, ends, segment_starts, segment_ends, kinds):
    """Fills in of each line what it is, and where the text of a segment begins and ends.

    Lines have no white space around them. `kinds` uint8[lines]: `SEGMENT`, `MARKUP` without any
    text, or `OUTSIDE` where there is text behind a tag, before one or without any.
    """
    for line in range(len(starts)):
        start, end = starts[line], ends[line]
        segment_starts[line] = end
        segment_ends[line] = end
        if is_segment(text, start, end):
            kinds[line] = SEGMENT
            while text[start] != 0x3E:
                start += 1
            # `<seg</seg>` begins behind where it ends.
            segment_starts[line] = min(start + 1, end)
            segment_ends[line] = max(segment_starts[line], end - 6)
        elif has_text(text, start, end):
            kinds[line] = OUTSIDE
        else:
            kinds[line] = MARKUP


@kernel_without_allocation
def is_segment(text, start, end):
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
def has_text(text, start, end):
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
