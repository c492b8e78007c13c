"""A growing multiset of tokens: what counting and merging have in common."""

import numpy as np

from tokcore import token_hashing
from tokcore.compilation import frozen
from tokcore.token_scanning import CHUNK_TOKENS, READABLE, alphanumeric_bits, scan_tokens
from tokcore.word_loads import CHUNK

# Room at the start: a small table should cost little. The slots are a power of two.
_FIRST_SLOTS = 1 << 12
_FIRST_BYTES = 1 << 15

# Growing moves everything into memory that is new to the process, and to have that can cost more
# than counting did. So it is done in few steps, until a step is large: room that is not written to
# takes no memory, but slots are written to all over.
_FOURFOLD_BYTES = 32 << 20
_FOURFOLD_SLOT_BYTES = 1 << 20

# 16,384 places and hashes are 400 KB, which stay in a core's cache between the passes; with a
# quarter of it the calls begin to show.
_TOKENS_AT_ONCE = 1 << 14
_ENTERED_AT_ONCE = 64


class TokenAccumulator:
    """Tokens with their counts, added row by row or table by table; memory follows distinct tokens.

    `hash_mask` (64 bits) is laid onto every hash: tests make tokens collide with it. Not for use
    from several threads at once.
    """

    def __init__(self, hash_mask: int = int(token_hashing.ALL_HASH_BITS)):
        self._hash_mask = np.uint64(hash_mask)
        self._size = 0
        self._slots = np.zeros(_FIRST_SLOTS, np.uint32)
        self._data = np.empty(_FIRST_BYTES, np.uint8)
        self._entries = np.zeros(2 * token_hashing.token_room(_FIRST_SLOTS) + 2, np.int64)

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        """The memory held; room that was never written to takes none."""
        used = int(self._entries[2 * self._size]) + self._entries.itemsize * (2 * self._size + 1)
        return self._slots.nbytes + used

    def add_rows(self, text: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> None:
        """Counts the tokens of rows: row i is `text[starts[i]:ends[i]]`, valid UTF-8."""
        # Only rows near the end of the text are copied, for the sake of what is read behind them.
        near = np.flatnonzero(ends > len(text) - READABLE)
        first = int(near[0]) if len(near) else len(ends)
        self._add_rows(frozen(np.ascontiguousarray(text)), starts[:first], ends[:first])
        if first < len(ends):
            begin = starts[first:].min()
            rest = with_margin(text[begin : ends[first:].max()])
            self._add_rows(rest, starts[first:] - begin, ends[first:] - begin)

    def _add_rows(self, text: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> None:
        starts, ends = frozen(starts), frozen(ends)
        token_starts = np.empty(_TOKENS_AT_ONCE + CHUNK_TOKENS, np.uint64)
        token_ends = np.empty_like(token_starts)
        hashes = np.empty_like(token_starts)
        weights = frozen(np.ones(len(hashes), np.int64))
        row_tokens = np.empty(len(starts) + 1, np.int64)
        row, position = 0, -1
        while row < len(starts):
            row, position, tokens = scan_tokens(
                text, starts, ends, row, position, alphanumeric_bits(),
                token_starts, token_ends, row_tokens,
            )  # fmt: skip
            self._add(text, token_starts, token_ends, hashes, weights, tokens)

    def add_tokens(self, data: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> None:
        """Adds tokens `data[offsets[i]:offsets[i + 1]]` with their counts; repeats are added up.

        Raises OverflowError if a token's sum would exceed 2^63 - 1; the tokens before it are added.
        """
        hashes = np.empty(min(len(counts), _TOKENS_AT_ONCE), np.uint64)
        for first in range(0, len(counts), _TOKENS_AT_ONCE):
            borders = offsets[first : first + _TOKENS_AT_ONCE + 1]
            text = with_margin(data[borders[0] : borders[-1]])
            borders = (borders - borders[0]).astype(np.uint64)
            weights = np.ascontiguousarray(counts[first : first + _TOKENS_AT_ONCE], np.int64)
            self._add(text, borders[:-1], borders[1:], hashes, frozen(weights), len(weights))

    def _add(
        self,
        text: np.ndarray,
        starts: np.ndarray,
        ends: np.ndarray,
        hashes: np.ndarray,
        weights: np.ndarray,
        tokens: int,
    ) -> None:
        starts, ends = frozen(starts), frozen(ends)
        token_hashing.hash_tokens(text, starts, ends, tokens, hashes)
        token = 0
        while True:
            token, self._size, overflow = token_hashing.add_tokens(
                text, starts, ends, frozen(hashes), weights, token, tokens, self._hash_mask,
                self._slots, self._data, self._entries, self._size,
            )  # fmt: skip
            if token == tokens:
                return
            if overflow:
                shown = text[starts[token] : ends[token]][:100].tobytes().decode(errors='replace')
                raise OverflowError(f'the counts of the token {shown!r} exceed 2^63 - 1 in sum')
            self._grow(int(ends[token] - starts[token]))

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns (data, offsets, counts) of the distinct tokens, in the order first met.

        They do not change when more is added.
        """
        size = self._size
        offsets = self._entries[: 2 * size + 1 : 2].copy()
        # Bytes are only ever added behind.
        return self._data[: offsets[size]], offsets, self._entries[1 : 2 * size : 2].copy()

    def _grow(self, token_bytes: int) -> None:
        """Makes room for at least one more token of so many bytes."""
        used = int(self._entries[2 * self._size])
        if used + token_bytes + CHUNK > len(self._data):
            room = len(self._data) * (4 if 4 * len(self._data) <= _FOURFOLD_BYTES else 2)
            data = np.empty(max(room, used + token_bytes + CHUNK), np.uint8)
            data[:used] = self._data[:used]
            self._data = data
        if 2 * self._size + 2 == len(self._entries):
            slots = len(self._slots) * (4 if self._slots.nbytes <= _FOURFOLD_SLOT_BYTES else 2)
            entries = np.empty(2 * token_hashing.token_room(slots) + 2, np.int64)
            entries[: len(self._entries)] = self._entries
            self._entries = entries
            self._slots = np.zeros(slots, np.uint32)
            hashes = np.empty(_ENTERED_AT_ONCE, np.uint64)
            token_hashing.enter_tokens(
                self._data, entries, self._size, self._hash_mask, hashes, self._slots
            )


def with_margin(text: np.ndarray) -> np.ndarray:
    """Returns a copy of some bytes (uint8) with what kernels may read behind them."""
    copy = np.empty(len(text) + READABLE, np.uint8)
    copy[: len(text)] = text
    copy[len(text) :] = 0
    return frozen(copy)
