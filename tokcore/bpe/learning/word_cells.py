"""Words in a row, a cell for each byte, and the symbols that they are made of at the time.

    text     \0   l   o   w   \0   l   o   w   e   r   \0
    cells    -1   7  -2   7   -1   7  -2   7   4   9   -1     7 is `low`; beside each its word's number

A symbol's first cell and its last hold it; those between hold what they may, but never one that a
list of places has begin there. So both neighbours of a symbol are read from the cells beside it, and
two symbols are joined by writing three cells. All strings of symbols are somewhere in the text.
"""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.byte_hashing import hash_bytes, same_bytes
from tokcore.compiled.compilation import kernel_without_allocation

BORDER = -1
INSIDE = -2

_0, _1, _8, _255 = np.uint64(0), np.uint64(1), np.uint64(8), np.uint64(255)


class Words(NamedTuple):
    """All words, a `BORDER` before and after each; `cells` are fewer than 2^31."""

    text: np.ndarray  # uint8; behind the words the first symbols' strings, and a chunk of room
    cells: np.ndarray  # int32[bytes and borders, 2]: symbol, word
    counts: np.ndarray  # int64[words]


class Symbols(NamedTuple):
    """Symbols by id; those in use are known to whoever has them."""

    starts: np.ndarray  # int64: where words.text has its string
    lengths: np.ndarray  # int32: of the string; 0 where no word can hold it
    units: np.ndarray  # int32: the bytes or characters it is made of, 0 while it is in no word
    prefixes: np.ndarray  # uint64: its first eight bytes, the first the highest
    slots: np.ndarray  # int32[2^k]: symbols by the hashes of their strings, plus 1


@kernel_without_allocation
def find_symbol(text, start, length, symbols):
    """Returns the symbol that is text[start:start + length], or ~place if there is none."""
    first, size = np.uint64(start), np.uint64(length)
    place = hash_bytes(text, first, first + size) >> np.uint64(33)
    mask = np.uint64(len(symbols.slots) - 1)
    while True:
        place &= mask
        symbol = symbols.slots[place] - 1
        if symbol < 0:
            return ~np.int64(place)
        if symbols.lengths[symbol] == length:
            if same_bytes(text, first, text, np.uint64(symbols.starts[symbol]), size):
                return np.int64(symbol)
        place += _1


@kernel_without_allocation
def put_symbol(text, start, length, symbol, symbols):
    """Enters a symbol of this string, which no other has."""
    symbols.starts[symbol] = start
    symbols.lengths[symbol] = length
    prefix = _0
    for i in range(8):
        prefix <<= _8
        if i < length:
            prefix |= np.uint64(text[start + i])
    symbols.prefixes[symbol] = prefix
    if length:
        found = find_symbol(text, start, length, symbols)
        if found < 0:
            symbols.slots[~found] = symbol + 1


@kernel_without_allocation
def put_symbols(text, symbols, used):
    """Enters all symbols below `used`, whose strings are set, into empty slots."""
    for symbol in range(used):
        put_symbol(text, symbols.starts[symbol], symbols.lengths[symbol], symbol, symbols)


@kernel_without_allocation
def is_larger(left, right, text, symbols):
    """Whether one symbol's string is larger than another's, by bytes and so by code points."""
    if symbols.prefixes[left] != symbols.prefixes[right]:
        return symbols.prefixes[left] > symbols.prefixes[right]
    start, other = symbols.starts[left], symbols.starts[right]
    for i in range(8, min(symbols.lengths[left], symbols.lengths[right])):
        if text[start + i] != text[other + i]:
            return text[start + i] > text[other + i]
    return symbols.lengths[left] > symbols.lengths[right]


@kernel_without_allocation
def may_join(left, right, symbols, max_piece_length):
    """Whether two symbols may be merged."""
    units = np.int64(symbols.units[left]) + symbols.units[right]
    return units < max_piece_length or units == 2
