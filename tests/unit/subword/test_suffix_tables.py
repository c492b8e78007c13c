"""Tables of strings with weights, against dictionaries; prefix groups."""

import random
from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.subword.suffix_tables import (
    PrefixPartitions,
    SuffixTable,
    SuffixTableMerger,
    choose_groups,
    merge_suffix_tables,
    pass_ranges,
    proper_prefixes,
)

TEXTS = st.text('ab中é\U0001f600', min_size=1, max_size=8)

# Few different bytes, so that strings are prefixes of each other; NULs; lengths beyond a nibble.
STRINGS = st.one_of(
    st.binary(max_size=6).map(lambda data: bytes(byte % 3 for byte in data)),
    st.integers(0, 40).map(lambda length: b'x' * length + b'y'),
    st.integers(100, 300).map(lambda length: b'x' * length),
)
WEIGHTS = st.one_of(st.integers(0, 300), st.integers(0, 2**50))
ITEMS = st.dictionaries(STRINGS, WEIGHTS, max_size=30)


def sample_of(strings):
    return SuffixTable.from_items((string.encode(), 1) for string in strings)


@given(st.lists(TEXTS, max_size=40), st.integers(0, 12), st.lists(TEXTS))
def test_every_string_is_within_the_bounds_of_one_group(sample, number, strings):
    groups = choose_groups(sample_of(sample), number)
    assert len(groups) <= number + 2
    for string in map(str.encode, strings):
        matching = []
        for group in range(len(groups)):
            lower, upper = groups.bounds(group)
            if lower <= string and (not upper or string < upper):
                matching.append(group)
        assert matching == [bisect_right(groups.borders, string)]


@given(st.lists(TEXTS, max_size=40), st.integers(0, 12))
def test_borders_are_whole_characters(sample, number):
    for border in choose_groups(sample_of(sample), number).borders:
        assert border.decode()


def test_a_frequent_first_character_gets_more_borders():
    dice = random.Random(1)
    frequent = ['e' + ''.join(dice.choices('abcdef', k=6)) for _ in range(900)]
    others = [''.join(dice.choices('xyz', k=7)) for _ in range(100)]
    groups = choose_groups(sample_of(frequent + others), 20)
    frequent_borders = [border for border in groups.borders if border.startswith(b'e')]
    assert len(frequent_borders) >= 15
    assert max(map(len, frequent_borders)) >= 2


def test_groups_have_similar_shares_of_the_sample():
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
def test_passes_cover_the_groups_in_order_and_stay_below_the_limit(sizes, max_bytes):
    ranges = list(pass_ranges(sizes, max_bytes))
    assert [group for first, last in ranges for group in range(first, last)] == list(
        range(len(sizes))
    )
    for first, last in ranges:
        assert last - first == 1 or sum(sizes[first:last]) <= max_bytes


def added_up(dictionaries):
    total = {}
    for dictionary in dictionaries:
        for string, weight in dictionary.items():
            total[string] = total.get(string, 0) + weight
    return total


@given(ITEMS)
def test_unpacks_the_strings_in_descending_order(items):
    table = SuffixTable.from_items(items.items())
    assert list(table.items()) == sorted(items.items(), reverse=True)
    assert len(table) == len(items)
    again = SuffixTable.from_bytes(table.to_bytes())
    assert list(again.items()) == list(table.items())
    assert again.nbytes == len(table.to_bytes())


@given(ITEMS)
def test_the_bytes_added_are_the_nodes_of_a_trie(items):
    prefixes = {string[:length] for string in items for length in range(1, len(string) + 1)}
    table = SuffixTable.from_items(items.items())
    assert table.added == len(prefixes)
    assert table.longest == max(map(len, items), default=0)


@given(st.lists(ITEMS, max_size=6))
def test_merging_adds_up(parts):
    merged = merge_suffix_tables(SuffixTable.from_items(part.items()) for part in parts)
    # The same bytes, however the parts were merged.
    assert merged.to_bytes() == SuffixTable.from_items(added_up(parts).items()).to_bytes()


@given(st.lists(ITEMS, max_size=8), st.randoms(use_true_random=False))
def test_a_merger_does_not_depend_on_the_order(parts, dice):
    shuffled = parts[:]
    dice.shuffle(shuffled)
    merger = SuffixTableMerger()
    for part in shuffled:
        merger.add(SuffixTable.from_items(part.items()))
    assert list(merger.merged().items()) == sorted(added_up(parts).items(), reverse=True)


def test_the_tables_waiting_in_a_merger_take_no_more_than_the_sum():
    dice = random.Random(3)
    merger = SuffixTableMerger()
    for _ in range(200):
        strings = [bytes(dice.choices(b'abcd', k=5)) for _ in range(dice.randint(1, 40))]
        merger.add(SuffixTable.from_items((string, 1) for string in strings))
        assert merger._waiting_bytes <= merger._merged.nbytes


@given(ITEMS, st.data())
def test_rows_get_new_weights(items, data):
    table = SuffixTable.from_items(items.items())
    weights = data.draw(st.lists(WEIGHTS, min_size=len(items), max_size=len(items)))
    weighed = table.with_weights(np.array([7, *weights], np.int64), 1)
    expected = {
        string: weight for (string, _), weight in zip(table.items(), weights, strict=True) if weight
    }
    assert weighed.data.tobytes() == SuffixTable.from_items(expected.items()).data.tobytes()
    assert (weighed.rows, weighed.added) == (
        len(expected), SuffixTable.from_items(expected.items()).added
    )  # fmt: skip


@pytest.mark.parametrize('data', [b'', b'TKS\x02' + bytes(40), b'TKT\x01' + bytes(40)])
def test_refuses_other_bytes(data):
    with pytest.raises(ValueError, match='not a packed suffix table'):
        SuffixTable.from_bytes(data)
