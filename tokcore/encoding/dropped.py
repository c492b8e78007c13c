"""The text that is in no id: of characters without an entry, or that no expression matches."""

from __future__ import annotations

import typing
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tokcore.text.pre_tokenizer import TextRows
from tokcore.text.rows import Side

if typing.TYPE_CHECKING:
    from tokcore.text.regex_splits import SplitPreTokenizer

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
        return size, _commonest(+counts, most)


@dataclass(frozen=True)
class UnmatchedText:
    """How much text is in no token, because no expression of a pre-tokenizer matches it."""

    pre_tokenizer: SplitPreTokenizer

    def count(self, side: Side, most: int) -> tuple[int, dict[str, int]]:
        """Returns how many bytes of rows are in no token, and in which characters; as the other `count`."""
        tokens, _ = self.pre_tokenizer.prepare(TextRows(side.text, side.starts, side.ends))
        borders = np.zeros(len(side.text) + 1, np.int64)
        for places in (side.starts, tokens.ends):
            np.add.at(borders, places, 1)
        for places in (side.ends, tokens.starts):
            np.subtract.at(borders, places, 1)
        lost = side.text[np.cumsum(borders)[:-1] > 0].tobytes()
        return len(lost), _commonest(Counter(lost.decode('utf-8', 'surrogatepass')), most)


def _commonest(counts: Counter[str], most: int) -> dict[str, int]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return dict(ordered[:most])
