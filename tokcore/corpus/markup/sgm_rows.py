"""Blocks of the same lines of two SGM files to rows: each pair is one, is empty, or a reject.

What a line is, as Tensor2Tensor's `_preprocess_sgm` has it: without its '\\r' and the white space
around it, a segment if it begins with `<seg` and ends with `</seg>`, whose text begins behind the
first `>`; else nothing. Of other lines that one drops text without a word; here they are rejects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tokcore.corpus.dataset import MAX_LINE_BYTES, BlockText
from tokcore.corpus.formats.line_rows import BlockLines, bad_line, lines_of, taken_lines
from tokcore.corpus.markup.character_references import decode_references
from tokcore.corpus.markup.segment_kernels import OUTSIDE, SEGMENT, find_segments
from tokcore.corpus.markup.sgm_reasons import OUTSIDE_SEGMENT
from tokcore.corpus.rows import Reject, Rows
from tokcore.text.normalizer import Normalizer
from tokcore.text.sides import Side
from tokcore.text.t2t_lines import T2T_LINES


@dataclass(frozen=True)
class _Segments:
    """What the lines of a file are: the text of each, empty without a segment."""

    side: Side
    damages: Mapping[int, int]
    outside: frozenset[int]  # lines with text outside of segments


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
        bad_line(files, damages, line)
        if line in bad
        else _outside(files, line, int(line not in found[0].outside))
        for line in sorted(bad | outside)
    )
    return taken_lines(files[0], is_kept, sides, rejects)


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
