"""The compacted suffix tree against the set of all substrings."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.subword.escaped_text import escape_tokens
from tokcore.subword.suffixes import sort_suffixes
from tokcore.subword.tree import (
    build_tree,
    claim_nodes,
    match_nodes,
    own_weights,
    prune_tree,
    sum_below,
)
from tokcore.token_table import TokenTable

words = st.one_of(
    st.text(st.sampled_from('abc_\\é中\U0001f600'), max_size=10),
    st.text(st.sampled_from('ab'), max_size=20),
    st.builds(lambda piece, times: piece * times, st.sampled_from(['a', 'ab', 'aab']),
              st.integers(1, 120)),
)  # fmt: skip
vocabularies = st.lists(words, min_size=1, max_size=12, unique=True)
depth_limits = st.sampled_from([1, 2, 3, 7, 199, 2**31 - 1])


def grow(tokens, longest):
    table = TokenTable.from_items((token, 1) for token in tokens)
    text = escape_tokens(table.data, table.offsets, table.counts, ())
    return text, sort_suffixes(text, longest)


def characters(text):
    return ''.join(map(chr, text.alphabet[text.ranks]))


def escaped(token):
    return token.replace('\\', '\\\\').replace('_', '\\u') + '_'


def node_strings(text, tree):
    joined = characters(text)
    return [joined[p : p + d] for p, d in zip(tree.places.tolist(), tree.depths.tolist())]


def plain_suffixes(text, longest):
    """The suffix of each place in the text, cut to `longest`."""
    joined = characters(text)
    return [joined[p : joined.index('_', p) + 1][:longest] for p in range(len(joined))]


def common_prefix(one, other):
    differing = (i for i, (a, b) in enumerate(zip(one, other)) if a != b)
    return next(differing, min(len(one), len(other)))


@given(vocabularies)
@settings(deadline=None)
def test_escaped_text_is_every_token_escaped(tokens):
    text, _ = grow(tokens, 5)
    assert characters(text) == ''.join(map(escaped, tokens))
    assert np.diff(text.starts).tolist() == [len(escaped(token)) for token in tokens]
    assert text.alphabet.tolist() == sorted(map(ord, set('\\_u;0123456789').union(*tokens)))


@given(vocabularies, depth_limits)
@settings(deadline=None, max_examples=200)
def test_suffixes_are_sorted_and_common_prefixes_counted(tokens, longest):
    text, classes = grow(tokens, longest)
    whole, cut = plain_suffixes(text, None), plain_suffixes(text, longest)
    order = classes.order.tolist()
    assert sorted(order) == list(range(len(whole)))
    members = [order[a:b] for a, b in zip(classes.starts, classes.starts[1:])]
    assert [min(places) for places in members] == classes.leaders.tolist()
    assert all(len({cut[p] for p in places}) == 1 for places in members)
    strings = [whole[places[0]][:longest] for places in members]
    assert strings == sorted(strings)
    for one, other, prefix in zip(members, members[1:], classes.prefixes[1:].tolist()):
        expected = common_prefix(whole[one[0]], whole[other[0]])
        assert min(prefix, longest) == min(expected, longest)


@given(vocabularies, depth_limits)
@settings(deadline=None, max_examples=200)
def test_nodes_are_where_suffixes_branch_or_end(tokens, longest):
    text, classes = grow(tokens, longest)
    tree = build_tree(text, classes, longest)
    suffixes = plain_suffixes(text, longest)
    followers = {}
    for suffix in suffixes:
        for length in range(1, len(suffix) + 1):
            followers.setdefault(suffix[:length], set()).add(suffix[length : length + 1])
    expected = {s for s, after in followers.items() if len(after) > 1 or after == {''}}
    strings = node_strings(text, tree)
    assert strings == sorted(expected, reverse=True)
    assert [strings[node] for node in tree.node_of] == suffixes
    parents = [max((n for n in range(1, len(s)) if s[:n] in expected), default=0) for s in strings]
    assert tree.parent_depths.tolist() == parents
    tops = [s[0] for s, parent in zip(strings, parents) if parent == 0]
    assert [chr(text.alphabet[rank]) for rank in tree.first_ranks] == tops


@given(vocabularies, depth_limits, st.integers(1, 9), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=200)
def test_claims_and_matches_follow_their_rules(tokens, longest, min_count, random):
    text, classes = grow(tokens, longest)
    tree = build_tree(text, classes, longest)
    strings = node_strings(text, tree)
    weights = np.array([random.randrange(4) for _ in strings], np.int64)
    left = Counter()
    for string, weight in zip(strings, weights.tolist()):
        for length in range(1, len(string) + 1):
            left[string[:length]] += weight
    totals = Counter(left)
    kept = {}
    for string in sorted(left, key=len, reverse=True):
        count = left[string]
        if len(string) > 1 and count >= min_count:
            kept[string] = count
            for length in range(1, len(string)):
                left[string[:length]] -= count

    assert sum_below(tree, weights).tolist() == [totals[string] for string in strings]
    assert own_weights(tree, sum_below(tree, weights)).tolist() == weights.tolist()
    for pruned in (False, True):
        if pruned:
            whole = tree
            tree, sums = prune_tree(tree, sum_below(tree, weights), min_count)
            weights = own_weights(tree, sums)
            assert node_strings(text, tree) == [
                s
                for s, parent in zip(strings, whole.parent_depths)
                if totals[s] >= min_count or parent == 0
            ]
            strings = node_strings(text, tree)
        claims = claim_nodes(tree, weights, min_count, len(text.alphabet))
        assert [strings[node] for node in claims.nodes] == sorted(kept, reverse=True)
        assert claims.counts.tolist() == [kept[strings[node]] for node in claims.nodes]
        letters = [chr(point) for point in text.alphabet]
        assert claims.left_over.tolist() == [left[letter] for letter in letters]
        matches = match_nodes(tree, claims)
        for node, suffix in zip(tree.node_of, plain_suffixes(text, longest)):
            lengths = [n for n in range(2, len(suffix) + 1) if suffix[:n] in kept]
            assert matches[node] == max(lengths, default=1)


@pytest.mark.parametrize('longest', [299, 2**31 - 1])
def test_long_common_prefixes(longest):
    tokens = ['a' * 2000, 'ba' + 'a' * 1500, 'ab' * 700, 'cab' + 'ab' * 600, 'a' * 1300 + 'c']
    text, classes = grow(tokens, longest)
    whole = plain_suffixes(text, None)
    leaders = classes.leaders.tolist()
    for one, other, prefix in zip(leaders, leaders[1:], classes.prefixes[1:].tolist()):
        assert whole[one] < whole[other] or whole[one][:longest] == whole[other][:longest]
        assert min(prefix, longest) == min(common_prefix(whole[one], whole[other]), longest)
