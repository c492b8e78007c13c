"""The filter `script:Latn:0.5`: rows whose letters are mostly of one script."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from tokcore.corpus.filters.row_filter import Filtered, RowFilter
from tokcore.errors import InputError

if typing.TYPE_CHECKING:
    from tokcore.text.sides import Side


@dataclass(frozen=True)
class Script(RowFilter):
    """Drops rows with a side of whose letters too few are of a script.

    A side without letters has none of another script, and is kept. Letters of no script in
    particular are not counted.

    Attributes:
        code: of the script, by ISO 15924.
        least: the smallest share that is kept, as it was written: no rounding decides.
        side: which one is looked at; None for both.
    """

    name: ClassVar[str] = 'script'

    code: str
    least: Fraction
    side: int | None = None

    @property
    def stamp(self) -> str:
        """A checksum of the letters, which differ between versions of Unicode."""
        import google_crc32c

        from tokcore.corpus.filters.texts.script_letters import letter_classes

        return f'letters {google_crc32c.value(letter_classes(self.code).tobytes()):08x}'

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        """Raises InputError if there is one side only, and one is named."""
        import numpy as np

        from tokcore.compiled.compilation import read_only
        from tokcore.corpus.filters.rules.kept_rows import kept_rows
        from tokcore.corpus.filters.texts.row_kernels import count_letters
        from tokcore.corpus.filters.texts.script_letters import letter_classes

        if self.side is not None and len(sides) != 2:
            raise InputError(
                f'the filter {self.name} is asked for a side, and these rows have one; leave it out'
            )
        is_kept = np.ones(len(sides[0]), bool)
        for each in sides if self.side is None else sides[self.side : self.side + 1]:
            own, others = (np.empty(len(each), np.int64) for _ in range(2))
            rows = read_only(each.starts), read_only(each.ends)
            count_letters(read_only(each.text), rows, letter_classes(self.code), own, others)
            is_kept &= own * self.least.denominator >= (own + others) * self.least.numerator
        return kept_rows(sides, is_kept)
