"""The weighted suffix trie, pruned or full, against sums over all substrings."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.counts.token_table import TokenTable
from tokcore.learning import pruned_trie
from tokcore.learning.pruned_trie import PrunedSuffixTrie
from tokcore.learning.ranked_text import escape_tokens
from tokcore.learning.suffix_trie import FullSuffixTrie, select_first, select_next, sort_suffixes

words = st.one_of(
    st.text(st.sampled_from('abc_\\é中\U0001f600'), max_size=10),
    st.text(st.sampled_from('ab'), max_size=20),
    st.builds(lambda piece, times: piece * times, st.sampled_from(['a', 'ab', 'aab']),
              st.integers(1, 40)),
)  # fmt: skip
vocabularies = st.lists(words, min_size=1, max_size=12, unique=True)
depth_limits = st.sampled_from([1, 2, 3, 7, 199, 2**31 - 1])
tables = st.dictionaries(words, st.integers(0, 9), min_size=1, max_size=12)


@pytest.fixture(params=['usual lists', 'tiny lists'])
def sizes(request, monkeypatch):
    """With tiny sizes, small texts also take several shares and hash their bigrams."""
    if request.param == 'tiny lists':
        tiny = {
            '_SHARE': 0,
            '_MIN_FRONTIER': 3,
            '_BATCH': 2,
            '_REGION_BITS': 2,
            '_MAX_BIGRAM_BITS': 1,
        }
        for name, value in tiny.items():
            monkeypatch.setattr(pruned_trie, name, value)


def escape(counts):
    table = TokenTable.from_items(counts.items())
    return escape_tokens(table.data, table.offsets, table.counts, ()), table.counts


def sort(tokens, longest):
    text, _ = escape(dict.fromkeys(tokens, 1))
    return text, sort_suffixes(text, longest)


def characters(text):
    return ''.join(map(chr, text.alphabet[text.ranks]))


def escaped(token):
    return token.replace('\\', '\\\\').replace('_', '\\u') + '_'


def plain_suffixes(text, longest):
    """The suffix at each position of the text, cut to `longest` characters."""
    joined = characters(text)
    return [joined[p : joined.index('_', p) + 1][:longest] for p in range(len(joined))]


def common_prefix(one, other):
    differing = (i for i, (a, b) in enumerate(zip(one, other)) if a != b)
    return next(differing, min(len(one), len(other)))


@given(vocabularies)
def test_escaped_text_is_every_token_escaped(tokens):
    text, _ = sort(tokens, 5)
    assert characters(text) == ''.join(map(escaped, tokens))
    assert np.diff(text.starts).tolist() == [len(escaped(token)) for token in tokens]
    assert text.alphabet.tolist() == sorted(map(ord, set('\\_u;0123456789').union(*tokens)))


@given(vocabularies, depth_limits)
def test_suffixes_are_sorted_with_their_longest_common_prefixes(tokens, longest):
    text, classes = sort(tokens, longest)
    whole, cut = plain_suffixes(text, None), plain_suffixes(text, longest)
    order = classes.order.tolist()
    assert sorted(order) == list(range(len(whole)))
    members = [order[a:b] for a, b in zip(classes.starts, classes.starts[1:])]
    assert [min(positions) for positions in members] == classes.representatives.tolist()
    assert all(len({cut[p] for p in positions}) == 1 for positions in members)
    strings = [whole[positions[0]][:longest] for positions in members]
    assert strings == sorted(strings)
    for one, other, prefix in zip(members, members[1:], classes.prefixes[1:].tolist()):
        expected = common_prefix(whole[one[0]], whole[other[0]])
        assert min(prefix, longest) == min(expected, longest)


def weigh(text, counts, cuts, longest):
    """The weight of every substring that begins at one of the positions in `cuts`."""
    weights = Counter()
    ends = text.starts[1:].tolist()
    for end, begin, count in zip(ends, text.starts.tolist(), counts.tolist()):
        for position in range(begin, end):
            if position in cuts:
                for length in range(1, min(end - position, longest) + 1):
                    weights[joined(text, position, length)] += count
    return weights


def joined(text, position, length):
    return ''.join(map(chr, text.alphabet[text.ranks[position : position + length]]))


def select(weights, min_count):
    """The selected strings of two characters and more, and the remaining weights of all."""
    remaining = Counter(weights)
    selected = set()
    for string in sorted(remaining, key=len, reverse=True):
        count = remaining[string]
        if len(string) > 1 and count >= min_count:
            selected.add(string)
            for length in range(1, len(string)):
                remaining[string[:length]] -= count
    return selected, remaining


def match_lengths(text, selected):
    """The length of the longest selected string at each position, at least 1."""
    whole = plain_suffixes(text, None)
    return [max((n for n in range(2, len(s) + 1) if s[:n] in selected), default=1) for s in whole]


def check_nodes(text, counts, trie, longest, min_weight):
    """The nodes are all strings that are heavy enough and branch or end."""
    totals = weigh(text, counts, range(len(text.ranks)), longest)
    longer = {}
    for string, total in totals.items():
        longer[string[:-1]] = max(longer.get(string[:-1], 0), total)
    expected = {
        string: total
        for string, total in totals.items()
        if len(string) > 1 and total >= min_weight and total > longer.get(string, 0)
    }
    strings = [joined(text, p, d) for p, d in zip(trie.positions.tolist(), trie.depths.tolist())]
    below = strings[trie.letters :]
    assert len(set(below)) == len(below)
    assert dict(zip(below, trie.totals[trie.letters :].tolist())) == expected
    letters = list(map(chr, text.alphabet))
    assert trie.totals[: trie.letters].tolist() == [totals[letter] for letter in letters]
    strings[: trie.letters] = letters
    for node in range(trie.letters, len(strings)):
        parent = trie.parents[node]
        above = [n for n in range(2, len(strings[node])) if strings[node][:n] in expected]
        assert parent < node
        assert strings[parent] == strings[node][: max(above, default=1)]
    tokens = np.repeat(np.arange(len(counts)), np.diff(text.starts))
    for position, suffix in enumerate(plain_suffixes(text, longest)):
        if counts[tokens[position]]:
            above = [n for n in range(2, len(suffix) + 1) if suffix[:n] in expected]
            assert strings[trie.node_of[position]] == suffix[: max(above, default=1)]


NO_RESERVED = np.zeros(0, np.int64)


@pytest.mark.usefixtures('sizes')
@given(tables, depth_limits, st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_a_pruned_trie_has_the_strings_of_the_least_min_weight_so_far(table, longest, min_weights):
    text, counts = escape(table)
    pruned = PrunedSuffixTrie(text, counts, longest, NO_RESERVED)
    for i, min_weight in enumerate(min_weights):
        check_nodes(text, counts, pruned.at_least(min_weight), longest, min(min_weights[: i + 1]))


@given(vocabularies, depth_limits)
def test_a_full_trie_has_all_strings(tokens, longest):
    text, counts = escape({token: 1 + len(token) % 3 for token in tokens})
    check_nodes(
        text, counts, FullSuffixTrie(text, counts, longest, NO_RESERVED).at_least(5), longest, 1
    )


@pytest.mark.usefixtures('sizes')
@pytest.mark.parametrize('min_weight', [100, 150, 70_000, 200_000])
def test_a_large_min_weight_expands_the_trie_to_its_half(min_weight):
    table = {'abab': 99_999, 'aaaab': 70_001, 'abb': 74, 'aab': 75, 'ab': 2, 'bbbbb': 65_536}
    text, counts = escape(table)
    pruned = PrunedSuffixTrie(text, counts, 199, NO_RESERVED)
    check_nodes(text, counts, pruned.at_least(2 * min_weight), 199, min_weight)
    check_nodes(text, counts, pruned.at_least(min_weight), 199, min_weight)
    check_nodes(text, counts, pruned.at_least(3), 199, 3)


@pytest.mark.usefixtures('sizes')
@pytest.mark.parametrize('largest', [2**32 - 1, 2**32, 2**60])
def test_counts_of_any_size_are_summed_up(largest):
    text, counts = escape({'abab': largest, 'abb': 2**31, 'aab': 3, 'ba': 2**32 - 2})
    pruned = PrunedSuffixTrie(text, counts, 199, NO_RESERVED)
    for min_weight in (2**32 + 1, 7, 1):
        check_nodes(
            text,
            counts,
            pruned.at_least(min_weight),
            199,
            min_weight if min_weight < 100 else min_weight // 2,
        )


@pytest.mark.parametrize('kind', [PrunedSuffixTrie, FullSuffixTrie])
@given(tables, depth_limits, st.integers(1, 9), st.integers(0, 3))
def test_selections_are_those_of_the_plain_rule(kind, table, longest, min_count, reserved):
    text, counts = escape(table)
    # Suffixes as long as a reserved token would be.
    reserved_suffixes = text.starts[1:][np.diff(text.starts) > reserved] - 1 - reserved
    trie = kind(text, counts, longest, reserved_suffixes).at_least(min_count)
    selection = select_first(trie, min_count)
    cuts = set(range(len(text.ranks)))
    for _ in range(3):
        selected, remaining = select(weigh(text, counts, cuts, longest), min_count)
        nodes = np.flatnonzero(selection[trie.letters :, 1]) + trie.letters
        positions, depths = trie.positions[nodes].tolist(), trie.depths[nodes].tolist()
        strings = [joined(text, p, d) for p, d in zip(positions, depths)]
        assert sorted(strings) == sorted(selected)
        assert selection[nodes, 0].tolist() == [remaining[string] for string in strings]
        letters = [remaining[chr(point)] for point in text.alphabet]
        assert selection[: trie.letters, 0].tolist() == letters

        lengths = match_lengths(text, selected)
        cuts = set()
        for position, end in zip(text.starts.tolist(), text.starts[1:].tolist()):
            while position < end:
                cuts.add(position)
                position = end if position in reserved_suffixes else position + lengths[position]
        select_next(trie, text.starts, counts, selection, min_count)


@pytest.mark.parametrize('longest', [299, 2**31 - 1])
def test_long_common_prefixes(longest):
    tokens = ['a' * 2000, 'ba' + 'a' * 1500, 'ab' * 700, 'cab' + 'ab' * 600, 'a' * 1300 + 'c']
    text, classes = sort(tokens, longest)
    whole = plain_suffixes(text, None)
    representatives = classes.representatives.tolist()
    for one, other, prefix in zip(
        representatives, representatives[1:], classes.prefixes[1:].tolist()
    ):
        assert whole[one] < whole[other] or whole[one][:longest] == whole[other][:longest]
        assert min(prefix, longest) == min(common_prefix(whole[one], whole[other]), longest)
