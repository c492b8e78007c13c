"""Tables of pairs of numbers: they find what a dict does."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.kernels.hash_tables import NO_PAIR, find_pair, pair_table
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
