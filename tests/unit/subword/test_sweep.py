"""The groups together select what the plain rule selects, whatever their borders."""

from bisect import bisect_right

from hypothesis import given
from hypothesis import strategies as st

from tokcore.subword.plain_iteration import select_substrings
from tokcore.subword.suffix_tables import PrefixPartitions, SuffixTable, proper_prefixes
from tokcore.subword.sweep import merge_selections, order_subtokens, select_partition

TEXTS = st.text('ab中_', min_size=1, max_size=7)
SUFFIXES = st.dictionaries(TEXTS, st.integers(0, 30), max_size=40)
BORDERS = st.sets(st.text('ab中_', min_size=1, max_size=4), max_size=6)
MIN_COUNTS = st.integers(1, 60)


def grouped(suffixes, borders):
    """The groups of these borders, and the table of each."""
    groups = PrefixPartitions(tuple(sorted(border.encode() for border in borders)))
    parts = [{} for _ in range(len(groups))]
    for suffix, weight in suffixes.items():
        parts[bisect_right(groups.borders, suffix.encode())][suffix.encode()] = weight
    return groups, [SuffixTable.from_items(part.items()) for part in parts]


def prefix_counts(suffixes):
    counts = {}
    for suffix, weight in suffixes.items():
        for length in range(1, len(suffix) + 1):
            counts[suffix[:length]] = counts.get(suffix[:length], 0) + weight
    return counts


def subtokens_of(groups, tables, min_count, alphabet):
    selections = [
        select_partition(table, *groups.bounds(group), min_count)[0]
        for group, table in enumerate(tables)
    ]
    return list(order_subtokens(merge_selections(selections, groups.borders, alphabet, min_count)))


@given(SUFFIXES, BORDERS, MIN_COUNTS)
def test_all_groups_together_select_what_the_plain_rule_selects(suffixes, borders, min_count):
    alphabet = 'ab中_z'
    groups, tables = grouped(suffixes, borders)
    expected = select_substrings(prefix_counts(suffixes), min_count, alphabet)
    assert subtokens_of(groups, tables, min_count, alphabet) == expected


@given(SUFFIXES, BORDERS, MIN_COUNTS, MIN_COUNTS)
def test_infrequent_tails_do_not_matter_from_their_min_count_on(
    suffixes, borders, min_weight, more
):
    groups, tables = grouped(suffixes, borders)
    frequent = [
        select_partition(table, *groups.bounds(group), 10**6, min_weight)[1]
        for group, table in enumerate(tables)
    ]
    min_count = min_weight + more - 1
    assert subtokens_of(groups, frequent, min_count, 'ab中_') == subtokens_of(
        groups, tables, min_count, 'ab中_'
    )


@given(SUFFIXES, BORDERS, MIN_COUNTS)
def test_a_suffix_is_cut_to_its_longest_frequent_prefix(suffixes, borders, min_weight):
    groups, tables = grouped(suffixes, borders)
    counts = prefix_counts(suffixes)
    shared = {prefix for border in groups.borders for prefix in proper_prefixes(border)}
    for group, table in enumerate(tables):
        expected = {}
        for packed, weight in table.items():
            suffix = packed.decode()
            prefix = next(
                suffix[:length]
                for length in range(len(suffix), 0, -1)
                if counts[suffix[:length]] >= min_weight
                or length == 1
                or suffix[:length].encode() in shared
            )
            if weight:
                expected[prefix.encode()] = expected.get(prefix.encode(), 0) + weight
        _, frequent = select_partition(table, *groups.bounds(group), 1, min_weight)
        assert dict(frequent.items()) == expected
        assert frequent.to_bytes()[28:] == SuffixTable.from_items(expected.items()).to_bytes()[28:]
