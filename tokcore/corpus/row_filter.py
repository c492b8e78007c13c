"""What a filter is: it maps rows of text to the rows that it keeps, changed or unchanged.

A filter is a pure function of the texts of a row, applied to many rows at a time. Rows keep their
order, and one row may become several.
"""

from __future__ import annotations

import abc
import typing
from dataclasses import dataclass
from typing import ClassVar

from tokcore.corpus.corpus import MAX_LINE_BYTES

if typing.TYPE_CHECKING:
    import numpy as np

    from tokcore.text.rows import Side


@dataclass(frozen=True)
class RowLimits:
    """What a row of a block can be.

    Attributes:
        most_bytes: the most that may be made from one row, on each side.
        forbidden_characters: ASCII characters that no row of the format can have.
    """

    most_bytes: int = MAX_LINE_BYTES
    forbidden_characters: str = ''


@dataclass(frozen=True)
class UnfitRow:
    """A row from which a filter made something that cannot be a row: it is rejected, not dropped.

    Attributes:
        row: its number among the rows that the filter was given.
        reason: the reason that it is counted under.
        why: the end of an error message that begins with the place of the row.
    """

    row: int
    reason: str
    why: str


@dataclass(frozen=True)
class Filtered:
    """The result of a filter.

    Attributes:
        sides: the texts of the output rows, as many sides as there were.
        rows: int64[output rows], not descending: the input row that each was made from. A row whose
            number is absent was dropped; one whose number is repeated became several.
        is_kept: bool[output rows]. False: the filter itself discarded this output row. None: it
            discarded whole input rows only.
        unfit: rows that are rejected, in order; they have no output rows.
    """

    sides: tuple[Side, ...]
    rows: np.ndarray
    is_kept: np.ndarray | None = None
    unfit: tuple[UnfitRow, ...] = ()


class RowFilter(abc.ABC):
    """A filter with its options, a frozen dataclass.

    Attributes:
        name: the name in options, under which dropped rows are counted.
        makes_several: whether a row may become several.
    """

    name: str
    makes_several: ClassVar[bool] = False

    @property
    def stamp(self) -> str:
        """What results depend on besides the options, in short; empty if nothing."""
        return ''

    def with_limits(self, limits: RowLimits) -> RowFilter:
        """Returns this filter for rows with these limits; only a user's own can exceed them."""
        return self

    @abc.abstractmethod
    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        """Filters rows of valid UTF-8 text, of one side or two, without changing its input.

        Raises:
            InputError: the filter is not for rows of so many sides.
        """
