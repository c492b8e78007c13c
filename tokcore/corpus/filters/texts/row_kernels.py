"""Kernels over rows of text: how long they are, what they hold, whether two are equal."""

import numpy as np

from tokcore.compiled.compilation import kernel, kernel_without_allocation
from tokcore.compiled.ragged_bytes import copy_bytes
from tokcore.text.utf8 import next_character

_0, _1 = np.uint64(0), np.uint64(1)


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

    `whitespace` uint8[0x110000] is `unicode_tables.whitespace_table`.
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

    `rows` is (starts, ends); `classes` uint8[0x110000] is `script_letters.letter_classes`.
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
