"""What a pre-tokenizer is: it cuts rows into tokens, for counting and for encoding.

Rows have readable bytes after them, since kernels read many bytes at once. Tokens need not be
slices of the rows. A pre-tokenizer that changes text (lower case, accents off) has a buffer in its
state, to which its body of `scan_tokens` writes the tokens of a call, and which it reuses at the
next call. `prepare` makes it for these rows, with room for what the longest of them can become, and
no two threads share it; the body stops before a row that does not fit after others.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

import numpy as np

from tokcore.kernels.bytes import READABLE, with_margin
from tokcore.kernels.jit import kernel_family, read_only

CHUNK_TOKENS = 64 + 16
"""Room for the tokens that a body of `scan_tokens` may find between two looks at the room left, and
for places that it writes for nothing."""


class ScannedTokens(NamedTuple):
    """Tokens that were found: token i is text[starts[i]:ends[i]], and `READABLE` bytes follow."""

    text: np.ndarray  # uint8: the rows' or another
    starts: np.ndarray  # uint64[room + CHUNK_TOKENS]
    ends: np.ndarray  # uint64, as many
    row_tokens: np.ndarray  # int64[rows + 1]: behind a row, the tokens so far


@kernel_family('pre_tokenizer')
def scan_tokens(rows, row, position, pre_tokenizer, tokens):
    """Finds the tokens of `TextRows`, from a row and a position in it on, while there is room.

    A position of -1 is the row's start, any other is one that this returned. Fills `ScannedTokens`,
    from their first place on, and for each row that is done row_tokens[row + 1], the tokens of this
    call so far. Returns (row, position, tokens) with the place to go on at, int64; the row is the
    number of rows when all are done.
    """


class RowPart(NamedTuple):
    """A part of a long row: text[start:end], with `READABLE` bytes behind it."""

    text: np.ndarray  # uint8
    start: int
    end: int
    is_long_token: bool  # or any number of tokens that are not long


class TextRows(NamedTuple):
    """Row i is text[starts[i]:ends[i]], with `READABLE` bytes behind it; arrays are read-only."""

    text: np.ndarray  # uint8
    starts: np.ndarray  # int64[rows]
    ends: np.ndarray  # int64[rows]

    def part(self, first: int, last: int) -> 'TextRows':
        """Returns the rows from `first` up to `last`."""
        return TextRows(self.text, self.starts[first:last], self.ends[first:last])


class PreTokenizer(Protocol):
    """Cuts rows into tokens. Threads share it, and what kernels write is not kept in it."""

    @property
    def name(self) -> str:
        """By which records know it."""

    @property
    def options(self) -> Mapping[str, object]:
        """Plain values that tokens depend on beside the name; for records too."""

    def prepare(self, rows: TextRows) -> tuple[NamedTuple, np.ndarray]:
        """Returns the state that selects the body of `scan_tokens`, and the tokens' text.

        That is `rows.text` where tokens are slices of rows, else the state's buffer. Both are good
        for these rows and by one thread.
        """

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        """Yields the parts of one row, whose tokens, one part after another, are the row's.

        A token of more than `longest` bytes is a part of its own, as a model is to segment it; the
        other parts are rows like any other to `scan_tokens`.
        """


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
