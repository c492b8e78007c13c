"""SGM, the format of WMT's development sets: two files whose corresponding lines have segments.

A line is a segment, from `<seg` to `</seg>`, or markup, as in Tensor2Tensor's `compile_data`. Files
are cut and paired as bitext is, by line numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tokcore.corpus.bitext import Bitext
from tokcore.corpus.corpus import OUTSIDE_SEGMENT, Reject
from tokcore.options import option

Entities = Literal['keep', 'decode']


@dataclass(frozen=True)
class Sgm(Bitext):
    """Rows of two sides, the segments of two files; lines of markup are empty rows.

    Attributes:
        entities: `decode` replaces character references by the characters.
    """

    entities: Entities = option(
        'decode: &amp;, &lt;, &gt;, &quot;, &apos; and numbers as &#233; become characters; keep: '
        'they stay, as in Tensor2Tensor',
        get_args(Entities),
        default='keep',
        default_help='keep',
        changes_bytes=True,
    )

    name = 'sgm'
    what = 'SGM, two aligned files of segments'
    roles = ('sgm_source', 'sgm_target')
    help = (
        'source side of SGM, a <seg> a line',
        'target side, the same number of files and of lines',
    )
    reader = 'tokcore.corpus.sgm_reading:SgmReader'
    reasons = (OUTSIDE_SEGMENT,)
    takes_any_text = False

    def explain(self, reject: Reject) -> str:
        return (
            f'the line at byte {reject.offset} has text outside of <seg>…</seg>: {reject.excerpt}; put '
            'each segment on one line, or give --on-error=skip'
        )
