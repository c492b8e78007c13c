"""Tokens that are one symbol as a whole, found by their bytes."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tokcore.compiled.byte_hashing import hash_bytes, same_bytes
from tokcore.compiled.compilation import kernel_without_allocation, read_only
from tokcore.compiled.ragged_bytes import row_offsets
from tokcore.text.padded_text import with_margin

NOT_FOUND = -1

_0, _1 = np.uint64(0), np.uint64(1)


class WholeTokens(NamedTuple):
    """An open-addressing table of numbers of tokens; arrays are read-only."""

    slots: np.ndarray  # int32[a power of two], NOT_FOUND where free; int32[0] of no tokens
    data: np.ndarray  # uint8, with a margin
    offsets: np.ndarray  # uint64[tokens + 1]
    symbols: np.ndarray  # int32[tokens]


@kernel_without_allocation
def find_token(text, start, end, whole):
    """Returns the symbol of text[start:end] (places in uint64), or `NOT_FOUND`."""
    if len(whole.slots) == 0:
        return np.int64(NOT_FOUND)
    mask = np.uint64(len(whole.slots)) - _1
    place = hash_bytes(text, start, end) & mask
    while True:
        number = whole.slots[place]
        if number == NOT_FOUND:
            return np.int64(NOT_FOUND)
        begin = whole.offsets[number]
        length = whole.offsets[number + 1] - begin
        if length == end - start and same_bytes(text, start, whole.data, begin, length):
            return np.int64(whole.symbols[number])
        place = (place + _1) & mask


@kernel_without_allocation
def _insert_tokens(whole, slots):
    mask = np.uint64(len(slots)) - _1
    for number in range(len(whole.symbols)):
        begin, end = whole.offsets[number], whole.offsets[number + 1]
        place = hash_bytes(whole.data, begin, end) & mask
        while slots[place] != NOT_FOUND:
            place = (place + _1) & mask
        slots[place] = number


def whole_tokens(symbols: Mapping[bytes, int]) -> WholeTokens:
    """Returns a table of the symbols of tokens."""
    data = with_margin(np.frombuffer(b''.join(symbols), np.uint8))
    offsets = read_only(row_offsets([len(token) for token in symbols]).astype(np.uint64))
    numbers = read_only(np.array(list(symbols.values()), np.int32))
    slots = np.full(1 << (2 * len(symbols)).bit_length() if symbols else 0, NOT_FOUND, np.int32)
    if len(slots):
        _insert_tokens(WholeTokens(read_only(slots), data, offsets, numbers), slots)
    return WholeTokens(read_only(slots), data, offsets, numbers)
