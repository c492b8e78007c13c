"""Filters by length: `length:1:200`, `ratio:3`, and `different`, which drops equal sides.

A length is in characters, which are code points, or with `:tokens` in words between white space as
`str.split` cuts them, whatever the scheme: what a filter drops depends on the text alone.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from tokcore.corpus.filters.row_filter import Filtered, RowFilter
from tokcore.errors import InputError

if typing.TYPE_CHECKING:
    import numpy as np

    from tokcore.text.sides import Side


@dataclass(frozen=True)
class Length(RowFilter):
    """Drops rows with a side that is too short or too long.

    Attributes:
        least: the shortest that is kept.
        most: the longest that is kept.
        tokens: whether that is in words, else in characters.
    """

    name: ClassVar[str] = 'length'

    least: int
    most: int
    tokens: bool = False

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        import numpy as np

        from tokcore.corpus.filters.rules.kept_rows import kept_rows

        is_kept = np.ones(len(sides[0]), bool)
        for each in sides:
            lengths = _lengths(each, self.tokens)
            is_kept &= (lengths >= self.least) & (lengths <= self.most)
        return kept_rows(sides, is_kept)


@dataclass(frozen=True)
class Ratio(RowFilter):
    """Drops pairs of which one side is more than so many times as long as the other.

    Attributes:
        most: the largest ratio that is kept, as it was written: no rounding decides.
        tokens: whether lengths are in words, else in characters.
    """

    name: ClassVar[str] = 'ratio'

    most: Fraction
    tokens: bool = False

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        """Raises InputError if there is one side only."""
        import numpy as np

        from tokcore.corpus.filters.rules.kept_rows import kept_rows

        _require_pairs(self.name, sides)
        lengths = [_lengths(each, self.tokens) for each in sides]
        longer, shorter = np.maximum(*lengths), np.minimum(*lengths)
        # Below 2^31 times 10^7.
        is_kept = longer * self.most.denominator <= shorter * self.most.numerator
        return kept_rows(sides, is_kept)


@dataclass(frozen=True)
class Different(RowFilter):
    """Drops pairs whose sides are equal: what was never translated."""

    name: ClassVar[str] = 'different'

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        """Raises InputError if there is one side only."""
        import numpy as np

        from tokcore.compiled.compilation import read_only
        from tokcore.corpus.filters.rules.kept_rows import kept_rows
        from tokcore.corpus.filters.texts.row_kernels import find_equal

        _require_pairs(self.name, sides)
        found = np.empty(len(sides[0]), np.uint8)
        columns = [tuple(map(read_only, (each.text, each.starts, each.ends))) for each in sides]
        find_equal(*columns, found)
        return kept_rows(sides, found == 0)


def _require_pairs(name: str, sides: tuple[Side, ...]) -> None:
    if len(sides) != 2:
        raise InputError(
            f'the filter {name} compares the two sides of pairs, and these rows have one; leave it '
            'out'
        )


def _lengths(side: Side, tokens: bool) -> np.ndarray:
    """Returns the length of each row: int64[rows]."""
    import numpy as np

    from tokcore.compiled.compilation import read_only
    from tokcore.corpus.filters.texts.row_kernels import count_characters, count_words
    from tokcore.text.unicode_tables import whitespace_table

    found = np.empty(len(side), np.int64)
    rows = tuple(map(read_only, (side.text, side.starts, side.ends)))
    if tokens:
        count_words(*rows, whitespace_table(), found)
    else:
        count_characters(*rows, found)
    return found
