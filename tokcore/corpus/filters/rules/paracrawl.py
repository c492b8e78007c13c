"""The filter `paracrawl`: entities of ParaCrawl's releases as the characters that they stand for.

As `_raw_sentences` of Tensor2Tensor's `data_generators/cleaner_en_xx.py` does it to what is in a
`<seg>`: one entity after another, so that what the first replacement leaves may be an entity for
the next ones. Pairs with a side that is then empty are dropped.
"""

from __future__ import annotations

import re
import typing
from dataclasses import dataclass
from typing import ClassVar

from tokcore.corpus.filters.row_filter import Filtered, RowFilter

if typing.TYPE_CHECKING:
    from tokcore.text.sides import Side

_ENTITIES = (
    (re.compile(rb'&amp;'), b'&'),
    (re.compile(rb'& ?amp;'), b'&'),
    (re.compile(rb'& ?apos;'), b"'"),
    (re.compile(rb'& ?quot;'), b'"'),
    (re.compile(rb'& ?lt;'), b'<'),
    (re.compile(rb'& ?gt;'), b'>'),
)


@dataclass(frozen=True)
class ParaCrawl(RowFilter):
    """Replaces `&amp;`, then `& amp;`, `& apos;`, `& quot;`, `& lt;` and `& gt;`, blank or not."""

    name: ClassVar[str] = 'paracrawl'

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        import numpy as np

        return Filtered(tuple(map(_decoded, sides)), np.arange(len(sides[0])))


def _decoded(side: Side) -> Side:
    import numpy as np

    from tokcore.compiled.compilation import read_only
    from tokcore.corpus.filters.texts.rewriting import rewritten
    from tokcore.corpus.filters.texts.row_kernels import find_byte

    found = np.empty(len(side), np.uint8)
    find_byte(*map(read_only, (side.text, side.starts, side.ends)), ord('&'), found)
    return rewritten(side, np.flatnonzero(found), _without_entities)


def _without_entities(lines: bytes) -> bytes:
    for entity, character in _ENTITIES:
        lines = entity.sub(character, lines)
    return lines
