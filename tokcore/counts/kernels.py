"""Kernels that count tokens in an open-addressing hash table over one growing array of bytes.

Token i is `data[offsets[i]:offsets[i + 1]]`, in order of first occurrence. A slot (uint32) is 0 if
free; else its low bits are the token's index + 1, and the bits above a tag, bits of its hash. The
highest bits of the hash choose the slot; tokens of equal tags are compared, 32 bytes at a time.
Several threads add tokens at once: a slot in use never changes, and new tokens are inserted under a
lock, in batches. Each thread has counts of its own. When a table is full, the kernel locks it for
good and returns where it stopped; the caller moves the tokens to a larger table.
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

# Tokens that are inserted under one lock: as many as a word has bits.
_BATCH = np.uint64(64)

# Prefetch distances in tokens: of a slot, of the token's offset and count, and of its bytes.
_SLOT_AHEAD = 24
_ENTRY_AHEAD = 16
_BYTES_AHEAD = 8
_CACHED_SLOTS = 1 << 16  # tables of this size stay in the caches

LARGEST_COUNT = 2**63 - 1

STATE_NUMBERS = 2
"""Of a table's state, int64: the lock for inserting, and the number of tokens."""

_LOCK, _SIZE = np.uint64(0), np.uint64(1)
_OPEN, _LOCKED, _FULL = 0, 1, 2


class HashTable(NamedTuple):
    """A hash table of tokens."""

    slots: np.ndarray  # uint32[a power of two]
    data: np.ndarray  # uint8
    offsets: np.ndarray  # int64[at least token_capacity(slots) + 1]
    state: np.ndarray  # int64[STATE_NUMBERS]

    @property
    def capacity(self) -> int:
        return token_capacity(len(self.slots))

    @property
    def size(self) -> int:
        return int(self.state[1])


class Tokens(NamedTuple):
    """Tokens to be counted: token i is text[starts[i]:ends[i]]."""

    text: np.ndarray  # uint8, with `WIDE_BYTES` bytes after each token
    starts: np.ndarray  # uint64
    ends: np.ndarray  # uint64
    hashes: np.ndarray  # uint64; `add_tokens` overwrites those of the tokens that it adds
    weights: np.ndarray  # int64: added to the counts


@kernel_without_allocation
def hash_tokens(tokens, size):
    """Writes the hashes of the first `size` of the `Tokens`."""
    for token in range(np.uint64(size)):
        tokens.hashes[token] = hash_bytes(tokens.text, tokens.starts[token], tokens.ends[token])


@kernel_without_allocation
def token_capacity(slots):
    """Returns how many tokens a table of this many slots takes: a load factor of 3/4.

    A search for a new token ends at the first free slot, so more free slots would make it shorter;
    but the first write to twice the memory costs more than that saves.
    """
    return slots // 4 * 3


@kernel_without_allocation
def add_tokens(tokens, first, last, table, counts):
    """Adds the weights of the `Tokens` from `first` to `last` to their counts.

    Returns (i, overflow): the token at which it stopped, and whether because its count would exceed
    2^63 - 1 or else because the table is full. `counts` (int64) has an element for each token that
    the table can hold, 0 at first. The hashes of the tokens added are overwritten; after an
    overflow all of them may be.
    """
    far = len(table.slots) > _CACHED_SLOTS
    token, end = np.uint64(first), np.uint64(last)
    while token < end:
        if far:
            _prefetch_for(tokens.hashes, token, end, table, counts)
        index, _ = _find(tokens, token, table)
        batch_end = resolved = token + _ONE
        if index == _NONE:
            batch_end = min(end, token + _BATCH)
            resolved = _resolve_batch(tokens, token, batch_end, end, table, counts)
        else:
            tokens.hashes[token] = index
        while token < resolved:
            index = tokens.hashes[token]
            if counts[index] > LARGEST_COUNT - tokens.weights[token]:
                return np.int64(token), True
            counts[index] += tokens.weights[token]
            token += _ONE
        if resolved < batch_end:
            return np.int64(token), False
    return last, False


