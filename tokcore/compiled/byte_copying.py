"""A kernel that copies some bytes, and neither reads nor writes any other."""

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.compiled.wide_loads import CHUNK, copy_chunk, load_word, store_word

_CHUNK, _WORD = np.uint64(CHUNK), np.uint64(8)


@kernel_without_allocation
def copy_bytes(target, to, source, start, length):
    """Copies source[start:start + length] to target[to:], places in uint64.

    By chunks or words of which the last may cover bytes that were copied already: what is copied is
    short, and a loop over its bytes would mostly begin and end.
    """
    if length < _WORD:
        for byte in range(length):
            target[to + byte] = source[start + byte]
    elif length < _CHUNK:
        last = length - _WORD
        copied = np.uint64(0)
        while copied < last:
            store_word(target, to + copied, load_word(source, start + copied))
            copied += _WORD
        store_word(target, to + last, load_word(source, start + last))
    else:
        last = length - _CHUNK
        copied = np.uint64(0)
        while copied < last:
            copy_chunk(target, to + copied, source, start + copied)
            copied += _CHUNK
        copy_chunk(target, to + last, source, start + last)
