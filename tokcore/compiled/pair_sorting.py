"""Sorting positions by integer keys, in place and with a worst case that no keys can exceed."""

import numpy as np

from tokcore.compiled.compilation import kernel, kernel_without_allocation

# Up to so many, inserting one by one is faster than parting; most classes of suffixes are smaller.
_FEW = 24


@kernel
def sort_pairs(keys, order, offset, size):
    """Sorts keys[:size] and, along with them, order[offset:offset + size], by bits from the top.

    Each step parts a range by the highest bit in which its keys differ: at most 63 deep, whatever
    the keys are.
    """
    if size <= _FEW:
        _insert_pairs(keys, order, offset, 0, size)
        return
    stack = np.empty(130, np.int64)
    stack[0], stack[1] = 0, size
    count = 2
    while count:
        count -= 2
        low, high = stack[count], stack[count + 1]
        if high - low <= _FEW:
            _insert_pairs(keys, order, offset, low, high)
            continue
        differing = np.int64(0)
        for i in range(low + 1, high):
            differing |= keys[i] ^ keys[low]
        if differing == 0:
            continue
        bit = np.int64(1)
        while differing > 1:
            differing >>= 1
            bit <<= 1
        i, j = low, high - 1
        while True:
            while i <= j and keys[i] & bit == 0:
                i += 1
            while i <= j and keys[j] & bit != 0:
                j -= 1
            if i > j:
                break
            keys[i], keys[j] = keys[j], keys[i]
            order[offset + i], order[offset + j] = order[offset + j], order[offset + i]
        stack[count], stack[count + 1] = i, high
        stack[count + 2], stack[count + 3] = low, i
        count += 4


@kernel_without_allocation
def _insert_pairs(keys, order, offset, low, high):
    for i in range(low + 1, high):
        key, place = keys[i], order[offset + i]
        j = i
        while j > low and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            order[offset + j] = order[offset + j - 1]
            j -= 1
        keys[j] = key
        order[offset + j] = place
