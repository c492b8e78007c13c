"""SGM, the format of WMT's development sets: two files of segments, in documents.

Where the same lines of both files have the segments with the same ids, a line is a segment, from `<seg`
to `</seg>`, or markup, as in Tensor2Tensor's `compile_data`. Such files are cut and paired as bitext
is, by line numbers. Segments of other files are paired by their ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tokcore.corpus.corpus import OUTSIDE_SEGMENT, UNMATCHED_SEGMENT, Reject
from tokcore.corpus.line_formats import Bitext
from tokcore.options import option

Entities = Literal['keep', 'decode']


@dataclass(frozen=True)
class Sgm(Bitext):
    """Rows of two sides, the segments of two files.

    Lines of markup are empty rows, unless segments are paired by ids.

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
    roles = ('source', 'target')
    endings = ('.sgm', '.sgml', '.xml')
    reader = 'tokcore.corpus.sgm_reading:SgmReader'
    reasons = (OUTSIDE_SEGMENT, UNMATCHED_SEGMENT)
    takes_any_text = False

    def explain(self, reject: Reject) -> str:
        if reject.why:
            return f'{reject.why}; mend it at byte {reject.offset}, or give --on-error=skip'
        return (
            f'the line at byte {reject.offset} has text outside of <seg>…</seg>: {reject.excerpt}; put '
            'each segment on one line, or give --on-error=skip'
        )


class SgmByIds(Sgm):
    """SGM of two files whose segments are not on the same lines, and are paired by their ids."""

    reader = 'tokcore.corpus.sgm_pairing:SgmPairReader'
    rows_are_lines = False
    has_same_lines = False
