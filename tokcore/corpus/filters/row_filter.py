"""What a filter is: rows of text to those that it keeps, changed or as they are.

A filter is a pure function of a row's texts; it is given many rows at a time. Those that stay keep
their order, and a row may become several.
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
        most_bytes: that may be made of one row, on each side.
        forbidden_characters: characters of ASCII that no row of its format can have.
    """

    most_bytes: int = MAX_LINE_BYTES
    forbidden_characters: str = ''


@dataclass(frozen=True)
class UnfitRow:
    """A row of which a filter made what cannot be a row: it is rejected, not dropped.

    Attributes:
        row: its number among those that the filter was given.
        reason: it is counted under.
        why: as an error tells it, behind the row's place.
    """

    row: int
    reason: str
    why: str


@dataclass(frozen=True)
class Filtered:
    """What a filter made of rows.

    Attributes:
        sides: texts, as many as were given; starts and ends of the rows that came out.
        rows: int64[rows that came out], not descending: the number of the row that each came from.
            A number that is not there is that of a row dropped; one that is there several times is
            that of a row that became several.
        is_wanted: bool[rows that came out]: where it is not, the filter dropped what it had made of
            a row, for itself; None where it dropped whole rows only.
        unfit: rows that are rejected, in their order; of these nothing came out.
    """

    sides: tuple[Side, ...]
    rows: np.ndarray
    is_wanted: np.ndarray | None = None
    unfit: tuple[UnfitRow, ...] = ()


class RowFilter(abc.ABC):
    """A filter with its options, a frozen dataclass.

    Attributes:
        name: by which it is asked for, and what it drops is counted under.
        makes_several: whether a row may become several.
    """

    name: ClassVar[str]
    makes_several: ClassVar[bool] = False

    @property
    def stamp(self) -> str:
        """What its results depend on beside its options, in short; empty if it is nothing."""
        return ''

    def within(self, limits: RowLimits) -> RowFilter:
        """Returns this filter for rows of such limits; only users' own can go beyond them."""
        return self

    @abc.abstractmethod
    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        """Filters rows of valid UTF-8 text, one side or two; it changes nothing of what it is given.

        Raises:
            InputError: it cannot be applied to rows of so many sides.
        """
