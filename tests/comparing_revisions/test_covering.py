"""Each pair of values of two factors occurs, unless it is excluded, and excluded values never do."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from .covering import covering_rows


def pairs_in(row):
    return {frozenset(pair) for pair in itertools.combinations(row.items(), 2)}


@given(st.data(), st.lists(st.integers(1, 5), min_size=2, max_size=5))
def test_every_pair_that_is_not_excluded_is_in_a_row(data, sizes):
    factors = {f'f{n}': [str(value) for value in range(size)] for n, size in enumerate(sizes)}
    # Values from 1 on may be excluded, so that every factor goes with any others.
    pairs = [
        frozenset([(one, a), (other, b)])
        for one, other in itertools.combinations(factors, 2)
        for a, b in itertools.product(factors[one], factors[other])
    ]
    excludable = [pair for pair in pairs if all(value != '0' for _, value in pair)]
    excluded = data.draw(st.sets(st.sampled_from(excludable))) if excludable else set()
    rows = covering_rows(factors, lambda row: not pairs_in(row) & excluded)
    assert all(list(row) == list(factors) for row in rows)
    assert set().union(*map(pairs_in, rows)) == set(pairs) - excluded


def test_rows_are_few_and_always_the_same():
    factors = {f'f{n}': '01' for n in range(12)}
    rows = covering_rows(factors, lambda row: True)
    assert len(rows) < 12  # of 4,096
    assert rows == covering_rows(factors, lambda row: True)
    wide = {'a': 'abcdefghijkl', 'b': 'abcdefghij', 'c': 'abcd', 'd': 'abcd', 'e': 'abc'}
    assert len(covering_rows(wide, lambda row: True)) <= 1.05 * 12 * 10
