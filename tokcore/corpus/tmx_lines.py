"""TMX as Tensor2Tensor reads it: lines with a segment alternate between source and target.

This is the rule of `paracrawl_v3_pairs` in its `data_generators/cleaner_en_xx.py`, for those who want
the same pairs: it ignores languages, and does not parse XML. To read the format itself, use `tmx`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokcore.corpus.corpus import UNMATCHED_SEGMENT, Reject
from tokcore.corpus.formats import CorpusFormat


@dataclass(frozen=True)
class TmxLines(CorpusFormat):
    """Rows of two sides, from pairs of lines like ` <seg>text</seg>`; other lines are skipped."""

    name = 'tmx-lines'
    what = 'TMX by lines, as Tensor2Tensor reads it'
    roles = ('tmx_lines',)
    help = ('TMX with each <seg> on a line of its own, in turns source and target',)
    reader = 'tokcore.corpus.tmx_lines_reading:TmxLinesReader'
    reasons = (UNMATCHED_SEGMENT,)
    sides = ('inputs', 'targets')
    forbidden_characters = '\n'
    takes_any_text = False
    is_in_job_files_only = True

    def explain(self, reject: Reject) -> str:
        return (
            f'the segment at byte {reject.offset} has no partner after it; is the '
            'file cut off? mend it, or give --on-error=skip'
        )
