"""Pairs of characters as bits: all that were added are found, and few others."""

import numpy as np

from tokcore.kernels.hash_tables import add_characters, bits_for, has_characters, no_pairs
from tokcore.kernels.jit import kernel_without_allocation


@kernel_without_allocation
def add_all(left, right, pairs):
    for k in range(len(left)):
        add_characters(left[k], right[k], pairs)


@kernel_without_allocation
def count_found(left, right, pairs):
    count = 0
    for k in range(len(left)):
        count += has_characters(left[k], right[k], pairs)
    return count


def test_few_others_look_added():
    ideographs = [int.from_bytes(chr(0x4E00 + number).encode(), 'little') for number in range(400)]
    left, right = (each.reshape(-1) for each in np.meshgrid(*2 * [np.array(ideographs, np.uint64)]))
    dice = np.random.default_rng(7)
    for size in (500, 5_000, 50_000):
        is_added = np.zeros(len(left), bool)
        is_added[dice.choice(len(left), size, replace=False)] = True
        pairs = no_pairs(bits_for(size))
        add_all(left[is_added], right[is_added], pairs)
        assert count_found(left[is_added], right[is_added], pairs) == size
        others = count_found(left[~is_added], right[~is_added], pairs)
        assert others <= 0.07 * np.count_nonzero(~is_added)
