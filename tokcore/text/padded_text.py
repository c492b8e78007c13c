"""Rows of text as kernels read them: many bytes at once, so that some behind a row are read too."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tokcore.compiled.compilation import read_only

READABLE = 64 + 8
"""So many bytes from any place of a row on must be readable."""


class TextRows(NamedTuple):
    """Row i is text[starts[i]:ends[i]], with `READABLE` bytes behind it; arrays are read-only."""

    text: np.ndarray  # uint8
    starts: np.ndarray  # int64[rows]
    ends: np.ndarray  # int64[rows]

    def part(self, first: int, last: int) -> 'TextRows':
        """Returns the rows from `first` up to `last`."""
        return TextRows(self.text, self.starts[first:last], self.ends[first:last])


def one_row(text: np.ndarray, start: int, end: int) -> TextRows:
    """Returns the row text[start:end] alone; the text is as in `TextRows`."""
    return TextRows(text, *(read_only(np.array([place], np.int64)) for place in (start, end)))


def readable_parts(text: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> Iterator[TextRows]:
    """Yields the rows text[starts[i]:ends[i]], in their order, with `READABLE` bytes behind each.

    Only rows near the end of the text are copied, for the sake of what is read behind them.
    """
    near = np.flatnonzero(ends > len(text) - READABLE)
    first = int(near[0]) if len(near) else len(ends)
    if first:
        yield TextRows(
            read_only(np.ascontiguousarray(text)),
            read_only(starts[:first]),
            read_only(ends[:first]),
        )
    if first < len(ends):
        begin = starts[first:].min()
        rest = with_margin(text[begin : ends[first:].max()])
        yield TextRows(rest, read_only(starts[first:] - begin), read_only(ends[first:] - begin))


def with_margin(text: np.ndarray) -> np.ndarray:
    """Returns a copy of some bytes (uint8) with `READABLE` more behind them."""
    copy = np.empty(len(text) + READABLE, np.uint8)
    copy[: len(text)] = text
    copy[len(text) :] = 0
    return read_only(copy)
