"""Tables find what a dict does; a set of pairs of characters finds all that were added, and few others."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.kernels.hash_tables import (
    NO_PAIR,
    add_characters,
    bits_for,
    find_pair,
    has_characters,
    no_pairs,
    pair_table,
)
from tokcore.kernels.jit import kernel_without_allocation

NUMBERS = st.integers(0, 40) | st.integers(0, 2**32 - 2)


@kernel_without_allocation
def find_all(left, right, table, found):
    for k in range(len(left)):
        found[k] = find_pair(left[k], right[k], table)


@given(st.dictionaries(st.tuples(NUMBERS, NUMBERS), st.integers(0, 2**64 - 2), max_size=200),
       st.lists(st.tuples(NUMBERS, NUMBERS)))  # fmt: skip
@example({(left, right): left for left in range(60) for right in range(60)}, [(60, 1), (1, 60)])
@example({}, [(0, 0)])
def test_pairs_are_found_as_in_a_dict(values, others):
    pairs = np.array([*values], np.uint64).reshape(-1, 2)
    left, right = (np.ascontiguousarray(column) for column in pairs.T)
    table = pair_table(left, right, np.array([*values.values()], np.uint64))
    asked = [(7, 7), *values, *others, *((right, left) for left, right in values)]
    columns = (np.array(column, np.uint64) for column in zip(*asked, strict=True))
    found = np.empty(len(asked), np.uint64)
    find_all(*columns, table, found)
    assert found.tolist() == [values.get(pair, int(NO_PAIR)) for pair in asked]


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
