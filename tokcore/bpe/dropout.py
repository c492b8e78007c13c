"""Dropout of merges: each is left out with a chance, each time that it could be made.

That is Provilkov et al. 2020 (https://arxiv.org/abs/1910.13267), as subword-nmt has it. The numbers follow
from the seed and the words of the row, so that a row has the same pieces in every run and by any worker.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

from tokcore.kernels.bytes import GOLDEN_RATIO
from tokcore.kernels.hash_tables import NO_PAIR, PairTable, find_pair
from tokcore.kernels.jit import kernel_without_allocation
from tokcore.text.unicode import CODE_POINTS

_11, _27, _30, _31 = (np.uint64(number) for number in (11, 27, 30, 31))
_SYMBOL = np.uint64(0xFFFF_FFFF)
_GAMMA = np.uint64(GOLDEN_RATIO)
_MULTIPLIER_1, _MULTIPLIER_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_UNIT = 2.0**-53


class Draws:
    """The numbers of a row, by SplitMix64 (Steele et al. 2014), from its words and a seed."""

    def __init__(self, seed: int, words: Sequence[str]):
        text = ' '.join(words).encode('utf-8', 'surrogatepass')
        digest = hashlib.blake2b(text, digest_size=8, key=seed.to_bytes(8, 'little')).digest()
        self.state = np.frombuffer(digest, '<u8').astype(np.uint64)  # uint64[1]

    def merged(self, word: str, pairs: PairTable, dropout: float) -> np.ndarray:
        """Returns the symbols (uint64) of a word; see `codes` for what symbols are.

        It draws a number for each two neighbors, each time that a pair is to be merged: the time
        grows with the square of the word's length.
        """
        points = np.frombuffer(word.encode('utf-32-le', 'surrogatepass'), '<u4')
        symbols = points.astype(np.uint64)
        symbols[-1] += np.uint64(CODE_POINTS)
        size = _merge_some(symbols, np.empty_like(symbols), pairs, dropout, self.state)
        return symbols[:size]

    def __iter__(self) -> Iterator[float]:
        """Yields them, each from 0 and below 1, without an end."""
        while True:
            yield _draw(self.state)


@kernel_without_allocation
def _draw(state):
    """Returns the next number, from 0 and below 1, and changes the state, uint64[1]."""
    state[0] += _GAMMA
    x = state[0]
    x = (x ^ (x >> _30)) * _MULTIPLIER_1
    x = (x ^ (x >> _27)) * _MULTIPLIER_2
    return np.float64((x ^ (x >> _31)) >> _11) * _UNIT


@kernel_without_allocation
def _merge_some(symbols, values, pairs, dropout, state):
    """Merges symbols in place, as long as a pair is there that is not left out; returns how many stay."""
    size = len(symbols)
    while size > 1:
        lowest = NO_PAIR
        for place in range(size - 1):
            values[place] = NO_PAIR
            if _draw(state) > dropout:
                values[place] = find_pair(symbols[place], symbols[place + 1], pairs)
                lowest = min(lowest, values[place])
        if lowest == NO_PAIR:
            break
        values[size - 1] = NO_PAIR
        place = kept = 0
        while place < size:
            is_pair = values[place] == lowest
            symbols[kept] = lowest & _SYMBOL if is_pair else symbols[place]
            place += 2 if is_pair else 1
            kept += 1
        size = kept
    return size
