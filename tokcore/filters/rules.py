"""The filters of lengths, ratios, equal sides, scripts and normal forms.

A length is in characters (code points), or with `:tokens` in words separated by white space, so
that what a filter drops depends on the text alone. `nfc`, `nfd`, `nfkc` and `nfkd` use this Python's
Unicode tables, whose version manifests record.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import google_crc32c
import numpy as np

from tokcore.corpus.corpus import Filtered, RowFilter
from tokcore.errors import InputError
from tokcore.text.rewriting import count_characters, count_letters, count_words, find_equal
from tokcore.text.rows import Side
from tokcore.text.unicode import letter_classes, whitespace_table
from tokcore.text.unicode_normalization import NormalForm as Form
from tokcore.text.unicode_normalization import normalize_rows


@dataclass(frozen=True)
class Length(RowFilter):
    """Drops rows with a side that is too short or too long.

    Attributes:
        least: the shortest length that is kept.
        most: the longest length that is kept.
        tokens: whether lengths are in words, else in characters.
    """

    name = 'length'

    least: int
    most: int
    tokens: bool = False

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        is_kept = np.ones(len(sides[0]), bool)
        for side in sides:
            lengths = _lengths(side, self.tokens)
            is_kept &= (lengths >= self.least) & (lengths <= self.most)
        return _keep_rows(sides, is_kept)


@dataclass(frozen=True)
class Ratio(RowFilter):
    """Drops pairs of which one side is too many times as long as the other.

    Attributes:
        most: the largest ratio that is kept, exactly as it was written.
        tokens: whether lengths are in words, else in characters.
    """

    name = 'ratio'

    most: Fraction
    tokens: bool = False

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        """Raises InputError for rows of one side."""
        require_pairs(self.name, sides)
        lengths = [_lengths(side, self.tokens) for side in sides]
        longer, shorter = np.maximum(*lengths), np.minimum(*lengths)
        # Cannot overflow: below 2^31 times 10^7.
        is_kept = longer * self.most.denominator <= shorter * self.most.numerator
        return _keep_rows(sides, is_kept)


@dataclass(frozen=True)
class Different(RowFilter):
    """Drops pairs whose sides are equal: text that was never translated."""

    name = 'different'

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        """Raises InputError for rows of one side."""
        require_pairs(self.name, sides)
        is_equal = np.empty(len(sides[0]), np.uint8)
        find_equal(sides[0].arrays(), sides[1].arrays(), is_equal)
        return _keep_rows(sides, is_equal == 0)


@dataclass(frozen=True)
class Script(RowFilter):
    """Drops rows with a side in which too few letters are of a script.

    Letters of no script in particular are not counted. A side without letters is kept.

    Attributes:
        code: of the script, by ISO 15924.
        least: the smallest share that is kept, exactly as it was written.
        side: the side whose letters count; None for both.
    """

    name = 'script'

    code: str
    least: Fraction
    side: int | None = None

    @property
    def stamp(self) -> str:
        """A checksum of the letters, which differ between versions of Unicode."""
        return f'letters {google_crc32c.value(letter_classes(self.code).tobytes()):08x}'

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        """Raises InputError for rows of one side, if the filter is for one of two."""
        if self.side is not None and len(sides) != 2:
            raise InputError(
                f'the filter {self.name} names a side, and these rows have only one; leave it out'
            )
        is_kept = np.ones(len(sides[0]), bool)
        for side in sides if self.side is None else sides[self.side : self.side + 1]:
            matching, others = (np.empty(len(side), np.int64) for _ in range(2))
            text, *bounds = side.arrays()
            count_letters(text, tuple(bounds), letter_classes(self.code), matching, others)
            is_kept &= (
                matching * self.least.denominator >= (matching + others) * self.least.numerator
            )
        return _keep_rows(sides, is_kept)


@dataclass(frozen=True)
class NormalForm(RowFilter):
    """Brings text into a normal form; it drops nothing by itself."""

    form: Form
    drops_rows = False

    @property
    def name(self) -> str:  # type: ignore[override]  # instances differ
        return self.form.lower()

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        normalized = tuple(normalize_rows(side, self.form) for side in sides)
        return Filtered(normalized, np.arange(len(sides[0])))


def _keep_rows(sides: tuple[Side, ...], is_kept: np.ndarray) -> Filtered:
    """Returns the rows for which `is_kept`, bool[rows], is True."""
    rows = np.flatnonzero(is_kept)
    if len(rows) == len(is_kept):
        return Filtered(sides, rows)
    return Filtered(tuple(side.take(rows) for side in sides), rows)


def require_pairs(name: str, sides: tuple[Side, ...]) -> None:
    """Raises InputError for rows of one side."""
    if len(sides) != 2:
        raise InputError(
            f'the filter {name} is for pairs, and these rows are single texts; leave it out, or give '
            'both sides'
        )


def _lengths(side: Side, tokens: bool) -> np.ndarray:
    """Returns the length of each row: int64[rows]."""
    lengths = np.empty(len(side), np.int64)
    if tokens:
        count_words(*side.arrays(), whitespace_table(), lengths)
    else:
        count_characters(*side.arrays(), lengths)
    return lengths
