"""Text to tokens as in Tensor2Tensor's tokenizer, for one string and for UTF-8 bytes.

A pre-tokenizer is a table from code point to class. A token is a maximal run of characters of one
class; a token that is exactly one space is dropped, unless it begins or ends the text, and comes
back between two alphanumeric tokens when they are joined. So joining restores any text.
"""

import functools
from collections.abc import Iterable

import numpy as np

from tokcore.compilation import kernel_in_place
from tokcore.unicode_tables import alphanumeric_table, byte_table

SPACE = 0x20
_NOT_ASCII = 255  # as in unicode_tables
_ONE = np.uint64(1)


def tokenize(text: str) -> list[str]:
    """Returns the tokens of a text: `'Hi, you 2'` gives `['Hi', ', ', 'you', '2']`.

    Equal to Tensor2Tensor's `tokenizer.encode` for every `str`, lone surrogates included.
    """
    code_points = np.frombuffer(text.encode('utf-32-le', 'surrogatepass'), '<u4')
    classes = alphanumeric_table()[code_points]
    borders = (np.flatnonzero(classes[1:] != classes[:-1]) + 1).tolist()
    starts = [0, *borders]
    ends = [*borders, len(text)]
    last = len(text)
    return [
        token
        for start, end in zip(starts, ends)
        if (token := text[start:end]) and (token != ' ' or start == 0 or end == last)
    ]


def detokenize(tokens: Iterable[str]) -> str:
    """Returns the text whose tokens these are: `['Hi', ', ', 'you', '2']` gives `'Hi, you 2'`.

    One space is put between two tokens that both begin with a letter or number. Equal to
    Tensor2Tensor's `tokenizer.decode`, save that an empty token is a ValueError.
    """
    alphanumeric = alphanumeric_table()
    pieces = []
    after_word = False
    for token in tokens:
        if not token:
            raise ValueError('a token must have at least one character')
        word = bool(alphanumeric[ord(token[0])])
        if word and after_word:
            pieces.append(' ')
        pieces.append(token)
        after_word = word
    return ''.join(pieces)


@functools.cache
def token_class_tables() -> tuple[np.ndarray, np.ndarray]:
    """Returns the two tables that `next_token` takes: classes of bytes and of code points.

    uint8[256], the class of an ASCII byte and 255 for all others, and uint8[0x110000], the class of
    a code point: 1 for letters and numbers, 0 for the rest.
    """
    classes = alphanumeric_table()
    return byte_table(classes), classes


@kernel_in_place
def character_length(text, position):
    """The bytes of the character at `position` of valid UTF-8."""
    lead = text[position]
    if lead < 0x80:
        return 1
    if lead < 0xE0:
        return 2
    if lead < 0xF0:
        return 3
    return 4


@kernel_in_place
def decode_character(text, position):
    """The code point at `position` of valid UTF-8, where a character begins."""
    lead = np.int64(text[position])
    if lead < 0x80:
        return lead
    second = np.int64(text[position + 1]) & 0x3F
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | second
    third = np.int64(text[position + 2]) & 0x3F
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | second << 6 | third
    fourth = np.int64(text[position + 3]) & 0x3F
    return (lead & 0x07) << 18 | second << 12 | third << 6 | fourth


@kernel_in_place
def next_token(text, position, end, byte_classes, classes):
    """Returns where the token that begins at `position` ends, at most `end`.

    `text` uint8[...] is valid UTF-8, `position < end`, both at character borders; the tables are
    those of `token_class_tables`. It gives every run, also single spaces: ask `is_dropped_space`.
    """
    # Unsigned, since numba looks at every signed index whether it is negative.
    place = np.uint64(position)
    last = np.uint64(end)
    token_class = byte_classes[text[place]]
    if token_class == _NOT_ASCII:
        token_class = classes[decode_character(text, position)]
    while True:
        # Nearly all of the time is spent in this line, so it holds nothing of longer characters.
        while place < last and byte_classes[text[place]] == token_class:
            place += _ONE
        if place >= last or text[place] < 0x80:
            break
        if classes[decode_character(text, np.int64(place))] != token_class:
            break
        place += np.uint64(character_length(text, np.int64(place)))
    return np.int64(place)


@kernel_in_place
def is_dropped_space(text, start, end, row_start, row_end):
    """Whether the token `text[start:end]` is a lone space, neither first nor last in its row."""
    return end - start == 1 and text[start] == SPACE and start != row_start and end != row_end
