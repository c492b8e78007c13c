"""Tokens to words in a row of cells, as bytes or as characters."""


from tokcore.bpe.learning.word_cells import BORDER, INSIDE
from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.text.utf8 import next_character

INNER, FINAL = 0, 1
"""Whether a character is the last of its word, as the first index of arrays by code point."""

_LARGEST = (1 << 63) - 1


@kernel_without_allocation
def survey_characters(data, offsets, counts, are_met, totals):
    """Finds which characters there are (bool[2, code points]) and how often (int64[code points]).

    Counts past 2^63 - 1 stay that.
    """
    for token in range(len(counts)):
        place, end = offsets[token], offsets[token + 1]
        while place < end:
            character, place = next_character(data, place)
            are_met[FINAL if place == end else INNER, character] = True
            total = totals[character]
            totals[character] = total + min(counts[token], _LARGEST - total)


@kernel_without_allocation
def lay_bytes(data, offsets, symbols, text, cells):
    """Lays tokens out, whose bytes have these symbols (int32[256]); returns the cells used."""
    used = 1
    cells[0, 0] = BORDER
    for token in range(len(offsets) - 1):
        start, end = offsets[token], offsets[token + 1]
        for place in range(start, end):
            text[used] = data[place]
            cells[used, 0] = symbols[data[place]]
            cells[used, 1] = token
            used += 1
        if end > start:
            cells[used, 0] = BORDER
            used += 1
    return used


@kernel_without_allocation
def lay_characters(data, offsets, symbols, ending, text, cells):
    """Lays tokens out, whose characters have these symbols (int32[2, code points]).

    Characters without one (-1) are left out. `ending` is written behind each that is final, if it
    belongs to that. Returns the cells used.
    """
    used = 1
    cells[0, 0] = BORDER
    for token in range(len(offsets) - 1):
        place, end = offsets[token], offsets[token + 1]
        first = used
        while place < end:
            start = place
            character, place = next_character(data, place)
            is_final = place == end
            symbol = symbols[FINAL if is_final else INNER, character]
            if symbol < 0:
                continue
            begin = used
            for each in range(start, place):
                text[used] = data[each]
                cells[used, 0] = INSIDE
                cells[used, 1] = token
                used += 1
            if is_final:
                for byte in ending:
                    text[used] = byte
                    cells[used, 0] = INSIDE
                    cells[used, 1] = token
                    used += 1
            cells[begin, 0] = cells[used - 1, 0] = symbol
        if used > first:
            cells[used, 0] = BORDER
            used += 1
    return used


@kernel_without_allocation
def cells_of_characters(data, offsets, symbols, ending_length):
    """Returns how many cells `lay_characters` needs."""
    used = 1
    for token in range(len(offsets) - 1):
        place, end = offsets[token], offsets[token + 1]
        first = used
        while place < end:
            start = place
            character, place = next_character(data, place)
            is_final = place == end
            if symbols[FINAL if is_final else INNER, character] >= 0:
                used += place - start
                if is_final:
                    used += ending_length
        if used > first:
            used += 1
    return used
