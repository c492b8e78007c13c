"""TMX as Tensor2Tensor reads it: by lines, of which those that are a segment pair up in their order.

The rule of `paracrawl_v3_pairs` in its `data_generators/cleaner_en_xx.py`, for those who want the same
pairs: no language is looked at, and nothing is XML. A row is a pair of segments, the first the source;
other lines are none. Where the format itself is meant, it is `tmx`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokcore.corpus.corpus import Reject
from tokcore.corpus.formats import CorpusFormat

UNMATCHED_SEGMENT = 'unmatched_segment'


@dataclass(frozen=True)
class TmxLines(CorpusFormat):
    """Rows of two sides, lines as ` <seg>text</seg>`; the reason is for a last one without another."""

    name = 'tmx-lines'
    what = 'TMX by lines, as Tensor2Tensor reads it'
    roles = ('tmx_lines',)
    help = ('TMX with each <seg> on a line of its own, in turns source and target',)
    reader = 'tokcore.corpus.tmx_segment_lines:TmxLinesReader'
    reasons = (UNMATCHED_SEGMENT,)
    sides = ('inputs', 'targets')
    forbidden_characters = '\n'
    takes_any_text = False

    def explain(self, reject: Reject) -> str:
        return (
            f'the segment at byte {reject.offset} has no second one that it is a pair with; is the '
            'file cut off? mend it, or give --on-error=skip'
        )
