"""Groups cover every string once, follow the sizes in the sample, and are cut into passes."""

import random
from bisect import bisect_right

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.subword.partitioned.prefix_partitions import (
    PrefixPartitions,
    choose_groups,
    pass_ranges,
    proper_prefixes,
)
from tokcore.subword.partitioned.suffix_table import SuffixTable

TEXTS = st.text('ab中é\U0001f600', min_size=1, max_size=8)


def sample_of(strings):
    return SuffixTable.from_items((string.encode(), 1) for string in strings)


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=40), st.integers(0, 12), st.lists(TEXTS))
def test_every_string_is_in_the_one_group_whose_bounds_hold_it(sample, number, strings):
    groups = choose_groups(sample_of(sample), number)
    assert len(groups) <= number + 2
    for string in (each.encode() for each in strings):
        holding = []
        for group in range(len(groups)):
            lower, upper = groups.bounds(group)
            if lower <= string and (not upper or string < upper):
                holding.append(group)
        assert holding == [bisect_right(groups.borders, string)]


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=40), st.integers(0, 12))
def test_borders_are_whole_characters(sample, number):
    for border in choose_groups(sample_of(sample), number).borders:
        assert border.decode()


def test_a_hot_first_character_is_cut_finer():
    dice = random.Random(1)
    hot = ['e' + ''.join(dice.choices('abcdef', k=6)) for _ in range(900)]
    others = [''.join(dice.choices('xyz', k=7)) for _ in range(100)]
    groups = choose_groups(sample_of(hot + others), 20)
    inside = [border for border in groups.borders if border.startswith(b'e')]
    assert len(inside) >= 15
    assert max(map(len, inside)) >= 2


def test_shares_of_the_sample_are_alike():
    dice = random.Random(2)
    strings = {''.join(dice.choices('abcdefgh', weights=range(1, 9), k=7)) for _ in range(5000)}
    groups = choose_groups(sample_of(strings), 25)
    sizes = [0] * len(groups)
    for string in strings:
        sizes[bisect_right(groups.borders, string.encode())] += 1
    assert len(groups) >= 20
    assert max(sizes) <= 2 * len(strings) / 25


def test_borders_must_ascend():
    with pytest.raises(ValueError, match='ascend'):
        PrefixPartitions((b'b', b'a'))


@given(TEXTS)
def test_proper_prefixes_are_those_of_whole_characters(text):
    expected = [text[:length].encode() for length in range(1, len(text))]
    assert proper_prefixes(text.encode()) == expected


@given(st.lists(st.integers(0, 50)), st.integers(1, 100))
def test_passes_cover_the_groups_in_order_and_stay_below_the_limit(sizes, most):
    ranges = list(pass_ranges(sizes, most))
    assert [group for first, last in ranges for group in range(first, last)] == list(
        range(len(sizes))
    )
    for first, last in ranges:
        assert last - first == 1 or sum(sizes[first:last]) <= most
