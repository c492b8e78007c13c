"""A format that tokbeam does not have: paragraphs apart by blank lines, each of them a row."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.corpus import (
    INVALID_UTF8,
    TOO_LONG,
    Block,
    BlockText,
    OpenBinary,
    Reject,
    Rows,
    Split,
    TextRange,
    WorkItem,
)
from tokcore.corpus.formats import CorpusFormat, FormatReader
from tokcore.corpus.line_reading import byte_ranges
from tokcore.corpus.storage import open_stored, read_range
from tokcore.text.rows import Normalizer

COMMENT = 'comment'

_PARAGRAPH = re.compile(rb'[^\n]+(?:\n[^\n]+)*')


@dataclass(frozen=True)
class Paragraphs(CorpusFormat, FormatReader):
    """Declares the format and reads it; a paragraph that begins with `%` is rejected."""

    name = 'paragraphs'
    what = 'paragraphs'
    roles = ('paragraphs',)
    help = ('text in paragraphs, a blank line between them',)
    reasons = (COMMENT,)
    sides = ('targets',)

    def plan(
        self, split: Split, index: Sequence[tuple[Any, ...]], item_bytes: int
    ) -> list[WorkItem]:
        return byte_ranges(split, item_bytes)

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        [text_range] = item.ranges
        offset, data = _beginning_in(text_range, open_binary)
        if data:
            text = BlockText(offset, data)
            yield Block(item.split, item.format, item.file_index, (text,), max_line_bytes)

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        import numpy as np

        from tokcore.text.rows import Side

        [text] = block.texts
        found = [match.span() for match in _PARAGRAPH.finditer(text.data)]
        spans = np.array(found, np.int64).reshape(-1, 2)
        starts, ends = (np.ascontiguousarray(column) for column in spans.T)
        given = Side(np.frombuffer(text.data, np.uint8), starts, ends)
        normalized = normalizer.apply(given)
        rejects = {}
        for row, (start, end) in enumerate(found):
            damage = normalized.damages.get(row, start)
            at, line = text.offset + start, text.data[start:end]
            if end - start > block.max_line_bytes:
                rejects[row] = Reject(TOO_LONG, 0, at, at, line[:1000], end - start)
            elif row in normalized.damages:
                rejects[row] = Reject(INVALID_UTF8, 0, at, text.offset + damage, line)
            elif line.startswith(b'%'):
                rejects[row] = Reject(COMMENT, 0, at, at, line)
        is_kept = normalized.side.ends > normalized.side.starts
        is_kept[list(rejects)] = False
        kept = np.flatnonzero(is_kept)
        side = normalized.side
        return Rows(
            (side.take(kept),),
            text.offset,
            starts[kept],
            len(found),
            len(found) - len(kept) - len(rejects),
            tuple(rejects.values()),
        )

    def explain(self, reject: Reject) -> str:
        return f'the paragraph at byte {reject.offset} is a comment; take it out'


def _beginning_in(text_range: TextRange, open_binary: OpenBinary) -> tuple[int, bytes]:
    """The paragraphs that begin in a range, with the line feeds after them; the file is read whole."""
    file, start, end = text_range.file, text_range.start, text_range.end
    if file.is_stream:
        return 0, b''.join(text_pieces(file, open_binary))
    with open_stored(file, open_binary) as stream:
        data = read_range(stream, file, 0, file.size)
    first, last = (_first_beginning(data, place) for place in (start, end))
    return first, data[first:last]


def _first_beginning(data: bytes, place: int) -> int:
    """Where the first paragraph begins at or after a place; the first one of all begins at 0."""
    if place == 0:
        return 0
    found = re.compile(rb'(?<=\n\n)[^\n]').search(data, place)
    return found.start() if found else len(data)
