"""Rows written anew: with a prefix, by a kernel, or one by one; and kernels that compare rows.

Most text that is not in a normal form has characters that each change alone (punctuation of full
width, letters with accents taken apart), which a kernel replaces. Rows with a character that may
join with its neighbours, or change places with them, are left to `unicodedata`.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tokcore.kernels.bytes import copy_bytes, prepend_rows, row_offsets
from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.text.rows import Side
from tokcore.text.unicode import CODE_POINTS, doubtful_bits, next_character

_AS_IT_IS, _NOT_LOCAL = -1, -2

_FEED = 0x0A

_0, _1 = np.uint64(0), np.uint64(1)


def normalized_locally(side: Side, rows: np.ndarray, form: str) -> tuple[Side, np.ndarray]:
    """Returns the side with those of some rows replaced that can be, and the numbers of the others.

    Args:
        side: rows of text.
        rows: int64[…], ascending: those that may not be in the form.
        form: 'NFC', 'NFD', 'NFKC' or 'NFKD'.
    """
    found = replacements(form)
    bounds = read_only(side.starts[rows]), read_only(side.ends[rows])
    sizes = np.empty(len(rows), np.int64)
    measure_local(read_only(side.text), *bounds, found, sizes)
    is_local = sizes >= 0
    if not is_local.any():
        return side, rows
    local, left = rows[is_local], rows[~is_local]
    offsets = row_offsets(sizes[is_local])
    bounds = read_only(side.starts[local]), read_only(side.ends[local])
    made = np.empty(len(side.text) + int(offsets[-1]), np.uint8)
    made[: len(side.text)] = side.text
    offsets += len(side.text)
    replace_local(read_only(side.text), *bounds, found, offsets, made)
    starts, ends = side.starts.copy(), side.ends.copy()
    starts[local], ends[local] = offsets[:-1], offsets[1:]
    return Side(read_only(made), starts, ends), left


class Replacements(NamedTuple):
    """What becomes of characters: of c, pool[offsets[n]:offsets[n + 1]] with n = numbers[c]."""

    numbers: np.ndarray  # int32[0x110000]; -1 where c stays, -2 where its neighbours matter
    offsets: np.ndarray  # int64[replacements + 1]
    pool: np.ndarray  # uint8


@functools.cache
def replacements(form: str) -> Replacements:
    """Returns them for one of Unicode's four forms."""
    doubtful = np.unpackbits(doubtful_bits(form).view(np.uint8), bitorder='little')
    numbers = np.full(CODE_POINTS, _AS_IT_IS, np.int32)
    pool: list[bytes] = []
    for code in np.flatnonzero(doubtful).tolist():
        made = unicodedata.normalize(form, chr(code))
        # What may be put together with what stands before it is doubtful, and stays as it is alone.
        is_bound = [
            unicodedata.combining(each) or (doubtful[ord(each)] and _stays(form, each))
            for each in (chr(code), made[0])
        ]
        if any(is_bound):
            numbers[code] = _NOT_LOCAL
        else:
            numbers[code] = len(pool)
            pool.append(made.encode())
    offsets = row_offsets(list(map(len, pool)))
    return Replacements(
        read_only(numbers), read_only(offsets), read_only(np.frombuffer(b''.join(pool), np.uint8))
    )


def _stays(form: str, character: str) -> bool:
    return unicodedata.normalize(form, character) == character


@kernel_without_allocation
def measure_local(text, starts, ends, found, sizes):
    """Fills in the bytes of each row when its characters are replaced; -1 where they cannot be."""
    for row in range(len(starts)):
        position, end = starts[row], ends[row]
        size = 0
        while position < end:
            character, behind = next_character(text, position)
            number = found.numbers[character]
            if number == -2:
                size = -1
                break
            size += behind - position
            if number >= 0:
                size += found.offsets[number + 1] - found.offsets[number] - (behind - position)
            position = behind
        sizes[row] = size


@kernel_without_allocation
def replace_local(text, starts, ends, found, offsets, out):
    """Writes each row, its characters replaced, to out[offsets[row]:]."""
    for row in range(len(starts)):
        position, end = starts[row], ends[row]
        to = np.uint64(offsets[row])
        # What stays is copied in runs.
        begin = position
        while position < end:
            character, behind = next_character(text, position)
            number = found.numbers[character]
            if number >= 0:
                length = np.uint64(position - begin)
                copy_bytes(out, to, text, np.uint64(begin), length)
                to += length
                first = np.uint64(found.offsets[number])
                length = np.uint64(found.offsets[number + 1]) - first
                copy_bytes(out, to, found.pool, first, length)
                to += length
                begin = behind
            position = behind
        copy_bytes(out, to, text, np.uint64(begin), np.uint64(end - begin))


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


