"""Kernels that count tokens in an open-addressing hash table over one growing array of bytes.

Token i is `data[offsets[i]:offsets[i + 1]]`, in the order of first occurrence. A slot (uint32) is 0
if free; else its low bits are a token's index + 1, and the bits above are of the token's hash. The
highest bits of the hash choose the slot, and equal bits are settled by comparing bytes, 32 at a
time. Several threads add tokens at once: a token in a slot never changes, and new ones are entered
under a lock, several at a time. Each thread has its own counts. A kernel that runs out of room
locks the table for good and says where it stopped; its caller moves the tokens into a larger one.
"""

from typing import NamedTuple

import numpy as np

from tokcore.kernels.bytes import copy_bytes, crc_bytes, hash_bytes, same_bytes
from tokcore.kernels.jit import kernel_without_allocation
from tokcore.kernels.simd import (
    WIDE_BYTES,
    copy_chunk,
    exchange_if,
    load_acquired,
    prefetch,
    store_released,
    trailing_zeros,
)

_SLOT_BITS = np.uint64(0xFFFFFFFF)
_FREE = np.uint64(0)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_WORD_BITS = np.uint64(64)
_CHUNK = np.uint64(WIDE_BYTES)
_NONE = np.uint64(0xFFFFFFFFFFFFFFFF)

# New tokens that are entered at once: as many as a word has bits.
_TOGETHER = np.uint64(64)

# Tokens between asking for a slot, then its entry, then the entry's bytes, and comparing them.
_SLOT_AHEAD = 24
_ENTRY_AHEAD = 16
_BYTES_AHEAD = 8
_NEAR_SLOTS = 1 << 16  # so many stay in the caches

LARGEST_COUNT = 2**63 - 1

STATE_NUMBERS = 2
"""A table's state, int64: the lock of whoever enters a token, and the number of tokens."""

_LOCK, _SIZE = np.uint64(0), np.uint64(1)
_OPEN, _TAKEN, _FULL = 0, 1, 2


class HashTable(NamedTuple):
    """A table of tokens; the arrays are replaced together where one grows."""

    slots: np.ndarray  # uint32[a power of two]
    data: np.ndarray  # uint8
    offsets: np.ndarray  # int64, with room for `token_capacity` of the slots and one more
    state: np.ndarray  # int64[STATE_NUMBERS]

    @property
    def capacity(self) -> int:
        return token_capacity(len(self.slots))

    @property
    def size(self) -> int:
        return int(self.state[1])


class Tokens(NamedTuple):
    """Tokens to be counted: token i is text[starts[i]:ends[i]], places in uint64."""

    text: np.ndarray  # uint8, with `WIDE_BYTES` bytes behind each token
    starts: np.ndarray
    ends: np.ndarray
    hashes: np.ndarray  # uint64; those of tokens that were added are used up
    weights: np.ndarray  # int64: what each adds to its count


@kernel_without_allocation
def hash_tokens(tokens, size):
    """Fills in the hashes of the first so many `Tokens`."""
    for token in range(np.uint64(size)):
        tokens.hashes[token] = hash_bytes(tokens.text, tokens.starts[token], tokens.ends[token])


@kernel_without_allocation
def token_capacity(slots):
    """How many tokens so many slots are for.

    A search for a new token ends at the first free slot, and much text is mostly new tokens; but to
    write to twice the slots for the first time costs more than the longer searches.
    """
    return slots // 4 * 3


@kernel_without_allocation
def add_tokens(tokens, first, last, table, counts):
    """Adds the weights of the `Tokens` from `first` to `last` to their counts.

    Returns (i, overflow): where it stopped, and whether that was since the sum would exceed
    2^63 - 1, and not for want of room. `counts` (int64) has room for `token_capacity` of the
    table's slots, counts that were never added to being 0. Hashes of tokens that were added are
    used up, and all of them by an overflow.
    """
    far = len(table.slots) > _NEAR_SLOTS
    token, end = np.uint64(first), np.uint64(last)
    while token < end:
        if far:
            _fetch_for(tokens.hashes, token, end, table, counts)
        index, _ = _find(tokens, token, table)
        wanted = known = token + _ONE
        if index == _NONE:
            wanted = min(end, token + _TOGETHER)
            known = _resolve_batch(tokens, token, wanted, end, table, counts)
        else:
            tokens.hashes[token] = index
        while token < known:
            index = tokens.hashes[token]
            if counts[index] > LARGEST_COUNT - tokens.weights[token]:
                return np.int64(token), True
            counts[index] += tokens.weights[token]
            token += _ONE
        if known < wanted:
            return np.int64(token), False
    return last, False


