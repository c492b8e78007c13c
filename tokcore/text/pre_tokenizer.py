"""What a pre-tokenizer is: it cuts rows into tokens, for counting and for encoding.

Kernels read many bytes at once, so `READABLE` bytes follow each row. Tokens are slices of the rows,
or of a buffer: a pre-tokenizer that changes text (lower case, no accents) has a buffer in its
state, and its body of `scan_tokens` overwrites it in each call. `prepare` allocates the buffer for
the rows at hand, with room for whatever the longest of them can become, and no two threads share
it. The body stops before a row that no longer fits after others.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from tokcore.kernels.bytes import READABLE, with_margin
from tokcore.kernels.jit import kernel_family, kernel_without_allocation, read_only
from tokcore.text.rows import Side
from tokcore.text.unicode import CODE_POINTS, next_character, one_ends_inside_character

CHUNK_TOKENS = 64 + 16
"""Room for the tokens that a body of `scan_tokens` may find between two checks of the room left,
and for places that it writes in advance."""

_TOKENS_AT_ONCE = 1 << 14

_ZEROS = '\0' * 3
"""As many as a character has bytes after its first."""

_CODES_BELOW = ((0x80, 0x80), (0xE0, 0x800), (0xF0, 0x10000), (0xF1, 0x40000))
"""Text whose bytes are all below the first number has code points below the second."""

_0, _1 = np.uint64(0), np.uint64(1)


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
    is_near_end = ends > len(text) - READABLE
    first = int(is_near_end.argmax()) if is_near_end.any() else len(ends)
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


class ListedTokens(NamedTuple):
    """The state of pre-tokenizers in Python, which find the tokens of all rows before kernels run."""

    starts: np.ndarray  # uint64[tokens], read-only as the others
    ends: np.ndarray  # uint64[tokens]
    row_tokens: np.ndarray  # int64[rows + 1]

    @classmethod
    def of(cls, starts: object, ends: object, row_tokens: object) -> 'ListedTokens':
        """Takes sequences of integers."""
        return cls(
            read_only(np.array(starts, np.uint64)),
            read_only(np.array(ends, np.uint64)),
            read_only(np.array(row_tokens, np.int64)),
        )


@scan_tokens.register(ListedTokens)
@kernel_without_allocation
def _copy_listed_tokens(rows, row, position, pre_tokenizer, tokens):
    """As `scan_tokens` says; a position is the index of a token."""
    room = len(tokens.starts) - CHUNK_TOKENS
    count = 0
    while row < len(rows.starts):
        token = pre_tokenizer.row_tokens[row] if position < 0 else position
        while token < pre_tokenizer.row_tokens[row + 1]:
            if count == room:
                return row, token, count
            tokens.starts[count] = pre_tokenizer.starts[token]
            tokens.ends[count] = pre_tokenizer.ends[token]
            count += 1
            token += 1
        row += 1
        position = -1
        tokens.row_tokens[row] = count
    return row, position, count


@dataclass(frozen=True)
class RowTokens:
    """A `PreTokenizer` whose tokens are the rows; an empty row has none."""

    name = 'whole-rows'
    options: ClassVar[Mapping[str, object]] = {}

    def prepare(self, rows: TextRows) -> tuple[ListedTokens, np.ndarray]:
        is_token = rows.starts < rows.ends
        row_tokens = np.append(0, np.cumsum(is_token))
        return ListedTokens.of(rows.starts[is_token], rows.ends[is_token], row_tokens), rows.text

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        start, end = int(rows.starts[row]), int(rows.ends[row])
        if start < end:
            yield RowPart(rows.text, start, end, end - start > longest)


class CharacterRuns(NamedTuple):
    """Runs of some characters as tokens, found in the pass that counts all characters of the rows.

    It is the state of `scan_tokens`, and what a `TokenAccumulator` takes; it is for one thread.
    """

    is_inside: np.ndarray  # uint8[0x110000]: 1 for the characters of tokens, 0 for the others
    counts: np.ndarray  # int64[more than any code point]: of each character of the rows

    @classmethod
    def of(cls, is_inside: np.ndarray, text: np.ndarray) -> 'CharacterRuns':
        """Takes the characters of tokens, and valid UTF-8 that has the rows; all counts are 0."""
        greatest = int(text.max(initial=0))
        # As few counts as the text may need: most of it is of few code points.
        codes = next((codes for byte, codes in _CODES_BELOW if greatest < byte), CODE_POINTS)
        return cls(is_inside, np.zeros(codes, np.int64))

    def prepare(self, rows: TextRows) -> tuple['CharacterRuns', np.ndarray]:
        """Returns the state and the text of the tokens."""
        return self, rows.text


@scan_tokens.register(CharacterRuns)
@kernel_without_allocation
def _scan_character_runs(rows, row, position, pre_tokenizer, tokens):
    """Finds tokens as `scan_tokens` says; they are slices of the rows. Counts each character once."""
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    ended = _0
    while row < len(rows.starts):
        place = np.int64(rows.starts[row] if position < 0 else position)
        row_end = rows.ends[row]
        was_inside = _0
        while place < row_end:
            # Between two tokens, so that a call that continues here counts no character again.
            if ended > room and was_inside == _0:
                return row, place, np.int64(ended)
            start = np.uint64(place)
            code, place = next_character(rows.text, place)
            pre_tokenizer.counts[np.uint64(code)] += 1
            is_inside = np.uint64(pre_tokenizer.is_inside[np.uint64(code)])
            # Written at each character, and kept at borders: no processor can predict these.
            tokens.starts[ended + was_inside] = start
            tokens.ends[ended] = start
            ended += was_inside & (is_inside ^ _1)
            was_inside = is_inside
        tokens.ends[ended] = np.uint64(row_end)
        ended += was_inside
        row += 1
        position = -1
        tokens.row_tokens[row] = np.int64(ended)
    return row, np.int64(position), np.int64(ended)
