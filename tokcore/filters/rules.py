"""The filters of lengths, scripts and normal forms, and `clean_en_xx`.

A length is in characters (code points), or with `:tokens` in words separated by white space, so
that what a filter drops depends on the text alone. `nfc`, `nfd`, `nfkc` and `nfkd` use this Python's
Unicode tables, whose version manifests record. `clean_en_xx` is Tensor2Tensor's cleaning of pairs
with an English side.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from fractions import Fraction

import google_crc32c
import numpy as np

from tokcore.corpus.corpus import Filtered, RowFilter
from tokcore.errors import InputError
from tokcore.filters.clean_en_xx_kernels import clean_pairs
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
        _require_pairs(self.name, sides)
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
        _require_pairs(self.name, sides)
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
            own, others = (np.empty(len(side), np.int64) for _ in range(2))
            text, *bounds = side.arrays()
            count_letters(text, tuple(bounds), letter_classes(self.code), own, others)
            is_kept &= own * self.least.denominator >= (own + others) * self.least.numerator
        return _keep_rows(sides, is_kept)


@dataclass(frozen=True)
class NormalForm(RowFilter):
    """Brings text into a normal form; it drops nothing by itself."""

    form: Form

    @property
    def name(self) -> str:  # type: ignore[override]  # an instance's own, of four
        return self.form.lower()

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        normalized = tuple(normalize_rows(side, self.form) for side in sides)
        return Filtered(normalized, np.arange(len(sides[0])))


@dataclass(frozen=True)
class CleanEnXx(RowFilter):
    """Drops pairs whose English does not look like a sentence, and splits others into sentences.

    As `clean_en_xx_pairs` of `data_generators/cleaner_en_xx.py` does, which on Python 3 fails where
    a pair becomes several; `plain_clean_en_xx` has the rules. Sentences are slices of the text, not
    stripped; one of the other side may be empty if the text has the original's marker.

    Attributes:
        english: the number of the English side; the original's is always the first.
    """

    name = 'clean_en_xx'
    makes_several = True

    english: int = 0

    @property
    def stamp(self) -> str:
        """The version of Unicode: which characters are letters, digits and white space."""
        return f'Unicode {unicodedata.unidata_version}'

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        """Raises InputError for rows of one side."""
        if len(sides) != 2:
            raise InputError(
                f'the filter {self.name} takes pairs of an English text and another one, and these'
                ' rows are single texts: leave it out, or give both sides'
            )
        english, other, rows, is_kept = clean_pairs(sides[self.english], sides[1 - self.english])
        cleaned = (other, english) if self.english else (english, other)
        return Filtered(cleaned, rows, is_kept)


def _keep_rows(sides: tuple[Side, ...], is_kept: np.ndarray) -> Filtered:
    """Returns the rows for which `is_kept`, bool[rows], is True."""
    rows = np.flatnonzero(is_kept)
    if len(rows) == len(is_kept):
        return Filtered(sides, rows)
    return Filtered(tuple(side.take(rows) for side in sides), rows)


def _require_pairs(name: str, sides: tuple[Side, ...]) -> None:
    if len(sides) != 2:
        raise InputError(
            f'the filter {name} compares the two sides of pairs, and these rows have one; leave it '
            'out'
        )


def _lengths(side: Side, tokens: bool) -> np.ndarray:
    """Returns the length of each row: int64[rows]."""
    lengths = np.empty(len(side), np.int64)
    if tokens:
        count_words(*side.arrays(), whitespace_table(), lengths)
    else:
        count_characters(*side.arrays(), lengths)
    return lengths
