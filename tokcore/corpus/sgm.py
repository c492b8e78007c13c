"""SGM, as WMT's development sets are: segments on lines of their own, the same lines in two files.

A line is what Tensor2Tensor's `compile_data` takes it for: a segment from `<seg` to `</seg>`, or
markup. Files are cut and paired as bitext is, by the numbers of their lines.
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
    """Rows of two sides, the segments of two files; lines of markup alone are empty.

    Attributes:
        entities: `decode` where references to characters become these.
    """

    entities: Entities = option(
        'decode: &amp;, &lt;, &gt;, &quot;, &apos; and numbers as &#233; become characters; keep: '
        'they stay, as Tensor2Tensor leaves them',
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
    reader = 'tokcore.corpus.sgm_rows:SgmReader'
    reasons = (OUTSIDE_SEGMENT,)
    takes_any_text = False

    def explain(self, reject: Reject) -> str:
        return (
            f'the line at byte {reject.offset} has text that is in no <seg>…</seg>: {reject.excerpt}; put '
            'each segment on one line, or give --on-error=skip'
        )
