"""What a pre-tokenizer is: it cuts rows into tokens, for counting and for encoding.

Kernels read many bytes at once, so `READABLE` bytes follow each row. Tokens are slices of the rows,
or of a buffer: a pre-tokenizer that changes text (lower case, no accents) has a buffer in its
state, and its body of `scan_tokens` overwrites it in each call. `prepare` allocates the buffer for
the rows at hand, with room for whatever the longest of them can become, and no two threads share
it. The body stops before a row that no longer fits after others.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Protocol

import numpy as np

from tokcore.kernels.bytes import READABLE, with_margin
from tokcore.kernels.jit import kernel_family, read_only
from tokcore.text.rows import Side
from tokcore.text.unicode import one_ends_inside_character

CHUNK_TOKENS = 64 + 16
"""Room for the tokens that a body of `scan_tokens` may find between two checks of the room left,
and for places that it writes in advance."""

_TOKENS_AT_ONCE = 1 << 14

_ZEROS = '\0' * 3
"""As many as a character has bytes after its first."""


class ScannedTokens(NamedTuple):
    """The tokens of a call: token i is text[starts[i]:ends[i]], and `READABLE` bytes follow."""

    text: np.ndarray  # uint8: the text of the rows, or a buffer
    starts: np.ndarray  # uint64[room + CHUNK_TOKENS]
    ends: np.ndarray  # uint64, as many
    row_tokens: np.ndarray  # int64[rows + 1]: the tokens up to the end of each row


@kernel_family('pre_tokenizer')
def scan_tokens(rows, row, position, pre_tokenizer, tokens):
    """Finds the tokens of `TextRows`, from a row and a position in it on, while there is room.

    A position of -1 is the start of the row, any other is one that this returned. Fills
    `ScannedTokens` from its first place on, and row_tokens[row + 1] of each row that is done, which
    counts the tokens of this call. Returns (row, position, tokens), int64: where to continue, and
    how many tokens there are; the row is the number of rows when all are done.
    """


class TextRows(NamedTuple):
    """Row i is text[starts[i]:ends[i]], `READABLE` bytes follow it; the arrays are read-only."""

    text: np.ndarray  # uint8
    starts: np.ndarray  # int64[rows]
    ends: np.ndarray  # int64[rows]

    def part(self, first: int, last: int) -> 'TextRows':
        """Returns the rows from `first` up to `last`."""
        return TextRows(self.text, self.starts[first:last], self.ends[first:last])


class RowPart(NamedTuple):
    """A part of a long row: text[start:end], followed by `READABLE` bytes."""

    text: np.ndarray  # uint8
    start: int
    end: int
    is_long_token: bool  # else it is any number of tokens that are not long


class RowScanner(Protocol):
    """Finds the tokens of rows; to count them, it is all that is needed."""

    def prepare(self, rows: TextRows) -> tuple[NamedTuple, np.ndarray]:
        """Returns the state that selects the body of `scan_tokens`, and the text of the tokens.

        The text is `rows.text` where tokens are slices of rows, else the buffer in the state. Both
        are for these rows and for one thread.
        """


class PreTokenizer(RowScanner, Protocol):
    """Cuts rows into tokens. Threads share it, so what kernels write is not kept in it."""

    @property
    def name(self) -> str:
        """The name in manifests."""

    @property
    def options(self) -> Mapping[str, object]:
        """The values that tokens depend on besides the name; also for manifests."""

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        """Yields one row in parts; the tokens of the parts, in order, are the tokens of the row.

        A token of more than `longest` bytes is a part of its own, for the model to segment alone;
        to `scan_tokens` the other parts are rows like any other.
        """


def one_row(text: np.ndarray, start: int, end: int) -> TextRows:
    """Returns the single row text[start:end]; `text` is as in `TextRows`."""
    return TextRows(text, *(read_only(np.array([bound], np.int64)) for bound in (start, end)))


def with_zeros_behind(side: Side) -> Side:
    """Returns the rows; if one of them ends inside a character, copies with zeros behind each.

    Kernels read whole characters, so that ids would depend on what is behind such a row.
    """
    if not one_ends_inside_character(*side.arrays()):
        return side
    spaced = side.with_prefix(_ZEROS)
    return Side(with_margin(spaced.text), spaced.starts + len(_ZEROS), spaced.ends)


def readable_parts(text: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> Iterator[TextRows]:
    """Yields the rows text[starts[i]:ends[i]], in order, with `READABLE` bytes after each.

    Only rows near the end of the text are copied, to get these bytes.
    """
    near_end = np.flatnonzero(ends > len(text) - READABLE)
    first = int(near_end[0]) if len(near_end) else len(ends)
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


def scan_row(
    row: TextRows, state: NamedTuple, text: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields the starts and ends of the tokens of one row, some thousand at a time.

    Args:
        row: a single one.
        state: of `PreTokenizer.prepare`.
        text: likewise. The next step overwrites it if it is a buffer, and the arrays always.
    """
    starts = np.empty(_TOKENS_AT_ONCE + CHUNK_TOKENS, np.uint64)
    tokens = ScannedTokens(text, starts, np.empty_like(starts), np.zeros(2, np.int64))
    rows_done, position = 0, -1
    while not rows_done:
        rows_done, position, count = scan_tokens(row, rows_done, position, state, tokens)
        yield tokens.starts[:count], tokens.ends[:count]


_LastTokens = Callable[[np.ndarray, np.ndarray, np.ndarray, int, int], list[int]]


def _last_token(
    text: np.ndarray, starts: np.ndarray, ends: np.ndarray, first: int, end: int
) -> list[int]:
    return [end - 1] if first < end else []


def slice_parts(
    pre_tokenizer: PreTokenizer,
    rows: TextRows,
    row: int,
    longest: int,
    last_tokens: _LastTokens = _last_token,
) -> Iterator[RowPart]:
    """Yields what `row_parts` does, for a pre-tokenizer whose tokens are slices of the row.

    A part goes from the start of a token to the end of one, since the bytes between two tokens may
    be none. `last_tokens(text, starts, ends, first, end)` says at which of the tokens from `first`
    up to `end`, none of which is long, a part ends.
    """
    state, text = pre_tokenizer.prepare(rows)
    for starts, ends in scan_row(rows.part(row, row + 1), state, text):
        first, tokens = 0, len(starts)
        for token in [*np.flatnonzero(ends - starts > longest).tolist(), tokens]:
            for last in last_tokens(text, starts, ends, first, token):
                yield RowPart(text, int(starts[first]), int(ends[last]), False)
                first = last + 1
            if token < tokens:
                yield RowPart(text, int(starts[token]), int(ends[token]), True)
            first = token + 1
