"""Kernels that count tokens in an open-addressing hash table over one growing array of bytes.

Tokens stand one after another in the order first met, `data[offsets[i]:offsets[i + 1]]`. A slot
(uint64) holds the high half of a token's hash and its index + 1, or 0 if free: most probes end at
one word, and equal hashes are settled by comparing bytes. Finding tokens and adding them are two
passes over some thousand tokens at a time, so that the look-ups' cache misses overlap; counting and
merging share the second. A kernel that runs out of room says where, and its caller makes room.
Places in the hot loops are unsigned: numba asks of each signed index whether it is negative, which
took a fifth of the time.
"""

import numpy as np

from tokcore.compilation import kernel
from tokcore.pretokenization import character_length, decode_character, is_dropped_space

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MIXER = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_INDEX_BITS = np.uint64(0xFFFFFFFF)
_TAG_BITS = np.uint64(0xFFFFFFFF00000000)
_FREE = np.uint64(0)
_ONE = np.uint64(1)
_NOT_ASCII = 255  # as in unicode_tables

ALL_HASH_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)
"""The mask that leaves a hash as it is; tests give a narrow one, to make tokens collide."""

LARGEST_COUNT = 2**63 - 1


@kernel
def finish_hash(value):
    """Mixes the high bits, which the bytes reached, into the low ones, which choose the slot."""
    value = (value ^ (value >> _HALF)) * _MIXER
    return value ^ (value >> _HALF)


@kernel
def hash_bytes(text, start, end):
    """A 64-bit hash of text[start:end], good in its low and its high bits."""
    value = _MULTIPLIER
    for position in range(start, end):
        value = (value ^ np.uint64(text[position])) * _MULTIPLIER
    return finish_hash(value)


@kernel
def find_tokens(
    text, starts, ends, row, position, byte_classes, classes,
    token_starts, token_ends, hashes,
):  # fmt: skip
    """Finds and hashes the tokens of rows, from a row and a position in it on, until it is full.

    A position of -1 is the row's start. Fills `token_starts`, `token_ends` (int64) and `hashes`
    (uint64, those of `hash_bytes`); returns (row, position, tokens) with the place to go on at; the
    row is the number of rows when all are done. The tables are those of `token_class_tables`.
    """
    tokens = 0
    while row < len(starts):
        row_start = np.uint64(starts[row])
        row_end = np.uint64(ends[row])
        place = row_start if position < 0 else np.uint64(position)
        while place < row_end:
            if tokens == len(token_starts):
                return row, np.int64(place), tokens
            start = place
            # As in `next_token`; to hash in the same loop makes the whole a third faster.
            value = _MULTIPLIER
            token_class = byte_classes[text[place]]
            if token_class == _NOT_ASCII:
                token_class = classes[decode_character(text, np.int64(place))]
            while True:
                while place < row_end and byte_classes[text[place]] == token_class:
                    value = (value ^ np.uint64(text[place])) * _MULTIPLIER
                    place += _ONE
                if place >= row_end or text[place] < 0x80:
                    break
                if classes[decode_character(text, np.int64(place))] != token_class:
                    break
                for _ in range(character_length(text, np.int64(place))):
                    value = (value ^ np.uint64(text[place])) * _MULTIPLIER
                    place += _ONE
            if is_dropped_space(text, start, place, row_start, row_end):
                continue
            token_starts[tokens] = start
            token_ends[tokens] = place
            hashes[tokens] = finish_hash(value)
            tokens += 1
        row += 1
        position = -1
    return row, position, tokens


@kernel
def add_tokens(
    text, starts, ends, hashes, weights, first, last, hash_mask,
    slots, data, offsets, counts, size,
):  # fmt: skip
    """Adds weights to the counts of the tokens text[starts[i]:ends[i]], i from `first` to `last`.

    Returns (i, size, overflow): where it stopped, the number of distinct tokens now, and whether
    it stopped since the sum would exceed 2^63 - 1, and not for want of room. The length of `slots`
    is a power of two, that of `counts` at most three quarters of it, so that searches are short.
    """
    slot_mask = np.uint64(len(slots) - 1)
    for token in range(first, last):
        start = np.uint64(starts[token])
        length = np.uint64(ends[token] - starts[token])
        token_hash = hashes[token] & hash_mask
        tag = token_hash & _TAG_BITS
        slot = token_hash & slot_mask
        found = -1
        while slots[slot] != _FREE:
            if slots[slot] & _TAG_BITS == tag:
                index = (slots[slot] & _INDEX_BITS) - _ONE
                begin = np.uint64(offsets[index])
                if np.uint64(offsets[index + _ONE]) - begin == length:
                    same = np.uint64(0)
                    while same < length and data[begin + same] == text[start + same]:
                        same += _ONE
                    if same == length:
                        found = np.int64(index)
                        break
            slot = (slot + _ONE) & slot_mask
        if found < 0:
            begin = np.uint64(offsets[size])
            if size == len(counts) or begin + length > np.uint64(len(data)):
                return token, size, False
            copied = np.uint64(0)
            while copied < length:
                data[begin + copied] = text[start + copied]
                copied += _ONE
            found = size
            size += 1
            offsets[size] = begin + length
            counts[found] = 0
            slots[slot] = tag | np.uint64(size)
        if counts[found] > LARGEST_COUNT - weights[token]:
            return token, size, True
        counts[found] += weights[token]
    return last, size, False


@kernel
def hash_tokens(data, offsets, first, last, hashes):
    """Fills in the hashes of data[offsets[i]:offsets[i + 1]], i from `first` to `last`."""
    for token in range(first, last):
        hashes[token - first] = hash_bytes(data, offsets[token], offsets[token + 1])


@kernel
def fill_slots(data, offsets, size, hash_mask, slots):
    """Enters tokens known to be distinct into empty slots."""
    last = np.uint64(len(slots) - 1)
    for index in range(size):
        token_hash = hash_bytes(data, offsets[index], offsets[index + 1]) & hash_mask
        slot = token_hash & last
        while slots[slot] != _FREE:
            slot = (slot + _ONE) & last
        slots[slot] = (token_hash & _TAG_BITS) | np.uint64(index + 1)