@kernel_without_allocation
def rehash(table, hashes):
    """Enters a table's tokens, all different, into its slots, all of them free.

    As many at once as `hashes` (uint64[...], left as it may be) has room for, some dozens: for all
    of those the slots are asked for before any is looked at.
    """
    slots, size = table.slots, np.uint64(table.state[_SIZE])
    last_slot = np.uint64(len(slots) - 1)
    shift = slot_shift(len(slots))
    for first in range(_ZERO, size, np.uint64(len(hashes))):
        last = min(size, first + np.uint64(len(hashes)))
        for index in range(first, last):
            begin, end = np.uint64(table.offsets[index]), np.uint64(table.offsets[index + _ONE])
            token_hash = hash_bytes(table.data, begin, end)
            prefetch(slots, token_hash >> shift)
            hashes[index - first] = token_hash
        for index in range(first, last):
            token_hash = hashes[index - first]
            slot = token_hash >> shift
            while slots[slot] != 0:
                slot = (slot + _ONE) & last_slot
            slots[slot] = np.uint32(slot_tag(token_hash, last_slot) | (index + _ONE))


@kernel_without_allocation
def slot_shift(slots):
    """By how much a hash is shifted to choose one of so many slots, a power of two from 2 on."""
    return _WORD_BITS - trailing_zeros(np.uint64(slots))


@kernel_without_allocation
def slot_tag(token_hash, last_slot):
    """The bits of a hash that a slot has beside the index; `last_slot` has the index's bits set."""
    return token_hash & _SLOT_BITS & ~last_slot


@kernel_without_allocation
def _likely_index(token_hash, slots):
    """The index of what stands in a hash's first slot if that is likely the token's.

    Otherwise 0, whose line is near. No branch: the processor cannot guess which tokens are new.
    """
    last_slot = np.uint64(len(slots) - 1)
    held = np.uint64(slots[token_hash >> slot_shift(len(slots))])
    is_likely = (held ^ slot_tag(token_hash, last_slot)) <= last_slot
    return np.uint64(is_likely) * ((held & last_slot) - np.uint64(held != _FREE))


@kernel_without_allocation
def _fetch_for(hashes, token, last, table, counts):
    """Asks for what tokens some places on will need: the slot, then the place, then its bytes."""
    ahead = token + np.uint64(_SLOT_AHEAD)
    if ahead < last:
        prefetch(table.slots, hashes[ahead] >> slot_shift(len(table.slots)))
    ahead = token + np.uint64(_ENTRY_AHEAD)
    if ahead < last:
        index = _likely_index(hashes[ahead], table.slots)
        prefetch(table.offsets, index)
        prefetch(counts, index)
    ahead = token + np.uint64(_BYTES_AHEAD)
    if ahead < last:
        index = _likely_index(hashes[ahead], table.slots)
        prefetch(table.data, np.uint64(table.offsets[index]))


@kernel_without_allocation
def _lock(state):
    """Waits for the lock: True if it was given, False if the table is full."""
    while True:
        was = load_acquired(state, _LOCK)  # to try in vain takes the lock's line from its holder
        if was == _OPEN:
            was = exchange_if(state, _LOCK, _OPEN, _TAKEN)
        if was != _TAKEN:
            return was == _OPEN


@kernel_without_allocation
def _find(tokens, token, table):
    """Finds a token: (index, its slot), or (_NONE, the slot to enter it at)."""
    start, token_hash = tokens.starts[token], tokens.hashes[token]
    length = tokens.ends[token] - start
    last_slot = np.uint64(len(table.slots) - 1)
    tag = slot_tag(token_hash, last_slot)
    slot = token_hash >> slot_shift(len(table.slots))
    while True:
        held = np.uint64(load_acquired(table.slots, slot))
        if held == _FREE:
            return _NONE, slot
        # Equal tags leave the index only, which is below the number of slots.
        if (held ^ tag) <= last_slot:
            index = (held & last_slot) - _ONE
            begin = np.uint64(table.offsets[index])
            if np.uint64(table.offsets[index + _ONE]) - begin == length:
                if same_bytes(tokens.text, start, table.data, begin, length):
                    return index, slot
        slot = (slot + _ONE) & last_slot


