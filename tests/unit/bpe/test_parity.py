"""Parity-aware merges are those of counting all pairs of all languages again at each."""

import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.bpe import pair_counting, trainer
from tokcore.bpe.options import BpeRules
from tokcore.bpe.parity import learn_parity_merges
from tokcore.bpe.plain_iteration import count_pairs, learn_plainly, merge
from tokcore.counts.token_table import TokenTable
from tokcore.text.byte_level import spelled

words = st.one_of(
    st.text('ab', max_size=20),
    st.text('abcdé中', max_size=8),
    st.text('Ġa \U0001f600', max_size=6),
)
tables = st.dictionaries(words, st.integers(0, 12), max_size=12)
languages = st.lists(st.tuples(tables, tables), min_size=1, max_size=4)
limits = {
    'min_count': st.sampled_from([0, 1, 2, 7]),
    'max_piece_length': st.sampled_from([None, None, 0, 1, 2, 3, 5, 9]),
    'special_tokens': st.lists(
        st.text('abĠ< é', min_size=1, max_size=3), max_size=3, unique=True
    ).map(tuple),
}


def learned(languages, rules):
    tables = [[TokenTable.from_items(counts.items()) for counts in pair] for pair in languages]
    found = learn_parity_merges(*zip(*tables), rules)
    return list(found.entries), list(found.merges), found.counts.tolist()


def learned_plainly(languages, rules):
    """The entries, the merges and their counts, with all words and their pairs as lists and dictionaries."""
    training, development = (
        [[(list(spelled(word.encode())), count) for word, count in table.items()] for table in each]
        for each in zip(*languages)
    )
    ids = {entry: id_ for id_, entry in enumerate(learn_plainly((), rules)[0])}
    units = dict.fromkeys(ids, 1)
    merges, counts, choosing = [], [], list(range(len(languages)))
    while choosing and len(merges) < rules.merges and len(ids) < (rules.vocab_size or 1 << 60):
        lengths = [sum(len(symbols) * count for symbols, count in each) for each in development]
        language = min(choosing, key=lambda index: (-lengths[index], index))
        found = count_pairs(training[language], units, rules.max_piece_length)
        pair = max(found, key=lambda each: (found[each], each), default=None)
        if pair is None or found[pair] < max(rules.min_count, 1):
            choosing.remove(language)
            continue
        merges.append(pair)
        counts.append(found[pair])
        ids.setdefault(''.join(pair), len(ids))
        units[''.join(pair)] = units[pair[0]] + units[pair[1]]
        for each in (*training, *development):
            each[:] = [(merge(symbols, pair), count) for symbols, count in each]
    return list(ids), merges, counts


@given(languages, st.sampled_from([1, 3, 20, 300]), st.fixed_dictionaries(limits))
@example([({}, {})], 9, {})
@example([({'aaaa': 3}, {'aaaaa': 2}), ({'ab': 1}, {'': 7, 'aaa': 3})], 9, {})
@example([({'abc': 5, 'ab': 9}, {'abc': 5}), ({'abc': 5, 'bc': 9}, {'abc': 4})], 9, {})
def test_any_languages(languages, merges, asked):
    rules = BpeRules(merges=merges, **asked)
    assert learned(languages, rules) == learned_plainly(languages, rules)


@given(languages, st.integers(250, 270))
def test_any_size(languages, size):
    rules = BpeRules(vocab_size=size, merges=1000)
    assert learned(languages, rules) == learned_plainly(languages, rules)


@pytest.mark.parametrize('few', [0, 1 << 10])
@pytest.mark.parametrize('cells', [(np.uint16, np.uint32), (np.uint32,)])
def test_growing_and_many_symbols_change_nothing(monkeypatch, cells, few):
    for room in ('_FIRST_SYMBOLS', '_FIRST_PAIRS', '_FIRST_OCCURRENCES'):
        monkeypatch.setattr(trainer, room, 1)
    monkeypatch.setattr(pair_counting, '_FEW_SYMBOLS', few)
    monkeypatch.setattr(trainer, '_CELLS', cells)
    dice = random.Random(few)
    syllables = [
        ['ba', 'con', 'de', 'er', ' ', 'ing', 'aa', 'aaa'],
        ['中', '文', 'ing', 'aa', '中文', 'é', 'con'],
        ['an', 'na', 'a', 'er', 'ing'],
    ]
    languages = [
        [
            {
                ''.join(dice.choices(each, k=dice.randint(1, 6))): 1 + 3000 // (1 + rank)
                for rank in range(size)
            }
            for size in (200, 40)
        ]
        for each in syllables
    ]
    rules = BpeRules(merges=500)
    assert learned(languages, rules) == learned_plainly(languages, rules)


def test_a_small_table_takes_the_symbols_of_a_large_one():
    # More than cells of two bytes can number, before the second language makes its merges.
    dice = random.Random(0)
    letters = 'abcdefghijklmnopqrstuvwxyz'
    many = {''.join(dice.choices(letters, k=12)): 1 for _ in range(16_000)}
    small = {'ABAB': 3, 'CABA': 2}
    rules = BpeRules(merges=100_000)
    entries, merges, counts = learned([(many, {'a': 1000}), (small, {'ABABAB': 1})], rules)
    assert len(entries) > 1 << 16
    alone = learned_plainly([(small, {'ABABAB': 1})], rules)
    assert len(alone[1]) == 4
    assert (merges[-4:], counts[-4:]) == alone[1:]
