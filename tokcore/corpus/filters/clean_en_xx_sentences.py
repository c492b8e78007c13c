"""Rows of text cut into sentences, as `clean_en_xx` cuts both sides of a pair."""

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.corpus.filters.clean_en_xx_kernels import CUT, WORD, character_before, is_capital

_BLANK, _BAR, _UNDERSCORE = 0x20, 0x7C, 0x5F


@kernel_without_allocation
def count_sentences(text, starts, ends, is_english, classes, counts):
    """Fills in of how many sentences each row is: 1 if it is not cut.

    `text` uint8[...], rows of valid UTF-8, `classes` as of `english_classes`, `counts` int64[rows].
    """
    for row in range(len(starts)):
        count = 0
        begin = taken = starts[row]
        while begin >= 0:
            _, begin, taken = _next_cut(text, begin, taken, ends[row], is_english, classes)
            count += 1
        counts[row] = count


@kernel_without_allocation
def cut_sentences(text, rows, is_english, classes, pieces):
    """Fills in all sentences of some rows, one after another.

    `rows` and `pieces` are (starts, ends), int64[...] each.
    """
    starts, ends = rows
    piece_starts, piece_ends = pieces
    piece = 0
    for row in range(len(starts)):
        begin = taken = starts[row]
        while begin >= 0:
            piece_starts[piece] = begin
            stop, begin, taken = _next_cut(text, begin, taken, ends[row], is_english, classes)
            piece_ends[piece] = stop
            piece += 1


@kernel_without_allocation
def _next_cut(text, begin, taken, end, is_english, classes):
    """Where the sentence that begins at `begin` ends, where the next begins, and the new `taken`.

    The last of a row ends with it, and the next begins at -1. `taken` is the end of what has told
    the sentences before apart: it tells no others.
    """
    for place in range(begin, end - 2):
        byte = text[np.uint64(place)]
        if not classes[byte] & CUT:
            continue
        if byte != _BAR:
            if text[place + 1] == _BLANK and is_capital(text[place + 2]):
                if _ends_sentence(text, taken, place, is_english, classes):
                    return place + 1, place + 2, place + 3
        elif place - 2 >= begin:
            if _is_underscores(text, place - 2) and _is_underscores(text, place + 1):
                return place - 2, place + 3, taken
    return end, -1, taken


@kernel_without_allocation
def _is_underscores(text, place):
    return text[place] == _UNDERSCORE and text[place + 1] == _UNDERSCORE


@kernel_without_allocation
def _ends_sentence(text, taken, mark, is_english, classes):
    """Whether text[taken:mark] goes before the mark at a sentence's end."""
    last = mark - 1
    if last < taken:
        return False
    byte = text[last]
    is_digit = 0x30 <= byte <= 0x39
    if not is_english:
        return not is_digit
    if is_capital(byte):
        # One capital alone is an initial.
        return last > taken and classes[character_before(text, taken, last)[0]] & WORD != 0
    return is_digit or 0x61 <= byte <= 0x7A