@kernel_without_allocation
def _insert_missing(missing, tokens, first, table):
    """Enters the tokens `first + i`, bits i of `missing`, unless another thread was first.

    Their hashes become their indices. Returns the bits of those there was no room for.
    """
    if missing == _ZERO or not _lock(table.state):
        return missing
    size = np.uint64(table.state[_SIZE])
    is_full = False
    while missing != _ZERO:
        token = first + trailing_zeros(missing)
        index, slot = _find(tokens, token, table)
        if index == _NONE:
            start = tokens.starts[token]
            length = tokens.ends[token] - start
            begin = np.uint64(table.offsets[size])
            is_full = size == np.uint64(token_capacity(len(table.slots)))
            is_full |= begin + length + _CHUNK > np.uint64(len(table.data))
            if is_full:
                break
            copied = _ZERO
            while copied < length:
                copy_chunk(table.data, begin + copied, tokens.text, start + copied)
                copied += _CHUNK
            index = size
            size += _ONE
            table.offsets[size] = np.int64(begin + length)
            held = slot_tag(tokens.hashes[token], np.uint64(len(table.slots) - 1)) | size
            store_released(table.slots, slot, np.uint32(held))
        tokens.hashes[token] = index
        missing &= missing - _ONE
    table.state[_SIZE] = np.int64(size)
    store_released(table.state, _LOCK, _FULL if is_full else _OPEN)
    return missing


@kernel_without_allocation
def _resolve_batch(tokens, first, last, end, table, counts):
    """Turns the hashes of the tokens from `first` to `last`, 64 at most, into their indices.

    Returns the first one that there was no room for, whose hash and those behind it are as they
    were; else `last`. New tokens come in crowds, and each time that one thread takes over from
    another what was last written, it waits; so they are entered together.
    """
    missing = _ZERO
    for token in range(first, last):
        _fetch_for(tokens.hashes, token, end, table, counts)
        index, _ = _find(tokens, token, table)
        if index == _NONE:
            missing |= _ONE << (token - first)
        else:
            tokens.hashes[token] = index
    missing = _insert_missing(missing, tokens, first, table)
    if missing == _ZERO:
        return last
    known = first + trailing_zeros(missing)
    for token in range(known, last):
        tokens.hashes[token] = hash_bytes(tokens.text, tokens.starts[token], tokens.ends[token])
    return known


@kernel_without_allocation
def find_partitions(data, offsets, partitions, table, found):
    """Fills in each token's partition (uint32), `crc32 * partitions >> 32`."""
    for token in range(len(found)):
        crc = crc_bytes(data, offsets[token], offsets[token + 1], table)
        found[token] = (np.int64(crc) * np.int64(partitions)) >> 32


@kernel_without_allocation
def ascend(data, offsets):
    """Says whether each token is above the one before it, byte by byte."""
    for token in range(1, len(offsets) - 1):
        before, start, end = offsets[token - 1], offsets[token], offsets[token + 1]
        shorter = min(start - before, end - start)
        same = 0
        while same < shorter and data[before + same] == data[start + same]:
            same += 1
        if same == shorter:
            if start - before >= end - start:
                return False
        elif data[before + same] > data[start + same]:
            return False
    return True


@kernel_without_allocation
def add_partition_sizes(offsets, found, sizes):
    """Adds up in sizes[partition] (int64[partitions, 2]) how many tokens and bytes each has."""
    for token in range(len(found)):
        sizes[found[token], 0] += 1
        sizes[found[token], 1] += offsets[token + 1] - offsets[token]


@kernel_without_allocation
def scatter_tokens(data, offsets, counts, found, nexts, dealt_data, dealt_offsets, dealt_counts):
    """Copies each token with its end and its count to the next places of its partition.

    nexts[partition] (int64[partitions, 3]) has the place of its next token, the place of its next
    byte, and how many bytes it has so far, from which its offsets are told.
    """
    for token in range(len(found)):
        partition = found[token]
        place, begin = nexts[partition, 0], nexts[partition, 1]
        start = offsets[token]
        length = offsets[token + 1] - start
        copy_bytes(dealt_data, np.uint64(begin), data, np.uint64(start), np.uint64(length))
        nexts[partition, 0] = place + 1
        nexts[partition, 1] = begin + length
        nexts[partition, 2] += length
        dealt_counts[place] = counts[token]
        # Each partition's offsets begin with a 0, so there is one more of them.
        dealt_offsets[place + partition + 1] = nexts[partition, 2]
