"""Rows of a filter that makes texts one by one, gathered as sides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.text.sides import Side


class NewTexts:
    """Rows in their order; a text that is what was given is not copied."""

    def __init__(self, sides: tuple[Side, ...]):
        """Takes the rows that were given."""
        self._sides = sides
        self._rows: list[int] = []
        self._bounds: list[list[tuple[int, int]]] = [[] for _ in sides]
        self._new: list[list[bytes]] = [[] for _ in sides]
        self._sizes = [len(each.text) for each in sides]

    def add(self, row: int, given: Sequence[str], texts: Sequence[str]) -> None:
        """Adds a row that came of another one.

        Args:
            row: that other one's number.
            given: its texts.
            texts: of the row that is added; UnicodeEncodeError if UTF-8 cannot hold them.
        """
        encoded = [
            None if text == before else text.encode()
            for text, before in zip(texts, given, strict=True)
        ]
        self._rows.append(row)
        for place, (side, data) in enumerate(zip(self._sides, encoded, strict=True)):
            if data is None:
                bounds = int(side.starts[row]), int(side.ends[row])
            else:
                start = self._sizes[place]
                self._sizes[place] += len(data)
                self._new[place].append(data)
                bounds = start, self._sizes[place]
            self._bounds[place].append(bounds)

    def gathered(self) -> tuple[tuple[Side, ...], np.ndarray]:
        """Returns all rows that were added, and for each the number of the one that it came of."""
        sides = []
        for side, bounds, new in zip(self._sides, self._bounds, self._new, strict=True):
            starts, ends = np.array(bounds, np.int64).reshape(-1, 2).T.copy()
            text = side.text
            if new:
                text = read_only(np.concatenate([text, np.frombuffer(b''.join(new), np.uint8)]))
            sides.append(Side(text, starts, ends))
        return tuple(sides), np.array(self._rows, np.int64)
