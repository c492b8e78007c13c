"""Distinct tokens by number, in memory that several threads share: what they count tokens in."""

import threading
from dataclasses import dataclass

import numpy as np

from tokcore.compiled.wide_loads import CHUNK
from tokcore.counts import hash_table_kernels

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


@dataclass(frozen=True, eq=False)
class IndexArrays:
    """What kernels work on (see `hash_table_kernels`); all are replaced at once where one grows."""

    slots: np.ndarray  # uint32[a power of two]
    data: np.ndarray  # uint8
    offsets: np.ndarray  # int64
    state: np.ndarray  # int64[STATE_NUMBERS]

    @property
    def token_capacity(self) -> int:
        return hash_table_kernels.token_capacity(len(self.slots))

    @property
    def size(self) -> int:
        return int(self.state[1])


class TokenIndex:
    """Numbers distinct tokens in the order first met; a number never changes.

    Threads that run out of room call `grow`; all the others go on meanwhile, and come there too
    when they meet a new token. `hash_mask` (64 bits) is laid onto every hash: tests make tokens
    collide with it.
    """

    def __init__(self, hash_mask: int = int(hash_table_kernels.ALL_HASH_BITS)):
        self.hash_mask = np.uint64(hash_mask)
        self._growing = threading.Lock()
        self.arrays = IndexArrays(
            np.zeros(_FIRST_SLOTS, np.uint32),
            np.empty(_FIRST_BYTES, np.uint8),
            np.zeros(hash_table_kernels.token_capacity(_FIRST_SLOTS) + 1, np.int64),
            np.zeros(hash_table_kernels.STATE_NUMBERS, np.int64),
        )

    def __len__(self) -> int:
        return self.arrays.size

    @property
    def nbytes(self) -> int:
        """The memory held; room that was never written to takes none."""
        arrays = self.arrays
        size = arrays.size
        return arrays.slots.nbytes + int(arrays.offsets[size]) + 8 * (size + 1)

    def tokens(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns (data, offsets) of the tokens so far; they do not change when more come."""
        arrays = self.arrays
        offsets = arrays.offsets[: arrays.size + 1]
        return arrays.data[: offsets[-1]], offsets

    def grow(self, full: IndexArrays, token_bytes: int) -> None:
        """Makes room for at least one more token of so many bytes than `full` has."""
        with self._growing:
            if self.arrays is full:  # or another thread was first
                self.arrays = self._grown(full, token_bytes)

    def _grown(self, full: IndexArrays, token_bytes: int) -> IndexArrays:
        slots, size = full.slots, full.size
        if size == full.token_capacity:
            slots = np.zeros(
                len(slots) * (4 if slots.nbytes <= _FOURFOLD_SLOT_BYTES else 2), np.uint32
            )
        used = int(full.offsets[size])
        data = ensure_capacity(full.data, used, used + token_bytes + CHUNK)
        offsets = ensure_capacity(
            full.offsets, size + 1, hash_table_kernels.token_capacity(len(slots)) + 1
        )
        if slots is not full.slots:
            hashes = np.empty(_ENTERED_AT_ONCE, np.uint64)
            hash_table_kernels.rehash(data, offsets, size, self.hash_mask, hashes, slots)
        # The old arrays stay marked FULL: a thread that still holds them fails its next insert and comes
        # back for the new ones.
        return IndexArrays(slots, data, offsets, np.array([0, size], np.int64))


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
