"""Counts the tokens of rows, by several threads that share one hash table.

A kernel is called once per block, so that a thread takes the interpreter lock (GIL) once per block:
a thread that waits for it sleeps, and waking it costs as much as counting some hundred tokens.
"""

import threading
from collections.abc import Iterable

import numpy as np

from tokcore.counts.kernels import (
    STATE_NUMBERS,
    HashTable,
    Tokens,
    add_tokens,
    hash_tokens,
    rehash,
    token_capacity,
)
from tokcore.kernels.bytes import with_margin
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import WIDE_BYTES
from tokcore.text.pre_tokenizer import (
    CHUNK_TOKENS,
    RowScanner,
    ScannedTokens,
    TextRows,
    readable_parts,
    scan_tokens,
)

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
        if size == full.capacity:
            slots = np.zeros(
                len(slots) * (4 if slots.nbytes <= _FOURFOLD_SLOT_BYTES else 2), np.uint32
            )
        used = int(full.offsets[size])
        data = _ensure_capacity(full.data, used, used + token_bytes + WIDE_BYTES)
        offsets = _ensure_capacity(full.offsets, size + 1, token_capacity(len(slots)) + 1)
        # The old table stays locked: a thread that still uses it fails to insert and takes the new
        # one.
        grown = HashTable(slots, data, offsets, np.array([0, size], np.int64))
        if slots is not full.slots:
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
        self, others: Iterable['TokenAccumulator'] = ()
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
