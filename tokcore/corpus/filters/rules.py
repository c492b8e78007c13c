"""The filters of lengths, scripts and normal forms, and `clean_en_xx`.

A length is in characters, which are code points, or with `:tokens` in words between white space, so
what a filter drops depends on the text alone. `nfc`, `nfd`, `nfkc` and `nfkd` use this Python's
Unicode tables, whose version manifests record. `clean_en_xx` is Tensor2Tensor's cleaning of pairs
of which one side is English.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from tokcore.corpus.filters.row_filter import Filtered, RowFilter
from tokcore.errors import InputError
from tokcore.text.rows import Side


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
        from tokcore.corpus.filters.clean_en_xx_kernels import clean_pairs

        english, other, *rows = clean_pairs(sides[self.english], sides[1 - self.english])
        return Filtered((other, english) if self.english else (english, other), *rows)


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

        from tokcore.kernels.jit import read_only
        from tokcore.text.rewriting import find_equal

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

    from tokcore.kernels.jit import read_only
    from tokcore.text.rewriting import count_characters, count_words
    from tokcore.text.unicode import whitespace_table

    found = np.empty(len(side), np.int64)
    rows = tuple(map(read_only, (side.text, side.starts, side.ends)))
    if tokens:
        count_words(*rows, whitespace_table(), found)
    else:
        count_characters(*rows, found)
    return found


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

        from tokcore.text.pre_tokenizer import readable_parts
        from tokcore.text.rewriting import normalized_locally, rewritten
        from tokcore.text.unicode import doubtful_bits, find_doubtful

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

        from tokcore.text.unicode import letter_classes

        return f'letters {google_crc32c.value(letter_classes(self.code).tobytes()):08x}'

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        """Raises InputError if there is one side only, and one is named."""
        import numpy as np

        from tokcore.kernels.jit import read_only
        from tokcore.text.rewriting import count_letters
        from tokcore.text.unicode import letter_classes

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


def kept_rows(sides: tuple[Side, ...], is_kept: np.ndarray) -> Filtered:
    """Returns the rows for which `is_kept`, bool[rows], says so."""
    rows = np.flatnonzero(is_kept)
    if len(rows) == len(is_kept):
        return Filtered(sides, rows)
    taken = tuple(each.take(rows) for each in sides)
    return Filtered(taken, rows)
