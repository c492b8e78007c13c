"""Rows rewritten, joined, compared and counted.

A row that changes is appended to the text of its side, and the text that no row needs any more
stays where it is: a block with a few changes is copied once, and rows that stay are not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.text.rows import Side
from tokcore.text.unicode import next_character

_LINE_FEED = 0x0A

_0, _1 = np.uint64(0), np.uint64(1)


def rewrite_rows(side: Side, rows: np.ndarray, rewrite: Callable[[bytes], bytes]) -> Side:
    """Returns a side with some rows rewritten, the same object if nothing changes.

    Args:
        side: rows of text.
        rows: int64[…], ascending: the rows that may change.
        rewrite: maps lines to lines, all rows at once. Each row is a line, or several if there are
            line feeds in it; as many line feeds must come out, in the same order.
    """
    if not len(rows):
        return side
    lines = side.take(rows).joined()
    before = lines.text.tobytes()
    after = rewrite(before)
    if after == before:
        return side
    text = np.frombuffer(after, np.uint8)
    # Which of all line feeds ends each row.
    last_feeds = np.searchsorted(np.flatnonzero(lines.text == _LINE_FEED), lines.ends)
    ends = np.flatnonzero(text == _LINE_FEED)[last_feeds]
    starts = np.concatenate([[0], ends[:-1] + 1])
    return replace_rows(side, rows, Side(text, starts, ends))


def replace_rows(side: Side, rows: np.ndarray, new_rows: Side) -> Side:
    """Returns a side in which the rows numbered `rows` (int64[…]) are those of `new_rows`."""
    starts, ends = side.starts.copy(), side.ends.copy()
    starts[rows] = new_rows.starts + len(side.text)
    ends[rows] = new_rows.ends + len(side.text)
    return Side(read_only(np.concatenate([side.text, new_rows.text])), starts, ends)


class RowBuilder:
    """Collects rows made from the rows of a block; a text that did not change is not copied."""

    def __init__(self, sides: tuple[Side, ...]):
        """Takes the rows of the block."""
        self._sides = sides
        self._rows: list[int] = []
        self._bounds: list[list[tuple[int, int]]] = [[] for _ in sides]
        self._new_texts: list[list[bytes]] = [[] for _ in sides]
        self._sizes = [len(side.text) for side in sides]

    def add(self, row: int, before: Sequence[str], after: Sequence[str]) -> None:
        """Adds a row made from another one.

        Args:
            row: the number of the other one.
            before: its texts, one for each side.
            after: the texts of the row that is added.

        Raises:
            UnicodeEncodeError: a text cannot be UTF-8; nothing is added.
        """
        encoded = [
            None if new == old else new.encode() for new, old in zip(after, before, strict=True)
        ]
        self._rows.append(row)
        for number, (side, data) in enumerate(zip(self._sides, encoded, strict=True)):
            if data is None:
                bounds = int(side.starts[row]), int(side.ends[row])
            else:
                start = self._sizes[number]
                self._sizes[number] += len(data)
                self._new_texts[number].append(data)
                bounds = start, self._sizes[number]
            self._bounds[number].append(bounds)

    def build(self) -> tuple[tuple[Side, ...], np.ndarray]:
        """Returns all rows that were added, and int64[rows]: the row that each was made from."""
        sides = []
        for side, bounds, new_texts in zip(self._sides, self._bounds, self._new_texts, strict=True):
            starts, ends = np.array(bounds, np.int64).reshape(-1, 2).T.copy()
            text = side.text
            if new_texts:
                appended = np.frombuffer(b''.join(new_texts), np.uint8)
                text = read_only(np.concatenate([text, appended]))
            sides.append(Side(text, starts, ends))
        return tuple(sides), np.array(self._rows, np.int64)


@kernel_without_allocation
def count_characters(text, starts, ends, counts):
    """Fills in how many characters (code points) each row of valid UTF-8 has: int64[rows]."""
    for row in range(len(starts)):
        count = 0
        for position in range(np.uint64(starts[row]), np.uint64(ends[row])):
            count += (text[position] & 0xC0) != 0x80
        counts[row] = count


@kernel_without_allocation
def count_words(text, starts, ends, whitespace, counts):
    """Fills in how many words, separated by white space, each row has: int64[rows].

    `whitespace` uint8[0x110000] is `unicode.whitespace_table`.
    """
    for row in range(len(starts)):
        position, end = starts[row], ends[row]
        count = 0
        was_space = 1
        while position < end:
            character, position = next_character(text, position)
            is_space = whitespace[character]
            count += was_space & (1 - is_space)
            was_space = is_space
        counts[row] = count


@kernel_without_allocation
def find_equal(first, second, is_equal):
    """Fills in 1 for rows that are the same in both, else 0: uint8[rows].

    `first` and `second` are (text, starts, ends) of as many rows.
    """
    text, starts, ends = first
    other_text, other_starts, other_ends = second
    for row in range(len(starts)):
        length = ends[row] - starts[row]
        same = length == other_ends[row] - other_starts[row]
        place, other = np.uint64(starts[row]), np.uint64(other_starts[row])
        position, size = _0, np.uint64(length)
        while same and position < size:
            same = text[place + position] == other_text[other + position]
            position += _1
        is_equal[row] = same


@kernel_without_allocation
def find_byte(text, starts, ends, byte, has_byte):
    """Fills in 1 for rows that hold a byte, else 0: uint8[rows]."""
    for row in range(len(starts)):
        is_in_row = 0
        for position in range(np.uint64(starts[row]), np.uint64(ends[row])):
            is_in_row |= text[position] == byte
        has_byte[row] = is_in_row


@kernel_without_allocation
def count_letters(text, rows, classes, matching, others):
    """Fills in how many letters of each row are of a script, and how many of others: int64[rows].

    `rows` is (starts, ends); `classes` uint8[0x110000] is `unicode.letter_classes`.
    """
    starts, ends = rows
    for row in range(len(starts)):
        position, end = starts[row], ends[row]
        matching_letters = other_letters = 0
        while position < end:
            character, position = next_character(text, position)
            # No branch: letters of both kinds would mispredict it.
            matching_letters += classes[character] & 1
            other_letters += classes[character] >> 1
        matching[row] = matching_letters
        others[row] = other_letters
