"""Counts the tokens of rows, by several threads that share one hash table.

A kernel is called once per block, so that a thread takes the interpreter lock (GIL) once per block:
a thread that waits for it sleeps, and waking it costs as much as counting some hundred tokens.

The table is an open-addressing one over a growing array of bytes: token i is
`data[offsets[i]:offsets[i + 1]]`, in order of first occurrence. A slot (uint32) is 0 if free; else its
low bits are the token's index + 1, and the bits above a tag, bits of its hash. The highest bits of the
hash choose the slot; tokens of equal tags are compared, 32 bytes at a time. Several threads add tokens
at once: a slot in use never changes, and new tokens are inserted under a lock, in batches. Each thread
has its own counts. When a table is full, the kernel locks it for good and returns where it stopped; the
caller moves the tokens to a larger table.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tokcore.kernels.bytes import copy_bytes, crc_bytes, hash_bytes, same_bytes, with_margin
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import (
    WIDE_BYTES,
    copy_chunk,
    exchange_if,
    load_acquired,
    prefetch,
    store_released,
    trailing_zeros,
)
from tokcore.text.pre_tokenizer import (
    CHUNK_TOKENS,
    RowScanner,
    ScannedTokens,
    TextRows,
    readable_parts,
    scan_tokens,
)

_SLOT_BITS = np.uint64(0xFFFFFFFF)
_FREE = np.uint64(0)
_ZERO, _ONE = np.uint64(0), np.uint64(1)
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
"""The numbers (int64) of a table's state: the lock for inserting, and how many tokens there are."""

_LOCK, _SIZE = np.uint64(0), np.uint64(1)
_OPEN, _LOCKED, _FULL = 0, 1, 2


# 16,384 positions and hashes are 400 KB, which stay in a core's cache between the passes; with a
# quarter of them the overhead of calls is measurable.
_BATCH_TOKENS = 1 << 14

_ONCE = read_only(np.ones(_BATCH_TOKENS + CHUNK_TOKENS, np.int64))

_FIRST_COUNTS = 1 << 10

PROGRESS = np.dtype(
    [('row', np.int64), ('position', np.int64), ('token', np.int64), ('tokens', np.int64)],
    align=True,
)
"""Where `count_rows` continues: the row and the position in it, as for `scan_tokens`, the next
token to be added, and the number of tokens scanned."""

# First sizes: a small table should cost little. The slots are a power of two.
_FIRST_SLOTS = 1 << 12
_FIRST_BYTES = 1 << 15

# Growing copies everything into memory that is new to the process, which can cost more than
# counting. Pages that are never written to take no memory, so arrays that are filled from their
# start grow in large steps once they are not small; slots are written to all over.
_SMALL_BYTES = 2 << 20
_LARGE_BYTES = 64 << 20
_FOURFOLD_SLOT_BYTES = 1 << 20

_REHASH_BATCH = 64


