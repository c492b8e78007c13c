"""Kernels that count tokens in an open-addressing hash table over one growing array of bytes.

Tokens stand one after another in the order first met; `entries` int64[n + 1, 2] holds where each
begins in `data`, and its count. A slot (uint64) holds the high half of a token's hash and its index
+ 1, or 0 if free; it is chosen by the hash's highest bits, so that a table grows from its slots
alone and in their order. Equal halves are settled by comparing bytes, eight at a time: texts and
`data` have eight bytes more than their tokens. In a table beyond the caches what a token will need
is fetched some tokens ahead. A kernel that runs out of room says where, and its caller makes room.
"""

import numpy as np

from tokcore.compilation import kernel_in_place
from tokcore.word_loads import fetch_ahead, load_word, store_word

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MIXER = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_INDEX_BITS = np.uint64(0xFFFFFFFF)
_TAG_BITS = np.uint64(0xFFFFFFFF00000000)
_FREE = np.uint64(0)
_ONE = np.uint64(1)
_THREE = np.uint64(3)
_WORD = np.uint64(8)
_WORD_BITS = np.uint64(64)

# Tokens between asking for a slot, then its entry, then the entry's bytes, and comparing them.
_SLOT_AHEAD = 24
_ENTRY_AHEAD = 16
_BYTES_AHEAD = 8
_NEAR_SLOTS = 1 << 15  # so many stay in the caches

ALL_HASH_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)
"""The mask that leaves a hash as it is; tests give a narrow one, to make tokens collide."""

LARGEST_COUNT = 2**63 - 1


@kernel_in_place
def low_bytes(word, number):
    """The lowest `number` bytes of a word, 1 to 8; the others are 0."""
    unwanted = (_WORD - number) << _THREE
    return (word << unwanted) >> unwanted


@kernel_in_place
def hash_bytes(text, start, end):
    """A 64-bit hash of text[start:end], good in its high bits; eight bytes may be read behind it."""
    value = (end - start) * _MULTIPLIER
    while start + _WORD < end:
        value = (value ^ load_word(text, start)) * _MULTIPLIER
        value ^= value >> _HALF
        start += _WORD
    if start < end:
        value = (value ^ low_bytes(load_word(text, start), end - start)) * _MULTIPLIER
    return (value ^ (value >> _HALF)) * _MIXER


@kernel_in_place
def same_bytes(text, start, data, begin, length):
    """Whether text[start:start + length] and data[begin:begin + length] are equal."""
    end = start + length
    while start + _WORD < end:
        if load_word(text, start) != load_word(data, begin):
            return False
        start += _WORD
        begin += _WORD
    if start == end:
        return True
    return low_bytes(load_word(text, start) ^ load_word(data, begin), end - start) == np.uint64(0)


@kernel_in_place
def hash_tokens(text, starts, ends, tokens, hashes):
    """Fills in the hashes of the first `tokens` of text[starts[i]:ends[i]], places in uint64."""
    for token in range(np.uint64(tokens)):
        hashes[token] = hash_bytes(text, starts[token], ends[token])


@kernel_in_place
def fetch_for(hashes, token, last, hash_mask, slots, shift, entries, data):
    """Asks for what tokens some places on will need: the slot, then the entry, then its bytes."""
    ahead = token + np.uint64(_SLOT_AHEAD)
    if ahead < last:
        fetch_ahead(slots, (hashes[ahead] & hash_mask) >> shift)
    ahead = token + np.uint64(_ENTRY_AHEAD)
    if ahead < last:
        held = slots[(hashes[ahead] & hash_mask) >> shift]
        if held != _FREE:
            fetch_ahead(entries, ((held & _INDEX_BITS) - _ONE) << _ONE)
    ahead = token + np.uint64(_BYTES_AHEAD)
    if ahead < last:
        held = slots[(hashes[ahead] & hash_mask) >> shift]
        if held != _FREE:
            fetch_ahead(data, np.uint64(entries[((held & _INDEX_BITS) - _ONE) << _ONE]))


@kernel_in_place
def add_tokens(
    text, starts, ends, hashes, weights, first, last, hash_mask, slots, data, entries, size
):  # fmt: skip
    """Adds weights to the counts of the tokens text[starts[i]:ends[i]], i from `first` to `last`.

    Returns (i, size, overflow): where it stopped, the number of distinct tokens now, and whether
    it stopped since the sum would exceed 2^63 - 1, and not for want of room. The length of `slots`
    is a power of two, at least twice the tokens that `entries` has room for; `entries` is flat.
    """
    last_slot = np.uint64(len(slots) - 1)
    shift = slot_shift(len(slots))
    room = np.uint64(len(entries) // 2 - 1)
    data_room = np.uint64(len(data)) - _WORD
    size = np.uint64(size)
    far = len(slots) > _NEAR_SLOTS
    for token in range(np.uint64(first), np.uint64(last)):
        if far:
            fetch_for(hashes, token, np.uint64(last), hash_mask, slots, shift, entries, data)
        start = starts[token]
        length = ends[token] - start
        token_hash = hashes[token] & hash_mask
        tag = token_hash & _TAG_BITS
        slot = token_hash >> shift
        found = size
        while slots[slot] != _FREE:
            if slots[slot] & _TAG_BITS == tag:
                index = (slots[slot] & _INDEX_BITS) - _ONE
                begin = np.uint64(entries[index << _ONE])
                if np.uint64(entries[(index + _ONE) << _ONE]) - begin == length:
                    if same_bytes(text, start, data, begin, length):
                        found = index
                        break
            slot = (slot + _ONE) & last_slot
        place = (found << _ONE) + _ONE
        if found == size:
            begin = np.uint64(entries[size << _ONE])
            if size == room or begin + length > data_room:
                return np.int64(token), np.int64(size), False
            copied = np.uint64(0)
            while copied < length:
                store_word(data, begin + copied, load_word(text, start + copied))
                copied += _WORD
            size += _ONE
            entries[size << _ONE] = begin + length
            entries[place] = 0
            slots[slot] = tag | size
        if entries[place] > LARGEST_COUNT - weights[token]:
            return np.int64(token), np.int64(size), True
        entries[place] += weights[token]
    return last, np.int64(size), False


@kernel_in_place
def slot_shift(slots):
    """By how much a hash is shifted to choose one of so many slots, a power of two from 2 on."""
    shift = _WORD_BITS
    while slots > 1:
        slots >>= 1
        shift -= _ONE
    return shift


@kernel_in_place
def move_slots(slots, larger):
    """Enters all of a table's tokens into the free slots of a larger one."""
    last_slot = np.uint64(len(larger) - 1)
    shift = slot_shift(len(larger))
    for held in slots:
        if held != _FREE:
            slot = held >> shift
            while larger[slot] != _FREE:
                slot = (slot + _ONE) & last_slot
            larger[slot] = held
