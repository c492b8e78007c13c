"""What a filter is: rows of text to those that it keeps, changed or as they are.

A filter is a pure function of a row's texts; it is given many rows at a time. Those that stay keep
their order, and a row may become several.
"""

from __future__ import annotations

import abc
import typing
from dataclasses import dataclass
from typing import ClassVar

if typing.TYPE_CHECKING:
    import numpy as np

    from tokcore.text.sides import Side


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
    """

    sides: tuple[Side, ...]
    rows: np.ndarray
    is_wanted: np.ndarray | None = None


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

    @abc.abstractmethod
    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        """Filters rows of valid UTF-8 text, one side or two; it changes nothing of what it is given.

        Raises:
            InputError: it cannot be applied to rows of so many sides.
        """
