"""The filters `nfc`, `nfd`, `nfkc` and `nfkd`: text in a normal form of Unicode.

By this Python's tables, whose version manifests record. Rows without characters that could change
are left as they are; where characters change each by itself a kernel replaces them, and all other
rows of a block are given to `unicodedata` as one text.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Literal

from tokcore.corpus.filters.row_filter import Filtered, RowFilter

if typing.TYPE_CHECKING:
    from tokcore.text.sides import Side


@dataclass(frozen=True)
class NormalForm(RowFilter):
    """Brings texts into a form; it drops nothing by itself.

    Attributes:
        form: which one.
    """

    form: Literal['NFC', 'NFD', 'NFKC', 'NFKD']

    @property
    def name(self) -> str:
        return self.form.lower()

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        import numpy as np

        return Filtered(tuple(map(self._normalized, sides)), np.arange(len(sides[0])))

    def _normalized(self, side: Side) -> Side:
        import numpy as np

        from tokcore.corpus.filters.texts.local_forms import normalized_locally
        from tokcore.corpus.filters.texts.rewriting import rewritten
        from tokcore.text.byte_level.normal_forms import doubtful_bits, find_doubtful
        from tokcore.text.padded_text import readable_parts

        doubtful = [np.empty(0, np.uint8)]
        for rows in readable_parts(side.text, side.starts, side.ends):
            found = np.zeros(len(rows.starts), np.uint8)
            find_doubtful(rows, doubtful_bits(self.form), found)
            doubtful.append(found)
        rows = np.flatnonzero(np.concatenate(doubtful))
        if not len(rows):
            return side
        side, others = normalized_locally(side, rows, self.form)
        return rewritten(side, others, self._rewrite)

    def _rewrite(self, lines: bytes) -> bytes:
        import unicodedata

        # A line feed neither goes together with what follows nor comes of anything else.
        return unicodedata.normalize(self.form, lines.decode()).encode()
