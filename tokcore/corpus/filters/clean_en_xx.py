"""`clean_en_xx`: Tensor2Tensor's cleaning of pairs of which one side is English, as a filter."""

from __future__ import annotations

import typing
import unicodedata
from dataclasses import dataclass
from typing import ClassVar

from tokcore.corpus.filters.row_filter import Filtered, RowFilter
from tokcore.errors import InputError

if typing.TYPE_CHECKING:
    from tokcore.text.sides import Side


@dataclass(frozen=True)
class CleanEnXx(RowFilter):
    """Drops pairs whose English has signs of being no sentence, and cuts others into sentences.

    As `clean_en_xx_pairs` of `data_generators/cleaner_en_xx.py`, which on Python 3 fails where a
    pair becomes several; `plain_clean_en_xx` says the rules. Sentences are as they stand in the
    text, not stripped; one of the other side may be empty, where the text has the original's marker.

    Attributes:
        english: the side that is English, 0 or 1; the original's is always the first.
    """

    name: ClassVar[str] = 'clean_en_xx'
    makes_several: ClassVar[bool] = True

    english: int = 0

    @property
    def stamp(self) -> str:
        """The tables of Unicode: which characters are letters, digits and white space."""
        return f'Unicode {unicodedata.unidata_version}'

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        """Returns the pairs, or sentences of pairs, and which of these are wanted; copies no text.

        Raises:
            InputError: there is one side only.
        """
        if len(sides) != 2:
            raise InputError(
                f'the filter {self.name} takes pairs of an English text and another one, and these'
                ' rows are single texts: leave it out, or give both sides'
            )
        from tokcore.corpus.filters.clean_en_xx_blocks import clean_pairs

        english, other, *rows = clean_pairs(sides[self.english], sides[1 - self.english])
        return Filtered((other, english) if self.english else (english, other), *rows)
