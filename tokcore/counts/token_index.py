"""Distinct tokens by number, in memory that several threads share: what they count tokens in."""

import threading

import numpy as np

from tokcore.compiled.wide_loads import CHUNK
from tokcore.counts.hash_table_kernels import STATE_NUMBERS, HashTable, rehash, token_capacity

# Room at the start: a small table should cost little. The slots are a power of two.
_FIRST_SLOTS = 1 << 12
_FIRST_BYTES = 1 << 15

# Growing moves everything into memory that is new to the process, and to have that can cost more
# than counting did. Room that is not written to takes no memory, so of what is filled from its
# start there is much at once, when it is not small any more; slots are written to all over.
_SMALL_BYTES = 2 << 20
_LARGE_BYTES = 64 << 20
_FOURFOLD_SLOT_BYTES = 1 << 20

_ENTERED_AT_ONCE = 64


class TokenIndex:
    """Numbers distinct tokens in the order first met; a number never changes.

    Threads that run out of room call `grow`; all the others go on meanwhile, and come there too
    when they meet a new token.
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
        """The memory held; room that was never written to takes none."""
        table = self.table
        size = table.size
        return table.slots.nbytes + int(table.offsets[size]) + 8 * (size + 1)

    def tokens(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns (data, offsets) of the tokens so far; they do not change when more come."""
        table = self.table
        offsets = table.offsets[: table.size + 1]
        return table.data[: offsets[-1]], offsets

    def grow(self, full: HashTable, token_bytes: int) -> None:
        """Makes room for at least one more token of so many bytes than `full` has."""
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
        data = ensure_capacity(full.data, used, used + token_bytes + CHUNK)
        offsets = ensure_capacity(full.offsets, size + 1, token_capacity(len(slots)) + 1)
        # The old table stays marked FULL: a thread that still holds it fails its next insert and
        # comes back for the new one.
        grown = HashTable(slots, data, offsets, np.array([0, size], np.int64))
        if slots is not full.slots:
            rehash(grown, np.empty(_ENTERED_AT_ONCE, np.uint64))
        return grown


def ensure_capacity(array: np.ndarray, used: int, wanted: int) -> np.ndarray:
    """Returns an array whose first `used` numbers are the same, others 0 or not yet written to.

    It is the same array if that has the room wanted; otherwise there will be more than that.
    """
    if wanted <= len(array):
        return array
    grown = array.nbytes * (4 if array.nbytes < _SMALL_BYTES else 2)
    if grown > _SMALL_BYTES:
        grown = max(grown, _LARGE_BYTES)
    larger = np.zeros(max(wanted, grown // array.itemsize), array.dtype)
    larger[:used] = array[:used]
    return larger
