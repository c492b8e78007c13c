"""The lines of TMX that are segments, in pairs; a block holds both lines of each pair."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.corpus import (
    INVALID_UTF8,
    UNMATCHED_SEGMENT,
    Block,
    LongLine,
    OpenBinary,
    Reject,
    Rows,
    WorkItem,
)
from tokcore.corpus.entities import ParaCrawl
from tokcore.corpus.formats import FormatReader
from tokcore.corpus.line_reading import line_block, whole_lines
from tokcore.corpus.line_rows import finish_rows, mark_bytes, reject_of
from tokcore.errors import InputError
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.text.normalizers import find_damage
from tokcore.text.rows import Normalizer, Side

_LEAST_LINE = 12  # bytes of ` <seg></seg>`


class TmxLinesReader(FormatReader):
    """Reads a file as one item: how lines pair up depends on all lines before them."""

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        return _read_segment_lines(item, open_binary, block_bytes, max_line_bytes)

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        [text] = block.texts
        return _segment_rows(text.data, text.offset, normalizer)


def _read_segment_lines(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[Block]:
    """Yields the blocks of a whole file, each but the last with an even number of segments.

    Raises:
        InputError: the file cannot be read, or has a line longer than `max_line_bytes`, which cannot
            be left out: if it is a segment, all pairs after it depend on it.
    """
    [text_range] = item.ranges
    pieces = text_pieces(text_range.file, open_binary)
    offset, held = 0, b''
    for text in whole_lines(pieces, block_bytes, max_line_bytes):
        if isinstance(text, LongLine):
            raise InputError(
                f'{text_range.file.path}: the line at byte {text.offset} has {text.nbytes} bytes, '
                f'more than the {max_line_bytes} of --max-line-size; give a larger one'
            )
        held += text
        lines, _ = _find_segments(held, offset)
        end = int(lines[-1, 0]) if len(lines) % 2 else len(held)
        if end:
            yield line_block(item, max_line_bytes, ((offset, held[:end]),))
            offset += end
            held = held[end:]
    if held:
        yield line_block(item, max_line_bytes, ((offset, held),))


def _find_segments(data: bytes, offset: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the bounds of lines with segments, and of these; `data` begins at byte `offset`."""
    most = len(data) // _LEAST_LINE + 1
    lines, segments = np.empty((most, 2), np.int64), np.empty((most, 2), np.int64)
    mark = mark_bytes(data, offset)
    count = _find_segment_lines(np.frombuffer(data, np.uint8), mark, lines, segments)
    return lines[:count], segments[:count]


def _segment_rows(data: bytes, offset: int, normalizer: Normalizer) -> Rows:
    """Returns the rows of a block, with two sides; a last segment without a partner is rejected.

    Args:
        data: whole lines.
        offset: of `data` in the file.
        normalizer: turns segments into text, after entities have been replaced.
    """
    lines, segments = _find_segments(data, offset)
    pairs = len(lines) // 2
    text = np.frombuffer(data, np.uint8)
    encoded = tuple(
        Side(text, *(read_only(segments[side : 2 * pairs : 2, end].copy()) for end in (0, 1)))
        for side in (0, 1)
    )
    # Joined, since the filter appends rewritten rows, and a normalizer needs rows in order.
    normalized = [normalizer.apply(side.joined()) for side in ParaCrawl().apply(encoded).sides]
    rejects = {
        row: _reject(INVALID_UTF8, data, offset, lines[2 * row, 0], lines[2 * row + 1, 1])
        for rows in normalized
        for row in rows.damages
    }
    if len(lines) % 2:
        rejects[pairs] = _reject(UNMATCHED_SEGMENT, data, offset, *lines[-1])
    sides = [rows.side for rows in normalized]
    return finish_rows(offset, lines[::2, 0], np.arange(pairs), sides, rejects)


def _reject(reason: str, data: bytes, offset: int, start: int, end: int) -> Reject:
    line = data[start:end]
    return reject_of(reason, offset + int(start), line, damage=find_damage(line) or 0)


@kernel_without_allocation
def _find_segment_lines(text, mark, lines, segments):
    """Finds lines of blanks, `<seg>`, anything and `</seg>`; returns their number.

    `text` is uint8[...], whole lines, and `mark` the bytes of a byte order mark before the first. Fills in `lines`, int64[..., 2], with the bounds of such lines,
    without their line feeds, and `segments` with those of the text in them.
    """
    count, start, size = 0, 0, len(text)
    while start < size:
        end = start
        while end < size and text[end] != 0x0A:
            end += 1
        blanks = start if start else mark
        place = blanks
        while place < end and text[place] == 0x20:
            place += 1
        if (
            place > blanks
            and end - place >= 11
            and _begins(text, place, 0x3C7365673E, 5)
            and _begins(text, end - 6, 0x3C2F7365673E, 6)
        ):
            lines[count, 0], lines[count, 1] = start, end
            segments[count, 0], segments[count, 1] = place + 5, end - 6
            count += 1
        start = end + 1
    return count


@kernel_without_allocation
def _begins(text, place, word, size):
    """Whether the `size` bytes at `place` are those of a big-endian number."""
    for number in range(size):
        if text[place + number] != word >> 8 * (size - 1 - number) & 0xFF:
            return False
    return True