@kernel_without_allocation
def rehash(table, hashes):
    """Inserts a table's tokens, all different, into its slots, which are all free.

    It takes as many at a time as `hashes` (uint64[some dozens], scratch space) has room for, and
    prefetches the slots of all of them before it reads the first.
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
    """Returns the shift from a hash to a slot; the slots are a power of two, at least 2."""
    return _WORD_BITS - trailing_zeros(np.uint64(slots))


@kernel_without_allocation
def slot_tag(token_hash, last_slot):
    """Returns the bits of a hash that a slot stores above the index; `last_slot` masks that."""
    return token_hash & _SLOT_BITS & ~last_slot


@kernel_without_allocation
def _likely_index(token_hash, slots):
    """Returns the index in a hash's first slot if the tag is equal, else 0, which is in cache.

    Without a branch, since the processor cannot predict which tokens are new.
    """
    last_slot = np.uint64(len(slots) - 1)
    entry = np.uint64(slots[token_hash >> slot_shift(len(slots))])
    is_likely = (entry ^ slot_tag(token_hash, last_slot)) <= last_slot
    return np.uint64(is_likely) * ((entry & last_slot) - np.uint64(entry != _FREE))


@kernel_without_allocation
def _prefetch_for(hashes, token, last, table, counts):
    """Prefetches for later tokens: first the slot, then the offset and count, then the bytes."""
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
    """Waits for the lock; returns True when it has it, False if the table is full."""
    while True:
        was = load_acquired(
            state, _LOCK
        )  # a failed exchange would take the cache line from its holder
        if was == _OPEN:
            was = exchange_if(state, _LOCK, _OPEN, _LOCKED)
        if was != _LOCKED:
            return was == _OPEN


@kernel_without_allocation
def _find(tokens, token, table):
    """Finds a token: (index, its slot), or (_NONE, the slot to insert it at)."""
    start, token_hash = tokens.starts[token], tokens.hashes[token]
    length = tokens.ends[token] - start
    last_slot = np.uint64(len(table.slots) - 1)
    tag = slot_tag(token_hash, last_slot)
    slot = token_hash >> slot_shift(len(table.slots))
    while True:
        entry = np.uint64(load_acquired(table.slots, slot))
        if entry == _FREE:
            return _NONE, slot
        # Equal tags leave the index only, which is below the number of slots.
        if (entry ^ tag) <= last_slot:
            index = (entry & last_slot) - _ONE
            begin = np.uint64(table.offsets[index])
            if np.uint64(table.offsets[index + _ONE]) - begin == length:
                if same_bytes(tokens.text, start, table.data, begin, length):
                    return index, slot
        slot = (slot + _ONE) & last_slot


@kernel_without_allocation
def _insert_missing(missing, tokens, first, table):
    """Inserts the tokens `first + i` for each bit i of `missing`, unless another thread was first.

    Overwrites their hashes by their indices. Returns the bits of those for which there was no room.
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
            entry = slot_tag(tokens.hashes[token], np.uint64(len(table.slots) - 1)) | size
            store_released(table.slots, slot, np.uint32(entry))
        tokens.hashes[token] = index
        missing &= missing - _ONE
    table.state[_SIZE] = np.int64(size)
    store_released(table.state, _LOCK, _FULL if is_full else _OPEN)
    return missing


@kernel_without_allocation
def _resolve_batch(tokens, first, last, end, table, counts):
    """Overwrites the hashes of the tokens from `first` to `last`, at most 64, by their indices.

    Returns the first token for which there was no room, with its hash and all later ones unchanged;
    else `last`. New tokens often follow each other, and a thread waits whenever it takes over a
    cache line that another thread has written; so they are inserted together.
    """
    missing = _ZERO
    for token in range(first, last):
        _prefetch_for(tokens.hashes, token, end, table, counts)
        index, _ = _find(tokens, token, table)
        if index == _NONE:
            missing |= _ONE << (token - first)
        else:
            tokens.hashes[token] = index
    missing = _insert_missing(missing, tokens, first, table)
    if missing == _ZERO:
        return last
    resolved = first + trailing_zeros(missing)
    for token in range(resolved, last):
        tokens.hashes[token] = hash_bytes(tokens.text, tokens.starts[token], tokens.ends[token])
    return resolved


@kernel_without_allocation
def hash_partitions(data, offsets, partitions, table, partition_of):
    """Writes the partition of each token (uint32), `crc32 * partitions >> 32`."""
    for token in range(len(partition_of)):
        crc = crc_bytes(data, offsets[token], offsets[token + 1], table)
        partition_of[token] = (np.int64(crc) * np.int64(partitions)) >> 32


@kernel_without_allocation
def is_ascending(data, offsets):
    """Returns whether each token is greater than the one before it, by bytes."""
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
def add_partition_sizes(offsets, partition_of, sizes):
    """Adds the tokens and bytes of each partition to sizes[partition] (int64[partitions, 2])."""
    for token in range(len(partition_of)):
        sizes[partition_of[token], 0] += 1
        sizes[partition_of[token], 1] += offsets[token + 1] - offsets[token]


@kernel_without_allocation
def scatter_tokens(data, offsets, counts, partition_of, cursors, out_data, out_offsets, out_counts):
    """Copies each token, its end and its count to the output arrays of its partition.

    cursors[partition] (int64[partitions, 3]): the index of its next token and of its next byte in
    the output, and the number of its bytes so far, which is the next offset.
    """
    for token in range(len(partition_of)):
        partition = partition_of[token]
        index, begin = cursors[partition, 0], cursors[partition, 1]
        start = offsets[token]
        length = offsets[token + 1] - start
        copy_bytes(out_data, np.uint64(begin), data, np.uint64(start), np.uint64(length))
        cursors[partition, 0] = index + 1
        cursors[partition, 1] = begin + length
        cursors[partition, 2] += length
        out_counts[index] = counts[token]
        # The offsets of each partition begin with a 0, so they are one more than its tokens.
        out_offsets[index + partition + 1] = cursors[partition, 2]