def rewritten(side: Side, rows: np.ndarray, rewrite: Callable[[bytes], bytes]) -> Side:
    """Returns a side of which some rows are written anew, the same one if nothing changes.

    Args:
        side: rows of text.
        rows: int64[…], ascending: those that may change.
        rewrite: what is done to them; each is a line, or several if there are line feeds in it. It
            makes as many line feeds as there were, in their order.
    """
    if not len(rows):
        return side
    joined, _, ends = join_lines(
        read_only(side.text), read_only(side.starts[rows]), read_only(side.ends[rows])
    )
    given = joined.tobytes()
    made = rewrite(given)
    if made == given:
        return side
    new = np.frombuffer(made, np.uint8)
    feeds = np.flatnonzero(new == _FEED)
    # Which of all line feeds stands behind each row.
    last = np.searchsorted(np.flatnonzero(joined == _FEED), ends)
    new_ends = feeds[last]
    new_starts = np.concatenate([[0], new_ends[:-1] + 1])
    starts, all_ends = side.starts.copy(), side.ends.copy()
    starts[rows] = new_starts + len(side.text)
    all_ends[rows] = new_ends + len(side.text)
    return Side(read_only(np.concatenate([side.text, new])), starts, all_ends)


@kernel_without_allocation
def count_characters(text, starts, ends, found):
    """Fills in how many characters (code points) each row of valid UTF-8 has: int64[rows]."""
    for row in range(len(starts)):
        count = 0
        for position in range(np.uint64(starts[row]), np.uint64(ends[row])):
            count += (text[position] & 0xC0) != 0x80
        found[row] = count


@kernel_without_allocation
def count_words(text, starts, ends, whitespace, found):
    """Fills in how many words there are between white space: int64[rows].

    `whitespace` uint8[0x110000] is `unicode.whitespace_table`.
    """
    for row in range(len(starts)):
        position, end = starts[row], ends[row]
        count = 0
        before = 1
        while position < end:
            character, position = next_character(text, position)
            now = whitespace[character]
            count += before & (1 - now)
            before = now
        found[row] = count


@kernel_without_allocation
def find_equal(first, second, found):
    """Marks the rows that are the same in both: uint8[rows], 1 or 0.

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
        found[row] = same


@kernel_without_allocation
def find_byte(text, starts, ends, byte, found):
    """Marks the rows that hold a byte: uint8[rows], 1 or 0."""
    for row in range(len(starts)):
        marked = 0
        for position in range(np.uint64(starts[row]), np.uint64(ends[row])):
            marked |= text[position] == byte
        found[row] = marked


@kernel_without_allocation
def count_letters(text, rows, classes, own, others):
    """Fills in how many letters of each row are of a script, and of others: int64[rows] each.

    `rows` is (starts, ends); `classes` uint8[0x110000] is `unicode.letter_classes`.
    """
    starts, ends = rows
    for row in range(len(starts)):
        position, end = starts[row], ends[row]
        of_it = of_others = 0
        while position < end:
            character, position = next_character(text, position)
            # No branch depends on what is a letter.
            of_it += classes[character] & 1
            of_others += classes[character] >> 1
        own[row] = of_it
        others[row] = of_others


@kernel
def join_lines(text, starts, ends):
    """Returns rows one after another with a '\\n' behind each, and where each begins and ends.

    uint8[bytes], int64[rows], int64[rows].
    """
    size = len(starts)
    for row in range(len(starts)):
        size += ends[row] - starts[row]
    joined = np.empty(size, np.uint8)
    joined_starts = np.empty(len(starts), np.int64)
    joined_ends = np.empty(len(starts), np.int64)
    position = _0
    for row in range(len(starts)):
        joined_starts[row] = np.int64(position)
        length = np.uint64(ends[row] - starts[row])
        copy_bytes(joined, position, text, np.uint64(starts[row]), length)
        position += length
        joined_ends[row] = np.int64(position)
        joined[position] = 0x0A
        position += _1
    return joined, joined_starts, joined_ends


def prepend(side: Side, prefix: str) -> Side:
    """Returns the rows with a prefix before each row's text."""
    if not prefix:
        return side
    text, starts, ends = prepend_rows(
        read_only(side.text),
        read_only(side.starts),
        read_only(side.ends),
        np.frombuffer(prefix.encode(), np.uint8),
    )
    return Side(read_only(text), starts, ends)
