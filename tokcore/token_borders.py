"""A kernel that finds the tokens of rows: classes of bytes first, then the places where they change.

Comparing a row's classes with themselves one byte on, eight at a time, gives a bit for each border,
and the work left follows tokens instead of bytes: nothing branches on a token's length.
"""

import numpy as np

from tokcore.compilation import kernel_in_place
from tokcore.pretokenization import SPACE, character_length, decode_character
from tokcore.word_loads import load_word, lowest_bit, store_word

CHUNK_BYTES = 1 << 12
"""How much of a row is classified at once: its classes stay in the nearest cache."""

_MARGIN = np.uint64(8)
CLASS_ROOM = CHUNK_BYTES + 128
"""The length of `find_tokens`'s class buffer: a chunk, what it may overshoot, and margins."""

_ONE = np.uint64(1)
_WORD = np.uint64(8)
_SEVEN = np.uint64(7)
_WINDOW = np.uint64(64)
_CHUNK = np.uint64(CHUNK_BYTES)
_HIGH_BITS = np.uint64(0x8080808080808080)
_LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_EVERY_BYTE = np.uint64(0x0101010101010101)
_GATHER = np.uint64(0x0102040810204080)  # brings bit 0 of byte i to bit 56 + i
_TOP_BYTE = np.uint64(56)
_ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel_in_place
def classify_chunk(text, start, end, byte_classes, classes, buffer):
    """Writes the class of each byte's character from buffer[8] on; returns how many bytes it took.

    At most CHUNK_BYTES and a character's rest, and at most text[start:end], whole characters.
    """
    place = start
    limit = min(end, start + _CHUNK)
    shift = _MARGIN - start
    while place < limit:
        word = load_word(text, place)
        if word & _HIGH_BITS == np.uint64(0):
            # Bytes behind the row's end are classified too, and overwritten or not looked at.
            target = place + shift
            for byte in range(8):
                buffer[target + np.uint64(byte)] = byte_classes[text[place + np.uint64(byte)]]
            place += _WORD
        elif word & np.uint64(0x80) == np.uint64(0):
            buffer[place + shift] = byte_classes[text[place]]
            place += _ONE
        else:
            code_point = np.uint64(decode_character(text, np.int64(place)))
            store_word(buffer, place + shift, np.uint64(classes[code_point]) * _EVERY_BYTE)
            place += np.uint64(character_length(text, np.int64(place)))
    return min(place, end) - start


@kernel_in_place
def border_bits(buffer, at):
    """A bit for each of the 64 bytes from buffer[at] on whose class is not that of the byte before."""
    bits = np.uint64(0)
    for word in range(8):
        place = at + np.uint64(8 * word)
        changed = load_word(buffer, place) ^ load_word(buffer, place - _ONE)
        changed = (((changed & _LOW_BITS) + _LOW_BITS) | changed) & _HIGH_BITS
        bits |= (((changed >> _SEVEN) * _GATHER) >> _TOP_BYTE) << np.uint64(8 * word)
    return bits


@kernel_in_place
def find_tokens(
    text, starts, ends, row, position, byte_classes, classes, buffer, token_starts, token_ends
):
    """Finds the tokens of rows, from a row and a position in it on, until the arrays are full.

    `text` uint8 has eight bytes more than the last row needs; `buffer` is uint8[CLASS_ROOM]; the
    tables are those of `token_class_tables`. A position of -1 is the row's start. Fills in
    `token_starts` and `token_ends` (int64, one longer than the tokens they take); returns (row,
    position, tokens) with the place to go on at; the row is the number of rows when all are done.
    """
    tokens = np.uint64(0)
    room = np.uint64(len(token_starts) - 1)
    while row < len(starts):
        row_start = np.uint64(starts[row])
        row_end = np.uint64(ends[row])
        start = row_start if position < 0 else np.uint64(position)
        first = start
        chunk = start
        while chunk < row_end:
            size = classify_chunk(text, chunk, row_end, byte_classes, classes, buffer)
            if chunk == first:
                buffer[_SEVEN] = buffer[_MARGIN]  # no border where a token begins
            window = np.uint64(0)
            while window < size:
                bits = border_bits(buffer, window + _MARGIN)
                if size - window < _WINDOW:
                    bits &= (_ONE << (size - window)) - _ONE
                while bits != np.uint64(0):
                    end = chunk + window + lowest_bit(bits)
                    bits &= bits - _ONE
                    if tokens == room:
                        return row, np.int64(start), np.int64(tokens)
                    # Written in any case and kept or not, since to branch here is to guess wrong.
                    token_starts[tokens] = start
                    token_ends[tokens] = end
                    dropped = end - start == _ONE and text[start] == SPACE and start != row_start
                    tokens += np.uint64(not dropped)
                    start = end
                window += _WINDOW
            chunk += size
            buffer[_SEVEN] = buffer[size + _SEVEN]
        if start < row_end:
            if tokens == room:
                return row, np.int64(start), np.int64(tokens)
            token_starts[tokens] = start
            token_ends[tokens] = row_end
            tokens += _ONE
        row += 1
        position = -1
    return row, position, np.int64(tokens)
