"""TMX as Tensor2Tensor reads it: by lines, of which those that are a segment pair up in their order.

The rule of `paracrawl_v3_pairs` in its `data_generators/cleaner_en_xx.py`, for those who want the same
pairs: no language is looked at, and nothing is XML. A row is a pair of segments, the first the source;
other lines are none. Where the format itself is meant, it is `tmx`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tokcore.corpus.corpus import Block, OpenBinary, Reject, Rows, Split, TextRange, WorkItem
from tokcore.corpus.formats import CorpusFormat
from tokcore.text.rows import Normalizer

UNMATCHED_SEGMENT = 'unmatched_segment'


@dataclass(frozen=True)
class TmxLines(CorpusFormat):
    """Rows of two sides, lines as ` <seg>text</seg>`; the reason is for a last one without another."""

    name = 'tmx-lines'
    what = 'TMX by lines, as Tensor2Tensor reads it'
    roles = ('tmx_lines',)
    help = ('TMX with each <seg> on a line of its own, in turns source and target',)
    reasons = (UNMATCHED_SEGMENT,)
    sides = ('inputs', 'targets')
    forbidden_characters = '\n'
    takes_any_text = False

    def plan(
        self, split: Split, index: Sequence[tuple[Any, ...]], item_bytes: int
    ) -> list[WorkItem]:
        # Which lines pair up depends on all before them.
        return [
            WorkItem(split.name, self, place, (TextRange(file, 0, file.size),))
            for place, (file,) in zip(split.file_indexes, split.files, strict=True)
        ]

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        from tokcore.corpus.tmx_segment_lines import read_segment_lines

        return read_segment_lines(item, open_binary, block_bytes, max_line_bytes)

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        from tokcore.corpus.tmx_segment_lines import segment_rows

        [text] = block.texts
        return segment_rows(text.data, text.offset, normalizer, UNMATCHED_SEGMENT)

    def explain(self, reject: Reject) -> str:
        return (
            f'the segment at byte {reject.offset} has no second one that it is a pair with; is the '
            'file cut off? mend it, or give --on-error=skip'
        )