class TokenIndex:
    """Numbers distinct tokens in order of first occurrence; a number never changes.

    A thread that finds the table full calls `grow`; the others continue until their next new token.
    """

    def __init__(self):
        self._growing = threading.Lock()
        self.table = HashTable(
            np.zeros(_FIRST_SLOTS, np.uint32),
            np.empty(_FIRST_BYTES, np.uint8),
            np.zeros(token_capacity(_FIRST_SLOTS) + 1, np.int64),
            np.zeros(STATE_NUMBERS, np.int64),
        )

    def __len__(self) -> int:
        return self.table.size

    @property
    def nbytes(self) -> int:
        """Bytes of memory in use; pages that were never written to take none."""
        table = self.table
        size = table.size
        return table.slots.nbytes + int(table.offsets[size]) + 8 * (size + 1)

    def tokens(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns (data, offsets) of the tokens so far; adding more does not change them."""
        table = self.table
        offsets = table.offsets[: table.size + 1]
        return table.data[: offsets[-1]], offsets

    def grow(self, full: HashTable, token_bytes: int) -> None:
        """Makes room for at least one token of this many bytes more than `full` has."""
        with self._growing:
            if self.table is full:  # or another thread was first
                self.table = self._grown(full, token_bytes)

    def _grown(self, full: HashTable, token_bytes: int) -> HashTable:
        slots, size = full.slots, full.size
        has_more_slots = size == full.capacity
        if has_more_slots:
            slots = np.zeros(
                len(slots) * (4 if slots.nbytes <= _FOURFOLD_SLOT_BYTES else 2), np.uint32
            )
        else:
            # A thread that still uses the old table would look for new tokens in the old data.
            slots = slots.copy()
        used = int(full.offsets[size])
        data = _ensure_capacity(full.data, used, used + token_bytes + WIDE_BYTES)
        offsets = _ensure_capacity(full.offsets, size + 1, token_capacity(len(slots)) + 1)
        # The old table stays locked: a thread that still uses it fails to insert and takes the new
        # one.
        grown = HashTable(slots, data, offsets, np.array([0, size], np.int64))
        if has_more_slots:
            rehash(grown, np.empty(_REHASH_BATCH, np.uint64))
        return grown


class _Places(threading.local):
    """The places and hashes of a batch of tokens, of each thread.

    New ones for each call took a sixth of the time for blocks of 10 KB.
    """

    def __init__(self):
        self.starts, self.ends, self.hashes = (np.empty(len(_ONCE), np.uint64) for _ in range(3))


_PLACES = _Places()


class TokenAccumulator:
    """Adds up the counts of tokens, of rows or of tables; memory grows with the distinct tokens.

    Not thread-safe, but several threads may each have one over the same index.
    """

    def __init__(self, index: TokenIndex | None = None):
        self.index = TokenIndex() if index is None else index
        self._counts = np.zeros(_FIRST_COUNTS, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of memory of the counts, without the index."""
        return self._counts.itemsize * min(len(self.index), len(self._counts))

    def add_rows(
        self, text: np.ndarray, starts: np.ndarray, ends: np.ndarray, scanner: RowScanner
    ) -> None:
        """Counts the tokens of rows: row i is `text[starts[i]:ends[i]]`, valid UTF-8."""
        for part in readable_parts(text, starts, ends):
            self._add_rows(part, scanner)

    def _add_rows(self, rows: TextRows, scanner: RowScanner) -> None:
        state, text = scanner.prepare(rows)
        starts, ends = _PLACES.starts, _PLACES.ends
        tokens = Tokens(text, starts, ends, _PLACES.hashes, _ONCE)
        scanned = ScannedTokens(text, starts, ends, np.empty(len(rows.starts) + 1, np.int64))
        progress = np.array([(0, -1, 0, 0)], PROGRESS)
        while True:
            table = self._table()
            done, overflow = count_rows(rows, state, scanned, progress, tokens, table, self._counts)
            if done:
                return
            self._make_room(table, tokens, progress['token'][0], overflow)

    def add_tokens(self, data: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> None:
        """Adds tokens `data[offsets[i]:offsets[i + 1]]` with their counts; tokens may repeat.

        Raises OverflowError if a count would exceed 2^63 - 1; the tokens before it are added.
        """
        hashes = np.empty(min(len(counts), _BATCH_TOKENS), np.uint64)
        for first in range(0, len(counts), _BATCH_TOKENS):
            borders = offsets[first : first + _BATCH_TOKENS + 1]
            text = with_margin(data[borders[0] : borders[-1]])
            borders = (borders - borders[0]).astype(np.uint64)
            weights = np.ascontiguousarray(counts[first : first + _BATCH_TOKENS], np.int64)
            tokens = Tokens(text, borders[:-1], borders[1:], hashes, read_only(weights))
            hash_tokens(tokens, len(weights))
            token = 0
            while token < len(weights):
                table = self._table()
                token, overflow = add_tokens(tokens, token, len(weights), table, self._counts)
                if token < len(weights):
                    self._make_room(table, tokens, token, overflow)

    def _table(self) -> HashTable:
        """Returns the index's table, after making the counts as large as it."""
        table = self.index.table
        self._counts = _ensure_capacity(self._counts, len(self._counts), table.capacity)
        return table

    def _make_room(self, table: HashTable, tokens: Tokens, token: int, overflow: bool) -> None:
        """Grows the table for the token at which a kernel stopped, or raises OverflowError."""
        data = tokens.text[tokens.starts[token] : tokens.ends[token]]
        if overflow:
            raise _overflow(data)
        self.index.grow(table, len(data))

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns (data, offsets, counts) of the distinct tokens, in order of first occurrence.

        Adding more does not change them.
        """
        data, offsets, counts = self.finish()
        return data, offsets, counts.copy()

    def finish(
        self, others: Iterable[TokenAccumulator] = ()
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns `arrays()`, with the counts of other accumulators over the same index added.

        Nothing may be added to any of them afterwards. Raises OverflowError if a count exceeds
        2^63 - 1.
        """
        data, offsets = self.index.tokens()
        size = len(offsets) - 1
        counts = self._counts = _ensure_capacity(self._counts, len(self._counts), size)
        for other in others:
            length = min(size, len(other._counts))
            counts[:length] += other._counts[:length]
            if length and counts[:length].min() < 0:
                token = int(counts[:length].argmin())
                raise _overflow(data[offsets[token] : offsets[token + 1]])
        return data, offsets, counts[:size]


def _overflow(token: np.ndarray) -> OverflowError:
    shown = token[:100].tobytes().decode(errors='replace')
    return OverflowError(f'the counts of the token {shown!r} exceed 2^63 - 1 in sum')


@kernel_without_allocation
def count_rows(rows, pre_tokenizer, scanned, progress, tokens, table, counts):
    """Counts the tokens of `TextRows`; returns (done, overflow), the latter as `add_tokens`.

    `scanned` (`ScannedTokens`) and `tokens` share their text and positions. `progress`
    (`PROGRESS`[1], at first 0, -1, 0, 0) is where to begin, and afterwards where it stopped.
    """
    at = progress[0]
    while True:
        if at['token'] == at['tokens']:
            if at['row'] == len(rows.starts):
                return True, False
            row, position, size = scan_tokens(
                rows, at['row'], at['position'], pre_tokenizer, scanned
            )
            hash_tokens(tokens, size)
            at['row'], at['position'] = row, position
            at['token'], at['tokens'] = 0, size
        token, overflow = add_tokens(tokens, at['token'], at['tokens'], table, counts)
        at['token'] = token
        if token < at['tokens']:
            return False, overflow


def _ensure_capacity(array: np.ndarray, used: int, length: int) -> np.ndarray:
    """Returns the array if it has this length, else a longer copy of its first `used` elements.

    The other elements of a copy are 0.
    """
    if length <= len(array):
        return array
    grown = array.nbytes * (4 if array.nbytes < _SMALL_BYTES else 2)
    if grown > _SMALL_BYTES:
        grown = max(grown, _LARGE_BYTES)
    larger = np.zeros(max(length, grown // array.itemsize), array.dtype)
    larger[:used] = array[:used]
    return larger


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
        # A failed exchange would take the cache line from its holder.
        was = load_acquired(state, _LOCK)
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
