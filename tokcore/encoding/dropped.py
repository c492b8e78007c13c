"""The characters that a model leaves out of its ids, because it has no entry for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tokcore.text.rows import Side

_PIECE_BYTES = 1 << 20
"""Text that is looked at in one go: as code points it takes four times as much memory."""

_LINE_FEED = 0x0A


def _as_it_is(side: Side) -> Side:
    return side


@dataclass(frozen=True)
class DroppedCharacters:
    """How much of each character is lost.

    Attributes:
        lost: uint8[0x110000], how many bytes of a character's UTF-8 have no id.
        normalize: brings rows into the form that the model gets.
    """

    lost: np.ndarray
    normalize: Callable[[Side], Side] = _as_it_is

    def count(self, side: Side, most: int) -> tuple[int, dict[str, int]]:
        """Returns how many bytes of rows have no id, and in which characters they are.

        Args:
            side: the rows.
            most: how many characters at most, the commonest; of equal counts, the first by code.
        """
        rows = self.normalize(side).joined()
        data = rows.text.tobytes()
        size, counts, start = 0, Counter[str](), 0
        while start < len(data):
            end = min(start + _PIECE_BYTES, len(data))
            while end < len(data) and data[end] & 0xC0 == 0x80:
                end -= 1
            text = data[start:end].decode('utf-8', 'surrogatepass')
            codes = np.frombuffer(text.encode('utf-32-le', 'surrogatepass'), np.uint32)
            lost = self.lost[codes]
            size += int(lost.sum())
            found, times = np.unique(codes[lost > 0], return_counts=True)
            counts.update(dict(zip(map(chr, found.tolist()), times.tolist(), strict=True)))
            start = end
        if self.lost[_LINE_FEED]:  # one follows each of the joined rows
            size -= int(self.lost[_LINE_FEED]) * len(side)
            counts['\n'] -= len(side)
        ordered = sorted((+counts).items(), key=lambda item: (-item[1], item[0]))
        return size, dict(ordered[:most])
