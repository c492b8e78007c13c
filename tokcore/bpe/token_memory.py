"""The ids of tokens that were merged lately, and that the encoder's cache lacks.

That cache is for short tokens of few ids, and gets them at the end of a pass. A longer one, or one
that is twice in a pass, would be merged each time, which takes longer than all else that is done with
it. So some thousand are kept here, with their bytes; of phrases their parts are kept, see `phrases`. A
token has one row, where the last one that was written stays; the row is two cache lines:

    tokens   length << 32 | number of ids, then up to 56 bytes and zeros
    ids      up to 16
"""

from typing import NamedTuple

import numpy as np

from tokcore.bpe.phrases import is_phrase
from tokcore.encoding.kernels import cache_lines
from tokcore.kernels.bytes import hash_bytes
from tokcore.kernels.jit import inlined_kernel, kernel_without_allocation
from tokcore.kernels.simd import load_word

MEMORY_ROWS = 1 << 15
"""For one encoder; 4 MB if all are in use."""

NO_ROW = ~np.uint64(0)

_LONGEST = np.uint64(56)
_MOST_IDS = np.uint64(16)

_0, _1, _3, _8, _32 = (np.uint64(number) for number in (0, 1, 3, 8, 32))
_LOW = np.uint64(0xFFFF_FFFF)
_ALL = ~_0


class TokenMemory(NamedTuple):
    """What one thread remembers."""

    tokens: np.ndarray  # uint64[a power of two, 8], or uint64[0, 8]: nothing is remembered
    ids: np.ndarray  # int32[as many, 16]
    shift: np.uint64  # 64 - log2 of the rows


def token_memory(rows: int) -> TokenMemory:
    """Returns a memory of so many rows, a power of two above 1, or 0."""
    shift = np.uint64(64 - max(1, rows.bit_length() - 1))
    return TokenMemory(cache_lines(rows), cache_lines(rows).view(np.int32), shift)


@inlined_kernel
def memory_row(text, start, end, memory):
    """The row for text[start:end], NO_ROW if it is not to be remembered."""
    length = end - start
    if len(memory.tokens) == 0 or length > _LONGEST or is_phrase(load_word(text, start)):
        return NO_ROW
    return hash_bytes(text, start, end) >> memory.shift


@inlined_kernel
def recall_ids(text, start, end, row, memory, ids, used):
    """Writes the ids of text[start:end] to ids[used:]; returns how many, 0 if it is not remembered."""
    length = end - start
    if row == NO_ROW or memory.tokens[row, _0] >> _32 != length:
        return _0
    word = _0
    while word << _3 < length:
        if _token_word(text, start, length, word) != memory.tokens[row, word + _1]:
            return _0
        word += _1
    count = memory.tokens[row, _0] & _LOW
    for k in range(count):
        ids[used + k] = memory.ids[row, k]
    return count


@inlined_kernel
def remember_ids(text, start, end, row, memory, ids, used, count):
    """Remembers that text[start:end] has the ids ids[used:used + count], if there is room for them."""
    if row == NO_ROW or count > _MOST_IDS:
        return
    length = end - start
    memory.tokens[row, _0] = length << _32 | count
    word = _0
    while word << _3 < length:
        memory.tokens[row, word + _1] = _token_word(text, start, length, word)
        word += _1
    for k in range(count):
        memory.ids[row, k] = ids[used + k]


@kernel_without_allocation
def _token_word(text, start, length, word):
    """Eight bytes of a token, or those that are left and zeros."""
    left = length - (word << _3)
    bits = load_word(text, start + (word << _3))
    return bits & (_ALL >> (np.uint64(64) - (min(left, _8) << _3)))
